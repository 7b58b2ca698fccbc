/** The jobs of one synthesis thread: their order, their actor threads, and jobs that cannot be. */
import { once } from 'node:events';
import { MessageChannel, type MessagePort } from 'node:worker_threads';
import t, { type Test } from 'tap';
import { limits } from '../../src/limits.js';
import { createLog } from '../../src/log.js';
import { monotonicMs } from '../../src/monotonic.js';
import type {
  ChunkMail,
  SynthesisHello,
  SynthesisJob,
  SynthesisThreadData,
} from '../../src/threads/messages.js';
import { JobControl } from '../../src/threads/control.js';
import { ClockTable } from '../../src/threads/playback-clock.js';
import { Job, SynthesisThread } from '../../src/threads/synthesis-thread.js';
import { EffortTable, threadCpuMs } from '../../src/threads/effort.js';
import { Vitals, type NativeGuard } from '../../src/threads/vitals.js';
import { Watchdog } from '../../src/threads/watchdog.js';
import type { LoadedVoices } from '../../workers/engines/engine.js';
import { ActorPorts, serveSynthesis } from '../../workers/synthesis-thread.js';
import type { VoicePack } from '../../src/threads/voices.js';
import { playThread } from '../support/played-threads.js';
import { loadScripted } from '../support/scripted-engine.js';
import { batchVoice, voicesOf } from '../support/scripted-voices.js';
import { eventually } from '../support/waiting.js';

const clocks = new ClockTable(100);

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
    clocks: clocks.buffer,
    log: createLog('silent', limits),
    entry: new URL(import.meta.url),
    startThread: playThread,
  });
  t.teardown(async () => {
    await thread.end();
    watchdog.close();
  });
  await once(thread, 'ready');
  return thread;
};

const request = (
  contextId: number,
  voiceId: string,
  text: string,
  actor = 0,
): Omit<SynthesisJob, 'slot'> => ({
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
  clock: 0,
  urgency: 'playing',
  account: 'default',
});

/** A job of a context whose first sample plays at this moment. */
const jobOf = (asked: ReturnType<typeof request>, playFromMs: number): Job => {
  const number = clocks.take();
  const clock = clocks.clock(number);
  clock.start(playFromMs);
  return new Job({ ...asked, clock: number }, clock, 0);
};

/** @returns the contexts of the chunks, in the order in which they come */
const orderOf = (port: MessagePort): number[] => {
  const order: number[] = [];
  port.on('message', (mail: ChunkMail) => {
    if (mail.type === 'chunk') order.push(mail.contextId);
  });
  return order;
};

t.test('the work of a whole file counts, but not as a cost of its voice', async (t) => {
  const thread = await start(t);
  const port = thread.link(0)!;
  const file = jobOf({ ...request(1, 'low', 'a'.repeat(5)), urgency: 'file' }, monotonicMs());
  thread.start(file);
  t.match(await file.outcome, { type: 'done' });
  t.match(thread.effort.take(0), { speechMs: 0, begun: 0 });
  t.ok(thread.effort.take(packs.flatMap(({ voices }) => voices).length).speechMs > 0);
  port.close();
});

t.test('the cost of a voice is that of complete segments: clients that leave do not change it', async (t) => {
  const thread = await start(t);
  const all = packs.flatMap(({ voices }) => voices).length;
  const port = thread.link(0)!;
  const left = jobOf(request(1, 'low', 'a'.repeat(10_000)), monotonicMs());
  thread.start(left);
  await once(port, 'message');
  left.cancel();
  t.match(await left.outcome, { type: 'cancelled' });
  t.match(thread.effort.take(0), { cpuMs: 0, speechMs: 0, begun: 0 });
  t.ok(thread.effort.take(all).speechMs > 0, 'it counts as work');
  const heard = jobOf(request(2, 'low', 'a'.repeat(15)), monotonicMs());
  thread.start(heard);
  t.match(await heard.outcome, { type: 'done' });
  const cost = thread.effort.take(0);
  t.match(cost, { begun: 1 });
  t.equal(cost.speechMs, thread.effort.take(all).speechMs);
  port.close();
});

t.test('a text without sound says nothing of what its voice costs', async (t) => {
  const thread = await start(t);
  const all = packs.flatMap(({ voices }) => voices).length;
  const port = thread.link(0)!;
  const silent = jobOf(request(1, 'low', '\0'.repeat(15)), monotonicMs());
  thread.start(silent);
  t.match(await silent.outcome, { type: 'done', samples: 18_000 });
  t.match(thread.effort.take(0), { cpuMs: 0, speechMs: 0, begun: 0 });
  t.equal(thread.effort.take(all).speechMs, 750, 'it counts as work');
  const late = jobOf(request(2, 'low', `${'\0'.repeat(10)}aaaaa`), monotonicMs());
  thread.start(late);
  t.match(await late.outcome, { type: 'done' });
  t.match(thread.effort.take(0), { speechMs: 750, begun: 1 });
  port.close();
});

