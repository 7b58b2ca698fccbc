/** The jobs of one synthesis thread: their order, their actor threads, and jobs that cannot be. */
import { once } from 'node:events';
import { MessageChannel } from 'node:worker_threads';
import { Piscina } from 'piscina';
import t, { type Test } from 'tap';
import { limits } from '../../src/limits.js';
import { createLog } from '../../src/log.js';
import { monotonicMs } from '../../src/monotonic.js';
import type { ChunkMail, SynthesisThreadData } from '../../src/threads/messages.js';
import { GroupClock, JobControl } from '../../src/threads/control.js';
import { Job, SynthesisThread } from '../../src/threads/synthesis-thread.js';
import { EffortTable } from '../../src/threads/effort.js';
import { Vitals } from '../../src/threads/vitals.js';
import { Watchdog } from '../../src/threads/watchdog.js';
import { StepQueue } from '../../workers/step-queue.js';
import { ActorPorts } from '../../workers/synthesis-thread.js';
import type { VoicePack } from '../../src/threads/voices.js';
import { batchVoice, voicesOf } from '../support/scripted-voices.js';
import { eventually } from '../support/waiting.js';

const entry = new URL('../support/scripted-synthesis.js', import.meta.url);

/** Voices of two packs with different rates. */
const packs = [...voicesOf(['low']).packs, ...voicesOf(['high'], 'at once', 48_000).packs];

const start = async (t: Test, ownPacks: readonly VoicePack[] = packs) => {
  const watchdog = new Watchdog(limits, monotonicMs);
  const thread = new SynthesisThread({
    packs: ownPacks,
    executionProvider: 'cpu',
    logLevel: 'silent',
    bounds: limits,
    watchdog,
    log: createLog('silent', limits),
    entry,
  });
  t.teardown(async () => {
    await thread.end();
    watchdog.close();
  });
  await once(thread, 'ready');
  return thread;
};

const request = (contextId: number, voiceId: string, text: string, actor = 0) => ({
  contextId,
  segment: 0,
  actor,
  text,
  words: [],
  before: '',
  after: '',
  settings: { voiceId, temperature: 1, normalizeText: false },
  seed: 0,
  utteranceSeed: 0,
});

t.test('each job has deadlines at the rate of its voice', async (t) => {
  const thread = await start(t);
  const port = thread.link(0)!;
  const order: number[] = [];
  port.on('message', (mail: ChunkMail) => {
    if (mail.type === 'chunk') order.push(mail.contextId);
  });
  // A chunk of 6,000 samples lasts 250 ms with the voice `low` and 125 ms with `high`.
  const jobs = [
    new Job(request(1, 'low', 'a'.repeat(20)), 0),
    new Job(request(2, 'high', 'b'.repeat(40)), 1),
    new Job(request(3, 'high', 'c'.repeat(40)), 2),
  ];
  for (const job of jobs) thread.start(job);
  for (const job of jobs) t.match(await job.outcome, { type: 'done' });
  const expected = [1, 2, 3, 2, 3, 1, 2, 3, 2, 3, 1];
  await eventually(() => order.length >= expected.length);
  t.strictSame(order.slice(0, expected.length), expected);
  port.close();
});

t.test('a job that arrives while a step blocks the thread runs next if it is the most urgent', async (t) => {
  const voices = voicesOf(['low']);
  const thread = await start(t, voices.packs);
  const port = thread.link(0)!;
  const order: number[] = [];
  port.on('message', (mail: ChunkMail) => {
    if (mail.type === 'chunk') order.push(mail.contextId);
  });
  const calm = new Job(request(1, 'low', `!inside${'a'.repeat(13)}`), 60_000);
  const urgent = new Job(request(2, 'low', 'b'.repeat(10)), 0);
  thread.start(calm);
  await voices.hung();
  thread.start(urgent);
  voices.letGo();
  for (const job of [calm, urgent]) t.match(await job.outcome, { type: 'done' });
  const expected = [1, 1, 2, 2, 1, 1];
  await eventually(() => order.length >= expected.length);
  t.strictSame(order, expected);
  port.close();
});

t.test('jobs whose actor thread ended do not wait for its port', async (t) => {
  const thread = await start(t);
  const port = thread.link(0)!;
  const running = new Job(request(1, 'low', 'a'.repeat(100)), 0);
  const cancelled = new Job(request(2, 'low', 'b'.repeat(10_000)), 0);
  thread.start(running);
  thread.start(cancelled);
  await once(port, 'message');
  port.close();
  t.match(await running.outcome, { type: 'done', samples: 120_000 });
  const late = new Job(request(3, 'low', 'too late'), 0);
  thread.start(late);
  t.match(await late.outcome, { type: 'done' });
  cancelled.cancel();
  t.match(await cancelled.outcome, { type: 'cancelled' });
  const other = thread.link(1)!;
  const unharmed = new Job(request(4, 'low', 'elsewhere', 1), 0);
  thread.start(unharmed);
  t.match(await unharmed.outcome, { type: 'done' });
  other.close();
});

