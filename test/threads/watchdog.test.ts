import t, { type Test } from 'tap';
import { Vitals } from '../../src/threads/vitals.js';
import { Watchdog } from '../../src/threads/watchdog.js';

const bounds = { watchdogBeatMs: 1_000, threadHangMsMax: 5_000 };

/** A watchdog and a thread that the test controls. */
const bench = (t: Test) => {
  let nowMs = 0;
  let hung = 0;
  const watchdog = new Watchdog(bounds, () => nowMs);
  t.teardown(() => watchdog.close());
  let beats = 0;
  let steps = 0;
  const thread = {
    get beats() {
      return beats;
    },
    get steps() {
      return steps;
    },
    get isStepping() {
      return steps % 2 !== 0;
    },
    declaredMs: 0,
  };
  watchdog.watch(thread, () => hung++);
  const pass = (seconds: number, { beating = true, stepping = false } = {}) => {
    for (let i = 0; i < seconds; i++) {
      nowMs += 1_000;
      if (beating) beats++;
      if (stepping) steps += 2;
      watchdog.look();
    }
  };
  return {
    watchdog,
    thread,
    pass,
    suspend: (ms: number) => {
      nowMs += ms;
    },
    step: () => steps++,
    hung: () => hung,
  };
};

t.test('a long step may take three times as long as declared, beside what a short one may', (t) => {
  const { thread, pass, step, hung } = bench(t);
  thread.declaredMs = 4_000;
  step();
  pass(17, { beating: false });
  t.equal(hung(), 0);
  pass(1, { beating: false });
  t.equal(hung(), 1);
  t.end();
});

t.test('a thread that idles or steps never counts as hung', (t) => {
  const { pass, step, hung } = bench(t);
  pass(1_000);
  step();
  pass(1_000, { stepping: true });
  step();
  pass(1_000);
  t.equal(hung(), 0);
  t.end();
});

t.test('a step that does not end is a hang, although the event loop turns; it is reported once', (t) => {
  const { pass, step, hung } = bench(t);
  pass(100);
  step();
  pass(5);
  t.equal(hung(), 0);
  pass(2);
  t.equal(hung(), 1);
  pass(100);
  t.equal(hung(), 1);
  t.end();
});

t.test('an event loop that does not turn is a hang, in a step or not', (t) => {
  const { pass, hung } = bench(t);
  pass(5, { beating: false });
  t.equal(hung(), 0);
  pass(1, { beating: false });
  t.equal(hung(), 1);
  t.end();
});

t.test("time without the watchdog's own beats hardly counts", (t) => {
  const { pass, step, suspend, hung } = bench(t);
  step();
  pass(1, { beating: false });
  suspend(3_600_000);
  pass(1, { beating: false });
  t.equal(hung(), 0, 'after a suspend of an hour');
  pass(3, { beating: false });
  t.equal(hung(), 1, 'a hang is found all the same');
  t.end();
});

t.test('a thread that is no longer watched is not reported', (t) => {
  const { watchdog, thread, pass, hung } = bench(t);
  pass(3, { beating: false });
  watchdog.unwatch(thread);
  watchdog.unwatch(thread);
  pass(100, { beating: false });
  t.equal(hung(), 0);
  t.end();
});

t.test('the native guard closes at once outside native code, and after the call inside it', async (t) => {
  const vitals = new Vitals();
  t.equal(await vitals.native(() => Promise.resolve(5)), 5);
  const call = Promise.withResolvers<string>();
  const running = vitals.native(() => call.promise);
  await t.rejects(
    vitals.native(() => Promise.resolve()),
    'two at once are a defect',
  );
  t.ok(vitals.isInside);
  t.notOk(vitals.closeGuard());
  call.resolve('came back');
  t.equal(await running, 'came back', 'the call that had begun returns');
  t.notOk(vitals.isInside);
  t.ok(vitals.closeGuard());
  let entered = false;
  void vitals.native(() => {
    entered = true;
    return Promise.resolve();
  });
  await new Promise((resolve) => setImmediate(resolve));
  t.notOk(entered, 'no further call begins');
});

t.test('a call that throws releases the native guard', async (t) => {
  const vitals = new Vitals();
  await t.rejects(vitals.native(() => Promise.reject(new Error('scripted'))));
  t.notOk(vitals.isInside);
  t.equal(await vitals.native(() => Promise.resolve(1)), 1);
});
