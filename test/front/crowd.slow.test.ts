/** Connections of callers with a key: what one account may hold when they become few. */
import { createConnection, type Socket } from 'node:net';
import t, { type Test } from 'tap';
import { ConnectionPool } from '../../src/front/connections.js';
import { GOOD_KEY, OTHER_KEY, requestLines, speak, startFront, type Front } from '../support/front-server.js';
import { answerTo, answerUntil, isOpen, openFrom, openIn } from '../support/many-connections.js';
import { requestBytes } from '../support/raw-client.js';
import { eventually, pause } from '../support/waiting.js';

const MAX = 264;

const get = (path: string, key = GOOD_KEY): Buffer => requestBytes({ path, key });

const refusals = (front: Front): unknown[] =>
  requestLines(front)
    .map(({ fields }) => fields['refusal'])
    .filter((refusal) => refusal !== undefined);

const hasEnd = (answer: string): boolean => answer.endsWith('0\r\n\r\n');

const closes = (answer: string): boolean => /^connection: close\r$/im.test(answer);

t.test(
  'an account may have as many connections with requests as are free, and WebSockets are no crowd',
  (t) => {
    const pool = new ConnectionPool(100);
    const connections = pool.listener();
    connections.open = 100;
    connections.sockets = 60;
    t.ok(connections.isCrowded);
    connections.open = 80;
    t.equal(connections.isCrowded, false, 'WebSockets are no part of a crowd');
    connections.sockets = 0;
    t.ok(connections.isCrowded);
    for (let index = 0; index < 20; index++) connections.accounts.add(1);
    t.ok(connections.hasRoomFor(1));
    connections.accounts.add(1);
    t.equal(connections.hasRoomFor(1), false, 'it has more than is free');
    connections.accounts.remove(1);
    t.ok(connections.hasRoomFor(1));
    connections.open = 98;
    for (let index = 0; index < 16; index++) connections.accounts.add(2);
    t.ok(connections.hasRoomFor(2), 'whatever others hold, 16 requests of an account stay');
    connections.accounts.add(2);
    t.equal(connections.hasRoomFor(2), false);
    t.end();
  },
);

/** Keeps so many connections, asks on each again and again for what is free, and opens what is closed. */
const attack = (t: Test, port: number, count: number): void => {
  let isOver = false;
  const keep = (): void => {
    if (isOver) return;
    const socket = createConnection({ host: '127.0.0.1', port });
    let timer: NodeJS.Timeout | undefined;
    socket.on('error', () => undefined);
    socket.on('connect', () => {
      const ask = (): void => void socket.write(get('/openapi.json'));
      timer = setInterval(ask, 1_000);
      ask();
    });
    socket.resume();
    socket.on('close', () => {
      clearInterval(timer);
      setTimeout(keep, 50);
    });
    t.teardown(() => {
      isOver = true;
      socket.destroy();
    });
  };
  for (let index = 0; index < count; index++) keep();
};

t.test('an account that keeps connections busy for nothing leaves room for others', async (t) => {
  const front = await startFront(t, { bounds: { connectionsMax: MAX } });
  attack(t, front.port, 400);
  await eventually(() => front.server.shared.connections.open > MAX / 2);
  const takenMs: number[] = [];
  let refused = 0;
  let most = 0;
  for (let index = 0; index < 40; index++) {
    const startMs = performance.now();
    const [other] = await openFrom(t, front.port, '127.0.0.2', 1);
    if ((await answerTo(other!, get('/v1/tts/speakers', OTHER_KEY))) !== 'HTTP/1.1 200') refused++;
    takenMs.push(performance.now() - startMs);
    other!.destroy();
    await pause(10);
    most = Math.max(most, front.server.shared.connections.open);
  }
  takenMs.sort((a, b) => a - b);
  t.comment(
    `others: ${refused} of 40 refused, p95 ${takenMs[37]!.toFixed(1)} ms; of ${MAX}, ${most} are open`,
  );
  t.equal(refused, 0);
});

