/** The reading of one socket and its queue, without a network. */
import t from 'tap';
import { KeyedBudget } from '../../src/byte-budget.js';
import { ByteQueue } from '../../src/front/byte-queue.js';
import { SocketReader } from '../../src/front/ws/socket-reader.js';
import { Turns } from '../../src/front/turns.js';
import { seededRandom } from '../../scripts/rig/random.js';
import { FakeClock } from '../support/fake-clock.js';
import { wholeBudget } from '../support/whole-budget.js';

const bytesOf = (text: string): ArrayBuffer => new TextEncoder().encode(text).buffer;

t.test('a queue gives back what it got, and all its memory', (t) => {
  const random = seededRandom(1);
  const budget = wholeBudget(1024 * 1024);
  const queue = new ByteQueue(budget);
  const expected: string[] = [];
  let sent = 0;
  for (let step = 0; step < 20_000; step++) {
    if (random() < (step % 4_000 < 2_000 ? 0.6 : 0.35)) {
      const text = `${sent++}`.padEnd(Math.floor(random() * (sent % 50 === 0 ? 5_000 : 30)), 'x');
      t.ok(queue.push(Buffer.from(text)) || t.fail('no room'));
      expected.push(text);
      continue;
    }
    const text = expected.shift() ?? '';
    if (queue.cut(text.length).toString() !== text) return t.fail(`other bytes at step ${step}`);
  }
  t.equal(queue.bytes.toString(), expected.join(''));
  queue.clear();
  queue.clear();
  t.equal(queue.length, 0);
  t.equal(budget.taken, 0);
  const small = new ByteQueue(wholeBudget(5_000));
  t.ok(small.push(Buffer.alloc(3_000)));
  t.notOk(small.push(Buffer.alloc(3_000)), 'no more than the budget has');
  t.notOk(small.push(Buffer.alloc(4), Buffer.alloc(3_000)), 'all parts or none');
  t.equal(small.length, 3_000, 'what it has it keeps');
  return t.end();
});

const createReader = (waitingBytesMax = 1024 * 1024) => {
  const timers = new FakeClock();
  const state = { nowMs: 1_000, bufferedBytes: 0, paused: 0, resumed: 0, pings: 0, received: 0, floods: 0 };
  const got: string[] = [];
  const due: (() => void)[] = [];
  const later: number[] = [];
  const turns = new Turns({
    clock: () => state.nowMs,
    bounds: { parseMsPerSecond: 200, framesPerSecond: 200 },
    after: (ms, action) => timers.after(Math.max(ms, 0.01), action),
  });
  const budget = wholeBudget(waitingBytesMax);
  const turn = turns.of(7);
  const owner = {
    guard: (act: () => void) => act(),
    message: (bytes: Buffer) => got.push(bytes.toString()),
    binaryMessage: () => got.push('binary'),
    received: () => (state.received += 1),
    ponged: (payload: string) => got.push(`pong ${payload}`),
    flooded: () => {
      state.floods++;
      reader.close();
    },
    pingPayload: '0',
  };
  const reader: SocketReader = new SocketReader(owner, {
    route: '/v1/tts/ws',
    socket: {
      getBufferedAmount: () => state.bufferedBytes,
      ping: () => ++state.pings,
    },
    reading: {
      pause: () => (state.paused += 1),
      resume: () => (state.resumed += 1),
    },
    turn,
    budgets: { waiting: budget },
    shared: {
      tick: { add: (action) => due.push(action) },
      clock: () => state.nowMs,
      bounds: { stallRearmMs: 4_000 },
      metrics: { readLater: (_route, ms) => later.push(ms) },
    },
  });
  return {
    reader,
    turn,
    state,
    got,
    later,
    budget,
    say: (...texts: string[]) => {
      for (const text of texts) reader.message(bytesOf(text), false);
      for (const act of due.splice(0)) act();
    },
    pass: (ms: number) => {
      for (let passed = 0; passed < ms; passed++) {
        state.nowMs++;
        timers.advance(1);
      }
    },
  };
};

t.test('messages beyond the part of the key wait in their order, and the socket is read later', (t) => {
  const world = createReader();
  const { got, later, pass, reader, say, state } = world;
  const names = Array.from({ length: 40 }, (_, i) => `${i}`);
  say(...names.slice(0, 30));
  t.strictSame(got, names.slice(0, 10), 'a tenth of a second at once');
  t.ok(reader.isBehind);
  t.ok(state.paused > 0);
  // A failed write turned reading on again: what comes waits behind the others, and the socket pauses again.
  state.paused = 0;
  say(...names.slice(30));
  t.equal(state.paused, 1);
  pass(1_000);
  t.strictSame(got, names);
  t.notOk(reader.isBehind);
  t.equal(state.resumed, 1);
  t.equal(later.length, 1);
  t.ok(later[0]! > 200 && later[0]! < 500, `${later[0]} ms`);
  t.equal(world.budget.taken, 0);
  t.end();
});

t.test('a large message of a key within its part is passed at once where none can wait', (t) => {
  const { got, say, state } = createReader(8 * 1024);
  say('x'.repeat(300 * 1024));
  t.equal(got.length, 1);
  t.equal(state.floods, 0);
  t.end();
});

