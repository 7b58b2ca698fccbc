/** The credit protocol in random schedules of several services, and what it promises in a few plain ones. */
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import t from 'tap';
import { limits } from '../../src/limits.js';
import { createLog } from '../../src/log.js';
import { Exchanges } from '../../src/store/postgres/exchanges.js';
import { HostCredit } from '../../src/store/postgres/host-credit.js';
import type { Exchanged } from '../../src/store/postgres/host-schema.js';
import { seededRandom } from '../../scripts/rig/random.js';
import { World } from './credit-world.js';
import { FakeBank } from './fake-bank.js';
import { until } from '../support/waiting.js';

const seedOf = (): number => Number(process.env['SYRINX_FUZZ_SEED'] ?? Math.floor(Math.random() * 2 ** 31));
const times = Number(process.env['SYRINX_FUZZ_TIMES'] ?? 1);

t.test('in any schedule no credit is spent twice, and none is refused that was idle elsewhere', async (t) => {
  const first = seedOf();
  const sums = new Map<string, number>();
  for (let run = 0; run < 6 * times; run += 1) {
    const random = seededRandom(first + run);
    const world = new World({ bank: new FakeBank(), random, hosts: 2 + Math.floor(random() * 4) });
    await world.start(Math.floor(random() * 600));
    try {
      for (let step = 0; step < 1_000; step += 1) await world.step();
      await world.settle();
    } catch (error) {
      t.fail(`SYRINX_FUZZ_SEED=${first + run}: ${String(error)}`);
      return;
    }
    for (const [what, count] of Object.entries(world.counts)) sums.set(what, (sums.get(what) ?? 0) + count);
  }
  t.comment(`seed ${first}: ${[...sums].map(([what, count]) => `${count} ${what}`).join(', ')}`);
  for (const [what, count] of sums) t.ok(count > 0, `${what}: ${count}`);
});

/** One service with a clock and answers that the test gives. */
const alone = () => {
  const clock = { ms: 0 };
  const credit = new HostCredit(
    limits,
    () => clock.ms,
    () => undefined,
  );
  const decided: string[] = [];
  const wait = (name: string, amount: number) =>
    credit.wait(1, amount, () => {
      const isAdmitted = credit.headroom(1) >= amount;
      decided.push(`${name} ${isAdmitted ? 'admitted' : credit.refusal(1)}`);
      if (isAdmitted) credit.reserve(1, amount, true);
    });
  let version = 0;
  const answer = (reserved: number, more: Partial<Exchanged> = {}) => {
    const sentAtMs = clock.ms;
    for (const sent of credit.exchanges())
      credit.answered(
        {
          ...{
            accountId: 1,
            version: ++version,
            reserved,
            settled: 0,
            turn: sent.turn,
            answered: sent.answers,
          },
          ...{ free: 0, balance: 1_000, room: reserved, call: 1, unanswered: 0, idleElsewhere: 0, ...more },
        },
        sent,
        sentAtMs,
      );
  };
  return { clock, credit, decided, wait, answer };
};

t.test('requests wait in their order, and one that leaves holds up no other', async (t) => {
  const { credit, decided, wait, answer } = alone();
  t.not(wait('a', 50), null);
  const left = wait('b', 900);
  t.not(wait('c', 20), null);
  t.equal(left?.cancel(), true);
  t.equal(left?.cancel(), false);
  answer(70);
  t.strictSame(decided, ['a admitted', 'c admitted']);
  t.equal(credit.headroom(1), 0);
  t.equal(credit.waiting, 0);
});

t.test('a request waits longer for the database than for other hosts', async (t) => {
  const { clock, credit, decided, wait, answer } = alone();
  const beatAt = (ms: number) => {
    clock.ms = ms;
    credit.beat();
  };
  wait('a', 50);
  beatAt(limits.storeStaleMsMax - 1);
  t.strictSame(decided, [], 'the database has not answered');
  answer(70);
  t.strictSame(decided, ['a admitted']);
  wait('b', 50);
  beatAt(2 * limits.storeStaleMsMax - 1);
  t.strictSame(decided.slice(1), ['b unavailable'], 'the database does not answer');
  t.end();
});

