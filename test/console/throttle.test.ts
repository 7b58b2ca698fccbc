/** Attempts are slowed down, and nobody is locked out. */
import t from 'tap';
import { Buckets } from '../../src/buckets.js';
import { ConsoleRefusal } from '../../src/console/refusal.js';
import { addressOf, Throttle, type Attempt } from '../../src/console/throttle.js';
import type { Exchange } from '../../src/front/exchange.js';
import { limits } from '../../src/limits.js';
import { networkOf } from '../../src/network.js';

const start = () => {
  let nowMs = 1_000_000;
  const throttle = new Throttle(limits, () => nowMs);
  /** @returns milliseconds to wait, 0 if the attempt counts */
  const attempt = (more: Partial<Attempt>): number => {
    try {
      throttle.attempt({ address: '192.0.2.1', name: 'ada', isKnownDevice: false, ...more });
      return 0;
    } catch (error) {
      if (!(error instanceof ConsoleRefusal)) throw error;
      return error.retryAfterMs ?? Number.NaN;
    }
  };
  return { throttle, attempt, pass: (ms: number) => (nowMs += ms) };
};

t.test('one address guesses slowly, whatever names it tries', (t) => {
  const { attempt, pass } = start();
  for (let i = 0; i < limits.consoleAttemptsAtOnceMax; i++) t.equal(attempt({ name: `user-${i}` }), 0);
  t.equal(attempt({ name: 'another' }), limits.consoleAttemptMs);
  t.equal(attempt({ name: null }), limits.consoleAttemptMs, 'nor with links');
  t.equal(attempt({ address: '192.0.2.2' }), 0, 'another address');
  pass(limits.consoleAttemptMs - 1);
  t.ok(attempt({}) > 0);
  pass(1);
  t.equal(attempt({}), 0);
  t.ok(attempt({}) > 0);
  t.end();
});

t.test('a user is guessed at slowly from everywhere, and can still sign in', (t) => {
  const { attempt } = start();
  const guess = (i: number) => attempt({ address: `198.51.100.${i}`, name: ['ada', 'ADA', 'ａda'][i % 3]! });
  for (let i = 0; i < limits.consoleAttemptsOfNameMax; i++) t.equal(guess(i), 0);
  for (let i = 0; i < limits.consoleSpareAttemptsMax; i++) t.equal(guess(100), 0);
  t.equal(guess(100), limits.consoleAttemptOfNameMs);
  const device = (i: number) => attempt({ isKnownDevice: true, name: i % 2 === 0 ? 'ada' : 'ａｄａ' });
  for (let i = 0; i < limits.consoleAttemptsAtOnceMax; i++) t.equal(device(i), 0, 'in a browser of the user');
  t.ok(device(0) > 0 && device(1) > 0, 'and slowly there');
  t.equal(attempt({ address: '127.0.0.1' }), 0, 'on the machine itself');
  t.equal(attempt({ address: '0000:0000:0000:0000:0000:0000:0000:0001' }), 0);
  t.equal(attempt({ address: '198.51.100.101', name: 'eve' }), 0, 'another user');
  t.end();
});

t.test('guesses from 120 addresses keep no owner out, and stay slow', (t) => {
  const { attempt, pass } = start();
  const addresses = Array.from({ length: 120 }, (_, i) => `198.51.100.${i}`);
  let guesses = 0;
  for (let second = 0; second < 3_600; second += 10) {
    for (const address of addresses) while (attempt({ address }) === 0) guesses++;
    if (second % 300 === 0) t.equal(attempt({ address: `203.0.113.${second / 300}` }), 0, 'the owner');
    pass(10_000);
  }
  const most =
    limits.consoleAttemptsOfNameMax +
    3_600_000 / limits.consoleAttemptOfNameMs +
    addresses.length * (limits.consoleSpareAttemptsMax + 3_600_000 / limits.consoleSpareAttemptMs);
  t.ok(guesses <= most, `${guesses} guesses in an hour`);
  t.end();
});

t.test('a refused attempt takes nothing', (t) => {
  const { attempt, pass } = start();
  for (let i = 0; i < limits.consoleAttemptsAtOnceMax; i++) attempt({});
  for (let i = 0; i < 1_000; i++) t.ok(attempt({}) > 0);
  pass(limits.consoleAttemptMs);
  t.equal(attempt({}), 0);
  t.end();
});

t.test('calls of one address have a rate', (t) => {
  const { throttle, pass } = start();
  for (let i = 0; i < limits.consoleCallsAtOnceMax; i++) throttle.call('192.0.2.1');
  t.throws(() => throttle.call('192.0.2.1'), { code: 'tooManyAttempts' });
  throttle.call('192.0.2.2');
  pass(1_000);
  for (let i = 0; i < limits.consoleCallsPerSecond; i++) throttle.call('192.0.2.1');
  t.throws(() => throttle.call('192.0.2.1'), { code: 'tooManyAttempts' });
  t.end();
});

t.test('a network of IPv6 is one address', (t) => {
  t.equal(networkOf('192.0.2.1'), '192.0.2.1');
  t.equal(networkOf('2001:0db8:0000:0001:0000:0000:0000:0001'), '2001:db8:0:1');
  t.equal(networkOf('2001:db8:0:1::ffff'), '2001:db8:0:1');
  t.equal(networkOf('2001:db8::1'), '2001:db8:0:0');
  t.equal(networkOf('2001::1:2:3:4:5'), '2001:0:0:1');
  t.equal(networkOf('::1'), '0:0:0:0');
  t.equal(networkOf('0000:0000:0000:0000:0000:ffff:c000:0201'), '192.0.2.1');
  t.equal(networkOf('::ffff:192.0.2.1'), '192.0.2.1');
  t.end();
});

t.test('as many are counted as the bound allows; the quietest is forgotten', (t) => {
  const buckets = new Buckets({ atOnceMax: 1, everyMs: 1_000, countedMax: 2, clock: () => 0 });
  for (const name of ['a', 'b', 'a', 'c']) buckets.take(name);
  t.strictSame(
    ['a', 'b', 'c'].map((name) => buckets.waitMs(name)),
    [1_000, 0, 1_000],
  );
  t.end();
});

t.test('only behind a proxy a client has the address that a header names', (t) => {
  const exchange = (isBehindProxy: boolean) =>
    ({ services: { isBehindProxy }, peer: '192.0.2.1' }) as unknown as Exchange;
  const head = { forwardedFor: '198.51.100.7' };
  t.equal(addressOf(exchange(false), head), '192.0.2.1');
  t.equal(addressOf(exchange(true), head), '198.51.100.7');
  t.end();
});
