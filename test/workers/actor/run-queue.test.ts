import t from 'tap';
import { RunQueue } from '../../../workers/actor/run-queue.js';
import { seededRandom } from '../../support/random.js';

const TURN_MS = 4;
const STEP_MS = 200;

/** Items have so many steps of 200 ms of sound to do, which take so long; the event loop turns by hand. */
const stage = (costMs = 1) => {
  let nowMs = 1_000;
  let turn: (() => void) | undefined;
  const steps = new Map<string, number>();
  const log: string[] = [];
  const queue = new RunQueue<string>({
    clock: () => nowMs,
    turnMs: TURN_MS,
    step: (item) => {
      const left = steps.get(item) ?? 0;
      if (left === 0) return null;
      steps.set(item, left - 1);
      nowMs += costMs;
      log.push(item);
      return STEP_MS;
    },
    endTurn: () => log.push('|'),
    defer: (call) => {
      if (turn !== undefined) throw new Error('deferred twice');
      turn = call;
    },
  });
  return {
    queue,
    log,
    give: (item: string, count: number) => {
      steps.set(item, (steps.get(item) ?? 0) + count);
      queue.wake(item);
    },
    pass: (ms: number) => (nowMs += ms),
    isIdle: () => turn === undefined,
    turn: () => {
      const call = turn;
      turn = undefined;
      call?.();
    },
  };
};

t.test('a first sound goes before all that others have ahead', async (t) => {
  const { give, turn, log } = stage();
  give('long', 50);
  turn();
  turn();
  give('new', 1);
  turn();
  t.equal(log.join(''), 'longlonglonglong|longlonglonglong|newlonglonglong|');
});

t.test('who would run dry first is served first, step by step', async (t) => {
  const { give, turn, log, pass } = stage(0.1);
  give('a', 1);
  turn();
  pass(150);
  log.length = 0;
  // 50 ms of a are not heard; b is new, and is 150 ms further on after its first step.
  give('a', 3);
  give('b', 3);
  turn();
  t.equal(log.join(''), 'bababa|');
});

t.test('work is done in turns, after each of which what was made goes, and mail is read', async (t) => {
  const { give, turn, log, isIdle } = stage(3);
  give('a', 3);
  turn();
  t.equal(log.join(''), 'aa|', 'the turn was over with the second');
  t.notOk(isIdle());
  turn();
  t.equal(log.join(''), 'aa|a|');
  t.ok(isIdle(), 'with nothing to do it asks for no turn');
});

t.test('time that passed with nothing to do is not made up for', async (t) => {
  const { give, turn, log, pass } = stage(0.1);
  give('idled', 1);
  give('steady', 1);
  turn();
  pass(10_000);
  give('steady', 1);
  turn();
  log.length = 0;
  give('idled', 5);
  give('steady', 5);
  turn();
  t.equal(log.slice(0, 3).join(' '), 'idled steady idled', 'not ten seconds ahead');
});

t.test('what is removed is not worked on, and is due at once when it comes again', async (t) => {
  const { queue, give, turn, log } = stage(0.1);
  give('a', 10);
  queue.remove('a');
  queue.remove('a');
  turn();
  t.equal(log.join(''), '|');
  give('b', 1);
  give('a', 0);
  turn();
  t.equal(log.at(1), 'b');
});

t.test('whatever comes when, all of it is done, and once', async (t) => {
  const random = seededRandom(11);
  const { give, turn, log, isIdle } = stage(0.5);
  const given = new Map<string, number>();
  for (let round = 0; round < 300; round++) {
    const item = `i${String(Math.floor(random() * 8))}`;
    const count = 1 + Math.floor(random() * 5);
    given.set(item, (given.get(item) ?? 0) + count);
    give(item, count);
    if (random() < 0.5) turn();
  }
  while (!isIdle()) turn();
  const done = new Map<string, number>();
  for (const item of log) if (item !== '|') done.set(item, (done.get(item) ?? 0) + 1);
  t.same(Object.fromEntries([...done].sort()), Object.fromEntries([...given].sort()));
});
