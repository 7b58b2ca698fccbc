/**
 * The tests that every store must pass:
 *
 *   storeSuite('PostgreSQL', async (t) => ({ driver, settled }));
 */
import t, { type Test } from 'tap';
import { Administration } from '../../src/accounts/administration.js';
import { hashKey } from '../../src/accounts/keys.js';
import { readUsage } from '../../src/accounts/usage.js';
import { limits } from '../../src/limits.js';
import { createLog } from '../../src/log.js';
import { newWriter, openStore, type LedgerBounds } from '../../src/store/ledger.js';
import {
  AdministrationError,
  StoreError,
  type CreditState,
  type LedgerEntry,
  type LedgerWriter,
  type StoreDriver,
  type UsagePeriod,
} from '../../src/store/store.js';
import { seededRandom } from '../../scripts/rig/random.js';
import { peopleSuite } from './people-suite.js';
import { HOUR_MS, randomEntries } from './random-entries.js';
import { usageOf } from './usage.js';
import { noSpeakingDefaults } from '../../src/api/speech-settings.js';

export interface StoreUnderTest {
  /** Of a store that is removed with the test, or emptied for the next one. */
  readonly driver: StoreDriver;
  /** Resolves when readers see what was committed so far. An embedded store has nothing to wait for. */
  readonly settled?: () => Promise<void>;
}

const log = createLog('silent', limits);
const always: UsagePeriod = { account: null, sinceMs: null };
const unused = {
  requests: 0,
  characters: 0,
  credits: 0,
  refunded: 0,
  audioMs: 0,
  firstAtMs: null,
  lastAtMs: null,
};

const plain = {
  byOperator: [],
  ...{ name: '', expiresAtMs: null, creditLimit: null, voices: null },
  ...noSpeakingDefaults,
};
const FUTURE_MS = Date.UTC(2100, 0, 1);

/** Credit of a metered account, and of a key without a limit that was used through `committedEntry` by this reader's writer. */
const creditOf = (balance: number, committedEntry = 0, spent = 0): CreditState => ({
  metered: true,
  balance,
  creditLimit: null,
  spent,
  committedEntry,
});

