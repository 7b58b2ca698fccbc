import { readdirSync, statfsSync } from 'node:fs';
import t from 'tap';
import { header, RawClient } from '../support/raw-client.js';
import { eventually, requestLines, speak, startFront } from '../support/front-server.js';
import { smallDisk } from '../support/small-disk.js';
import { pause } from '../support/waiting.js';
import { limits } from '../../src/limits.js';
import { KeyedBudget } from '../../src/byte-budget.js';
import type { Services } from '../../src/front/services.js';
import { jsonParts, WholeResult } from '../../src/front/whole-result.js';

interface Body {
  audio: string;
  timestamps?: { words: string[]; start_seconds: number[]; end_seconds: number[] };
}

t.test('a whole result is one JSON object of known length', async (t) => {
  const front = await startFront(t);
  front.speech.script = (context) => {
    context.timestamps(['Hello'], 0);
    context.audio(3_000);
    context.timestamps([], 0);
    context.timestamps(['there,', '"you"'], 1);
    context.audio(6_001);
    context.emit({ type: 'head', contextId: 0, bytes: Buffer.from('UklGRg==') });
    context.close();
  };
  const asked = await RawClient.ask(front.port, speak('/v1/tts', { timestamps: true }));
  t.equal(asked.status, 200);
  t.equal(header(asked, 'content-type'), 'application/json');
  t.equal(header(asked, 'content-length'), String(asked.body.length));
  t.ok(header(asked, 'x-request-id'));
  const context = front.speech.last;
  t.equal(context.options.framing, 'whole');
  t.same(JSON.parse(asked.body.toString()), {
    audio: `UklGRg==${context.expectedBytes().toString()}`,
    timestamps: {
      words: ['Hello', 'there,', '"you"'],
      start_seconds: [0, 1, 2],
      end_seconds: [0.5, 1.5, 2.5],
    },
  });
  t.equal(context.handedFrames.length, 2);
  t.ok(context.released);

  const plain = await RawClient.ask(front.port, speak('/v1/tts'));
  t.same(Object.keys(JSON.parse(plain.body.toString()) as Body), ['audio']);

  front.speech.script = (silent) => silent.close();
  const empty = await RawClient.ask(front.port, speak('/v1/tts', { timestamps: true }));
  t.same(JSON.parse(empty.body.toString()), {
    audio: '',
    timestamps: { words: [], start_seconds: [], end_seconds: [] },
  });
});

t.test('a failure at any time is a clean 500', async (t) => {
  const front = await startFront(t);
  for (const frames of [0, 5]) {
    front.speech.script = (context) => {
      for (let count = 0; count < frames; count++) context.audio(3_000);
      setImmediate(() => context.fail('thread died'));
    };
    const response = await RawClient.ask(front.port, speak('/v1/tts'));
    t.equal(response.status, 500);
    t.equal(response.body.toString(), 'Internal Server Error');
    t.ok(front.speech.last.released);
    t.equal(front.admission.leases.at(-1)?.voided, 1, 'and free');
  }
});

t.test('a large result goes through a file without a name', async (t) => {
  // Files of results that are over count no more.
  const front = await startFront(t, { bounds: { resultMemoryBytesMax: 100_000, resultSpoolFilesMax: 2 } });
  for (const frames of [1, 2, 8, 9, 40, 1_000]) {
    front.speech.script = (context) => {
      context.timestamps(['Hello'], 0);
      context.stream(frames, 9_000);
    };
    const client = await front.sent(speak('/v1/tts', { timestamps: true }));
    const response = await client.response();
    t.ok(response.complete, `${frames} frames`);
    const body = JSON.parse(response.body.toString()) as Body;
    t.ok(body.audio === front.speech.last.expectedBytes().toString(), `${frames} frames: every byte`);
    t.same(body.timestamps?.words, ['Hello']);
    t.equal(front.speech.last.handedFrames.length, frames);
    t.same(readdirSync(front.dataDir), [], 'nothing is left in the folder');
  }
});

t.test(
  'results share a bound of memory: what is over it goes through files, and gives back what it took',
  async (t) => {
    const front = await startFront(t, { bounds: { resultMemoryInFlightBytesMax: 100_000 } });
    front.speech.script = (context) => context.stream(40, 9_000);
    for (let round = 0; round < 3; round++) {
      const clients = await Promise.all([1, 2, 3].map(() => front.sent(speak('/v1/tts'))));
      for (const client of clients) {
        const response = await client.response();
        t.equal(response.status, 200);
        const body = JSON.parse(response.body.toString()) as Body;
        t.ok(body.audio === front.speech.last.expectedBytes().toString(), 'every byte');
      }
    }
    front.speech.script = (context) => context.stream(5, 9_000);
    t.equal((await RawClient.ask(front.port, speak('/v1/tts'))).status, 200);
    t.equal(front.server.inFlight, 0);
    await eventually(() => front.server.figures.bufferedBytes === 0);
  },
);

t.test(
  'texts in flight share a bound: one more is told to come back, and can when one has ended',
  async (t) => {
    const front = await startFront(t, { bounds: { requestCharactersInFlightMax: 10 } });
    const text = 'eight ch';
    front.speech.script = () => undefined;
    const first = await front.sent(speak('/v1/tts', { text }));
    t.equal((await RawClient.ask(front.port, speak('/v1/tts', { text }))).status, 503);
    front.speech.last.stream(1, 100);
    t.equal((await first.response()).status, 200);
    front.speech.script = (context) => context.stream(1, 100);
    t.equal((await RawClient.ask(front.port, speak('/v1/tts', { text }))).status, 200);
  },
);

