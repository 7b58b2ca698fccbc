/** The sender of responses against a scripted socket: what it writes, when it re-arms, and when it gives a reader up. */
import t, { type Test } from 'tap';
import { specificationErrors } from '../../src/api/error-shape.js';
import { ConnectionPool } from '../../src/front/connections.js';
import { Cors } from '../../src/front/cors.js';
import { Exchange } from '../../src/front/exchange.js';
import { piecesSource, ResponseSender, type LengthSource } from '../../src/front/response-sender.js';
import { type Pulse, createServices } from '../../src/front/services.js';
import type { HttpResponse } from '../../src/front/uws.js';
import { limits } from '../../src/limits.js';
import { Metrics } from '../../src/metrics.js';
import { patterned } from '../support/fake-speech.js';
import { keysInUse, recordingLog, type LogLine } from '../support/front-server.js';

/** Behaves as the library does: a chunked write is always accepted, `tryEnd` in part. */
class FakeResponse {
  /** Bytes that the kernel takes before it is full. */
  room = Infinity;
  readonly written: Buffer[] = [];
  readonly writeSizes: number[] = [];
  rearms = 0;
  ended = false;
  closed = false;
  /** Every cork must contain at most one write. */
  writesInCork = 0;
  #heldBytes = 0;
  #onWritable: () => boolean = () => true;

  onAborted(): void {}
  writeStatus(): void {}
  writeHeader(): void {}
  pause(): void {
    this.rearms += 1;
  }
  resume(): void {}

  onWritable(callback: () => boolean): void {
    this.#onWritable = callback;
  }

  cork(write: () => void): void {
    this.writesInCork = 0;
    // What the library holds back goes out with the next cork.
    this.#take(this.#heldBytes);
    write();
    if (this.writesInCork > 1) throw new Error('two writes in one cork');
  }

  write(chunk: Uint8Array): boolean {
    this.writesInCork += 1;
    // One write late: the library reports what was before.
    const isFree = this.#heldBytes === 0;
    this.#keep(chunk);
    this.#heldBytes += chunk.length;
    this.#take(this.#heldBytes);
    return isFree && this.#heldBytes === 0;
  }

  tryEnd(chunk: Uint8Array, totalBytes: number): [boolean, boolean] {
    this.writesInCork += 1;
    const taken = Math.min(chunk.length, this.room);
    this.room -= taken;
    this.#keep(chunk.subarray(0, taken));
    const isDone = this.getWriteOffset() === totalBytes;
    return [taken === chunk.length, isDone];
  }

  getWriteOffset(): number {
    return this.bytes.length;
  }

  end(): void {
    this.ended = true;
  }

  close(): void {
    this.closed = true;
  }

  /** The kernel takes so many bytes more, and says so if `event`. */
  free(bytes: number, event: boolean): void {
    this.room = bytes;
    if (event) this.#onWritable();
  }

  get bytes(): Buffer {
    return Buffer.concat(this.written);
  }

  #keep(chunk: Uint8Array): void {
    this.written.push(Buffer.from(chunk));
    this.writeSizes.push(chunk.length);
  }

  #take(bytes: number): void {
    const taken = Math.min(bytes, this.room);
    this.room -= taken;
    this.#heldBytes -= taken;
  }
}

const open = (t: Test, source: LengthSource | null = null, unitBytes = 1) => {
  const lines: LogLine[] = [];
  const res = new FakeResponse();
  let nowMs = 1_000;
  const services = createServices({
    keys: keysInUse(),
    log: recordingLog(lines),
    metrics: new Metrics(),
    clock: () => nowMs,
    bounds: limits,
    connections: new ConnectionPool(limits.connectionsMax).listener(),
    cors: new Cors([]),
    errors: specificationErrors(limits),
  });
  const pulse = { seenClock: () => nowMs, add: () => undefined, delete: () => undefined } as unknown as Pulse;
  const req = { getMethod: () => 'post', getHeader: () => '', forEach: () => undefined };
  const spare = { onAborted: () => undefined, close: () => undefined };
  const [response, second] = [res, spare] as unknown as [HttpResponse, HttpResponse];
  const exchange = new Exchange(response, { ...services, pulse }, '/test', req, '127.0.0.1', second);
  const sender = new ResponseSender(exchange, { status: 200, contentType: null, unitBytes }, source);
  t.teardown(() => exchange.drop('failed'));
  return {
    res,
    exchange,
    sender,
    /** Time passes, in beats as the pulse gives them. */
    pass: (ms: number): void => {
      for (let passed = 0; passed < ms && !exchange.isOver; passed += 1_000) {
        nowMs += 1_000;
        sender.beat(nowMs);
      }
    },
    tick: () => new Promise<void>((resolve) => setImmediate(() => setImmediate(resolve))),
  };
};

t.test('a chunked body goes out in writes below the bound, one in each cork', async (t) => {
  const { exchange, res, sender, tick } = open(t);
  const records = [10, 15_999, 16_000, 333_333, 40].map((size, index) => patterned(size, index));
  const handed: number[] = [];
  records.forEach((record, index) => sender.write(record, () => handed.push(index)));
  sender.end();
  while (!exchange.isOver) await tick();
  t.ok(Math.max(...res.writeSizes) <= limits.writeBytesMax);
  t.ok((res.writeSizes[1] ?? 0) <= limits.writeBytesMax);
  t.ok(res.bytes.equals(Buffer.concat(records)));
  t.same(handed, [0, 1, 2, 3, 4]);
  t.ok(res.ended);
  t.equal(exchange.outcome, 'complete');
});

