import t from 'tap';
import { InvariantError } from '../../src/fault.js';
import { seededRandom } from '../../scripts/rig/random.js';
import { bench, last, segment, segment0, type BenchContext, type Start } from '../support/scheduling.js';

t.test('the listener who would run out of audio first is served first', async (t) => {
  const { clock, starts, open } = bench();
  const a = open();
  a.enqueue(segment(0));
  const first = last(starts);
  const b = open();
  const c = open();
  a.enqueue(segment(1));
  clock.nowMs = 10;
  c.enqueue(segment(0));
  clock.nowMs = 20;
  b.enqueue(segment(0));
  a.finished(first.segment, 5_000);
  t.equal(last(starts).schedule, c, 'c spoke up first, and a has five seconds in hand');
  c.finished(last(starts).segment, 1_000);
  t.equal(last(starts).schedule, b);
  b.finished(last(starts).segment, 1_000);
  t.equal(last(starts).schedule, a);
  t.equal(last(starts).playFromMs, 5_000, 'its next sample is due when what it has is played');
});

t.test('a lease runs one segment under contention, and more while threads idle', async (t) => {
  const { starts, open } = bench({ threads: 2, jobsMax: 4 });
  const lease = {};
  const a = open(lease);
  for (let index = 0; index < 5; index++) a.enqueue(segment(index, 10));
  t.equal(starts.length, 1, 'nothing slows the first chunk');
  a.handed(100);
  t.equal(starts.length, 2, 'once it is heard, both threads are used for the only lease there is');
  const other = open();
  other.enqueue(segment(0));
  t.equal(
    last(starts).schedule,
    other,
    'another lease starts at once: it waits for a step, not for a segment',
  );
  a.finished(segment0(starts, a, 0), 1_000);
  t.equal(starts.filter((start) => start.schedule === a).length, 2, 'no second one while no thread idles');
});

t.test('contexts of one group start beside each other, and none of them a second time', async (t) => {
  const { starts, open } = bench({ threads: 2, jobsMax: 64 });
  const socket = {};
  const contexts = Array.from({ length: 5 }, () => open(socket));
  for (const context of contexts) for (let index = 0; index < 3; index++) context.enqueue(segment(index, 10));
  t.same(
    starts.map((start) => [contexts.indexOf(start.schedule), start.segment.index]),
    [0, 1, 2, 3, 4].map((context) => [context, 0]),
  );
  contexts[0]?.finished(segment0(starts, contexts[0], 0), 700);
  t.match(last(starts), { schedule: contexts[0], segment: { index: 1 } }, 'the next of the same');
  t.equal(starts.length, 6);
});

t.test(
  'a group leaves at least half of the jobs to others, and several groups have as many each',
  async (t) => {
    const { starts, open } = bench({ threads: 2, jobsMax: 64 });
    const startsOf = (group: object) =>
      starts.filter(({ schedule }) => schedule.context.group.key === group).length;
    const speak = (group: object) => {
      for (let count = 0; count < 64; count++) open(group).enqueue(segment(0, 2));
      return startsOf(group);
    };
    const sockets = [{}, {}, {}, {}];
    t.equal(speak(sockets[0] ?? {}), 16, 'as many as it leaves of the half');
    t.strictSame(sockets.slice(1).map(speak), [8, 4, 2]);
    for (let count = 0; count < 30; count++) open().enqueue(segment(0));
    t.equal(starts.length, 60, 'everyone else starts at once');
    for (let count = 0; count < 40; count++) open().enqueue(segment(0));
    t.equal(starts.length, 64);
    for (const { schedule, segment: done } of starts.slice(0, 16)) schedule.finished(done, 100);
    t.equal(startsOf(sockets[0] ?? {}), 17, 'full: one at a time, like a caller that came before the others');
  },
);

t.test('a group runs no further segment once much audio is expected of it', async (t) => {
  const { starts, open } = bench({ threads: 2, jobsMax: 64, unsentAudioMsMax: 10_000 });
  const socket = {};
  const contexts = Array.from({ length: 10 }, () => open(socket));
  for (const context of contexts) context.enqueue(segment(0, 100));
  t.equal(starts.length, 6, '42 s are over the bound of 40 s');
  contexts[0]?.handed(1_500);
  t.equal(starts.length, 6);
  contexts[0]?.handed(1_000);
  t.equal(starts.length, 7, 'there is room as soon as some of it is handed over');
  contexts[1]?.finished(segment0(starts, contexts[1], 0), 500);
  t.equal(starts.length, 8, 'or when a segment is shorter than expected');
  const other = open();
  other.enqueue(segment(0, 100));
  t.equal(last(starts).schedule, other);
  const stopped = contexts[2];
  stopped?.close();
  t.equal(last(starts).schedule, contexts[8], 'what a closed context would have made does not count');
});

