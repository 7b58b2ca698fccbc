/** The jobs of one synthesis thread: their order, their actor threads, and jobs that cannot be. */
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { Piscina } from 'piscina';
import t, { type Test } from 'tap';
import { limits } from '../../src/limits.js';
import { createLog } from '../../src/log.js';
import { monotonicMs } from '../../src/monotonic.js';
import type { ChunkMail, SynthesisThreadData } from '../../src/threads/messages.js';
import { JobControl } from '../../src/threads/control.js';
import { Job, SynthesisThread } from '../../src/threads/synthesis-thread.js';
import { Vitals } from '../../src/threads/vitals.js';
import { Watchdog } from '../../src/threads/watchdog.js';
import { StepQueue } from '../../workers/synthesis-thread.js';
import { voicesOf } from '../support/scripted-voices.js';

const entry = new URL('../support/scripted-synthesis.js', import.meta.url);

/** Voices of two packs with different rates. */
const packs = [...voicesOf(['low']).packs, ...voicesOf(['high'], 'at once', 48_000).packs];

const start = async (t: Test) => {
  const watchdog = new Watchdog(limits, monotonicMs);
  const thread = new SynthesisThread({
    packs,
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
  await pause(10);
  t.strictSame(order.slice(0, 11), [1, 2, 3, 2, 3, 1, 2, 3, 2, 3, 1]);
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
  };
  const piscina = new Piscina({ filename: entry.href, workerData, maxThreads: 1, atomics: 'disabled' });
  for (const slot of [2, -1, 0.5])
    t.match(await piscina.run({ ...request(1, 'low', 'text'), slot }), {
      type: 'failed',
      reason: /^RangeError at /,
    });
  await piscina.destroy();
});

t.test('steps run one at a time, the earliest deadline of the moment first', async (t) => {
  const settle = () => new Promise((resolve) => setImmediate(resolve));
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
