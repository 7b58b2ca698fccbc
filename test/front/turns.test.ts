/** The turns of keys, on a clock that the test advances; work costs what the test says. */
import t from 'tap';
import { Turns, type Inlet, type AccountTurn, type Waiting } from '../../src/front/turns.js';
import { FakeClock } from '../support/fake-clock.js';

const bounds = { parseMsPerSecond: 300, framesPerSecond: 20_000 };

const createTurns = (more: Partial<typeof bounds> = {}) => {
  const timers = new FakeClock();
  let nowMs = 0;
  // Work takes time within one action of the clock.
  const turns = new Turns({
    clock: () => nowMs,
    bounds: { ...bounds, ...more },
    after: (ms, action) => void timers.after(Math.max(ms, 0.01), action),
  });
  const spend = (ms: number): void => {
    nowMs += ms;
  };
  const pass = (ms: number): void => {
    const endMs = nowMs + ms;
    while (nowMs < endMs) {
      const stepMs = Math.min(timers.nextMs ?? ms, endMs - nowMs);
      nowMs += stepMs;
      timers.advance(stepMs);
    }
  };
  return { turns, spend, pass, now: () => nowMs };
};
type World = ReturnType<typeof createTurns>;

/** A connection with pieces of work that each take so long. */
class Worker implements Waiting, Inlet {
  readonly done: number[] = [];
  pauses = 0;
  resumes = 0;
  readonly #world: World;
  readonly #ms: number;
  readonly #name: string;
  readonly #log: string[];
  readonly nextBytes = 100;
  left: number;

  constructor(world: World, pieces: number, ms: number, name = '', log: string[] = []) {
    this.#world = world;
    this.#ms = ms;
    this.left = pieces;
    this.#name = name;
    this.#log = log;
  }

