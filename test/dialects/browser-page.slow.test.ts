/** A page of another origin speaks with a token of its server, in a real browser. */
import { createServer } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import t from 'tap';
import { noBrowser, openBrowser } from '../console/browser-rig.js';
import { ConsoleClient } from '../support/console-client.js';
import { SCRIPTED, startService } from '../support/service.js';

t.test(
  'a page streams and converses with tokens, and a page elsewhere cannot use them',
  { skip: noBrowser },
  async (t) => {
    const pages = createServer((_, response) => {
      response.setHeader('content-type', 'text/html');
      response.end('<!doctype html><title>page</title>');
    }).listen(0, '127.0.0.1');
    await once(pages, 'listening');
    t.teardown(() => pages.close());
    const { port: pagesPort } = pages.address() as AddressInfo;
    const origin = `http://127.0.0.1:${pagesPort}`;
    const service = await startService(t, { CONSOLE_PORT: '0', BROWSER_PORT: '0' }, SCRIPTED);
    const host = `127.0.0.1:${service.dialectPorts['browser']}`;
    const operator = await ConsoleClient.claim(service);
    const [account] = await operator.call('accounts', {});
    const [key] = await operator.call('keys', { accountId: account!.accountId });
    // As the server of the page does it, with a token of its own.
    const { token: program } = await operator.call('createToken', { name: 'web shop', days: 1 });
    const tokenFor = async (): Promise<string> => {
      const answer = await fetch(`${operator.url}/api/browserToken`, {
        method: 'POST',
        headers: { authorization: `Bearer ${program}`, 'content-type': 'application/json' },
        body: JSON.stringify({ keyId: key!.keyId, origin }),
      });
      return ((await answer.json()) as { token: string }).token;
    };
    const browser = await openBrowser(t);
    const page = await (await browser.newContext()).newPage();
    const streamed = (token: string) =>
      page.evaluate<unknown>(`fetch('http://${host}/v1/tts/stream?token=${token}', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ text: 'The kettle is on.', voice: 'wren' }),
    }).then(async (answer) => ({ status: answer.status, text: (await answer.text()).slice(0, 200) }),
      (error) => ({ status: null, text: String(error) }))`);
    const conversed = (token: string) =>
      page.evaluate<unknown>(`new Promise((resolve) => {
      const socket = new WebSocket('ws://${host}/v1/tts/ws?token=${token}');
      const frames = [];
      const send = (frame) => socket.send(JSON.stringify({ context_id: 'a', ...frame }));
      socket.onopen = () => {
        send({ start_context: { voice_id: 'wren', model_id: 'default' } });
        send({ send_text: 'The kettle is on.' });
        send({ close_context: true });
      };
      socket.onmessage = ({ data }) => {
        const frame = JSON.parse(data);
        frames.push(Object.keys(frame)[0]);
        if (frame.context_closed) socket.close();
      };
      socket.onclose = ({ code }) => resolve({ code, kinds: [...new Set(frames)] });
    })`);

    await page.goto(origin);
    t.match(await streamed(await tokenFor()), { status: 200, text: /^data: \{"type":"audio"/ });
    t.match(await conversed(await tokenFor()), {
      kinds: ['context_started', 'audio_chunk', 'flush_completed', 'context_closed'],
    });
    t.match(await streamed('1.2.x'), { status: 401, text: /Invalid or missing token/ }, 'the page reads why');
    t.match(await conversed('1.2.x'), { code: 1008, kinds: ['error'] });

    await page.goto(`http://localhost:${pagesPort}`);
    t.match(await streamed(await tokenFor()), { status: 401 }, 'the same page under another name');
    t.match(await conversed(await tokenFor()), { code: 1008, kinds: ['error'] });
  },
);