/** The handler of a thread whose voices have this in addition. */
const serveWith = (
  more: Partial<LoadedVoices>,
  effort = new EffortTable(2),
  report: (hello: SynthesisHello) => void = () => undefined,
) => {
  const data: SynthesisThreadData = {
    ...{ packs: voicesOf(['low']).packs, executionProvider: 'cpu', logLevel: 'silent', bounds: limits },
    ...{ control: new JobControl(2).buffer, vitals: new Vitals().buffer },
    ...{ effort: effort.buffer, clocks: clocks.buffer },
  };
  const thread = {
    ...{ threadId: 0, ownFaults: {}, exit: () => new Promise<never>(() => undefined) },
    ...{ wait: () => Promise.resolve(), lives: () => Promise.resolve() },
  };
  const load = async (native: NativeGuard) => Object.assign(await loadScripted(data, native, thread), more);
  return serveSynthesis(data, load, report);
};

t.test('the load of a pack is no cost of speech', async (t) => {
  const effort = new EffortTable(2);
  const loadMs = 150;
  const run = await serveWith(
    {
      hold: async ({ asStep }) => {
        await asStep(loadMs, () => {
          const endMs = threadCpuMs() + loadMs;
          while (threadCpuMs() < endMs);
          return Promise.resolve();
        });
        return { load: null, release: () => undefined };
      },
    },
    effort,
  );
  // What a thread did before its first step counts for none.
  for (let jobs = 0; jobs < 2; jobs++)
    t.match(await run({ ...request(1, 'low', 'text', -1), slot: 0 }), { type: 'done' });
  const { cpuMs } = effort.take(1);
  t.ok(cpuMs < loadMs / 2, `${cpuMs} ms`);
});

t.test('a job lets go of its pack once, also if it fails', async (t) => {
  let released = 0;
  const hold = () => Promise.resolve({ load: null, release: () => void released++ });
  const run = await serveWith({ hold });
  t.match(await run({ ...request(1, 'low', 'text', -1), slot: 0 }), { type: 'done' });
  t.equal(released, 1);
  t.match(await run({ ...request(1, 'low', 'It !throw here.', -1), slot: 0 }), { type: 'failed' });
  t.equal(released, 2);
});

t.test('a step far longer than those of the load is the longest from then on', async (t) => {
  const [voice] = voicesOf(['low']).packs[0]!.voices;
  const voices = [{ ...voice!, longStep: { ms: 100, speechMs: 250 } }];
  const slowMs: number[] = [];
  const run = await serveWith({ voices }, undefined, (hello) => {
    if (hello.type === 'slow-step') slowMs.push(hello.step.ms);
  });
  for (let jobs = 0; jobs < 2; jobs++)
    t.match(await run({ ...request(1, 'low', '!heavy word', -1), slot: 0 }), { type: 'done' });
  t.equal(slowMs.length, 1, 'the second one is expected');
  t.ok(slowMs[0]! > 500);
});

t.test('three sluggish steps in a row make a voice slow, two do not', async (t) => {
  let reports = 0;
  const run = await serveWith({}, undefined, (hello) => {
    if (hello.type === 'slow-step') reports++;
  });
  // Five letters a step. The first step is quick.
  const speak = (letters: number) =>
    run({ ...request(1, 'low', '!sluggish'.padEnd(letters, 'a'), -1), slot: 0 });
  t.match(await speak(15), { type: 'done' });
  t.equal(reports, 0);
  t.match(await speak(20), { type: 'done' });
  t.equal(reports, 1);
});

t.test('a pause loads no pack', async (t) => {
  const run = await serveWith({ hold: () => Promise.reject(new Error('loaded')) });
  t.match(await run({ ...request(1, 'low', 'text', -1), pauseMs: 100, slot: 0 }), { type: 'done' });
  t.match(await run({ ...request(1, 'low', 'text', -1), slot: 0 }), { type: 'failed' });
});

t.test('a segment that ends makes room for the next one of a voice that bounds them', async (t) => {
  const run = await serveWith({ crowded: [{ voices: voicesOf(['low']).packs[0]!.voices, segmentsMax: 1 }] });
  for (let jobs = 0; jobs < 2; jobs++)
    t.match(await run({ ...request(1, 'low', 'text', -1), slot: 0 }), { type: 'done' });
});

