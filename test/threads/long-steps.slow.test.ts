/** Steps that cannot be short: where they run, and what a cancel and the end of the threads make of them. */
import type { MessagePort } from 'node:worker_threads';
import t, { type Test } from 'tap';
import { limits } from '../../src/limits.js';
import { createLog } from '../../src/log.js';
import { monotonicMs } from '../../src/monotonic.js';
import type { ChunkMail } from '../../src/threads/messages.js';
import { ClockTable } from '../../src/threads/playback-clock.js';
import { HungThreads, SynthesisPool } from '../../src/threads/synthesis-pool.js';
import { Watchdog } from '../../src/threads/watchdog.js';
import { playThread } from '../support/played-threads.js';
import { longStep, longVoice, voicesOf } from '../support/scripted-voices.js';
import { eventually } from '../support/waiting.js';

const entry = new URL('../support/scripted-synthesis.js', import.meta.url);

/** A pool whose threads are linked to one actor thread. @param isPlayed the test plays the threads */
const start = async (t: Test, threads: number, isPlayed = true) => {
  const watchdog = new Watchdog(limits, monotonicMs);
  const voices = voicesOf(['short', longVoice]);
  const [pack] = voices.packs;
  const others = ['heavy', 'light'].map((id) => ({ ...pack!.voices[0]!, id }));
  const clocks = new ClockTable(100);
  const pool = new SynthesisPool({
    packs: [...voices.packs, { ...pack!, name: 'others', voices: others }],
    executionProvider: 'cpu',
    logLevel: 'silent',
    bounds: limits,
    watchdog,
    log: createLog('silent', limits),
    entry,
    ...(isPlayed && { startThread: playThread }),
    threads,
    hungThreads: new HungThreads(0),
    clocks: clocks.buffer,
    clock: monotonicMs,
  });
  /** By context, for each of its chunks, the thread that made it. */
  const madeBy = new Map<number, number[]>();
  const ports: MessagePort[] = [];
  const chunks: (() => void)[] = [];
  await pool.loaded();
  for (const [number, thread] of pool.ready.entries()) {
    const port = thread.link(0)!;
    ports.push(port);
    port.on('message', (mail: ChunkMail) => {
      if (mail.type !== 'chunk') return;
      madeBy.set(mail.contextId, [...(madeBy.get(mail.contextId) ?? []), number]);
      for (const resolve of chunks.splice(0)) resolve();
    });
  }
  t.teardown(async () => {
    for (const port of ports) port.close();
    await pool.close(1_000);
    watchdog.close();
  });
  let contexts = 0;
  const run = (voiceId: string, text: string, playFromMs = monotonicMs()) => {
    const contextId = ++contexts;
    const number = clocks.take();
    const clock = clocks.clock(number);
    clock.start(playFromMs);
    const job = pool.run(
      {
        ...{ contextId, segment: 0, actor: 0, text, words: [], before: '', after: '' },
        ...{ settings: { voiceId, temperature: 1, normalizeText: false }, seed: 0, utteranceSeed: 0 },
        ...{ clock: number, urgency: 'playing', account: 'default' },
      },
      clock,
      0,
    );
    return { contextId, job };
  };
  const nextChunk = () => new Promise<void>((resolve) => chunks.push(resolve));
  return { pool, voices, run, madeBy, nextChunk };
};

t.test('long steps leave a thread to those that are due before they end', async (t) => {
  const { pool, run, madeBy, nextChunk } = await start(t, 2);
  t.same(pool.longStep(longVoice), longStep);
  t.equal(pool.longStep('short'), undefined);
  const long = Array.from({ length: 4 }, () => run(longVoice, 'a'.repeat(10)));
  await nextChunk();
  const urgent = Array.from({ length: 4 }, () => run('short', 'b'.repeat(50)));
  const later = Array.from({ length: 4 }, () => run('short', 'c'.repeat(5), monotonicMs() + 60_000));
  for (const { job } of [...urgent, ...later, ...long]) t.match(await job.outcome, { type: 'done' });
  const threadsOf = async (jobs: readonly { contextId: number }[]) => {
    // Outcomes and chunks come through different ports, in any order.
    while (jobs.some(({ contextId }) => !madeBy.has(contextId))) await nextChunk();
    return [...new Set(jobs.flatMap(({ contextId }) => [...madeBy.get(contextId)!]))].sort();
  };
  t.same(await threadsOf(long), [0], 'all but the last thread run them');
  t.same(await threadsOf(urgent), [1]);
  t.same(await threadsOf(later), [0, 1], 'a job with time goes where there are fewest');
  const after = Array.from({ length: 2 }, () => run('short', 'd'));
  for (const { job } of after) t.match(await job.outcome, { type: 'done' });
  t.same(await threadsOf(after), [0, 1], 'without long steps every thread takes all');
});

t.test(
  'a pack with a heavy step leaves a thread to others from then on, except the default one',
  async (t) => {
    const { pool, run, nextChunk } = await start(t, 2);
    for (const voiceId of ['short', 'heavy'])
      t.match(await run(voiceId, '!heavy word').job.outcome, { type: 'done' });
    await eventually(() => pool.longStep('heavy') !== undefined);
    t.ok(pool.longStep('heavy')!.ms > 500);
    t.same(pool.longStep('light'), pool.longStep('heavy'), 'of all voices of the pack');
    t.equal(pool.longStep('short'), undefined);
    const jobs = Array.from({ length: 4 }, () => run('light', 'b'.repeat(50)));
    await nextChunk();
    t.equal(pool.ready[1]!.jobs, 0);
    for (const { job } of jobs) t.match(await job.outcome, { type: 'done' });
  },
);

t.test('a single thread runs long steps too', async (t) => {
  const { run } = await start(t, 1);
  for (const { job } of [run(longVoice, 'a'), run('short', 'b')])
    t.match(await job.outcome, { type: 'done' });
});

t.test('a cancel ends a job with long steps at once, and what its step makes is discarded', async (t) => {
  const { pool, voices, run, madeBy, nextChunk } = await start(t, 1);
  const [thread] = pool.ready;
  const { contextId, job } = run(longVoice, '!inside, the second step waits');
  await nextChunk();
  await voices.hung();
  job.cancel();
  t.same(await job.outcome, { type: 'cancelled', effort: null });
  t.equal(thread!.jobs, 1, 'its step still runs');
  const next = run('short', 'b');
  voices.letGo();
  t.match(await next.job.outcome, { type: 'done' });
  while (!madeBy.has(next.contextId)) await nextChunk();
  t.same(madeBy.get(contextId), [0], 'the chunk of the first step only');
  await eventually(() => thread!.jobs === 0);
});

t.test('the threads end cleanly while a long step runs', async (t) => {
  const { pool, run, nextChunk } = await start(t, 2, false);
  const { job } = run(longVoice, 'a'.repeat(50));
  // The next step follows at once.
  await nextChunk();
  const closed = pool.close(2);
  t.match(await job.outcome, { type: 'cancelled' });
  t.ok(await closed, 'it may take as long as its step, whatever the caller allows');
});