t.test('a file that cannot be created or has no room causes a 500 and frees everything', async (t) => {
  const full = await startFront(t, {
    bounds: { resultMemoryBytesMax: 10_000, resultSpoolBytesMax: 200_000 },
  });
  full.speech.script = (context) => context.stream(50, 9_000);
  t.equal((await RawClient.ask(full.port, speak('/v1/tts'))).status, 500);
  t.ok(full.speech.last.released);
  full.speech.script = (context) => context.stream(6, 9_000);
  t.equal((await RawClient.ask(full.port, speak('/v1/tts'))).status, 200, 'room again');

  const config = { host: '127.0.0.1', port: 0, dataDir: '/nonexistent/folder', corsOrigins: [] };
  const nowhere = await startFront(t, { bounds: { resultMemoryBytesMax: 10_000 }, parts: { config } });
  nowhere.speech.script = (context) => context.stream(50, 9_000);
  t.equal((await RawClient.ask(nowhere.port, speak('/v1/tts'))).status, 500);
  t.ok(nowhere.speech.last.released);
  t.equal(nowhere.server.inFlight, 0);
  t.match(nowhere.lines.find(({ level }) => level === 'error')?.fields, {
    errorCode: 'ENOENT',
    requestId: String,
  });
});

t.test('a result in a file leaves a part of the disk to the store', async (t) => {
  const disk = smallDisk(t);
  if (disk === null) {
    t.comment('this user may not mount');
    return;
  }
  const config = { host: '127.0.0.1', port: 0, dataDir: disk.path, corsOrigins: [] };
  const front = await startFront(t, { bounds: { resultMemoryBytesMax: 10_000 }, parts: { config } });
  // Of 1,048,576 bytes.
  for (const [frames, status] of [
    [84, 500],
    [80, 200],
  ] as const) {
    front.speech.script = (context) => context.stream(frames, 9_000);
    const answer = await RawClient.ask(front.port, speak('/v1/tts'));
    t.equal(answer.status, status, `${frames * 12_000} bytes of base64`);
    await eventually(() => statfsSync(disk.path).bfree === statfsSync(disk.path).blocks);
  }
});

t.test('a client that leaves while its result is made or sent leaves nothing behind', async (t) => {
  const front = await startFront(t, { bounds: { resultMemoryBytesMax: 100_000 } });
  for (const leaveAfterFrames of [1, 30, 400]) {
    front.speech.script = (context) => context.stream(400, 30_000);
    const client = await front.sent(speak('/v1/tts'));
    client.socket.pause();
    await eventually(() => front.speech.contexts.length > 0 && !front.speech.last.released);
    const context = front.speech.last;
    await eventually(() => context.handedFrames.length >= leaveAfterFrames);
    client.destroy();
    await context.whenReleased();
    await eventually(() => front.server.inFlight === 0);
  }
  t.equal(requestLines(front).filter(({ fields }) => fields['outcome'] === 'aborted').length, 3);
  front.speech.script = (context) => context.stream(20, 30_000);
  t.equal((await RawClient.ask(front.port, speak('/v1/tts'))).status, 200);
});

t.test('large answers without speech arrive whole one after the other', async (t) => {
  const front = await startFront(t);
  const client = await front.client();
  client.socket.pause();
  const rounds = 200;
  for (let round = 0; round < rounds; round++) {
    client.send('GET /openapi.json HTTP/1.1\r\nHost: a\r\nx-api-key: svc_sk_good\r\n\r\n');
    // The next request is sent when the server has answered this one, or its socket is full.
    await eventually(() => requestLines(front).length > round || front.server.inFlight === 1);
    await pause(round % 10 === 0 ? 20 : 0);
    if (requestLines(front).length <= round) break;
  }
  t.ok(requestLines(front).length < rounds, 'the socket was full');
  client.socket.resume();
  await eventually(() => front.server.inFlight === 0);
  for (let round = 0; round < requestLines(front).length; round++) {
    const response = await client.response();
    t.equal(response.status, 200);
    t.equal((JSON.parse(response.body.toString()) as { openapi: string }).openapi.split('.')[0], '3');
  }
});

t.test('the times of half a million characters are handed over in small parts', async (t) => {
  const budget = new KeyedBudget(1e9, 1e9);
  const budgets = { resultBudget: budget, spoolBudget: budget, spoolFileBudget: budget };
  const result = new WholeResult({ bounds: limits, ...budgets } as unknown as Services, {
    ...{ account: 'a', spoolFolder: '', audioName: 'audio', onFault: (error) => t.error(error) },
    timestamps: ({ words, starts, ends }) => jsonParts`"w":${words},"s":${starts},"e":${ends}`,
  });
  const words = Array<string>(500).fill('\u00ad');
  const times = Array<number>(500).fill(1_234.567);
  for (let i = 0; i < 1_000; i++) result.addTimings({ words, start_seconds: times, end_seconds: times });
  const parts: Uint8Array[] = [];
  result.seal((source) => {
    for (let bytes = 0; bytes < source.byteLength; bytes += parts.at(-1)!.length)
      parts.push(source.next() as Uint8Array);
  });
  const made = JSON.parse(Buffer.concat(parts).toString()) as Record<string, unknown[]>;
  t.same([made['w']!.length, made['s']!.length, made['e']!.at(-1)], [500_000, 500_000, 1_234.567]);
  const largest = Math.max(...parts.map(({ length }) => length));
  t.ok(largest < 128 * 1_024, `${largest} bytes`);
  result.close();
  t.end();
});
