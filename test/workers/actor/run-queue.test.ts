import t from 'tap';
import { PlaybackClock } from '../../../src/threads/playback-clock.js';
import { RunQueue } from '../../../workers/actor/run-queue.js';
import { seededRandom } from '../../../scripts/rig/random.js';

const WORK_MS = 4;
const AUDIO_MS = 200;

/**
 * Each item has a number of parts to do, of 200 ms of audio each, and a listener who plays from its first part on. The test runs
 * the deferred work.
 */
const stage = (costMs = 1) => {
  let nowMs = 1_000;
  let deferred: (() => void) | undefined;
  const parts = new Map<string, number>();
  const madeMs = new Map<string, number>();
  const clocks = new Map<string, PlaybackClock>();
  const log: string[] = [];
  const clockOf = (item: string): PlaybackClock => {
    const clock = clocks.get(item) ?? new PlaybackClock();
    if (!clocks.has(item)) clock.start(nowMs);
    clocks.set(item, clock);
    return clock;
  };
  const queue = new RunQueue<string>({
    clock: () => nowMs,
    workMs: WORK_MS,
    work: (item) => {
      const left = parts.get(item) ?? 0;
      if (left === 0) return false;
      parts.set(item, left - 1);
      nowMs += costMs;
      log.push(item);
      madeMs.set(item, (madeMs.get(item) ?? 0) + AUDIO_MS);
      return true;
    },
    dueMs: (item) => clockOf(item).at(madeMs.get(item)),
    onPause: () => log.push('|'),
    defer: (call) => {
      if (deferred !== undefined) throw new Error('deferred twice');
      deferred = call;
    },
  });
  return {
    queue,
    log,
    give: (item: string, count: number) => {
      parts.set(item, (parts.get(item) ?? 0) + count);
      if (parts.get(item) === count) clockOf(item).reach(madeMs.get(item) ?? 0, nowMs);
      queue.wake(item);
    },
    pass: (ms: number) => (nowMs += ms),
    clockOf,
    isIdle: () => deferred === undefined,
    run: () => {
      const call = deferred;
      deferred = undefined;
      call?.();
    },
  };
};

t.test('first audio does not wait for all that other contexts have left', async (t) => {
  const { give, run, log } = stage();
  give('long', 50);
  run();
  run();
  give('new', 1);
  run();
  t.equal(log.join(''), 'longlonglonglong|longlonglonglong|newlonglonglong|');
});

t.test('the listener who would run out of audio first is served first, part by part', async (t) => {
  const { give, run, log, pass } = stage(0.1);
  give('a', 1);
  run();
  pass(150);
  log.length = 0;
  // 50 ms of a are not heard. b is new, and 150 ms further on after its first part.
  give('a', 3);
  give('b', 3);
  run();
  t.equal(log.join(''), 'bababa|');
});

t.test('work pauses after some milliseconds, so that frames are sent and mail is read', async (t) => {
  const { give, run, log, isIdle } = stage(3);
  give('a', 3);
  run();
  t.equal(log.join(''), 'aa|', 'the second part used up the time');
  t.notOk(isIdle());
  run();
  t.equal(log.join(''), 'aa|a|');
  t.ok(isIdle(), 'with nothing to do it defers nothing');
});

t.test('a context does not catch up on the time in which it had nothing to do', async (t) => {
  const { give, run, log, pass } = stage(0.1);
  give('idled', 1);
  give('steady', 1);
  run();
  pass(10_000);
  give('steady', 1);
  run();
  log.length = 0;
  give('idled', 5);
  give('steady', 5);
  run();
  t.equal(log.slice(0, 3).join(' '), 'idled steady idled', 'the idle one is not ten seconds ahead');
});

t.test('a clock that moves while its context waits counts at the next choice', async (t) => {
  const { give, run, log, clockOf } = stage(3);
  give('a', 2);
  give('b', 2);
  run();
  t.equal(log.join(''), 'ab|');
  clockOf('a').advance(500);
  run();
  t.equal(log.join(''), 'ab|ba|');
});

t.test('a removed context gets no work, and is behind one that waited when it comes back', async (t) => {
  const { queue, give, run, log } = stage(0.1);
  give('a', 10);
  queue.remove('a');
  queue.remove('a');
  run();
  t.equal(log.join(''), '|');
  give('b', 1);
  give('a', 0);
  run();
  t.equal(log.at(1), 'b');
});

t.test('all work is done exactly once, in whatever order it comes', async (t) => {
  const random = seededRandom(11);
  const { give, run, log, isIdle } = stage(0.5);
  const given = new Map<string, number>();
  for (let round = 0; round < 300; round++) {
    const item = `i${String(Math.floor(random() * 8))}`;
    const count = 1 + Math.floor(random() * 5);
    given.set(item, (given.get(item) ?? 0) + count);
    give(item, count);
    if (random() < 0.5) run();
  }
  while (!isIdle()) run();
  const done = new Map<string, number>();
  for (const item of log) if (item !== '|') done.set(item, (done.get(item) ?? 0) + 1);
  t.same(Object.fromEntries([...done].sort()), Object.fromEntries([...given].sort()));
});
