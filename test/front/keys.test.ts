/** One account at its bounds over real connections: another account does not notice, and nothing of the first is lost. */
import { once } from 'node:events';
import t from 'tap';
import { WebSocket } from 'ws';
import { partOfToday } from '../fuzz/check.js';
import {
  GOOD_KEY,
  OTHER_KEY,
  SECOND_KEY,
  eventually,
  requestLines,
  speak,
  startFront,
} from '../support/front-server.js';
import { makeCertificate } from '../support/certificates.js';
import { missingTool } from '../support/tools.js';
import { type RawClient, requestBytes } from '../support/raw-client.js';
import { pause } from '../support/waiting.js';

const PATH = '/v1/tts/ws';

/** @returns status of the handshake, and the socket if it is 101 */
const dial = async (port: number, key: string, ca?: string) => {
  const scheme = ca === undefined ? 'ws' : 'wss';
  const socket = new WebSocket(`${scheme}://localhost:${port}${PATH}`, {
    headers: { 'x-api-key': key },
    perMessageDeflate: false,
    ...(ca !== undefined && { ca }),
  });
  const answers: { error?: string; flush_id?: string }[] = [];
  socket.on('message', (data: Buffer) => answers.push(JSON.parse(data.toString()) as object));
  const status = await new Promise<number>((resolve) => {
    socket.once('open', () => resolve(101));
    socket.once('unexpected-response', (_request, response) => resolve(response.statusCode ?? 0));
  });
  return { socket, status, answers };
};

const metric = async (front: Awaited<ReturnType<typeof startFront>>, series: string): Promise<number> => {
  const line = (await front.metrics.text()).split('\n').find((text) => text.startsWith(series));
  return Number(line?.split(' ').at(-1) ?? 0);
};

t.test(
  'an account has so many WebSockets over all its keys; another account still gets its own',
  async (t) => {
    const front = await startFront(t, { bounds: { socketsMax: 5, slotsPerKey: 1 } });
    const mine = [await dial(front.port, GOOD_KEY), await dial(front.port, SECOND_KEY)];
    t.strictSame(
      mine.map(({ status }) => status),
      [101, 101],
    );
    for (const key of [GOOD_KEY, SECOND_KEY]) t.equal((await dial(front.port, key)).status, 503);
    t.equal(await metric(front, 'syrinx_refusals_total{reason="socketsOfAccountExhausted"}'), 2);
    const other = await dial(front.port, OTHER_KEY);
    t.equal(other.status, 101);
    t.equal((await dial(front.port, 'svc_sk_unknown')).status, 101, 'an unknown key is told so in a frame');
    mine[0]!.socket.terminate();
    await eventually(() => front.server.figures.sockets === 2);
    t.equal((await dial(front.port, SECOND_KEY)).status, 101, 'one is free again');
  },
);

t.test('an operator may give each key a bound of WebSockets', async (t) => {
  const front = await startFront(t, { bounds: { socketsPerKeyMax: 1 } });
  t.equal((await dial(front.port, GOOD_KEY)).status, 101);
  t.equal((await dial(front.port, GOOD_KEY)).status, 503);
  t.equal(await metric(front, 'syrinx_refusals_total{reason="socketsOfKeyExhausted"}'), 1);
  t.equal((await dial(front.port, SECOND_KEY)).status, 101, 'another key of the account has its own');
});

t.test('a revoked key ends its other sockets when one has ended before', async (t) => {
  const front = await startFront(t);
  const [first, second] = [await dial(front.port, GOOD_KEY), await dial(front.port, GOOD_KEY)];
  first.socket.terminate();
  await eventually(() => front.server.figures.sockets === 1);
  const closed = once(second.socket, 'close');
  front.admission.revoke(7);
  t.equal((await closed)[0], 1008);
});

t.test('an account has a part of the bytes of arriving bodies, over all its keys', async (t) => {
  const front = await startFront(t, { bounds: { bodyBytesInFlightMax: 64 * 1024, bodyBytesMax: 16 * 1024 } });
  const body = speak('/v1/tts/stream', { text: 'a'.repeat(15_000) });
  const request = requestBytes(body);
  const second = requestBytes({ ...body, key: SECOND_KEY });
  const slow: RawClient[] = [];
  const refused: RawClient[] = [];
  for (let i = 0; i < 4; i++) {
    const client = await front.sent((i % 2 === 0 ? request : second).subarray(0, -10));
    await eventually(
      () => front.server.inFlight === slow.length + 1 || requestLines(front).length > refused.length,
    );
    if (requestLines(front).length > refused.length) refused.push(client);
    else slow.push(client);
  }
  t.equal(slow.length, 2, 'half of the budget');
  t.equal((await refused[0]!.response()).status, 503);
  t.match(requestLines(front)[0]?.fields, { refusal: 'bodiesOfAccountExhausted' });
  front.speech.script = (context) => context.close();
  const other = await front.sent({ ...body, key: OTHER_KEY });
  t.equal((await other.response()).status, 200);
  for (const client of slow) {
    client.send(request.subarray(-10));
    t.equal((await client.response()).status, 200, 'what was taken is whole');
  }
});

