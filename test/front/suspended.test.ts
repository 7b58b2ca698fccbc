/** A suspend of the machine ends no client, even if it lasts longer than every deadline. */
import { once } from 'node:events';
import t from 'tap';
import { WebSocket } from 'ws';
import { limits } from '../../src/limits.js';
import { eventually, GOOD_KEY, startFront } from '../support/front-server.js';
import { pause } from '../support/waiting.js';

const suspendMs = 3_600_000;
/** Several beats of the service. */
const beatsMs = 1_000;

t.test('a WebSocket that idles lives on; one that stays silent ends after the usual time', async (t) => {
  let nowMs = 0;
  const bounds = { socketSilenceMsMax: 2_000, socketPingMs: 500 };
  const front = await startFront(t, { bounds, parts: { clock: () => nowMs } });
  const [alive, silent] = [true, false].map(
    (autoPong) =>
      new WebSocket(`ws://127.0.0.1:${front.port}/v1/tts/ws`, {
        headers: { 'x-api-key': GOOD_KEY },
        perMessageDeflate: false,
        autoPong,
      }),
  ) as [WebSocket, WebSocket];
  await Promise.all([alive, silent].map((socket) => once(socket, 'open')));
  nowMs += suspendMs;
  await pause(beatsMs);
  t.equal(silent.readyState, WebSocket.OPEN);
  for (let passedMs = 0; passedMs < bounds.socketSilenceMsMax / 2; passedMs += 100) {
    nowMs += 100;
    await pause(100);
  }
  t.equal(silent.readyState, WebSocket.OPEN, 'half of its time has passed');
  await eventually(() => {
    nowMs += 100;
    return silent.readyState === WebSocket.CLOSED;
  });
  t.equal(alive.readyState, WebSocket.OPEN);
  alive.close();
});

t.test('a body that is on its way is read to its end', async (t) => {
  let nowMs = 0;
  const front = await startFront(t, { parts: { clock: () => nowMs } });
  const body = JSON.stringify({ text: 'Hi', voice: 'ada' });
  const head = `POST /v1/tts HTTP/1.1\r\nHost: a\r\nx-api-key: ${GOOD_KEY}\r\nContent-Type: application/json\r\n`;
  const client = await front.sent(Buffer.from(`${head}Content-Length: ${body.length}\r\n\r\n${body[0]}`));
  await eventually(() => front.server.inFlight === 1);
  nowMs += suspendMs;
  await pause(beatsMs + limits.stallRearmMs / 4);
  client.send(body.slice(1));
  t.equal((await client.response()).status, 200);
});