t.test('a request is refused as exhausted only if all others have answered a call', async (t) => {
  const { clock, credit, decided, wait, answer } = alone();
  wait('a', 50);
  answer(0, { room: 10, unanswered: 1, idleElsewhere: 100 });
  clock.ms = limits.creditWaitMsMax - 1;
  credit.beat();
  t.strictSame(decided, []);
  clock.ms = limits.creditWaitMsMax;
  credit.beat();
  t.strictSame(decided, ['a unavailable'], 'another service did not answer in time');
  wait('b', 50);
  answer(0, { room: 10, unanswered: 1, idleElsewhere: 100 });
  credit.beat();
  answer(0, { room: 10, unanswered: 0, idleElsewhere: 30 });
  t.strictSame(decided.slice(1), [], 'it has taken credit since');
  answer(0, { room: 40, unanswered: 0, idleElsewhere: 0 });
  t.strictSame(decided.slice(1), ['b creditExhausted']);
  wait('c', 1_001);
  answer(0, { room: 10, unanswered: 1, idleElsewhere: 100 });
  t.strictSame(decided.slice(2), ['c creditExhausted'], 'more than the balance');
});

t.test('credit that is being given back is not spent, also if no answer comes', async (t) => {
  const { clock, credit, answer, wait } = alone();
  credit.expect(1);
  answer(limits.creditAheadMin);
  clock.ms += limits.creditIdleMs;
  credit.beat();
  const [sent] = credit.exchanges();
  t.match(sent, { keep: 0, ahead: 0, free: 0, used: 0 });
  t.equal(credit.headroom(1), 0);
  credit.failed(sent!);
  t.equal(credit.headroom(1), 0);
  t.not(wait('a', 10), null);
  answer(500);
  t.equal(credit.headroom(1), 490);
});

t.test('an exchange that fails is tried again while a request waits for it', async (t) => {
  let attempts = 0;
  const database = createServer((socket) => {
    attempts += 1;
    socket.destroy();
  });
  database.listen(0, '127.0.0.1');
  await once(database, 'listening');
  const { port } = database.address() as AddressInfo;
  // While a request waits, only its exchange connects.
  const bounds = { ...limits, storeStaleMsMax: 600_000, creditWaitMsMax: 600_000 };
  const exchanges = new Exchanges(
    `postgres://127.0.0.1:${port}/none`,
    bounds,
    1,
    createLog('silent', limits),
  );
  t.not(
    exchanges.credit.wait(1, 10, () => undefined),
    null,
  );
  await until(() => attempts >= 4, 10_000);
  t.ok(attempts >= 4, `${attempts} attempts`);
  await exchanges.close();
  database.close();
});

t.test('requests beyond the bound do not wait', async (t) => {
  const credit = new HostCredit(
    { ...limits, creditWaitsMax: 1 },
    () => 0,
    () => undefined,
  );
  t.not(
    credit.wait(1, 1, () => undefined),
    null,
  );
  t.equal(
    credit.wait(2, 1, () => undefined),
    null,
  );
  t.equal(credit.refusal(2), 'unavailable');
});

t.test(
  'an account that is not metered exchanges no credit; when it becomes metered, its leases count',
  async (t) => {
    const { clock, credit } = alone();
    credit.reserve(1, 700, false);
    credit.append(1, 1, 200);
    credit.release(1, 200);
    for (let beats = 0; beats < 4; beats += 1) {
      clock.ms += limits.creditRetryMs;
      credit.beat();
      t.strictSame(credit.exchanges(), []);
    }
    credit.expect(1);
    t.match(credit.exchanges(), [{ used: 700, needed: 700, ahead: limits.creditAheadMin }]);
  },
);
