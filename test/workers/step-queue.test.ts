/** Which job runs the next step: by deadlines, by what its listener waits for, and by what its group has had. */
import t from 'tap';
import { ClockTable, PlaybackClock } from '../../src/threads/playback-clock.js';
import { type StepDue, StepQueue } from '../../workers/step-queue.js';
import { countShare } from '../../workers/synthesis-thread.js';

const settle = () => new Promise((resolve) => setImmediate(resolve));

t.test('steps run one at a time, the earliest deadline of the moment first', async (t) => {
  const queue = new StepQueue();
  const order: string[] = [];
  const due: Record<string, number> = { a: 5, b: 3, c: 4 };
  const enter = (name: string) =>
    void queue.enter({ dueMs: () => due[name] ?? 0 }).then(() => order.push(name));
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
  for (const dueMs of [5, 4, 3, 1, 2])
    void queue.enter({ dueMs: () => dueMs }).then(() => inside.push(dueMs));
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
  void queue.enter({ dueMs: () => 9 }).then(() => inside.push(9));
  void queue.enter({ dueMs: () => 8 }).then(() => inside.push(8));
  void queue.enter({ dueMs: () => 7 }).then(() => inside.push(7));
  await settle();
  t.strictSame(inside.slice(5), [9, 8], 'room is given back once');
});