t.test('contexts of one lease take turns', async (t) => {
  const { starts, open } = bench();
  const lease = {};
  const contexts = [open(lease), open(lease), open(lease)];
  for (const context of contexts) for (let index = 0; index < 2; index++) context.enqueue(segment(index));
  for (let i = 0; i < 5; i++) last(starts).schedule.finished(last(starts).segment, 1_000);
  const order = starts.map((start) => contexts.indexOf(start.schedule));
  t.same(order, [0, 1, 2, 0, 1, 2]);
});

t.test('a reader that takes nothing gets no further segment, until it takes some', async (t) => {
  const { clock, starts, open } = bench({ unsentAudioMsMax: 4_000 });
  const a = open();
  for (let index = 0; index < 4; index++) a.enqueue(segment(index, 10));
  a.finished(last(starts).segment, 3_000);
  t.equal(starts.length, 2, '3 s unsent: below the bound');
  a.finished(last(starts).segment, 3_000);
  t.equal(starts.length, 2, '6 s unsent: over it');
  clock.nowMs = 60_000;
  a.handed(1_000);
  t.equal(starts.length, 2, 'still over it');
  a.handed(2_000);
  t.equal(starts.length, 3, 'below it again');
  t.equal(
    last(starts).playFromMs,
    66_000,
    'due when it has played what was made: it must not outrank everyone for the time it slept',
  );
});

t.test('after a pause, playback starts at the present', async (t) => {
  const { clock, starts, open } = bench();
  const a = open();
  a.enqueue(segment(0));
  a.finished(last(starts).segment, 2_000);
  clock.nowMs = 500;
  a.enqueue(segment(1));
  t.equal(last(starts).playFromMs, 2_000, 'the listener still has audio');
  a.finished(last(starts).segment, 1_000);
  clock.nowMs = 60_000;
  a.enqueue(segment(2));
  t.equal(last(starts).playFromMs, 60_000, 'the listener has heard everything');
});

t.test(
  'the playback clock of a running segment moves when the true duration before it is known',
  async (t) => {
    const { starts, moves, open } = bench({ threads: 2, jobsMax: 2 });
    const a = open();
    a.enqueue(segment(0, 20));
    a.enqueue(segment(1, 20));
    a.handed(1);
    t.equal(starts.length, 2);
    t.equal(starts[1]?.playFromMs, 1_400, 'an estimate');
    a.finished(segment0(starts, a, 0), 2_345);
    t.match(last(moves), { segment: { index: 1 }, playFromMs: 2_345 });
  },
);

t.test('a segment that ends before the one before it does not make that one due later', async (t) => {
  const { clock, starts, moves, open } = bench({ threads: 2, jobsMax: 2 });
  const a = open();
  for (let index = 0; index < 4; index++) a.enqueue(segment(index, 20));
  a.handed(1);
  a.finished(segment0(starts, a, 0), 2_000);
  t.match(last(starts), { segment: { index: 2 }, playFromMs: 3_400 });
  a.finished(segment0(starts, a, 2), 3_000);
  t.match(
    moves.findLast(({ segment }) => segment.index === 1),
    { playFromMs: 2_000 },
    'the listener hears it before what is made',
  );
  t.match(last(starts), { segment: { index: 3 }, playFromMs: 6_400 }, 'the next one comes after both');
  a.requeue(segment0(starts, a, 1));
  t.match(last(starts), { segment: { index: 1 }, playFromMs: 2_000 }, 'it runs again for its own place');
  clock.nowMs = 10;
  a.finished(segment0(starts, a, 1), 1_000);
  t.match(last(moves), { segment: { index: 3 }, playFromMs: 6_000 });
});