t.test('an account has a part of the texts in progress, over all its keys', async (t) => {
  const front = await startFront(t, { bounds: { requestCharactersInFlightMax: 1_000, bodyBytesMax: 400 } });
  front.speech.script = () => undefined;
  const open = await Promise.all(
    Array.from({ length: 5 }, () => front.sent(speak('/v1/tts', { text: 'a'.repeat(100) }))),
  );
  await eventually(() => front.speech.contexts.length === 5);
  const sixth = await front.sent({ ...speak('/v1/tts', { text: 'a'.repeat(100) }), key: SECOND_KEY });
  t.equal((await sixth.response()).status, 503);
  t.match(requestLines(front)[0]?.fields, { refusal: 'textsOfAccountExhausted' });
  await front.sent({ ...speak('/v1/tts', { text: 'a'.repeat(250) }), key: OTHER_KEY });
  await eventually(() => front.speech.contexts.length === 6);
  t.equal(open.length, 5);
});

const folder = t.testdir({});
for (const isTls of missingTool('openssl') === false ? partOfToday([false, true], 2) : [false])
  t.test(
    `frames above the part of an account are answered later, all and in order${isTls ? ', with TLS' : ''}`,
    async (t) => {
      const certificate = isTls ? makeCertificate(folder, 'keys') : undefined;
      const front = await startFront(t, {
        bounds: { framesPerSecond: 2_000 },
        ...(certificate !== undefined && { certificate }),
      });
      const ca = certificate?.ca;
      const greedy = await dial(front.port, GOOD_KEY, ca);
      const other = await dial(front.port, OTHER_KEY, ca);
      const startMs = performance.now();
      // Unknown contexts: each flush is answered by an error with its id.
      const count = 1_500;
      for (let i = 0; i < count; i++) greedy.socket.send(JSON.stringify({ flush: true, flush_id: `${i}` }));
      await eventually(() => greedy.answers.length > 0);
      other.socket.send(JSON.stringify({ flush: true, flush_id: 'mine' }));
      await eventually(() => other.answers.length > 0);
      t.ok(
        greedy.answers.length < count / 2,
        `another key is served amid the flood: after ${greedy.answers.length}`,
      );
      await eventually(() => greedy.answers.length === count);
      t.ok(performance.now() - startMs > 500, 'at its rate');
      t.strictSame(
        greedy.answers.map(({ flush_id }) => flush_id),
        Array.from({ length: count }, (_, i) => `${i}`),
      );
      // It is read again a little later, when its rate has paid for the last messages.
      const readLater = `syrinx_read_later_seconds_count{route="${PATH}"}`;
      await eventually(async () => (await metric(front, readLater)) > 0);
      // The client leaves while its messages wait.
      for (let i = 0; i < count; i++) greedy.socket.send(JSON.stringify({ flush: true, flush_id: `${i}` }));
      await pause(50);
      greedy.socket.close();
      await eventually(() => front.server.figures.sockets === 1);
    },
  );

t.test('requests above the part of an account are answered later, and none is refused', async (t) => {
  const front = await startFront(t, { bounds: { framesPerSecond: 400 } });
  front.speech.script = (context) => context.close();
  const startMs = performance.now();
  const request = { ...speak('/v1/tts/stream'), body: '{"text":1}' };
  const statuses = await Promise.all(
    Array.from({ length: 100 }, async () => (await (await front.sent(request)).response()).status),
  );
  t.ok(statuses.every((status) => status === 422));
  t.ok(performance.now() - startMs > 300);
  t.ok((await metric(front, 'syrinx_read_later_seconds_count{route="/v1/tts/stream"}')) > 50);
  // A body in pieces: its reading pauses, and goes on.
  const greedy = await Promise.all(Array.from({ length: 40 }, () => front.sent(request)));
  const bytes = requestBytes({
    ...speak('/v1/tts/stream'),
    body: `{"text":"${'a'.repeat(300_000)}","voice":"ada"}`,
  });
  const large = await front.sent(bytes.subarray(0, 100_000));
  await pause(20);
  large.send(bytes.subarray(100_000));
  t.equal((await large.response()).status, 200);
  t.equal(front.speech.last.text.length, 300_000);
  for (const client of greedy) t.equal((await client.response()).status, 422);
});