t.test('an account alone with 200 kept connections is served on all, and told which ones end', async (t) => {
  const front = await startFront(t, { bounds: { connectionsMax: MAX } });
  const sockets: Socket[] = [];
  let ended = 0;
  for (let round = 0; round < 2; round++)
    for (let index = 0; index < 200; index++) {
      if (round === 0 || !isOpen(sockets[index]!))
        [sockets[index]] = (await openFrom(t, front.port, '127.0.0.1', 1)) as [Socket];
      const socket = sockets[index]!;
      const path = index % 2 === 0 ? '/v1/tts/speakers' : '/openapi.json';
      const answer = await answerUntil(socket, get(path), (begun) => /\}$/.test(begun));
      if (!/^HTTP\/1.1 200 [^]*\}$/.test(answer)) t.fail(`${index}: ${answer.slice(0, 100)}`);
      if (!closes(answer)) continue;
      ended++;
      socket.end();
      await eventually(() => !isOpen(socket));
    }
  t.comment(`${ended} of 400 answers ended their connection`);
  t.ok(ended > 0 && ended < 200);
  t.strictSame(refusals(front), []);
});

t.test(
  'speech ends its connection in a crowd, so that no account is refused for those that wait',
  async (t) => {
    const front = await startFront(t, { bounds: { connectionsMax: 64 } });
    front.speech.script = (context) => {
      context.audio(64);
      context.close();
    };
    const speech = requestBytes(speak('/v1/tts/stream'));
    const sockets: Socket[] = [];
    const answers: string[] = [];
    for (let index = 0; index < 60; index++) {
      const [socket] = await openFrom(t, front.port, '127.0.0.1', 1);
      answers.push(await answerUntil(socket!, speech, (begun) => hasEnd(begun) || begun.includes(' 503 ')));
      sockets.push(socket!);
    }
    t.ok(answers.every((answer) => /^HTTP\/1.1 200 /.test(answer) && hasEnd(answer)));
    t.ok(answers.slice(0, 32).every((answer) => !closes(answer)));
    t.ok(answers.slice(32).every(closes), 'clients are told');
    await eventually(() => openIn(sockets) === 32);
    t.equal(front.server.shared.connections.open, 32);
    t.strictSame(refusals(front), []);
    const [other] = await openFrom(t, front.port, '127.0.0.2', 1);
    const answer = await answerUntil(
      other!,
      requestBytes({ ...speak('/v1/tts/stream'), key: OTHER_KEY }),
      hasEnd,
    );
    t.ok(hasEnd(answer));
  },
);

t.test('requests whose bodies do not come are refused beyond the part of their account', async (t) => {
  const front = await startFront(t, { bounds: { connectionsMax: 64 } });
  const speech = requestBytes(speak('/v1/tts'));
  const sockets: Socket[] = [];
  for (let index = 0; index < 60; index++) {
    const [socket] = await openFrom(t, front.port, '127.0.0.1', 1);
    socket!.write(speech.subarray(0, -5));
    await eventually(() => front.server.inFlight > index - refusals(front).length);
    sockets.push(socket!);
    if (openIn(sockets) < sockets.length) break;
  }
  await eventually(() => openIn(sockets) === 32);
  t.ok(refusals(front).every((refusal) => refusal === 'connectionsOfAccountExhausted'));
  const [other] = await openFrom(t, front.port, '127.0.0.2', 1);
  t.equal(await answerTo(other!, get('/v1/tts/speakers', OTHER_KEY)), 'HTTP/1.1 200');
});

t.test('in a crowd, a client that is still sending reads why it is refused', async (t) => {
  const front = await startFront(t, { bounds: { connectionsMax: 16 } });
  await openFrom(t, front.port, '127.0.0.2', 8);
  const [socket] = await openFrom(t, front.port, '127.0.0.1', 1);
  t.ok(front.server.shared.connections.isCrowded);
  const request = requestBytes({ ...speak('/v1/tts'), key: 'svc_sk_no' });
  t.equal(await answerTo(socket!, request.subarray(0, -5)), 'HTTP/1.1 401');
  socket!.write(request.subarray(-5));
  t.equal(await answerTo(socket!, get('/v1/tts/speakers')), 'HTTP/1.1 200', 'and can ask again');
  await eventually(() => !isOpen(socket!));
});