t.test('the gate of a lease shuts for all of its contexts, and opens for all', async (t) => {
  const { clock, starts, open } = bench({ unsentAudioMsMax: 10_000 });
  const lease = {};
  const contexts = Array.from({ length: 4 }, () => open(lease));
  const [a, b, , d] = contexts as [BenchContext, BenchContext, BenchContext, BenchContext];
  for (const context of contexts) {
    context.enqueue(segment(0));
    if (context === d) break;
    context.finished(last(starts).segment, 7_000);
  }
  t.equal(starts.length, 3, 'each is under its own bound, together they are over that of the lease');
  const stranger = open();
  stranger.enqueue(segment(0));
  t.equal(last(starts).schedule, stranger, 'other leases go on');
  stranger.finished(last(starts).segment, 1_000);
  clock.nowMs = 60_000;
  a.handed(500);
  t.equal(starts.length, 4);
  b.handed(600);
  t.equal(last(starts).schedule, d);
  t.equal(last(starts).playFromMs, 60_000, 'its listener waited for the socket: it is due now');
  d.finished(last(starts).segment, 7_000);
  a.enqueue(segment(1));
  t.equal(starts.length, 5, 'closed again');
  a.handed(600);
  t.equal(starts.length, 5);
  b.close();
  t.equal(last(starts).schedule, a, 'what a closed context had does not count');
});

t.test('withdrawn segments do not start, those before them do', async (t) => {
  const { starts, open } = bench();
  const a = open();
  for (let index = 0; index < 4; index++) a.enqueue(segment(index));
  a.withdraw(2);
  t.equal(a.context.queued.length, 1);
  a.finished(last(starts).segment, 1_000);
  a.finished(last(starts).segment, 1_000);
  t.strictSame(
    starts.map((start) => start.segment.index),
    [0, 1],
  );
  a.enqueue(segment(2));
  t.equal(last(starts).segment.index, 2, 'its number is used again');
});

t.test('a second utterance counts as not heard until its own audio is handed over', async (t) => {
  const { clock, starts, open } = bench({ threads: 2, jobsMax: 4 });
  const a = open();
  a.enqueue(segment(0));
  a.finished(last(starts).segment, 1_000);
  a.handed(1_000);
  clock.nowMs = 30_000;
  a.enqueue(segment(1));
  a.enqueue(segment(2));
  t.equal(starts.length, 2, 'nothing slows its first chunk');
  a.handed(100);
  t.equal(starts.length, 3);
});

t.test('an interrupted segment runs again before those behind it', async (t) => {
  const { starts, open } = bench();
  const a = open();
  for (let index = 0; index < 3; index++) a.enqueue(segment(index));
  a.requeue(last(starts).segment);
  t.same(
    starts.map((start) => start.segment.index),
    [0, 0],
  );
  a.finished(last(starts).segment, 10);
  t.same(
    starts.map((start) => start.segment.index),
    [0, 0, 1],
  );
});

t.test('quiet begins when the last segment ends', (t) => {
  const { clock, starts, scheduler, open } = bench({ threads: 2, jobsMax: 2 });
  t.equal(scheduler.quietMs, Infinity);
  const contexts = [open(), open()];
  for (const context of contexts) context.enqueue(segment(0));
  clock.nowMs = 100;
  t.equal(scheduler.quietMs, 0);
  starts[0]!.schedule.finished(starts[0]!.segment, 10);
  t.equal(scheduler.quietMs, 0, 'the other still runs');
  clock.nowMs = 150;
  starts[1]!.schedule.finished(starts[1]!.segment, 10);
  clock.nowMs = 400;
  t.equal(scheduler.quietMs, 250);
  t.end();
});

t.test('a closed context starts nothing more and leaves nothing behind', async (t) => {
  const { starts, scheduler, open } = bench();
  const a = open();
  a.enqueue(segment(0));
  a.enqueue(segment(1));
  a.close();
  a.close();
  a.enqueue(segment(2));
  t.equal(scheduler.groups, 1, 'its running segment is still with a thread');
  a.finished(last(starts).segment, 10);
  a.finished(last(starts).segment, 10);
  t.equal(starts.length, 1);
  t.equal(scheduler.groups, 0);
  t.equal(scheduler.runningSegments, 0);
});

t.test('nothing starts while no thread can take it', async (t) => {
  const { starts, scheduler, open } = bench();
  scheduler.setPaused(true);
  open().enqueue(segment(0));
  t.equal(starts.length, 0);
  scheduler.setPaused(false);
  t.equal(starts.length, 1);
});

t.test('random schedules: order, bounds and completeness hold', async (t) => {
  for (let seed = 1; seed <= 2_000; seed++) {
    const problem = simulate(seed);
    if (problem !== undefined) t.fail(`seed ${seed}: ${problem}`);
    else if (seed === 2_000) t.pass('all schedules kept the invariants');
  }
});