t.test('the step in which a job was cancelled counts', async (t) => {
  const thread = await start(t);
  const port = thread.link(0)!;
  const left = jobOf(request(1, 'low', `!slow${'a'.repeat(50)}`), monotonicMs());
  thread.start(left);
  await eventually(() => thread.steppingVoices.length > 0);
  left.cancel();
  const outcome = await left.outcome;
  t.match(outcome, { type: 'cancelled', effort: { computeMs: Number } });
  t.ok(outcome.type === 'cancelled' && outcome.effort!.computeMs > 0);
  port.close();
});

t.test('each job has deadlines at the rate of its voice', async (t) => {
  const thread = await start(t);
  const port = thread.link(0)!;
  const order = orderOf(port);
  // A chunk of 6,000 samples lasts 250 ms with the voice `low` and 125 ms with `high`.
  const jobs = [
    jobOf(request(1, 'low', 'a'.repeat(20)), 0),
    jobOf(request(2, 'high', 'b'.repeat(40)), 1),
    jobOf(request(3, 'high', 'c'.repeat(40)), 2),
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
  const order = orderOf(port);
  const calm = jobOf(request(1, 'low', `!inside${'a'.repeat(13)}`), 60_000);
  const urgent = jobOf(request(2, 'low', 'b'.repeat(10)), 0);
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

t.test('pauses take their turn: a job that is more urgent runs between them', async (t) => {
  const voices = voicesOf(['low']);
  const thread = await start(t, voices.packs);
  const port = thread.link(0)!;
  const order = orderOf(port);
  const running = jobOf(request(1, 'low', `!inside${'a'.repeat(3)}`), 0);
  const pauses = [2, 3].map((contextId) =>
    jobOf({ ...request(contextId, 'low', ''), pauseMs: 3_000 }, 60_000),
  );
  const urgent = jobOf(request(4, 'low', 'b'.repeat(10)), 0);
  thread.start(running);
  await voices.hung();
  for (const job of [...pauses, urgent]) thread.start(job);
  voices.letGo();
  for (const job of pauses) t.match(await job.outcome, { type: 'done', samples: 72_000 });
  for (const job of [running, urgent]) t.match(await job.outcome, { type: 'done' });
  await eventually(() => order.length >= 6);
  t.strictSame(order.filter((contextId) => contextId > 1).slice(0, 4), [4, 4, 2, 3]);
  port.close();
});

t.test('jobs whose actor thread ended do not wait for its port', async (t) => {
  const thread = await start(t);
  const port = thread.link(0)!;
  const running = jobOf(request(1, 'low', 'a'.repeat(100)), 0);
  const cancelled = jobOf(request(2, 'low', 'b'.repeat(10_000)), 0);
  thread.start(running);
  thread.start(cancelled);
  await once(port, 'message');
  port.close();
  t.match(await running.outcome, { type: 'done', samples: 120_000 });
  const late = jobOf(request(3, 'low', 'too late'), 0);
  thread.start(late);
  t.match(await late.outcome, { type: 'done' });
  cancelled.cancel();
  t.match(await cancelled.outcome, { type: 'cancelled' });
  const other = thread.link(1)!;
  const unharmed = jobOf(request(4, 'low', 'elsewhere', 1), 0);
  thread.start(unharmed);
  t.match(await unharmed.outcome, { type: 'done' });
  other.close();
});

t.test('a job waits for a port that comes later, unless it is cancelled', async (t) => {
  const thread = await start(t);
  const early = jobOf(request(1, 'low', 'early'), 0);
  const cancelled = jobOf(request(2, 'low', 'cancelled'), 0);
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
    jobOf(request(1, batchVoice, 'a'.repeat(15)), 0),
    jobOf(request(2, batchVoice, '!throw' + 'b'.repeat(9)), 1),
    jobOf(request(3, batchVoice, 'c'.repeat(15)), 2),
    jobOf(request(4, 'low', 'd'.repeat(5)), 60_000),
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
  const unknown = jobOf(request(1, 'unknown', 'text'), 0);
  const known = jobOf(request(2, 'high', 'text'), 0);
  thread.start(unknown);
  thread.start(known);
  t.match(await unknown.outcome, { type: 'failed', reason: /^RangeError at / });
  t.match(await known.outcome, { type: 'done' });
  port.close();
});

t.test('a job with an unknown slot fails', async (t) => {
  const { run } = playThread({
    packs,
    executionProvider: 'cpu',
    logLevel: 'silent',
    bounds: limits,
    control: new JobControl(2).buffer,
    vitals: new Vitals().buffer,
    effort: new EffortTable(2).buffer,
    clocks: clocks.buffer,
  });
  for (const slot of [2, -1, 0.5])
    t.match(await run({ ...request(1, 'low', 'text'), slot }), {
      type: 'failed',
      reason: /^RangeError at /,
    });
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