t.test('a full socket gets small probes, a re-arm each 4 s, and the rest when it takes more', async (t) => {
  const { exchange, pass, res, sender, tick } = open(t);
  const records = Array.from({ length: 40 }, (_, index) => patterned(20_000, index));
  res.room = 100_000;
  for (const record of records) sender.write(record);
  sender.end();
  await tick();
  const full = res.bytes.length;
  t.ok(full >= 100_000 && full < 140_000, `${full} bytes written`);
  pass(40_000);
  t.equal(res.rearms, 10);
  const probes = res.writeSizes.slice(-10);
  t.ok(Math.max(...probes) <= 1_024, 'probes only');
  t.equal(sender.queuedBytes, 800_000 - res.bytes.length);
  res.free(Infinity, true);
  while (!exchange.isOver) await tick();
  t.ok(res.bytes.equals(Buffer.concat(records)), 'every byte');
  t.ok(res.ended);
});

t.test('a probe finds out that the socket takes more although no event says so', async (t) => {
  const { exchange, pass, res, sender, tick } = open(t);
  const records = Array.from({ length: 10 }, (_, index) => patterned(20_000, index));
  res.room = 50_000;
  for (const record of records) sender.write(record);
  sender.end();
  await tick();
  res.free(Infinity, false);
  pass(8_000);
  while (!exchange.isOver) await tick();
  t.ok(res.bytes.equals(Buffer.concat(records)));
});

for (const [name, source] of [
  ['chunked', null],
  ['of known length', piecesSource([patterned(400_000, 1)])],
] as const)
  t.test(`a reader that takes nothing is given up after the stall bound (${name})`, async (t) => {
    const { exchange, pass, res, sender, tick } = open(t, source);
    res.room = 100_000;
    if (source === null) sender.write(patterned(400_000, 1));
    await tick();
    pass(limits.readerStallMsMax - 4_000);
    t.notOk(exchange.isOver, 'not before');
    pass(12_000);
    t.equal(exchange.outcome, 'reader-stalled');
    t.ok(res.closed);
    t.equal(sender.queuedBytes, 0, 'its queue is dropped');
  });

t.test('a reader that takes a little in each minute is kept', async (t) => {
  const { exchange, pass, res, tick } = open(t, piecesSource([patterned(400_000, 1)]));
  res.room = 100_000;
  await tick();
  for (let minute = 0; minute < 5; minute++) {
    pass(48_000);
    res.free(1_000, false);
    pass(8_000);
  }
  t.notOk(exchange.isOver);
  t.equal(res.bytes.length, 105_000);
});

t.test(
  'a body of known length is sent as the socket accepts it; its last bytes wait for all others',
  async (t) => {
    const pieces = [patterned(70_000, 1), patterned(5, 2), patterned(300_000, 3)];
    const { exchange, res, tick } = open(t, piecesSource(pieces));
    const total = 370_005;
    res.room = 200_001;
    await tick();
    t.equal(res.bytes.length, 200_001);
    res.free(total - 200_001 - 8, true);
    await tick();
    t.notOk(exchange.isOver, 'a part of the last bytes is missing');
    t.equal(res.writeSizes.at(-1), 8, 'they go alone');
    res.free(8, true);
    while (!exchange.isOver) await tick();
    t.ok(res.bytes.equals(Buffer.concat(pieces)));
    t.equal(exchange.outcome, 'complete');
  },
);

t.test('pieces that arrive later are sent as they arrive; a failing source fails the response', async (t) => {
  const pieces = [patterned(30_000, 1), patterned(64_000, 2), patterned(9, 3)];
  let at = 0;
  const later = open(t, { byteLength: 94_009, next: () => Promise.resolve(pieces[at++]!) });
  while (!later.exchange.isOver) await later.tick();
  t.ok(later.res.bytes.equals(Buffer.concat(pieces)));

  const failing = open(t, { byteLength: 10, next: () => Promise.reject(new Error('scripted')) });
  while (!failing.exchange.isOver) await failing.tick();
  t.equal(failing.exchange.outcome, 'failed');

  const stuck = open(t, {
    byteLength: 30_010,
    next: (() => {
      let calls = 0;
      return () => (calls++ === 0 ? patterned(30_000, 1) : new Promise<Uint8Array>(() => undefined));
    })(),
  });
  await stuck.tick();
  stuck.pass(limits.readerStallMsMax + 8_000);
  t.equal(stuck.exchange.outcome, 'reader-stalled', 'a source that hangs does not hold its request for ever');
});

t.test('no write ends inside a unit, probes included', async (t) => {
  const { exchange, pass, res, sender, tick } = open(t, null, 2);
  const samples = Array.from({ length: 30 }, (_, index) => patterned(20_002, index));
  res.room = 30_000;
  for (const frame of samples) sender.write(frame);
  sender.end();
  await tick();
  pass(20_000);
  res.free(Infinity, true);
  while (!exchange.isOver) await tick();
  t.same(
    res.writeSizes.filter((bytes) => bytes % 2 !== 0),
    [],
  );
  t.ok(res.bytes.equals(Buffer.concat(samples)));
});
