/** The pages for programs: the API to read and to try, lines to copy that work, and tokens. */
import { spawnSync } from 'node:child_process';
import { connect } from 'node:net';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Locator } from 'playwright-core';
import t from 'tap';
import { openApiDocument } from '../../src/api/openapi.js';
import { operations } from '../../src/api/operations.js';
import { freeDialectPorts } from '../../scripts/rig/service.js';
import { limits } from '../../src/limits.js';
import { missingTool } from '../support/tools.js';
import { until } from '../support/waiting.js';
import { type Person, noBrowser, startConsole } from './browser-rig.js';

const skip = noBrowser || missingTool('curl', 'python3');

t.test('somebody reads the API, tries it, and connects a program', { skip }, async (t) => {
  const rig = await startConsole(t, freeDialectPorts);
  const ada: Person = await rig.arrive();
  const { page } = ada;
  await ada.join(rig.claimLink, 'Ada', 'Claim this console');

  const article = (path: string): Locator =>
    page.locator('article').filter({ has: page.getByText(path, { exact: true }) });
  const tryIt = async (
    path: string,
    body?: string,
  ): Promise<{ readonly status: string; readonly shown: Locator }> => {
    const shown = article(path);
    await shown.getByText('Try it', { exact: true }).click();
    if (body !== undefined) await shown.getByLabel('Body', { exact: true }).fill(body);
    await shown.getByRole('button', { name: 'Send' }).click();
    const answer = shown.getByRole('status');
    await answer.waitFor();
    return { status: (await answer.locator('.badge').first().innerText()).slice(0, 3), shown: answer };
  };

  await t.test('every operation, field, status and example of the document is on the page', async (t) => {
    await page.goto('/docs');
    await ada.sees('API');
    await article('/v1/tts').waitFor();
    for (const { path } of Object.values(operations)) t.equal(await article(path).count(), 1, path);
    for (const summary of await page.getByText(/^(?:Request|Answers)$/).all()) {
      await summary.click();
      // The event that draws it comes later.
      await summary.locator('xpath=following-sibling::div').waitFor();
    }
    const text = await page.getByRole('main').innerText();
    const document = openApiDocument(['wren'], limits) as {
      paths: Record<string, Record<string, { responses: object }>>;
      components: { schemas: Record<string, { properties?: object }> };
    };
    for (const { properties = {} } of Object.values(document.components.schemas))
      for (const field of Object.keys(properties)) t.match(text, field, field);
    for (const methods of Object.values(document.paths))
      for (const { responses } of Object.values(methods))
        for (const status of Object.keys(responses)) t.match(text, status, status);
    t.match(text, 'from 0.5 to 3');
    t.match(text, 'The 3rd train leaves at 9:45.');
    t.strictSame(await ada.violations(), [], 'axe, with all of it open');
    t.equal((await ada.layout()).overflowPx, 0);
  });

  await t.test('each operation is tried with the hidden key of the account', async (t) => {
    const whole = await tryIt('/v1/tts');
    t.equal(whole.status, '200');
    const audio = whole.shown.locator('audio');
    // The policy of the page forbids what `waitForFunction` does with a text.
    const isHeard = `(({ readyState, duration }) => readyState >= 1 && duration > 0.3)(document.querySelector('article audio'))`;
    t.ok(await until(() => page.evaluate<boolean>(isHeard)), 'the answer is heard');
    t.equal(await audio.count(), 1);
    const streamed = await tryIt('/v1/tts/stream', '{"text": "One two three.", "voice": "lark"}');
    t.equal(streamed.status, '200');
    t.match(await streamed.shown.innerText(), /data: \{"type":"audio".*x?/);
    t.match(await streamed.shown.innerText(), /x-request-id [\da-f-]{36}/);
    const wrong = await tryIt('/v1/tts/integrations/voiceplatform', '{"message": {"type": "voice-request"}}');
    t.equal(wrong.status, '422');
    t.match(await wrong.shown.innerText(), /"loc":\["body","message","text"\]/);
    t.match(await (await tryIt('/v1/tts/speakers')).shown.innerText(), /"wren"/);
    t.match(await (await tryIt('/readyz')).shown.innerText(), /"ready"/);
    t.match(await (await tryIt('/openapi.json')).shown.innerText(), /"openapi":"3\.1\.0"/);
    await page.goto('/accounts/1/usage');
    await page.getByText('Playground').nth(1).waitFor();
  });

  await t.test('the calls of administration are described', async (t) => {
    await page.goto('/docs');
    await page.getByRole('tab', { name: 'Administration' }).click();
    await article('/api/browserToken').waitFor();
    await article('/api/createKey').getByText('Request', { exact: true }).click();
    await article('/api/createKey').getByText('properties.creditLimit').first().waitFor();
    t.equal(await article('/api/createKey').getByText('Try it').count(), 0);
    t.strictSame(await ada.violations(), []);
  });

  const lines = (label: string): Promise<string> => page.getByLabel(label, { exact: true }).innerText();
  const folder = mkdtempSync(join(tmpdir(), 'connect-'));
  t.teardown(() => rmSync(folder, { recursive: true }));

  await t.test('the lines for curl, Node and Python speak as they are copied', async (t) => {
    await page.goto('/connect');
    await ada.sees('Connect');
    await ada.field('API key').fill(rig.service.key);
    for (const name of ['curl', 'Node', 'Python'])
      t.ok(await until(async () => (await lines(`With ${name}`)).includes(rig.service.key)));
    writeFileSync(join(folder, 'node.mjs'), await lines('With Node'));
    writeFileSync(join(folder, 'python.py'), await lines('With Python'));
    const programs = {
      curl: ['sh', '-c', await lines('With curl')],
      node: [process.execPath, 'node.mjs'],
      python: ['python3', 'python.py'],
    };
    for (const [name, [command = '', ...args]] of Object.entries(programs)) {
      rmSync(join(folder, 'speech.mp3'), { force: true });
      const { status, stderr } = spawnSync(command, args, { cwd: folder, encoding: 'utf8' });
      t.equal(status, 0, `${name} ${stderr}`);
      const audio = readFileSync(join(folder, 'speech.mp3'));
      t.ok(audio.length > 8_000 && audio[0] === 0xff, name);
    }
  });

  await t.test('the addresses for clients of other services answer', async (t) => {
    const { dialectPorts, key } = rig.service;
    const [, liveKit = ''] = /baseURL: '([^']+)'/.exec(await lines('With LiveKit Agents')) ?? [];
    t.equal(liveKit, `http://127.0.0.1:${dialectPorts['elevenlabs']}/v1`);
    t.equal((await fetch(`${liveKit}/voices`, { headers: { 'xi-api-key': key } })).status, 200);
    t.match(await lines('With Pipecat'), `url="ws://127.0.0.1:${dialectPorts['elevenlabs']}"`);
    const webUi = await lines('Address for Open WebUI');
    t.equal((await fetch(`${webUi}/audio/voices`)).status, 200);
    t.equal(await lines('Key for Open WebUI'), key);
    const socket = connect(
      Number(await lines('Port for Home Assistant')),
      await lines('Host for Home Assistant'),
    );
    socket.write('{"type":"describe"}\n');
    const [answer] = (await once(socket, 'data')) as [Buffer];
    t.match(answer.toString(), '"info"');
    socket.destroy();
    await ada.field('Host').fill('speech.example.com');
    const address = `http://speech.example.com:${rig.service.port}/v1/tts/stream`;
    t.ok(await until(async () => (await lines('With curl')).includes(address)));
    t.strictSame(await ada.violations(), []);
  });

  await t.test('a token is made, used and revoked', async (t) => {
    await page.goto('/profile');
    await ada.button('Create token').click();
    await page.getByRole('dialog').getByLabel('Name').fill('billing');
    await page.getByRole('dialog').getByRole('button', { name: 'Create token' }).click();
    const token = await lines('Token');
    await ada.button('I have copied the token').click();
    const status = async (): Promise<number> =>
      (
        await fetch(`${rig.url}/api/accounts`, {
          method: 'POST',
          headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
          body: '{}',
        })
      ).status;
    t.equal(await status(), 200);
    t.strictSame(await ada.violations(), []);
    await ada.button('Revoke billing').click();
    await ada.button('Revoke token').click();
    await page.getByRole('rowheader', { name: 'billing' }).waitFor({ state: 'detached' });
    t.equal(await status(), 401);
  });

  t.strictSame(ada.complaints, [], 'no violation of the policy');
});
