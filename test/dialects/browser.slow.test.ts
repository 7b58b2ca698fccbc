/**
 * A page of another origin: a browser asks the service before it sends a key. The page has the official client of OpenAI,
 * unmodified; that of ElevenLabs does not run in a browser, so the page sends its request.
 */
import { createServer } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { build } from 'esbuild';
import t from 'tap';
import { noBrowser, openBrowser } from '../console/browser-rig.js';
import { missingClients } from '../support/interop.js';
import { packageRoot } from '../support/package-root.js';
import { SCRIPTED, startService } from '../support/service.js';

const script = `
import OpenAI from 'openai';
window.clients = {
  openai: async (baseURL, apiKey) => {
    const client = new OpenAI({ baseURL, apiKey, dangerouslyAllowBrowser: true });
    const input = 'The kettle is on.';
    const speech = await client.audio.speech.create({ model: 'tts-1', voice: 'nova', input });
    return (await speech.arrayBuffer()).byteLength;
  },
  elevenlabs: async (baseUrl, apiKey) => {
    const headers = { 'xi-api-key': apiKey, 'content-type': 'application/json', 'x-fern-language': 'JavaScript' };
    const body = JSON.stringify({ text: 'The kettle is on.' });
    const answer = await fetch(baseUrl + '/v1/text-to-speech/wren/stream', { method: 'POST', headers, body });
    if (!answer.ok) throw Object.assign(new Error(await answer.text()), { status: answer.status });
    return (await answer.arrayBuffer()).byteLength;
  },
};
window.failure = (asked) => asked.then(() => 'it was answered', (error) => ({
  name: error.constructor.name, status: error.status ?? null, message: error.message }));
`;

const skip = missingClients || noBrowser;

t.test('pages of an allowed origin speak; pages of another do not', { skip, timeout: 280_000 }, async (t) => {
  const { outputFiles } = await build({
    stdin: { contents: script, resolveDir: join(packageRoot, 'test', 'interop') },
    ...{ bundle: true, write: false, format: 'iife', platform: 'browser', logLevel: 'silent' },
  });
  const bundle = outputFiles[0]!.text;
  const pages = createServer((request, response) => {
    const isScript = request.url === '/page.js';
    response.setHeader('content-type', isScript ? 'text/javascript' : 'text/html');
    response.end(isScript ? bundle : '<!doctype html><title>page</title><script src="/page.js"></script>');
  }).listen(0, '127.0.0.1');
  await once(pages, 'listening');
  t.teardown(() => pages.close());
  const { port } = pages.address() as AddressInfo;
  const allowed = `http://127.0.0.1:${port}`;
  const service = await startService(
    t,
    {
      ...{ ELEVENLABS_PORT: '0', OPENAI_PORT: '0', CORS_ORIGINS: allowed },
    },
    SCRIPTED,
  );
  const [brokeKey = ''] = await service.makeKeys(1, 0);
  const bases = {
    openai: `http://127.0.0.1:${service.dialectPorts['openai']}/v1`,
    elevenlabs: `http://127.0.0.1:${service.dialectPorts['elevenlabs']}`,
  };
  const browser = await openBrowser(t);
  const page = await (await browser.newContext()).newPage();
  const call = (name: keyof typeof bases, key: string) =>
    `window.clients.${name}(${JSON.stringify(bases[name])}, ${JSON.stringify(key)})`;
  const failureOf = (name: keyof typeof bases, key: string) =>
    page.evaluate(`window.failure(${call(name, key)})`);

  await page.goto(allowed);
  for (const name of ['openai', 'elevenlabs'] as const)
    t.ok(Number(await page.evaluate(call(name, service.key))) > 8_000, `${name} has audio`);
  t.match(await failureOf('openai', brokeKey), { status: 429, message: /credit/ });
  const refused = await service.metric('syrinx_requests_total', { status: '429' });
  t.equal(refused, 1, 'the page sees that it must not try again');
  t.match(await failureOf('elevenlabs', 'svc_sk_unknown'), { status: 401 });

  await page.goto(`http://localhost:${port}`);
  for (const name of ['openai', 'elevenlabs'] as const)
    t.match(await failureOf(name, service.key), { status: null }, `${name} from another origin`);
});