  piece(): boolean {
    this.#world.spend(this.#ms);
    this.done.push(this.#world.now());
    this.#log.push(this.#name);
    return --this.left > 0;
  }

  pause(): void {
    this.pauses++;
  }

  resume(): void {
    this.resumes++;
  }
}

const exhaust = (world: World, turn: AccountTurn): void => {
  while (turn.isFree) turn.run(100, () => world.spend(1));
};

t.test('a key works at once within its rate, then it owes time until the rate has paid', (t) => {
  const world = createTurns();
  const turn = world.turns.of(1);
  t.ok(turn.isFree);
  exhaust(world, turn);
  t.ok(Math.abs(world.now() - 17.6) < 1.5, `a tenth of a second's part at once: ${world.now()}`);
  t.notOk(turn.isFree);
  turn.run(150_000, () => world.spend(30));
  world.pass(100);
  t.notOk(turn.isFree, 'what it used beyond its rate is owed');
  world.pass(150);
  t.ok(turn.isFree);
  t.end();
});

t.test('the pieces of a frame count their time, and are no frames', (t) => {
  const world = createTurns({ framesPerSecond: 20 });
  const turn = world.turns.of(1);
  for (let piece = 0; piece < 10; piece++) turn.time(1_000, () => world.spend(1));
  t.ok(turn.isFree);
  while (turn.isFree) turn.time(1_000, () => world.spend(1));
  t.ok(Math.abs(world.now() - 17.6) < 1.5, `as whole frames: ${world.now()}`);
  t.end();
});

t.test('time in which the system ran other threads counts only as far as the input can explain', (t) => {
  const world = createTurns();
  const turn = world.turns.of(1);
  for (let i = 0; i < 10; i++) turn.run(100, () => world.spend(50));
  t.ok(turn.isFree, 'ten small frames, though the clock ran for half a second');
  turn.run(300_000, () => world.spend(50));
  t.notOk(turn.isFree);
  t.end();
});

t.test('a crowd of keys leaves each a sixteenth', (t) => {
  const world = createTurns();
  const crowd = Array.from({ length: 100 }, (_, keyId) => {
    const turn = world.turns.of(keyId);
    exhaust(world, turn);
    const worker = new Worker(world, 1_000_000, 0.01);
    turn.wait(worker);
    return worker;
  });
  const newcomer = world.turns.of(1_000);
  exhaust(world, newcomer);
  world.pass(1_000);
  t.ok(newcomer.isFree, 'within a second it has its burst again');
  const pieces = crowd.map(({ done }) => done.length);
  t.ok(
    Math.min(...pieces) > Math.max(...pieces) / 2,
    `nobody is left out: ${Math.min(...pieces)} pieces at least`,
  );
  t.end();
});

t.test('frames count too, whatever they cost', (t) => {
  const world = createTurns();
  const turn = world.turns.of(1);
  let frames = 0;
  while (turn.isFree) {
    turn.count(0);
    frames++;
  }
  t.equal(frames, 1_000);
  t.end();
});

t.test('a lone key has half of the rate; two have a third each; work is never lost', (t) => {
  for (const [keys, part] of [
    [1, 1 / 2],
    [2, 1 / 3],
    [5, 1 / 6],
  ] as const) {
    const world = createTurns();
    const workers = Array.from({ length: keys }, (_, i) => {
      const turn = world.turns.of(i);
      exhaust(world, turn);
      const worker = new Worker(world, 1_000_000, 0.05);
      turn.wait(worker);
      return worker;
    });
    world.pass(1_000);
    const before = workers.map(({ done }) => done.length);
    const fromMs = world.now();
    world.pass(4_000);
    const seconds = (world.now() - fromMs) / 1_000;
    for (const [i, { done }] of workers.entries()) {
      const msPerSecond = ((done.length - before[i]!) * 0.05) / seconds;
      t.ok(
        Math.abs(msPerSecond / (bounds.parseMsPerSecond * part) - 1) < 0.1,
        `${keys} keys: ${msPerSecond} ms`,
      );
    }
  }
  t.end();
});

t.test('keys alternate, and a newcomer waits for no more than a slice', (t) => {
  const world = createTurns();
  const log: string[] = [];
  for (const [keyId, name] of [
    [1, 'a'],
    [2, 'b'],
  ] as const) {
    const turn = world.turns.of(keyId);
    exhaust(world, turn);
    turn.wait(new Worker(world, 10_000, 0.1, name, log));
  }
  world.pass(2_000);
  const changes = log.filter((name, i) => i > 0 && name !== log[i - 1]).length;
  t.ok(changes > log.length / 10, `${changes} changes in ${log.length} pieces`);
  const newcomer = world.turns.of(3);
  t.ok(newcomer.isFree, 'a key that was quiet does not wait at all');
  exhaust(world, newcomer);
  const worker = new Worker(world, 1, 0.1);
  const askedMs = world.now();
  newcomer.wait(worker);
  world.pass(100);
  t.equal(worker.done.length, 1);
  t.ok(worker.done[0]! - askedMs < 40, `${worker.done[0]! - askedMs} ms`);
  t.end();
});

t.test('the members of a key alternate too, each in its order', (t) => {
  const world = createTurns();
  const log: string[] = [];
  const turn = world.turns.of(1);
  exhaust(world, turn);
  for (const name of ['a', 'b', 'c']) turn.wait(new Worker(world, 4, 0.1, name, log));
  world.pass(1_000);
  t.equal(log.join(''), 'abcabcabcabc');
  t.ok(turn.isFree);
  t.end();
});

t.test('connections pause, and are read again when the work is done, a few at a time', (t) => {
  const world = createTurns();
  const turn = world.turns.of(1);
  const inlets = Array.from({ length: 40 }, () => new Worker(world, 0, 0));
  for (const inlet of inlets) turn.open(inlet);
  exhaust(world, turn);
  const work = new Worker(world, 400, 0.1);
  turn.wait(work);
  turn.pauseAll();
  turn.pauseAll();
  t.ok(
    inlets.every(({ pauses }) => pauses === 1),
    'each once',
  );
  world.pass(100);
  t.ok(work.left > 0);
  t.ok(
    inlets.every(({ resumes }) => resumes === 0),
    'none is read while work waits',
  );
  const resumed = () => inlets.filter(({ resumes }) => resumes === 1).length;
  let most = 0;
  for (let before = 0, ms = 0; ms < 1_000; before = resumed(), ms++) {
    world.pass(1);
    most = Math.max(most, resumed() - before);
  }
  t.equal(work.left, 0);
  t.equal(resumed(), inlets.length);
  t.equal(most, 16, 'in one slice');
  t.end();
});

t.test('a connection that ends while it is paused or waits is forgotten; so is an idle key', (t) => {
  const world = createTurns();
  const turn = world.turns.of(1);
  const inlet = new Worker(world, 5, 0.1);
  turn.open(inlet);
  exhaust(world, turn);
  turn.wait(inlet);
  turn.pause(inlet);
  turn.drop(inlet);
  turn.close(inlet);
  world.pass(2_000);
  t.equal(inlet.left, 5);
  t.equal(inlet.resumes, 0);
  t.ok(turn.isIdle);
  for (let keyId = 2; keyId < 100; keyId++) {
    world.turns.of(keyId).run(0, () => world.spend(0.1));
    world.pass(100);
  }
  t.ok(world.turns.size < 30, `${world.turns.size} keys are known`);
  t.equal(world.turns.of(99), world.turns.of(99));
  t.end();
});

t.test('an exception in work is counted and passed on', (t) => {
  const world = createTurns();
  const turn = world.turns.of(1);
  t.throws(
    () =>
      turn.run(1e6, () => {
        world.spend(100);
        throw new Error('on purpose');
      }),
    { message: 'on purpose' },
  );
  t.notOk(turn.isFree);
  t.end();
});