t.test('a long step lets short ones go first that are due before its end, for a while', async (t) => {
  let nowMs = 1_000;
  const queue = new StepQueue(() => nowMs);
  const order: string[] = [];
  const due: Record<string, number> = { long: 1_000, near: 1_200, far: 2_000 };
  const enter = (name: string, longMs = 0) =>
    void queue.enter({ dueMs: () => due[name] ?? 0 }, longMs).then(() => order.push(name));
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

interface Job {
  readonly name: string;
  /** When its first sample plays. */
  readonly playFromMs: number;
  readonly chunksMs: readonly number[];
  readonly stepMs?: number;
  readonly urgency?: StepDue['urgency'];
  readonly share?: StepDue['share'];
  /** Of a file. */
  readonly pace?: number;
}

/** A thread in simulated time: each step of a job makes a chunk, and is written down. */
const stage = (nowMs = 0) => {
  const time = { nowMs };
  const queue = new StepQueue(() => time.nowMs);
  const order: string[] = [];
  const run = async ({ name, playFromMs, chunksMs, stepMs = 0, urgency, share, pace = 1 }: Job) => {
    let madeMs = 0;
    const clock = new PlaybackClock();
    clock.start(playFromMs, 0, pace);
    const dueMs = () => clock.at(madeMs);
    for (const chunkMs of chunksMs) {
      const isFirst = urgency === 'first' && madeMs === 0;
      await queue.enter({
        dueMs,
        share,
        urgency: isFirst ? 'first' : urgency === 'file' ? 'file' : 'playing',
      });
      order.push(name);
      // A step that computes.
      await settle();
      time.nowMs += stepMs;
      if (share !== undefined) countShare(share.clock, chunkMs, time.nowMs, queue.waitingOf(share.group));
      madeMs += chunkMs;
      queue.leave();
    }
  };
  const runAll = (jobs: readonly Job[]) => Promise.all(jobs.map(run));
  return { time, queue, order, runAll };
};

const count = (order: readonly string[], name: string) => order.filter((other) => other === name).length;
const chunks = (number: number, ms: number) => Array.from({ length: number }, () => ms);

t.test('the job with the earliest deadline runs several steps in a row', async (t) => {
  const { order, runAll } = stage();
  await runAll([
    { name: 'a', playFromMs: 0, chunksMs: chunks(4, 250) },
    { name: 'b', playFromMs: 700, chunksMs: chunks(2, 250) },
  ]);
  t.equal(order.join(''), 'aaabab');
});

t.test('the jobs of a group take turns by their own deadlines', async (t) => {
  const { order, runAll } = stage();
  const share = { group: 1, clock: new PlaybackClock() };
  const names = ['a', 'b', 'c', 'd', 'e'];
  await runAll(names.map((name) => ({ name, playFromMs: 0, chunksMs: [120, 250], share })));
  t.equal(order.join(''), 'abcdeabcde');
});

t.test('first audio of a group does not wait for another context of it that has audio in hand', async (t) => {
  const orderOfSteps = async (stepMs: number) => {
    const { order, runAll } = stage();
    const share = { group: 1, clock: new PlaybackClock() };
    const job = { playFromMs: 0, chunksMs: [100, 250], stepMs, share, urgency: 'first' } as const;
    await runAll(['a', 'b', 'c', 'd', 'e'].map((name) => ({ name, ...job })));
    return order.join('');
  };
  t.equal(await orderOfSteps(6), 'abcdeabcde');
  t.match(await orderOfSteps(40), /^abca/, 'unless that runs dry');
});

t.test('a group of many jobs gets what one job gets, until the other has time', async (t) => {
  const { order, runAll } = stage();
  const share = { group: 1, clock: new PlaybackClock() };
  const group = Array.from({ length: 8 }, () => ({ name: 'g', playFromMs: 0, chunksMs: [100, 100], share }));
  await runAll([...group, { name: '.', playFromMs: 0, chunksMs: chunks(10, 100) }]);
  // The clock of the group stands still at 500 ms; the last deadline of the other is 900 ms.
  t.match(order.slice(0, 11).join(''), /^(g\.){5}/, 'in turns, while the other has less than half a second');
  t.equal(count(order.slice(11), 'g'), 16 - 6, order.join(''));
  t.match(order.join(''), /g{11}\.{5}$/, 'then all of the group, which is due first');
});

t.test('groups of many contexts leave a whole file all that one listener each does not need', async (t) => {
  const { order, runAll } = stage();
  const contexts = Array.from({ length: 9 }, (_, group) => {
    const share = { group, clock: new PlaybackClock() };
    const job = { name: 'g', playFromMs: 0, chunksMs: chunks(5, 1_000), stepMs: 10, share };
    return Array.from({ length: 20 }, () => job);
  });
  const file = { name: 'f', playFromMs: 0, chunksMs: chunks(20, 2_000), stepMs: 20, pace: 0.5 };
  await runAll([...contexts.flat(), { ...file, urgency: 'file' }]);
  const before = order.slice(0, order.lastIndexOf('f'));
  t.equal(count(before, 'g'), 9, 'a chunk for each group, while the file takes 400 ms');
});

t.test('the share of a group is never far ahead, and never behind', (t) => {
  const table = new ClockTable(2);
  const share = table.clock(table.take());
  countShare(share, 120, 1_000);
  t.equal(share.at(), 1_120);
  countShare(share, 250, 1_010);
  t.equal(share.at(), 1_370);
  for (let chunk = 0; chunk < 100; chunk++) countShare(share, 1_000, 1_100);
  t.equal(share.at(), 1_600, 'half a second: what it took from an idle machine costs nothing');
  countShare(share, 1_000, 1_100, 1);
  t.equal(
    share.at(),
    1_700,
    'a context that waits beside it waits a tenth of a second longer for whole files',
  );
  countShare(share, 1_000, 1_100, 20);
  t.equal(share.at(), 2_500, 'many of them wait while the chunk plays');
  countShare(share, 100, 12_000);
  t.equal(share.at(), 12_100, 'what it did not get is no credit, as for one listener who was dry');
  t.equal(new ClockTable(table.buffer).clock(0).at(), 12_100, 'shared');
  t.end();
});

/** The order in which waiting steps run, of jobs that enter while another step runs. */
const orderOf = async (
  beginMs: number,
  waiting: Readonly<Record<string, StepDue>>,
  stepMs = 0,
): Promise<string[]> => {
  let nowMs = beginMs;
  const queue = new StepQueue(() => nowMs);
  const order: string[] = [];
  await queue.enter({ dueMs: () => nowMs });
  for (const [name, due] of Object.entries(waiting)) void queue.enter(due).then(() => order.push(name));
  while (order.length < Object.keys(waiting).length) {
    queue.leave();
    await settle();
    nowMs += stepMs;
  }
  return order;
};

const first = (dueMs: number, account?: string): StepDue => ({
  ...{ dueMs: () => dueMs, urgency: 'first' },
  ...(account !== undefined && { account }),
});
const playing = (dueMs: number): StepDue => ({ dueMs: () => dueMs, urgency: 'playing' });
const file = (dueMs: number): StepDue => ({ dueMs: () => dueMs, urgency: 'file' });

t.test('who is about to run dry goes before first audio, and first audio before who is not', async (t) => {
  const order = await orderOf(10_000, {
    far: playing(10_101),
    first: first(9_900),
    near: playing(10_099),
    dry: playing(9_950),
  });
  t.strictSame(order, ['dry', 'near', 'first', 'far']);
});

t.test('first audio waits if the steps that are due soon would come too late', async (t) => {
  const orderBeside = async (listeners: number, inHandMs: number, batch = 1) => {
    let nowMs = 10_000;
    const queue = new StepQueue(() => nowMs);
    const order: string[] = [];
    const step = async (name: string, due: StepDue) => {
      await queue.enter(due);
      order.push(name);
      nowMs += 20 * batch;
      queue.leave(batch);
    };
    // The queue learns what a step takes.
    for (let count = 0; count < 50; count++) await step('', playing(nowMs));
    order.length = 0;
    const others = Array.from({ length: listeners }, () => step('listener', playing(nowMs + inHandMs)));
    await Promise.all([...others, step('file', file(nowMs + 500)), step('first', first(nowMs))]);
    return order;
  };
  t.equal((await orderBeside(4, 150)).indexOf('first'), 0, 'four listeners can wait for its step');
  t.equal((await orderBeside(4, 150, 8)).indexOf('first'), 0, 'eight steps in a batch take as long as one');
  t.equal((await orderBeside(7, 150)).indexOf('first'), 7, 'the last of seven cannot');
  t.equal((await orderBeside(30, 450)).indexOf('first'), 0, 'it never waits for a whole file');
});

t.test('first audio makes no listener late: its own step counts, too', async (t) => {
  let nowMs = 10_000;
  const queue = new StepQueue(() => nowMs);
  const ends: [name: string, endMs: number][] = [];
  const step = async (name: string, due: StepDue) => {
    await queue.enter(due);
    nowMs += 50;
    ends.push([name, nowMs]);
    queue.leave(1);
  };
  for (let count = 0; count < 50; count++) await step('', playing(nowMs));
  ends.length = 0;
  const dueMs = nowMs + 140;
  await Promise.all([
    step('listener', playing(dueMs)),
    step('listener', playing(dueMs)),
    step('first', first(nowMs)),
  ]);
  t.strictSame(
    ends.map(([name]) => name),
    ['listener', 'listener', 'first'],
  );
  t.ok(ends[1]![1] <= dueMs, 'three steps take longer than the listeners have');
});

t.test('first audio that has waited for half a second waits for nobody who is due later', async (t) => {
  const order = await orderOf(10_000, {
    near: playing(10_010),
    dry: playing(9_990),
    waited: first(9_500),
    fresh: first(9_950),
  });
  t.strictSame(order, ['dry', 'waited', 'near', 'fresh']);
});

t.test('among those who wait for first audio the one that waited longest is first', async (t) => {
  const order = await orderOf(10_000, { c: first(9_999), a: first(9_500), b: first(9_700) });
  t.strictSame(order, ['a', 'b', 'c']);
});

t.test('accounts take turns with first audio, however many requests of one wait', async (t) => {
  const many = Object.fromEntries(
    Array.from({ length: 20 }, (_, at) => [`m${at}`, first(8_000 + at, 'many')] as const),
  );
  const few = { a: first(9_990, 'few'), b: first(9_991, 'few'), c: first(9_995, 'other') };
  const order = await orderOf(10_000, { ...many, ...few, near: playing(10_010), far: playing(10_101) }, 1);
  t.strictSame(
    order.slice(0, 7),
    ['m0', 'a', 'c', 'm1', 'b', 'm2', 'm3'],
    'the longest wait first, then in turns',
  );
  t.strictSame(
    order.slice(-2),
    ['near', 'far'],
    'what has waited for half a second goes before listeners who have more time',
  );
});

t.test('who arrives while first audio of a large account is made is next', async (t) => {
  let nowMs = 10_000;
  const queue = new StepQueue(() => nowMs);
  const order: string[] = [];
  const enter = (name: string, due: StepDue) => void queue.enter(due).then(() => order.push(name));
  for (let at = 0; at < 5; at++) enter('many', first(9_000, 'many'));
  await settle();
  nowMs += 10;
  enter('few', first(nowMs, 'few'));
  nowMs += 10;
  queue.leave();
  await settle();
  t.strictSame(order, ['many', 'few']);
});

t.test('first audio does not wait for the many listeners of another account', async (t) => {
  const many = (count: number) =>
    Object.fromEntries(
      Array.from({ length: count }, (_, at) => [
        `${at}`,
        { ...playing(10_000 + at), account: 'many' } satisfies StepDue,
      ]),
    );
  const few = { few: first(9_999, 'few') };
  t.equal((await orderOf(10_000, { ...many(20), ...few }, 1)).indexOf('few'), 0);
  t.equal((await orderOf(10_000, { ...many(4), ...few }, 1)).indexOf('few'), 4, 'it is none beside four');
  const own = await orderOf(10_000, { ...many(20), first: first(9_999, 'many') }, 1);
  t.equal(own.indexOf('first'), 20, 'its own listeners go first');
});

t.test('a whole file waits for listeners with little in hand, and precedes those with more', async (t) => {
  const order = await orderOf(10_000, {
    far: playing(10_401),
    file: file(10_200),
    near: playing(10_399),
    first: first(10_000),
  });
  t.strictSame(order, ['first', 'near', 'file', 'far']);
  t.strictSame(
    await orderOf(10_000, { file: file(11_000), far: playing(10_900) }),
    ['file', 'far'],
    'also if it has more time itself: they need nothing now',
  );
});

t.test('a file that is late gets a tenth of a thread that listeners keep busy', async (t) => {
  const { order, runAll } = stage(1_000);
  const steps = 600;
  await runAll([
    // Their listeners play faster than the thread works.
    ...['a', 'b'].map((name) => ({ name, playFromMs: 1_000, chunksMs: chunks(steps / 2, 10), stepMs: 10 })),
    { name: 'f', playFromMs: 1_000, chunksMs: chunks(steps, 10), stepMs: 10, urgency: 'file', pace: 0.5 },
  ]);
  const contended = order.slice(
    0,
    order.findLastIndex((name) => name !== 'f'),
  );
  const part = count(contended, 'f') / contended.length;
  t.ok(part > 0.095 && part < 0.105, `${part}`);
});

t.test('a file that is not late gets what listeners leave', async (t) => {
  const { order, runAll } = stage(1_000);
  await runAll([
    { name: 'a', playFromMs: 1_000, chunksMs: chunks(300, 10), stepMs: 10 },
    { name: 'f', playFromMs: 9_000, chunksMs: chunks(10, 10), stepMs: 10, urgency: 'file', pace: 0.5 },
  ]);
  t.equal(order.join(''), `${'a'.repeat(300)}${'f'.repeat(10)}`);
});

for (const stepMs of [60, 300])
  t.test(`late files of two accounts get the same, with ${stepMs} ms for 100 ms of speech`, async (t) => {
    const { order, runAll } = stage(1_000);
    const jobs = (name: string, files: number, playFromMs: number): Job[] => {
      const share = { group: name === 'a' ? 1 : 2, clock: new PlaybackClock() };
      return Array.from({ length: files }, () => ({
        ...{ name, playFromMs, chunksMs: chunks(400 / files, 100), stepMs },
        ...{ urgency: 'file' as const, share, pace: 0.5 },
      }));
    };
    await runAll([...jobs('a', 8, 1_000), ...jobs('b', 1, 1_100)]);
    const half = order.slice(0, 400);
    t.ok(count(half, 'b') > 190 && count(half, 'b') < 210, `${count(half, 'b')} of ${half.length}`);
  });

t.test('files that are in time are made by their deadlines, whosever they are', async (t) => {
  const order = await orderOf(10_000, { c: file(11_000), a: file(10_600), b: file(10_700) });
  t.strictSame(order, ['a', 'b', 'c']);
});