/** One random life of a scheduler. @returns what went wrong, if anything */
const simulate = (seed: number): string | undefined => {
  const random = seededRandom(seed);
  const below = (n: number) => Math.floor(random() * n);
  const threads = 1 + below(3);
  const jobsMax = threads + below(4);
  const unsentAudioMsMax = 1_000 + below(8_000);
  const { clock, starts, scheduler, open } = bench({ threads, jobsMax, unsentAudioMsMax });
  const leases = Array.from({ length: 1 + below(4) }, () => ({}));
  const contexts = Array.from({ length: 1 + below(8) }, () => ({
    schedule: open(leases[below(leases.length)] ?? leases[0] ?? {}),
    enqueued: 0,
    started: [] as number[],
    requeued: new Set<number>(),
    finished: 0,
    closed: false,
  }));
  const running: Start[] = [];
  let seen = 0;
  let problem: string | undefined;
  const observe = (): void => {
    for (; seen < starts.length; seen++) {
      const start = starts[seen];
      if (start === undefined) continue;
      running.push(start);
      const context = contexts.find((candidate) => candidate.schedule === start.schedule);
      if (context === undefined || context.closed) problem = 'a closed context was started';
      // What runs again is let through: what was made after it waits for it.
      const isAgain = context?.requeued.has(start.segment.index) ?? false;
      context?.started.push(start.segment.index);
      if (!isAgain && start.schedule.context.unsentMs > unsentAudioMsMax)
        problem = 'started over the bound of unsent audio';
    }
    if (running.length > jobsMax) problem = 'more jobs than allowed';
    if (scheduler.runningSegments !== running.length) problem = 'running segments miscounted';
  };
  for (let step = 0; step < 120 && problem === undefined; step++) {
    clock.nowMs += below(400);
    const context = contexts[below(contexts.length)];
    if (context === undefined) continue;
    const action = below(10);
    if (action < 4 && !context.closed) context.schedule.enqueue(segment(context.enqueued++, 1 + below(200)));
    else if (action < 8 && running.length > 0) {
      const [ended] = running.splice(below(running.length), 1);
      const owner = contexts.find((candidate) => candidate.schedule === ended?.schedule);
      if (ended !== undefined && owner !== undefined) {
        if (random() < 0.1 && !owner.closed) {
          owner.started.splice(owner.started.indexOf(ended.segment.index), 1);
          owner.requeued.add(ended.segment.index);
          ended.schedule.requeue(ended.segment);
        } else {
          owner.finished++;
          ended.schedule.finished(ended.segment, below(3_000));
        }
      }
    } else if (action === 8)
      context.schedule.handed(Math.min(below(3_000), Math.max(0, context.schedule.context.unsentMs)));
    else if (random() < 0.1) {
      context.closed = true;
      context.schedule.close();
    }
    observe();
  }
  const handAll = (): void => {
    for (const context of contexts) context.schedule.handed(Math.max(0, context.schedule.context.unsentMs));
    observe();
  };
  while (problem === undefined) {
    handAll();
    if (running.length === 0) break;
    const ended = running.pop();
    const owner = contexts.find((candidate) => candidate.schedule === ended?.schedule);
    if (ended === undefined || owner === undefined) continue;
    owner.finished++;
    ended.schedule.finished(ended.segment, 100);
  }
  for (const context of contexts) {
    if (context.closed) continue;
    if (context.finished !== context.enqueued) problem ??= 'a segment of an open context never ran';
    if (new Set(context.started).size !== context.started.length) problem ??= 'a segment ran twice';
  }
  for (const context of contexts) context.schedule.close();
  if (scheduler.groups !== 0 || scheduler.runningSegments !== 0) problem ??= 'something was left behind';
  return problem;
};

t.test('a segment has in the audio budget from its start what it is expected to make', (t) => {
  const { scheduler, starts, open } = bench({ unsentAudioMsMax: 10_000 });
  const context = open({}, { bytesPerMs: 128 });
  context.enqueue({ ...segment(0), expectedMs: 56_000 });
  t.equal(scheduler.audio.bytes, 56_000 * 128, 'no gate would stop it later');
  scheduler.came(context.context, 0, 9_000);
  t.equal(scheduler.audio.bytes, 56_000 * 128);
  context.finished(starts[0]!.segment, 50_000);
  t.equal(scheduler.audio.bytes, 50_000 * 128);
  context.close();
  t.end();
});