export const storeSuite = (
  name: string,
  /** An empty store. Its database may be there already. */
  create: (t: Test) => StoreUnderTest | Promise<StoreUnderTest>,
  createNone = create,
): void => {
  const open = async (t: Test) => {
    const { driver, settled = async () => undefined } = await create(t);
    const store = await driver.administer(true);
    t.teardown(() => store.close());
    const administration = new Administration(store);
    const readAs = async (writer: number) => {
      const reader = await driver.openReader(writer);
      t.teardown(() => reader.close());
      return reader;
    };
    const openLedger = async (bounds: Partial<LedgerBounds> = {}) => {
      const opened = await openStore(driver, { ...limits, ...bounds }, log);
      t.teardown(() => opened.close());
      return opened;
    };
    const startWriter = (): LedgerWriter => {
      const writer = driver.startWriter(newWriter());
      t.teardown(() => writer.end());
      return writer;
    };
    return { driver, settled, store, administration, readAs, openLedger, startWriter };
  };

  t.test(`${name}: a reader sees what another process did at its next question`, async (t) => {
    const { administration, readAs, settled } = await open(t);
    const reader = await readAs(1);
    const { key } = await administration.createKey('ada', 5);
    await settled();
    const found = reader.findActiveKey({ hash: hashKey(key) });
    if (found === null) throw new Error('the key is not found');
    const { keyId } = found;
    t.strictSame(found, {
      ...{ keyId, accountId: 1, account: 'ada', expiresAtMs: null, voices: null },
      speaking: noSpeakingDefaults,
    });
    t.equal(reader.findActiveKey({ hash: hashKey(`${key}x`) }), null);
    t.strictSame(reader.findActiveKey({ keyId }), found);
    t.equal(reader.findActiveKey({ keyId: keyId + 1 }), null);
    t.strictSame(reader.readCredit(keyId), creditOf(5));
    t.equal(reader.readCredit(keyId + 1), null);
    await administration.credit(key, 7);
    await settled();
    t.equal(reader.readCredit(keyId)?.balance, 12);
    const properties = { name: 'kiosk', expiresAtMs: FUTURE_MS, creditLimit: 3, voices: ['lark', 'wren'] };
    await administration.change(key, properties);
    await settled();
    const changed = { ...found, expiresAtMs: FUTURE_MS, voices: ['lark', 'wren'] };
    t.strictSame(reader.findActiveKey({ hash: hashKey(key) }), changed);
    t.strictSame(reader.findActiveKey({ keyId }), changed);
    t.strictSame(reader.readCredit(keyId), { ...creditOf(12), creditLimit: 3 });
    await administration.change(key, { expiresAtMs: null, creditLimit: null, voices: null });
    await settled();
    t.strictSame(reader.findActiveKey({ keyId }), found);
    t.strictSame(reader.readCredit(keyId), creditOf(12));
    await administration.suspend('ada');
    await settled();
    t.equal(reader.findActiveKey({ hash: hashKey(key) }), null);
    t.equal(reader.findActiveKey({ keyId }), null);
    await administration.resume('ada');
    await settled();
    t.strictSame(reader.findActiveKey({ keyId }), found);
    await administration.revoke(key);
    await settled();
    t.equal(reader.findActiveKey({ keyId }), null);
    t.equal(reader.findActiveKey({ hash: hashKey(key) }), null);
    reader.probe();
    await reader.close();
    await reader.close();
  });

  t.test(`${name}: a key has its account's speaking defaults where it sets none of its own`, async (t) => {
    const { administration, readAs, settled, store } = await open(t);
    const reader = await readAs(1);
    const { key } = await administration.createKey('ada', null, { speed: 1.5 });
    const { keyId: hidden } = await administration.playgroundKey('ada');
    const found = async (keyId = 1) => {
      await settled();
      return reader.findActiveKey({ keyId })?.speaking;
    };
    t.strictSame(await found(), { ...noSpeakingDefaults, speed: 1.5 });
    await administration.changeAccount('ada', { normalizeText: true, speed: 0.9, lexiconId: 'zoë, trains' });
    t.strictSame(await found(), { normalizeText: true, speed: 1.5, lexiconId: 'zoë, trains' });
    t.strictSame(await found(hidden), { normalizeText: true, speed: 0.9, lexiconId: 'zoë, trains' });
    await administration.change(key, { normalizeText: false, speed: null, lexiconId: 'own' });
    t.strictSame(await found(), { normalizeText: false, speed: 0.9, lexiconId: 'own' });
    t.match(await administration.list(), [
      {
        ...{ normalizeText: false, speed: null, lexiconId: 'own' },
        account: { normalizeText: true, speed: 0.9, lexiconId: 'zoë, trains' },
      },
    ]);
    await administration.change(key, { name: 'till; limit 5' });
    await administration.changeAccount('ada', { normalizeText: null, lexiconId: null });
    t.strictSame(await found(), { normalizeText: false, speed: 0.9, lexiconId: 'own' });
    await administration.change(key, noSpeakingDefaults);
    t.strictSame(await found(), { ...noSpeakingDefaults, speed: 0.9 });
    const acts = await store.read(async (view) => view.listActs(null, 10));
    t.match(acts.slice(0, 3), [
      { action: 'key.change', details: 'account "ada"; normalize not set; speed not set; lexicon not set' },
      { action: 'account.change', subject: 'ada', details: 'normalize not set; lexicon not set' },
      { action: 'key.change', details: 'account "ada"; name "till; limit 5"' },
    ]);
  });

  t.test(`${name}: a batch is committed whole, and an entry is written once`, async (t) => {
    const { administration, readAs, settled, startWriter } = await open(t);
    await administration.createKey('payer', 100);
    const reader = await readAs(7);
    const other = await readAs(8);
    const writer = startWriter();
    const entry = (number: number, amount: number): LedgerEntry => ({
      ...usageOf(-amount),
      writer: 7,
      entry: number,
    });
    t.match(await writer.commit([]), { ok: true, givenUp: 0 }, 'an empty batch is a probe');
    await writer.commit([entry(1, -10), entry(2, -5)]);
    const again = [entry(1, -10), entry(2, -5), entry(3, -1)];
    t.match(await writer.commit(again), { ok: true, givenUp: 0 });
    await settled();
    t.strictSame(reader.readCredit(1), creditOf(84, 3, 16));
    t.strictSame(other.readCredit(1), creditOf(84, 0, 16));
    const impossible = { ...entry(5, -1), kind: 'gift' as 'grant' };
    t.match(await writer.commit([entry(4, -1), impossible]), { ok: false, fault: 'unusable' });
    await settled();
    t.strictSame(reader.readCredit(1), creditOf(84, 3, 16));
    const strangers = [
      { ...entry(4, -10), accountId: 99 },
      { ...entry(5, -10), keyId: 99 },
    ];
    t.match(await writer.commit([...strangers, entry(6, -4)]), { ok: true, givenUp: 2 });
    await settled();
    t.strictSame(reader.readCredit(1), creditOf(80, 6, 20));
    await writer.end();
    t.ok(writer.hasEnded);
    t.match(await writer.commit([]), { ok: false, fault: 'restarting' });
  });

  t.test(`${name}: a balance beyond the integers of a number is read as the nearest one`, async (t) => {
    const { administration, driver, readAs, settled, startWriter } = await open(t);
    await administration.createKey('free', null);
    const amount = -Number.MAX_SAFE_INTEGER;
    const entries = [1, 2].map((entry) => ({ ...usageOf(1), amount, writer: 7, entry }));
    t.match(await startWriter().commit(entries), { ok: true });
    await settled();
    t.strictSame((await readAs(7)).readCredit(1), {
      ...creditOf(amount, 2, -amount),
      metered: false,
    });
    t.match(await administration.list(), [{ account: { balance: amount } }]);
    t.match(await driver.readUsage(always), [
      { account: { balance: amount }, keys: [{ use: { credits: -amount } }] },
    ]);
  });

  t.test(`${name}: entries are durable after a drain, and after the close`, async (t) => {
    const { administration, readAs, openLedger, settled } = await open(t);
    await administration.createKey('payer', 1_000_000);
    const opened = await openLedger({ ledgerBatchMax: 100, ledgerQueueMax: 1_001 });
    const { reader, ledger } = opened;
    await ledger.drain();
    let last = 0;
    for (let count = 0; count < 1_000; count += 1) last = ledger.append(usageOf(2));
    t.equal(last, 1_000);
    t.equal(ledger.acknowledged, 0);
    t.ok(ledger.accepting);
    ledger.append(usageOf(2));
    t.ok(ledger.full);
    t.equal(ledger.fault, 'behind');
    t.notOk(ledger.accepting, 'the queue is at its bound');
    ledger.append(usageOf(1));
    await ledger.drain();
    t.ok(ledger.accepting, 'there is room again');
    t.equal(ledger.acknowledged, 1_002);
    t.equal(ledger.queued, 0);
    await settled();
    t.strictSame(reader.readCredit(1), creditOf(997_997, 1_002, 2_003));
    for (let count = 0; count < 50; count += 1) ledger.append(usageOf(1));
    await Promise.all([opened.close(), opened.close()]);
    t.notOk(ledger.accepting);
    t.equal((await readAs(1)).readCredit(1)?.balance, 997_947);
  });

  t.test(`${name}: two services share a store`, async (t) => {
    const { administration, openLedger, settled } = await open(t);
    await administration.createKey('payer', 1_000);
    const [one, two] = [await openLedger(), await openLedger()];
    for (let count = 0; count < 20; count += 1) {
      one.ledger.append(usageOf(1));
      two.ledger.append(usageOf(2));
    }
    await Promise.all([one.ledger.drain(), two.ledger.drain()]);
    await settled();
    for (const { reader } of [one, two]) t.strictSame(reader.readCredit(1), creditOf(940, 20, 60));
  });

  t.test(`${name}: an act takes effect as a whole or not at all`, async (t) => {
    const { store, administration, readAs, settled } = await open(t);
    await administration.createKey('ada', 10);
    const reader = await readAs(1);
    const failing = store.transact(async (transaction) => {
      const accountId = await transaction.addAccount('new', true, 1);
      await transaction.addKey('api', accountId, new Uint8Array(32), 'svc_sk_new', plain, 1);
      await transaction.grant(1, 5, 1);
      await transaction.setMetered(accountId, false);
      await transaction.setKey(1, { ...plain, name: 'changed', voices: ['lark'] });
      await transaction.setSuspended(1, 7);
      t.match(await transaction.findAccount({ accountId: 1 }), {
        name: 'ada',
        balance: 15,
        suspendedAtMs: 7,
      });
      t.equal(await transaction.countAccounts(), 2);
      throw new Error('changed my mind');
    });
    await t.rejects(failing, /changed my mind/);
    await settled();
    t.equal(reader.readCredit(1)?.balance, 10);
    t.match(await administration.list(), [{ name: '', voices: null, account: { suspendedAtMs: null } }]);
    t.equal((await administration.list()).length, 1);
    await t.rejects(
      store.transact(async (transaction) => transaction.addAccount('ada', true, 1)),
      'the name of an account is unique',
    );
    t.equal(await store.transact(async (transaction) => transaction.countAccounts()), 1);
  });

  t.test(`${name}: keys from a clock that was far ahead do not keep an account from keys`, async (t) => {
    const { store, administration } = await open(t);
    await administration.createKey('ada', 10);
    const day = 86_400_000;
    const addKeys = (count: number, first: number, atMs: number) =>
      store.transact(async (transaction) => {
        for (let id = first; id < first + count; id++) {
          await transaction.addKey('api', 1, new Uint8Array(32).fill(id), 'svc_sk_new', plain, atMs);
          await transaction.revokeKey(id, atMs);
        }
      });
    await addKeys(99, 2, 410 * day);
    await t.rejects(addKeys(2, 101, 410.5 * day), /got 100 keys in 24 hours/);
    await addKeys(2, 101, 2 * day);
  });

  t.test(`${name}: acts that are started together are done one after the other`, async (t) => {
    const { administration } = await open(t);
    const created = await Promise.all(Array.from({ length: 5 }, () => administration.createKey(null, null)));
    t.strictSame(
      created.map(({ account }) => account.name),
      ['account-1', 'account-2', 'account-3', 'account-4', 'account-5'],
    );
  });

  t.test(
    `${name}: keys are found by hash and prefix, and listed in the order of their creation`,
    async (t) => {
      const { store, administration } = await open(t);
      await store.transact(async (transaction) => {
        t.notOk(await transaction.hasKeys());
        const accountId = await transaction.addAccount('twins', false, 1_000);
        for (const number of [1, 2, 3])
          await transaction.addKey(
            'api',
            accountId,
            new Uint8Array(32).fill(number),
            number === 2 ? 'svc_sk_b' : 'svc_sk_a',
            plain,
            number,
          );
        t.ok(await transaction.hasKeys());
        const found = await transaction.findKeys({ prefix: 'svc_sk_a' });
        t.match(found, [{ createdAtMs: 1 }, { createdAtMs: 3 }]);
        t.equal(found.length, 2);
        const [second] = await transaction.findKeys({ hash: new Uint8Array(32).fill(2) });
        t.match(second, {
          prefix: 'svc_sk_b',
          revokedAtMs: null,
          account: { name: 'twins', metered: false },
        });
        await transaction.revokeKey(second?.keyId ?? 0, 50);
        await transaction.revokeKey(second?.keyId ?? 0, 60);
        t.match(await transaction.listAccounts(accountId, 0), [{ keys: 2 }], 'revoked keys count no more');
        const expiring = { ...plain, expiresAtMs: FUTURE_MS };
        await transaction.addKey('api', accountId, new Uint8Array(32).fill(4), 'svc_sk_d', expiring, 4);
        for (const [expiresFromMs, found] of [
          [FUTURE_MS - 1, 1],
          [FUTURE_MS, 0],
        ] as const) {
          const period = { accountId, expiresFromMs, expiresToMs: expiresFromMs + 1 };
          t.equal((await transaction.findKeys(period)).length, found);
        }
        t.equal((await transaction.findKeys({ hash: new Uint8Array(32) })).length, 0);
        t.equal(await transaction.findAccount({ name: 'twin' }), null);
      });
      t.match(await administration.list(), [
        { revokedAtMs: null },
        { revokedAtMs: 50 },
        { revokedAtMs: null },
        { revokedAtMs: null },
      ]);
      await t.rejects(administration.revoke('svc_sk_a'), /Several keys begin with "svc_sk_a"/);
      await t.rejects(administration.revoke('svc_sk_c'), AdministrationError);
    },
  );

  t.test(`${name}: a key has what it spent, and lists show when and how much it was used`, async (t) => {
    const { administration, readAs, settled, startWriter } = await open(t);
    await administration.createKey('ada', 1_000, { name: 'till', creditLimit: 500 });
    await administration.createKey('ada', null, { name: 'kiosk', expiresAtMs: FUTURE_MS });
    const unused = { spent: 0, characters: 0, lastUsedAtMs: null };
    t.match(await administration.list(), [unused, unused]);
    const entries: LedgerEntry[] = [
      { ...usageOf(30), writer: 7, entry: 1, atMs: 5_000 },
      { ...usageOf(20), amount: -40, writer: 7, entry: 2, atMs: 9 * HOUR_MS },
      { ...usageOf(30), kind: 'refund', amount: 30, writer: 7, entry: 3, atMs: 4_000 },
      { ...usageOf(5), keyId: 2, writer: 7, entry: 4, atMs: 6_000 },
    ];
    const writer = startWriter();
    for (const batch of [entries, entries]) t.match(await writer.commit(batch), { ok: true });
    await settled();
    const reader = await readAs(7);
    t.strictSame(reader.readCredit(1), { ...creditOf(955, 4, 40), creditLimit: 500 });
    t.strictSame(reader.readCredit(2), creditOf(955, 4, 5));
    const account = { accountId: 1, name: 'ada', metered: true, balance: 955, suspendedAtMs: null };
    t.match(await administration.list(), [
      { name: 'till', spent: 40, characters: 50, lastUsedAtMs: 9 * HOUR_MS, creditLimit: 500, account },
      { name: 'kiosk', spent: 5, characters: 5, lastUsedAtMs: 6_000, expiresAtMs: FUTURE_MS, account },
    ]);
  });

  t.test(`${name}: asked about a store that does not exist, it creates none`, async (t) => {
    const { driver } = await createNone(t);
    const refused = async (work: () => unknown) => {
      const error: unknown = await (async () => work())().catch((reason: unknown) => reason);
      t.ok(error instanceof StoreError && error.fault === 'missing', String(error));
      t.notOk((error as Error).message.includes('\n'));
    };
    await refused(() => driver.administer(false));
    await refused(() => driver.readUsage(always));
    await refused(() => driver.administer(false));
  });

  t.test(`${name}: unused accounts and keys are in the report`, async (t) => {
    const { driver, administration } = await open(t);
    await administration.createKey('ada', 1_000_000);
    await administration.createKey('bell', null);
    await administration.createKey('ada', null);
    const found = await readUsage(driver, always);
    const ada = { account: 'ada', metered: true, balance: 1_000_000, ...unused };
    t.match(found, [
      { ...ada, keys: [{ ...unused, revoked: false }, unused] },
      { account: 'bell', metered: false, balance: 0, ...unused, keys: [unused] },
    ]);
    t.equal(found.length, 2);
    t.match(await readUsage(driver, { account: 'bell', sinceMs: null }), [{ account: 'bell' }]);
    const unknown = readUsage(driver, { account: 'bel', sinceMs: null });
    await t.rejects(unknown, { constructor: AdministrationError, message: /no account "bel"/ });
  });

  /** The same sums, entry by entry. */
  const sumUp = (entries: readonly LedgerEntry[], keyId: number, sinceMs: number) => {
    const own = entries.filter((entry) => entry.keyId === keyId && entry.atMs >= sinceMs);
    const times = own.map(({ atMs }) => atMs);
    const sumOf = (kind: string, value: (entry: LedgerEntry) => number) =>
      own.reduce((sum, entry) => sum + (entry.kind === kind ? value(entry) : 0), 0);
    return {
      requests: own.filter(({ beginsRequest }) => beginsRequest).length,
      characters: sumOf('usage', ({ characters }) => characters ?? 0),
      credits: sumOf('usage', ({ amount }) => -amount),
      refunded: sumOf('refund', ({ amount }) => amount),
      audioMs: sumOf('usage', ({ audioMs }) => audioMs),
      firstAtMs: times.length === 0 ? null : Math.min(...times),
      lastAtMs: times.length === 0 ? null : Math.max(...times),
    };
  };

  t.test(`${name}: over any entries and any period, a report is the sum of the ledger`, async (t) => {
    const { driver, administration, store, startWriter } = await open(t);
    await administration.createKey('ada', 1_000_000);
    await administration.createKey('bell', null);
    await administration.createKey('ada', null);
    const random = seededRandom(77);
    const startMs = 1_760_000_000_000;
    const writer = newWriter();
    const entries = randomEntries({ random, count: 1_000, writer, startMs, spanMs: 40 * HOUR_MS });
    const thread = startWriter();
    t.match(await thread.commit(entries), { ok: true });
    t.match(await thread.commit(entries.slice(100, 200)), { ok: true }, 'skipped, and not summed up again');
    const hour = Math.ceil(startMs / HOUR_MS) * HOUR_MS;
    const periods = [0, startMs, hour, hour + 1, hour - 1, hour + 10.5 * HOUR_MS, startMs + 50 * HOUR_MS];
    for (const { atMs } of entries.slice(0, 5)) periods.push(atMs, atMs + 1);
    for (const sinceMs of periods) {
      const expected = [1, 3, 2].map((keyId) => sumUp(entries, keyId, sinceMs));
      const found = await readUsage(driver, { account: null, sinceMs });
      t.match(
        found.flatMap(({ keys }) => keys),
        expected,
      );
      const [first, second] = expected;
      t.equal(found[0]?.characters, (first?.characters ?? 0) + (second?.characters ?? 0));
      t.strictSame(await readUsage(driver, { account: 'ada', sinceMs }), found.slice(0, 1));
      const fromMs = Math.ceil(sinceMs / HOUR_MS) * HOUR_MS;
      const recent = [1, 3].map((keyId) => sumUp(entries, keyId, fromMs).characters);
      const [account] = await store.read(async (view) => view.listAccounts(1, sinceMs));
      t.equal(account?.recentCharacters, recent[0]! + recent[1]!);
    }
    const days = Map.groupBy(
      entries.filter(({ accountId, kind }) => accountId === 1 && kind !== 'grant'),
      ({ atMs }) => Math.floor(atMs / (24 * HOUR_MS)),
    );
    const changes = await store.read(async (view) => view.readBalanceChanges(1, 100));
    t.strictSame(
      changes.filter(({ kind }) => kind === 'spent'),
      [...days.values()]
        .map((day) => ({
          atMs: Math.max(...day.map(({ atMs }) => atMs)),
          kind: 'spent',
          amount: day.reduce((sum, { amount }) => sum + amount, 0),
        }))
        .sort((one, other) => other.atMs - one.atMs),
    );
  });

  peopleSuite((what, check) => void t.test(`${name}: ${what}`, check), open);
};