t.test(
  'large messages that many sockets complete at once wait in the kernel, and none is lost',
  async (t) => {
    const front = await startFront(t, { bounds: { framesPerSecond: 100 } });
    const sockets = await Promise.all(Array.from({ length: 10 }, () => dial(front.port, GOOD_KEY)));
    const messages = [0, 1].map((i) =>
      JSON.stringify({ send_text: 'a'.repeat(250_000), context_id: `${i}` }).padEnd(1_000_000),
    );
    for (const message of messages) for (const { socket } of sockets) socket.send(message);
    await eventually(() => sockets.every(({ answers }) => answers.length === messages.length));
    t.ok(sockets.every(({ socket }) => socket.readyState === WebSocket.OPEN));
    t.ok(sockets.every(({ answers }) => answers.every(({ error }) => error !== undefined)));
  },
);

t.test(
  'a connection whose body was read later is read on: for the next request, and through a long response',
  async (t) => {
    const front = await startFront(t, { bounds: { framesPerSecond: 40, stallRearmMs: 300 } });
    const client = await front.client();
    for (let i = 0; i < 4; i++) {
      client.send(requestBytes(speak('/v1/tts')));
      await client.response();
    }
    const request = requestBytes(speak('/v1/tts'));
    client.send(request.subarray(0, -10));
    await new Promise((resolve) => setImmediate(resolve));
    client.send(request.subarray(-10));
    t.equal((await client.response()).status, 200);
    client.send(requestBytes({ path: '/healthz' }));
    t.equal((await client.response()).status, 200);
  },
);

t.test('a request that is aborted while it waits leaves nothing', async (t) => {
  const front = await startFront(t, { bounds: { framesPerSecond: 40 } });
  const request = { ...speak('/v1/tts/stream'), body: '{"text":1}' };
  const clients = await Promise.all(Array.from({ length: 20 }, () => front.sent(request)));
  await eventually(() => front.server.inFlight > 5);
  for (const client of clients) client.destroy();
  await eventually(() => front.server.inFlight === 0);
  t.pass('all are over');
});

for (const path of ['/v1/tts', '/v1/tts/stream'] as const)
  t.test(`${path}: a text whose key ends is ended soon, and gives its slot back`, async (t) => {
    const front = await startFront(t);
    front.speech.script = (context) => {
      if (path !== '/v1/tts') context.audio(3_000);
    };
    const client = await front.sent({ ...speak(path), key: GOOD_KEY });
    await eventually(() => front.speech.contexts.length === 1);
    front.admission.revoked.add(7);
    const endedMs = performance.now();
    if (path === '/v1/tts') {
      const answer = await client.response();
      t.equal(answer.status, 401);
      t.match(answer.body.toString(), 'INVALID_API_KEY');
    } else await client.closed();
    t.ok(performance.now() - endedMs < 10_000, 'a poll finds it');
    t.ok(front.speech.last.released);
    await eventually(() => requestLines(front).length === 1);
    t.equal(front.admission.slotsTaken, 0);
    const known = await front.sent({ ...speak(path), key: OTHER_KEY });
    await eventually(() => front.speech.contexts.length === 2);
    known.destroy();
  });

t.test('an account has a part of the answers that wait for slow readers, over all its keys', async (t) => {
  const front = await startFront(t, { bounds: { answerBytesInFlightMax: 72 * 2 ** 20, fileAnswerBytes: 1 } });
  // An answer of 13 MB: more than the kernel takes.
  front.speech.voices.speakerIds = Array.from({ length: 1_000_000 }, (_, index) => `voice${index}`);
  const { answerBudget } = front.server.shared.services;
  const ask = (key: string, isSlow = false) =>
    front.client().then((client) => {
      if (isSlow) client.socket.pause();
      client.send(requestBytes({ path: '/v1/tts/speakers', key }));
      return client;
    });
  const slow = [await ask(GOOD_KEY, true), await ask(SECOND_KEY, true)];
  await eventually(() => answerBudget.taken > 2 * 13e6);
  for (const key of [GOOD_KEY, SECOND_KEY]) {
    t.equal((await (await ask(key)).response()).status, 503);
    t.match(requestLines(front).at(-1)?.fields, { refusal: 'answersOfAccountExhausted' });
  }
  const whole = (await (await ask(OTHER_KEY)).response()).body;
  t.ok(whole.length > 13e6, 'another account gets its answer');
  slow[0]!.socket.resume();
  t.ok((await slow[0]!.response()).body.equals(whole), 'a slow reader gets all of it');
  t.equal((await (await ask(SECOND_KEY)).response()).status, 200, 'then there is room again');
  slow[1]!.destroy();
  await eventually(() => answerBudget.taken === 0);
});