t.test('a segment that outlasts its estimate never takes the audio budget below zero', (t) => {
  const BYTES_PER_MS = 48;
  const { scheduler, starts, open } = bench({ threads: 2, jobsMax: 2 });
  const context = open({}, { bytesPerMs: BYTES_PER_MS });
  const bytes = () => scheduler.audio.bytes;
  context.enqueue(segment(0, 10));
  t.equal(bytes(), 700 * BYTES_PER_MS, 'an estimate');
  context.handed(600);
  t.equal(bytes(), 100 * BYTES_PER_MS);
  context.enqueue(segment(1, 10));
  context.handed(2_500);
  t.equal(bytes(), 700 * BYTES_PER_MS, 'the first is longer than estimated; the second counts in full');
  context.finished(starts[1]!.segment, 4_000);
  t.equal(bytes(), 4_000 * BYTES_PER_MS);
  context.requeue(starts[0]!.segment);
  t.equal(starts.length, 3, 'it runs again');
  context.handed(200);
  t.equal(bytes(), 4_000 * BYTES_PER_MS);
  context.finished(starts[2]!.segment, 3_400);
  t.equal(bytes(), 4_100 * BYTES_PER_MS);
  context.handed(4_100);
  t.equal(bytes(), 0);
  t.throws(() => context.handed(1), InvariantError, 'more than was made');
  context.close();
  t.equal(bytes(), 0);
  t.end();
});

t.test('a segment that is abandoned after the last frame of its context breaks no account', (t) => {
  const { scheduler, starts, open } = bench();
  const context = open({}, { bytesPerMs: 48 });
  context.enqueue(segment(0, 10));
  context.handed(300);
  context.abandoned(starts[0]!.segment);
  t.equal(scheduler.runningSegments, 0);
  context.handed(900);
  t.equal(scheduler.audio.bytes, 0, 'all that was made has been handed over');
  context.abandoned(starts[0]!.segment);
  context.close();
  t.equal(scheduler.audio.bytes, 0);
  t.equal(scheduler.groups, 0);
  t.end();
});

t.test('a segment that runs again does not wait for the audio after it', (t) => {
  const { starts, open } = bench({ threads: 2, jobsMax: 2, unsentAudioMsMax: 5_000 });
  const context = open();
  context.enqueue(segment(0, 10));
  context.finished(last(starts).segment, 700);
  context.handed(300);
  context.enqueue(segment(1, 10));
  const interrupted = last(starts).segment;
  context.enqueue(segment(2, 100));
  t.equal(last(starts).segment.index, 2, 'both run');
  context.requeue(interrupted);
  t.equal(last(starts).segment.index, 1);
  context.requeue(interrupted);
  context.finished(starts.find((started) => started.segment.index === 2)?.segment ?? segment(2), 9_000);
  t.equal(last(starts).segment.index, 1, 'although nine seconds are unsent');
  t.equal(context.context.running.length, 1);
  t.end();
});

t.test('a segment counts as waiting once it waits only for a thread', (t) => {
  const { clock, starts, open } = bench({ unsentAudioMsMax: 1_000 });
  const a = open();
  const b = open();
  a.enqueue(segment(0));
  t.equal(last(starts).readySinceMs, 0, 'at once');
  clock.nowMs = 10;
  b.enqueue(segment(0));
  a.enqueue(segment(1));
  clock.nowMs = 50;
  a.finished(last(starts).segment, 900);
  t.match(last(starts), { schedule: b, readySinceMs: 10 }, 'since its text was there');
  clock.nowMs = 80;
  b.finished(last(starts).segment, 900);
  t.match(
    last(starts),
    { schedule: a, readySinceMs: 50 },
    'since the segment before it ended, not since its text',
  );
  a.enqueue(segment(2));
  clock.nowMs = 90;
  a.finished(last(starts).segment, 900);
  t.equal(starts.length, 3, 'the gate is shut');
  clock.nowMs = 500;
  a.handed(1_800);
  t.match(last(starts), { schedule: a, readySinceMs: 500 }, 'since the gate opened');
  t.end();
});

