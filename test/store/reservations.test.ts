/** The credit protocol in random schedules of several services, and what it promises in a few plain ones. */
import t from 'tap';
import { limits } from '../../src/limits.js';
import { createLog } from '../../src/log.js';
import { Ledger } from '../../src/store/ledger.js';
import {
  Reservations,
  type Claim,
  type Grant,
  type ReservationBounds,
} from '../../src/store/reservations.js';
import type { CommitResult } from '../../src/store/store.js';
import { times } from '../fuzz/check.js';
import { runSchedules } from './credit-world.js';
import { FakeBank } from './fake-bank.js';
import { until } from '../support/waiting.js';
import { usageOf } from './usage.js';

t.test('in any schedule no credit is spent twice, and none is refused that was idle', async (t) => {
  const sums = await runSchedules(t, 6 * times, 1_000, () => new FakeBank());
  for (const [what, count] of sums) t.ok(count > 0, `${what}: ${count}`);
});

/** One service, with answers that the test gives. Its database grants `room` credits. */
const alone = (bounds: Partial<ReservationBounds> = {}) => {
  const credit = new Reservations({ ...limits, ...bounds });
  t.teardown(() => credit.close());
  const decided: string[] = [];
  const wait = (name: string, amount: number, ahead = 0) =>
    credit.wait(1, amount, ahead, () => {
      const isAdmitted = credit.spare(1) >= amount;
      decided.push(`${name} ${isAdmitted ? 'admitted' : credit.refusal(1)}`);
      if (isAdmitted) credit.reserve(1, amount);
    });
  let last = 0;
  const answer = (claims: readonly Claim[], room: number, entries = 0) => {
    const grants = claims.map(({ accountId, kept, requests, ahead }): Grant => {
      let reserved = kept;
      const granted = requests.map(({ amount }) => {
        const isGranted = reserved + amount <= room;
        if (isGranted) reserved += amount;
        return isGranted;
      });
      return { accountId, reserved: reserved + (room === Infinity ? ahead : 0), granted };
    });
    credit.committed((last += entries), entries > 0 ? [1] : [], claims, grants);
  };
  return { credit, decided, wait, answer };
};

t.test('requests wait in their order, and one that leaves holds up no other', async (t) => {
  const { credit, decided, wait, answer } = alone();
  t.not(wait('a', 50), null);
  const left = wait('b', 900);
  t.not(wait('c', 20), null);
  t.not(wait('d', 2_000), null);
  const claims = credit.claims(0);
  t.match(claims, [
    { accountId: 1, kept: 0, requests: [{ amount: 50 }, { amount: 900 }, { amount: 20 }, {}] },
  ]);
  t.equal(left?.cancel(), true);
  t.equal(left?.cancel(), false);
  answer(claims, 1_000);
  t.strictSame(decided, ['a admitted', 'c admitted', 'd creditExhausted']);
  t.equal(credit.spare(1), 900, 'what the request that left was granted');
  t.match(credit.claims(0), [{ kept: 70, requests: [], ahead: 0 }], 'is given back');
  t.equal(credit.spare(1), 0);
});

t.test('a request is refused as unavailable when no answer comes', async (t) => {
  const { credit, decided, wait, answer } = alone({ storeStaleMsMax: 20 });
  wait('a', 50);
  const claims = credit.claims(0);
  t.ok(await until(() => decided.length > 0));
  t.strictSame(decided, ['a unavailable']);
  answer(claims, 100);
  t.match(credit.claims(0), [{ kept: 0 }], 'what it is granted later is given back');
});

t.test('a claim has the whole sum, so that one without an answer changes nothing', async (t) => {
  const { credit, decided, wait, answer } = alone();
  wait('a', 50);
  answer(credit.claims(0), 100);
  credit.append(1, 1, 30);
  credit.release(1, 30);
  wait('b', 40);
  const lost = credit.claims(1);
  t.match(lost, [{ kept: 20, requests: [{ amount: 40 }] }], 'the entry is in the same commit');
  credit.failed(lost);
  t.equal(credit.spare(1), 0);
  const again = credit.claims(1);
  t.match(again, lost);
  answer(again, 100, 1);
  t.strictSame(decided, ['a admitted', 'b admitted']);
  credit.release(1, 60);
  t.match(credit.claims(1), [{ kept: 0, requests: [] }]);
});

t.test('a small request does not overtake one that waits', async (t) => {
  const { credit, decided, wait, answer } = alone();
  wait('a', 5, 100);
  answer(credit.claims(0), Infinity);
  t.not(wait('large', 900), null);
  t.not(wait('small', 10), null);
  answer(credit.claims(0), Infinity);
  t.strictSame(decided, ['a admitted', 'large admitted', 'small admitted']);
});

t.test('text that comes word by word has credit ahead, until its last lease ends', async (t) => {
  const { credit, decided, wait, answer } = alone();
  wait('a', 5, 100);
  answer(credit.claims(0), Infinity);
  t.equal(credit.spare(1), 100);
  t.equal(wait('b', 40, 100), null, 'no wait');
  credit.reserve(1, 40);
  t.equal(credit.areDue, false);
  credit.reserve(1, 20);
  const claims = credit.claims(0);
  t.match(claims, [{ kept: 105, ahead: 60 }], 'half is used: it is renewed before it is needed');
  t.equal(credit.spare(1), 40, 'meanwhile the rest can be used');
  credit.reserve(1, 40);
  answer(claims, Infinity);
  t.equal(credit.spare(1), 60);
  credit.release(1, 105);
  t.match(credit.claims(0), [{ kept: 0, ahead: 0 }]);
  t.equal(credit.spare(1), 0);
  t.strictSame(decided, ['a admitted']);
});

t.test(
  'an account that is not metered claims nothing; when it becomes metered, its leases count',
  async (t) => {
    const { credit, wait } = alone();
    credit.reserve(1, 700);
    credit.append(1, 1, 200);
    credit.release(1, 200);
    t.strictSame(credit.claims(0), []);
    wait('a', 5);
    t.match(credit.claims(0), [{ kept: 700, requests: [{ amount: 5 }] }]);
  },
);

t.test('claims go with the entries of their tick, and again after a failure', async (t) => {
  const { credit, decided, wait } = alone();
  const commits: (readonly [entries: number, claims: readonly Claim[]])[] = [];
  const failure: CommitResult = { ok: false, fault: 'busy', message: 'busy' };
  const ledger = new Ledger({
    writer: 1,
    startWriter: () => ({
      hasEnded: false,
      commit: async (entries, claims = []) => {
        commits.push([entries.length, claims]);
        if (commits.length === 1) return failure;
        const grants = claims.map(({ accountId }) => ({ accountId, reserved: 50, granted: [true] }));
        return { ok: true, givenUp: 0, grants };
      },
      end: async () => undefined,
    }),
    bounds: { ...limits, ledgerRetryMs: 1 },
    log: createLog('silent', limits),
    reservations: credit,
  });
  t.teardown(() => ledger.close());
  ledger.append(usageOf(3));
  wait('a', 50);
  ledger.append(usageOf(4));
  t.ok(await until(() => decided.length > 0));
  t.strictSame(decided, ['a admitted']);
  t.match(commits.slice(0, 2), [
    [2, [{ accountId: 1, requests: [{}] }]],
    [2, [{ accountId: 1, requests: [{}] }]],
  ]);
});