t.test('a job waits for a port that comes later, unless it is cancelled', async (t) => {
  const thread = await start(t);
  const early = new Job(request(1, 'low', 'early'), 0);
  const cancelled = new Job(request(2, 'low', 'cancelled'), 0);
  thread.start(early);
  thread.start(cancelled);
  cancelled.cancel();
  t.match(await cancelled.outcome, { type: 'cancelled', effort: null });
  const port = thread.link(0)!;
  t.match(await early.outcome, { type: 'done', samples: 6_000 });
  port.close();
});

t.test('jobs that wait are stepped together, and one that cannot go on fails alone', async (t) => {
  const thread = await start(t, voicesOf([batchVoice, 'low']).packs);
  const port = thread.link(0)!;
  const sizes: [contextId: number, size: number][] = [];
  port.on('message', (mail: ChunkMail) => {
    if (mail.type === 'chunk') sizes.push([mail.contextId, mail.pcm[0]!]);
  });
  const jobs = [
    new Job(request(1, batchVoice, 'a'.repeat(15)), 0),
    new Job(request(2, batchVoice, '!throw' + 'b'.repeat(9)), 1),
    new Job(request(3, batchVoice, 'c'.repeat(15)), 2),
    new Job(request(4, 'low', 'd'.repeat(5)), 60_000),
  ];
  for (const job of jobs) thread.start(job);
  const outcomes = await Promise.all(jobs.map(({ outcome }) => outcome));
  t.match(
    outcomes.map(({ type }) => type),
    ['done', 'failed', 'done', 'done'],
  );
  await eventually(() => sizes.length >= 8);
  t.strictSame(
    sizes.slice(0, 7).map(([contextId, size]) => `${contextId} of ${size}`),
    ['1 of 1', '2 of 3', '3 of 3', '1 of 3', '3 of 3', '1 of 3', '3 of 1'],
    'the first ran alone; then all that waited, the most urgent first',
  );
  port.close();
});

t.test('a job with an unknown voice fails, and the others go on', async (t) => {
  const thread = await start(t);
  const port = thread.link(0)!;
  const unknown = new Job(request(1, 'unknown', 'text'), 0);
  const known = new Job(request(2, 'high', 'text'), 0);
  thread.start(unknown);
  thread.start(known);
  t.match(await unknown.outcome, { type: 'failed', reason: /^RangeError at / });
  t.match(await known.outcome, { type: 'done' });
  port.close();
});

t.test('a job with an unknown slot fails', async (t) => {
  const workerData: SynthesisThreadData = {
    packs,
    executionProvider: 'cpu',
    logLevel: 'silent',
    bounds: limits,
    control: new JobControl(2).buffer,
    vitals: new Vitals().buffer,
    effort: new EffortTable(1).buffer,
  };
  const piscina = new Piscina({ filename: entry.href, workerData, maxThreads: 1, atomics: 'disabled' });
  for (const slot of [2, -1, 0.5])
    t.match(await piscina.run({ ...request(1, 'low', 'text'), slot }), {
      type: 'failed',
      reason: /^RangeError at /,
    });
  await piscina.destroy();
});

const settle = () => new Promise((resolve) => setImmediate(resolve));

t.test('steps run one at a time, the earliest deadline of the moment first', async (t) => {
  const queue = new StepQueue();
  const order: string[] = [];
  const due: Record<string, number> = { a: 5, b: 3, c: 4 };
  const enter = (name: string) => void queue.enter(() => due[name] ?? 0).then(() => order.push(name));
  enter('a');
  enter('b');
  enter('c');
  await settle();
  t.same(order, ['a'], 'the first finds the queue free; no other enters meanwhile');
  due['c'] = 1;
  queue.leave();
  await settle();
  t.same(order, ['a', 'c'], 'the deadline of c moved while it waited');
  enter('a');
  queue.leave();
  await settle();
  t.same(order, ['a', 'c', 'b']);
  queue.leave();
  await settle();
  t.same(order, ['a', 'c', 'b', 'a']);
  queue.leave();
  enter('b');
  await settle();
  t.equal(order.length, 5, 'a free queue is entered at once');
});

t.test('a queue for several lets so many in, and the most urgent of the others after them', async (t) => {
  const queue = new StepQueue(undefined, 2);
  const inside: number[] = [];
  for (const dueMs of [5, 4, 3, 1, 2]) void queue.enter(() => dueMs).then(() => inside.push(dueMs));
  await settle();
  t.strictSame(inside, [5, 4], 'they came first, and two have room');
  for (const expected of [1, 2, 3]) {
    queue.leave();
    await settle();
    t.equal(inside.at(-1), expected);
  }
  queue.leave();
  queue.leave();
  await settle();
  void queue.enter(() => 9).then(() => inside.push(9));
  void queue.enter(() => 8).then(() => inside.push(8));
  void queue.enter(() => 7).then(() => inside.push(7));
  await settle();
  t.strictSame(inside.slice(5), [9, 8], 'room is given back once');
});