t.test('a context hears when there is something to make again: text, or an open gate', (t) => {
  const { clock, starts, open } = bench({ unsentAudioMsMax: 1_000 });
  const resumed: [number, number][] = [];
  const context = open({}, { resumed: (nowMs, index) => resumed.push([nowMs, index]) });
  context.enqueue(segment(0));
  context.enqueue(segment(1));
  t.strictSame(resumed.splice(0), [[0, 0]], 'not for text behind other text');
  clock.nowMs = 20;
  context.finished(last(starts).segment, 2_000);
  clock.nowMs = 700;
  context.handed(1_900);
  t.strictSame(resumed.splice(0), [[700, 1]], 'the gate opened');
  context.finished(last(starts).segment, 100);
  clock.nowMs = 900;
  context.enqueue(segment(2));
  t.strictSame(resumed, [[900, 2]], 'all before was made');
  t.end();
});

t.test('when jobs are short, a request waits behind one of another account, not behind its many', (t) => {
  const { clock, starts, open } = bench({ threads: 1, jobsMax: 1 });
  const many = Array.from({ length: 20 }, () => open({}, { account: 'many' }));
  // Sockets that ask in another order than they were opened.
  for (const one of many.toReversed()) {
    one.enqueue(segment(0));
    clock.nowMs += 1;
  }
  const few = open({}, { account: 'few' });
  few.enqueue(segment(0));
  for (let ended = 0; ended < 3; ended++) {
    clock.nowMs += 10;
    last(starts).schedule.finished(last(starts).segment, 100);
  }
  const order = starts.map(({ schedule }) => (schedule === few ? 'few' : many.indexOf(schedule)));
  t.strictSame(order, [19, 18, 'few', 17], 'those of one account in the order of asking');
  t.end();
});

t.test('only the first segment of an utterance is awaited', (t) => {
  const { clock, starts, open } = bench({ threads: 2, jobsMax: 2 });
  const a = open();
  a.enqueue(segment(0));
  t.equal(last(starts).isAwaited, true);
  a.handed(100);
  a.enqueue(segment(1));
  t.equal(last(starts).isAwaited, false, 'it runs behind the first');
  a.finished(segment0(starts, a, 0), 1_000);
  a.finished(segment0(starts, a, 1), 1_000);
  a.enqueue(segment(2));
  t.equal(last(starts).isAwaited, false, 'its listener has audio');
  a.finished(segment0(starts, a, 2), 100);
  a.handed(2_000);
  clock.nowMs = 60_000;
  a.enqueue(segment(3));
  t.equal(last(starts).isAwaited, true, 'a new utterance');
  t.end();
});

t.test('in a crowd, a listener with seconds in hand gets the longest chunks', (t) => {
  const { clock, starts, open } = bench({ threads: 1, jobsMax: 20 });
  const a = open();
  for (let index = 0; index < 4; index++) a.enqueue(segment(index));
  t.equal(last(starts).begins, 'short', 'it is awaited');
  a.handed(7_000);
  for (let other = 0; other < 4; other++) open().enqueue(segment(0));
  a.finished(segment0(starts, a, 0), 7_000);
  t.match(last(starts), { schedule: a, begins: 'long' }, 'four others are no crowd');
  open().enqueue(segment(0));
  t.equal(last(starts).begins, 'short', 'not more than four are awaited');
  a.finished(segment0(starts, a, 1), 1);
  t.match(last(starts), { schedule: a, begins: 'longest' });
  clock.nowMs = 1_100;
  a.finished(segment0(starts, a, 2), 1);
  t.match(last(starts), { schedule: a, begins: 'long' }, 'it has less than six seconds in hand');
  open().enqueue(segment(0));
  t.equal(last(starts).begins, 'long', 'more than four are awaited');
  open({}, { framing: 'whole' }).enqueue(segment(0));
  t.equal(last(starts).begins, 'longest', 'a whole file');
  t.end();
});

t.test('a group has a share while it has contexts or segments, and gives it back then', (t) => {
  const { starts, scheduler, open } = bench({ threads: 2, jobsMax: 8 });
  const socket = {};
  const [a, b, other] = [open(socket), open(socket), open()];
  const share = scheduler.shareOf(a.context);
  t.equal(scheduler.shareOf(b.context), share);
  t.not(scheduler.shareOf(other.context), share);
  a.enqueue(segment(0));
  a.close();
  b.close();
  t.not(scheduler.shareOf(open().context), share, 'a segment of it still runs');
  a.finished(last(starts).segment, 10);
  t.equal(scheduler.shareOf(open().context), share, 'the number is free again');
  t.end();
});