t.test('a socket with bytes to send does not pause before it has sent them', (t) => {
  const { reader, say, state } = createReader();
  state.bufferedBytes = 1;
  say(...Array.from({ length: 30 }, (_, i) => `${i}`));
  t.equal(state.paused, 0);
  state.bufferedBytes = 0;
  reader.beat(state.nowMs);
  t.equal(state.paused, 1);
  t.end();
});

t.test('a client that sends without reading is dropped when what waits has no room', (t) => {
  const { budget, say, state } = createReader(8 * 1024);
  say(...Array.from({ length: 30 }, () => 'x'.repeat(1_000)));
  t.ok(state.floods > 0);
  t.equal(budget.taken, 0);
  t.end();
});

t.test(
  'a paused socket counts as heard and is pinged; a resumed one keeps the library’s timer from ending it',
  (t) => {
    const { pass, reader, say, state } = createReader();
    say(...Array.from({ length: 900 }, (_, i) => `${i}`));
    const heard = state.received;
    for (let second = 0; second < 8; second++) {
      pass(1_000);
      reader.beat(state.nowMs);
    }
    t.ok(reader.isBehind);
    t.equal(state.received, heard + 8);
    t.equal(state.pings, 2);
    pass(2_000);
    t.notOk(reader.isBehind);
    const { paused, resumed } = state;
    pass(3_900);
    reader.beat(state.nowMs);
    pass(4_100);
    reader.beat(state.nowMs);
    t.strictSame([state.paused - paused, state.resumed - resumed], [2, 2], 'restarted while nothing comes');
    say('x');
    pass(9_000);
    reader.beat(state.nowMs);
    t.equal(state.paused - paused, 2, 'the library stopped it when bytes came');
    t.end();
  },
);

t.test('pings beyond the part of the key pause the socket; pongs are passed on', (t) => {
  const { got, pass, reader, state } = createReader();
  for (let i = 0; i < 50; i++) reader.control(null);
  t.ok(state.paused > 0);
  t.ok(state.received < 20, 'they are only counted then');
  reader.control('17');
  t.strictSame(got, ['pong 17']);
  pass(1_000);
  t.equal(state.resumed, 1);
  t.end();
});

t.test('many pings on one socket pause the other sockets of the key too', (t) => {
  const { reader, turn, pass } = createReader();
  let [pauses, resumes] = [0, 0];
  turn.open({ pause: () => (pauses += 1), resume: () => (resumes += 1) });
  for (let i = 0; i < 15; i++) reader.control(null);
  t.equal(pauses, 0, 'it owes less than a burst');
  for (let i = 0; i < 100; i++) reader.control(null);
  t.equal(pauses, 1);
  pass(2_000);
  t.equal(resumes, 1);
  t.end();
});

t.test('the library’s timer is restarted while a socket should pause and still sends', (t) => {
  const { pass, reader, state } = createReader();
  for (let i = 0; i < 50; i++) reader.control(null);
  pass(1_000);
  t.equal(state.resumed, 1, 'the timer runs');
  state.bufferedBytes = 1;
  reader.pause();
  pass(4_100);
  reader.beat(state.nowMs);
  t.equal(state.resumed, 2);
  t.end();
});

t.test('a closed socket gives everything back', (t) => {
  const { budget, got, pass, reader, say, state, turn } = createReader();
  say(...Array.from({ length: 30 }, (_, i) => `${i}`));
  reader.close();
  reader.close();
  pass(1_000);
  t.equal(got.length, 10);
  t.equal(state.resumed, 0);
  t.equal(budget.taken, 0);
  t.ok(turn.isIdle);
  t.end();
});

t.test('of N greedy accounts each has 1 / (N + 1) of a budget; an account gives back only its own', (t) => {
  const budget = new KeyedBudget(1_200, 10);
  const fill = (account: number): void => {
    while (budget.take(account, 1) === null);
  };
  fill(1);
  t.equal(budget.takenBy(1), 600);
  t.equal(budget.take(1, 1), 'account');
  t.equal(budget.take(2, 601), 'pool');
  fill(2);
  t.equal(budget.takenBy(2), 300, 'half of what the first leaves');
  budget.giveBack(1, 600);
  // They go down and up, as requests do.
  for (let round = 0; round < 40; round++)
    for (const account of [1, 2]) {
      budget.giveBack(account, budget.takenBy(account));
      fill(account);
    }
  t.ok(Math.abs(budget.takenBy(1) - 400) <= 2 && Math.abs(budget.takenBy(2) - 400) <= 2);
  t.throws(() => budget.giveBack(3, 1), /holds 0/);
  const part = budget.of(3);
  t.ok(part.take(100));
  t.equal(budget.takenBy(3), 100);
  part.giveBack(100);
  budget.giveBack(1, budget.takenBy(1));
  budget.giveBack(2, budget.takenBy(2));
  t.equal(budget.taken, 0);
  const small = new KeyedBudget(12, 10);
  t.equal(small.take(1, 10), null, 'the least is more than half');
  t.equal(small.take(1, 1), 'account');
  t.equal(small.take(2, 3), 'pool');
  t.end();
});