t.test('a long step lets short ones go first that are due before its end, for a while', async (t) => {
  let nowMs = 1_000;
  const queue = new StepQueue(() => nowMs);
  const order: string[] = [];
  const due: Record<string, number> = { long: 1_000, near: 1_200, far: 2_000 };
  const enter = (name: string, longMs = 0) =>
    void queue.enter(() => due[name] ?? 0, undefined, longMs).then(() => order.push(name));
  enter('first');
  await settle();
  enter('long', 500);
  enter('near');
  enter('far');
  const next = async () => {
    queue.leave();
    await settle();
    return order.at(-1);
  };
  t.equal(await next(), 'near', 'it is due while the long step would run');
  t.equal(await next(), 'long', 'the other is due after it');
  enter('near');
  enter('long', 500);
  t.equal(await next(), 'near');
  enter('near');
  nowMs = 1_500;
  t.equal(await next(), 'long', 'it has waited as long as it takes');
  t.equal(await next(), 'near');
  t.equal(await next(), 'far');
});

/** A job of so many steps in a queue: each makes some milliseconds of audio, and is written down. */
const steps = async (
  queue: StepQueue,
  order: string[],
  job: { name: string; dueMs: number; chunksMs: readonly number[]; clock?: GroupClock },
): Promise<void> => {
  let madeMs = 0;
  const dueMs = () => job.dueMs + madeMs;
  for (const chunkMs of job.chunksMs) {
    await queue.enter(dueMs, job.clock);
    order.push(job.name);
    // A step that computes.
    await settle();
    job.clock?.made(chunkMs, dueMs(), 0);
    madeMs += chunkMs;
    queue.leave();
  }
};

t.test('the job with the earliest deadline runs several steps in a row', async (t) => {
  const queue = new StepQueue();
  const order: string[] = [];
  const jobs = [
    { name: 'a', dueMs: 0, chunksMs: [250, 250, 250, 250] },
    { name: 'b', dueMs: 700, chunksMs: [250, 250] },
  ];
  await Promise.all(jobs.map((job) => steps(queue, order, job)));
  t.equal(order.join(''), 'aaabab');
});

t.test('the jobs of a group take turns by their own deadlines', async (t) => {
  const queue = new StepQueue();
  const order: string[] = [];
  const clock = new GroupClock();
  const names = ['a', 'b', 'c', 'd', 'e'];
  await Promise.all(
    names.map((name) => steps(queue, order, { name, dueMs: 0, chunksMs: [120, 250], clock })),
  );
  t.equal(order.join(''), 'abcdeabcde');
});

t.test('a group of many jobs gets what one job gets, until the other has time', async (t) => {
  const queue = new StepQueue();
  const order: string[] = [];
  const clock = new GroupClock();
  const group = Array.from({ length: 8 }, () => ({ name: 'g', dueMs: 0, chunksMs: [100, 100], clock }));
  const other = { name: '.', dueMs: 0, chunksMs: Array.from({ length: 10 }, () => 100) };
  await Promise.all([...group, other].map((job) => steps(queue, order, job)));
  // The clock of the group stands still at 500 ms; the last deadline of the other is 900 ms.
  t.match(order.slice(0, 11).join(''), /^(g\.){5}/, 'in turns, while the other has less than half a second');
  t.equal(order.slice(11).filter((name) => name === 'g').length, 16 - 6, order.join(''));
  t.match(order.join(''), /g{11}\.{5}$/, 'then all of the group, which is due first');
});

t.test('the clock of a group is never far ahead, and never behind what it asks for', (t) => {
  const clock = new GroupClock();
  clock.made(120, 1_000, 1_000);
  t.equal(clock.dueMs, 1_120);
  clock.made(250, 1_000, 1_010);
  t.equal(clock.dueMs, 1_370);
  for (let chunk = 0; chunk < 100; chunk++) clock.made(1_000, 1_000, 1_100);
  t.equal(clock.dueMs, 1_600, 'half a second: what it took from an idle machine costs nothing');
  clock.made(100, 9_500, 9_000);
  t.equal(clock.dueMs, 9_100, 'audio that is made early does not count as asked for early');
  clock.made(100, 4_000, 12_000);
  t.equal(clock.dueMs, 9_200, 'a group that is served late catches up, as one listener does');
  t.equal(new GroupClock(clock.buffer).dueMs, 9_200, 'shared');
  t.end();
});

t.test(
  'the port to an actor thread that ended is dropped, and its number is not awaited again',
  async (t) => {
    const ports = new ActorPorts();
    const [first, second] = [new MessageChannel(), new MessageChannel()];
    t.ok(ports.isExpected(0));
    ports.add(0, first.port1);
    ports.add(1, second.port1);
    t.equal(ports.get(0), first.port1);
    first.port2.close();
    // A port alone does not keep the process.
    await eventually(() => ports.get(0) === undefined);
    t.notOk(ports.isExpected(0));
    t.equal(ports.get(1), second.port1, 'the others stay');
    t.ok(ports.isExpected(2));
    second.port1.close();
  },
);
