/** What the server library does to paused WebSockets in the long run, and how the service makes up for it. */
import { once } from 'node:events';
import t from 'tap';
import { WebSocket } from 'ws';
import { GOOD_KEY, eventually, startFront } from '../support/front-server.js';
import { pause } from '../support/waiting.js';

const dial = async (port: number): Promise<WebSocket> => {
  const socket = new WebSocket(`ws://127.0.0.1:${port}/v1/tts/ws`, {
    headers: { 'x-api-key': GOOD_KEY },
    perMessageDeflate: false,
    autoPong: false,
  });
  await once(socket, 'open');
  return socket;
};

const flush = JSON.stringify({ flush: true });

t.test('a socket that was read later and then idles stays open, though it answers no ping', async (t) => {
  const front = await startFront(t, { bounds: { framesPerSecond: 100 } });
  const socket = await dial(front.port);
  let answers = 0;
  socket.on('message', () => answers++);
  for (let i = 0; i < 300; i++) socket.send(flush);
  await eventually(() => answers === 300);
  // Reading goes on after the last answer.
  const count = /syrinx_read_later_seconds_count\{[^}]*ws[^}]*\} [1-9]/;
  await eventually(async () => count.test(await front.metrics.text()));
  // The library closes a socket about twelve seconds after it was resumed, unless something comes.
  await pause(16_000);
  t.equal(socket.readyState, WebSocket.OPEN);
  socket.send(flush);
  await eventually(() => answers === 301);
});

for (const [how, leave] of [
  ['without a word', (socket: WebSocket) => socket.terminate()],
  [
    'with a reset',
    (socket: WebSocket) =>
      (socket as unknown as { _socket: { resetAndDestroy(): void } })._socket.resetAndDestroy(),
  ],
] as const)
  t.test(`a client that leaves ${how} while its messages wait is noticed`, async (t) => {
    // About a minute of messages.
    const front = await startFront(t, { bounds: { framesPerSecond: 40 } });
    const socket = await dial(front.port);
    socket.on('error', () => undefined);
    for (let i = 0; i < 1_500; i++) socket.send(flush);
    await pause(500);
    t.equal(front.server.figures.sockets, 1);
    leave(socket);
    const leftMs = performance.now();
    await eventually(() => front.server.figures.sockets === 0);
    t.ok(performance.now() - leftMs < 12_000, `${Math.round(performance.now() - leftMs)} ms`);
  });
