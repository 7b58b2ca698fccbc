/** Work over all sockets: how much of it one tick has, and that nobody is left out. */
import t, { type Test } from 'tap';
import { Turns } from '../src/front/turns.js';
import { specificationProtocol } from '../src/front/ws/protocol.js';
import { Sockets } from '../src/front/ws/sockets.js';
import { limits } from '../src/limits.js';
import { Metrics } from '../src/metrics.js';
import { inSlices, OneByOne } from '../src/slices.js';
import { FakeSpeech } from './support/fake-speech.js';
import { activeKey, eventually, recordingLog } from './support/front-server.js';
import { FakeSocket } from './support/socket-session.js';
import { KeysInUse } from '../src/front/keys-in-use.js';
import type { ActiveKey } from '../src/store/store.js';

t.test('what was put off runs one by one, and in turn if it is put off again', async (t) => {
  const later = new OneByOne();
  const ran: string[] = [];
  const long = (name: string, times: number) => {
    let left = times;
    const run = (): void => {
      ran.push(name);
      if (--left > 0) later.add(run, 'x');
    };
    return run;
  };
  const [a, b] = [long('a', 3), long('b', 2)];
  later.add(a, 'x');
  later.add(b, 'x');
  later.add(a, 'x');
  t.ok(later.has(a, 'x'));
  t.strictSame(ran, [], 'not at once');
  let ticks = 0;
  for (; ran.length < 5; ticks++) await new Promise((resolve) => setImmediate(resolve));
  t.strictSame(ran, ['a', 'b', 'a', 'b', 'a']);
  t.ok(ticks >= 5, 'one in each tick');
  t.notOk(later.has(a, 'x'));
});

t.test('an account that put off much does not keep another waiting', async (t) => {
  const later = new OneByOne();
  const ran: string[] = [];
  for (let run = 0; run < 50; run++) later.add(() => ran.push('many'), 'many');
  later.add(() => ran.push('few'), 'few');
  while (ran.length < 51) await new Promise((resolve) => setImmediate(resolve));
  t.equal(ran.indexOf('few'), 1);
});

t.test('work over a live set goes in slices: members that leave are skipped, new ones visited', (t) => {
  const members = new Set(['a', 'b', 'c', 'd', 'e']);
  const visited: string[] = [];
  const due: (() => void)[] = [];
  let nowMs = 0;
  const work = function* () {
    for (const member of members) {
      visited.push(member);
      nowMs += 1;
      yield;
    }
  };
  inSlices(work(), { clock: () => nowMs, sliceMsMax: 2 }, (slice) => due.push(slice));
  t.strictSame(visited, ['a', 'b'], 'the first slice runs at once');
  members.delete('a');
  members.delete('c');
  members.add('f');
  due.shift()?.();
  t.strictSame(visited, ['a', 'b', 'd', 'e']);
  due.shift()?.();
  t.strictSame(visited, ['a', 'b', 'd', 'e', 'f']);
  t.equal(due.length, 0, 'nothing is left');
  t.end();
});

const SOCKETS = 300;
const SLICE_MS = 5;
/** The clock moves with each look at it, so a slice has two or three sockets; one that ends is touched four times. */
const TOUCHES_A_TICK_MAX = 15;

class TouchedSocket extends FakeSocket {
  touches = 0;
  readonly #onTouch: () => void;

  constructor(onTouch: () => void) {
    super();
    this.#onTouch = onTouch;
  }

  override getBufferedAmount(): number {
    this.touches++;
    this.#onTouch();
    return super.getBufferedAmount();
  }

  override end(code: number, reason: string): void {
    this.#onTouch();
    super.end(code, reason);
  }
}

const openMany = (t: Test) => {
  let nowMs = 0;
  const clock = () => ++nowMs;
  let touches = 0;
  const seen = { isActive: true, touchesOfATick: 0 };
  const bounds = {
    ...limits,
    ...{ keyRecheckMsMax: 40, sliceMsMax: SLICE_MS, socketSilenceMsMax: 1e9, socketPingMs: 1e9 },
  };
  const renew = (key: ActiveKey) => (seen.isActive ? key : null);
  const sockets = new Sockets({
    services: {
      clock,
      keys: new KeysInUse({ admission: { renew }, clock, bounds }),
      turns: new Turns({ clock, bounds: limits, after: (ms, action) => void setTimeout(action, ms) }),
      log: recordingLog([]),
      metrics: new Metrics(),
      tick: { add: (action) => void setImmediate(action) },
      bounds,
    },
    speech: new FakeSpeech(),
    admission: { admit: () => ({ ok: false, code: 'slotsExhausted' }) },
  });
  const all = Array.from({ length: SOCKETS }, (_, i) => {
    const socket = new TouchedSocket(() => {
      touches++;
      seen.touchesOfATick = Math.max(seen.touchesOfATick, touches);
    });
    const reading = { pause: () => undefined, resume: () => undefined };
    const session = sockets.open(
      { id: `request-${i}`, trace: null, route: '/v1/tts/ws' },
      activeKey(7),
      specificationProtocol(limits),
      socket,
      reading,
    );
    socket.onClosed = (code) => session.closed(code);
    return socket;
  });
  const watch = (): void => {
    touches = 0;
    if (sockets.size > 0) setImmediate(watch);
  };
  watch();
  t.teardown(() => sockets.shutDown());
  return { all, seen, sockets };
};

t.test('a beat over many sockets reaches all of them, some in each tick', async (t) => {
  const { all, seen } = openMany(t);
  await eventually(() => all.every(({ touches }) => touches >= 2));
  t.ok(seen.touchesOfATick <= TOUCHES_A_TICK_MAX, `${seen.touchesOfATick} touches in one tick`);
});

t.test('a revoked key loses all its sockets, some in each tick', async (t) => {
  const { all, seen, sockets } = openMany(t);
  seen.isActive = false;
  await sockets.whenIdle();
  t.ok(all.every(({ closed }) => closed?.code === 1008));
  t.ok(all.every(({ sent }) => sent.length === 1 && sent[0]?.includes('INVALID_API_KEY')));
  t.ok(seen.touchesOfATick <= TOUCHES_A_TICK_MAX, `${seen.touchesOfATick} touches in one tick`);
});

t.test('a drain ends quiet sockets, some in each tick', async (t) => {
  const { all, seen, sockets } = openMany(t);
  sockets.drain();
  t.ok(sockets.size > SOCKETS - TOUCHES_A_TICK_MAX, `${sockets.size} sockets are left after the first slice`);
  await sockets.whenIdle();
  t.ok(all.every(({ closed }) => closed?.code === 1001));
  t.ok(seen.touchesOfATick <= 2 * TOUCHES_A_TICK_MAX, `${seen.touchesOfATick} touches in one tick`);
});
