/** The part of the suite that is about the console: users, sessions, links, the audit table, hidden keys, usage by step. */
import type { Test } from 'tap';
import type { Administration } from '../../src/accounts/administration.js';
import { commandLine } from '../../src/accounts/audit.js';
import { ConsoleDesk, type ConsoleCalls } from '../../src/accounts/console-calls.js';
import { limits } from '../../src/limits.js';
import { Overview } from '../../src/accounts/overview.js';
import { readUsage } from '../../src/accounts/usage.js';
import type { LedgerEntry, LedgerWriter, StoreAdministration, StoreReader } from '../../src/store/store.js';
import type { StoreDriver, UsageQuestion, UsageRow, UsageStep } from '../../src/store/store.js';
import { seededRandom } from '../../scripts/rig/random.js';
import { HOUR_MS, randomEntries } from './random-entries.js';
import { noSpeakingDefaults } from '../../src/api/speech-settings.js';
import { noWebhooks, signedIn, wordsWith } from '../support/console-desk.js';

export interface OpenStore {
  readonly driver: StoreDriver;
  readonly settled: () => Promise<void>;
  readonly store: StoreAdministration;
  readonly administration: Administration;
  readonly readAs: (writer: number) => Promise<StoreReader>;
  readonly startWriter: () => LedgerWriter;
}

const plain = {
  byOperator: [],
  ...{ name: '', expiresAtMs: null, creditLimit: null, voices: null },
  ...noSpeakingDefaults,
};

/** @param amount negative for a charge, positive for a refund */
const chargeOf = (entry: number, keyId: number, amount: number, atMs: number): LedgerEntry => ({
  writer: 7,
  entry,
  accountId: 1,
  keyId,
  requestId: 'r',
  kind: amount > 0 ? 'refund' : 'usage',
  amount,
  characters: Math.abs(amount),
  voice: 'wren',
  audioMs: 700,
  beginsRequest: true,
  atMs,
});

export const peopleSuite = (
  test: (name: string, check: (t: Test) => Promise<void>) => void,
  open: (t: Test) => Promise<OpenStore>,
): void => {
  test('users have a handle of their own, and an id that no user had before', async (t) => {
    const { administration, store } = await open(t);
    await administration.createKey('ada', 5);
    const operator = {
      name: 'Root',
      handle: 'root',
      role: 'operator',
      accountId: null,
      password: 'p',
    } as const;
    const member = { name: 'Mia', handle: 'mia', role: 'member', accountId: 1, password: 'q' } as const;
    const [first, second] = await store.transact(async (transaction) => [
      await transaction.addUser(operator, 1_000),
      await transaction.addUser(member, 2_000),
    ]);
    await t.rejects(store.transact(async (transaction) => transaction.addUser(operator, 3_000)));
    const wrong = { ...operator, handle: 'other', accountId: 1 };
    await t.rejects(store.transact(async (transaction) => transaction.addUser(wrong, 3_000)));
    await t.rejects(
      store.transact(async (transaction) => transaction.addUser({ ...wrong, accountId: 99 }, 1)),
    );
    await store.read(async (view) => {
      const mia = {
        userId: second,
        name: 'Mia',
        role: 'member',
        accountId: 1,
        account: 'ada',
        createdAtMs: 2_000,
        lastSeenAtMs: null,
      };
      t.strictSame(await view.findUser({ handle: 'mia' }), { ...mia, password: 'q' });
      t.match(await view.findUser({ userId: first ?? 0 }), { name: 'Root', account: null });
      t.equal(await view.findUser({ handle: 'Mia' }), null);
      t.strictSame(await view.listUsers(1), [mia]);
      t.match(await view.listUsers(null), [{ name: 'Root' }]);
      t.equal(await view.countOperators(), 1);
    });
    const third = await store.transact(async (transaction) => {
      await transaction.setPassword(second ?? 0, 'new');
      t.match(await transaction.findUser({ handle: 'mia' }), { password: 'new' });
      await transaction.removeUser(second ?? 0);
      t.equal(await transaction.findUser({ handle: 'mia' }), null);
      return transaction.addUser(member, 4_000);
    });
    t.ok(third > (second ?? 0), 'an id is never used again');
  });

  test('sessions are seen, kept and ended', async (t) => {
    const { store } = await open(t);
    const user = { name: 'R', handle: 'r', role: 'operator', accountId: null, password: 'p' } as const;
    await store.transact(async (transaction) => {
      const userId = await transaction.addUser(user, 1);
      const other = await transaction.addUser({ ...user, handle: 's' }, 1);
      const alive = async () => {
        const found: string[] = [];
        for (const hash of ['a', 'b', 'c', 'd', 'x'])
          if ((await transaction.findSession(hash)) !== null) found.push(hash);
        return found.join('');
      };
      for (const [index, hash] of ['a', 'b', 'c', 'd'].entries())
        await transaction.addSession(hash, userId, 1_000 + index);
      await transaction.addSession('x', other, 1_000);
      t.match(await transaction.findUser({ userId }), { lastSeenAtMs: 1_003 });
      await transaction.seeSession('a', 5_000);
      t.strictSame(await transaction.findSession('a'), {
        ...{ userId, createdAtMs: 1_000, seenAtMs: 5_000 },
        token: null,
      });
      t.match(await transaction.findUser({ userId }), { lastSeenAtMs: 5_000 });
      await transaction.keepSessions(userId, 3);
      t.equal(await alive(), 'acdx', 'the one that was seen least recently ends');
      t.strictSame(await transaction.listSessions(2), [
        { hash: 'd', userId },
        { hash: 'a', userId },
      ]);
      await transaction.endSessions({ hash: 'c' });
      await transaction.endSessions({ hash: 'c' });
      t.equal(await alive(), 'adx');
      await transaction.endSessions({ userId, exceptHash: 'a' });
      t.equal(await alive(), 'ax');
      await transaction.endSessions({ nowMs: 2_000, msMax: 2_000, idleMsMax: 0 });
      t.equal(await alive(), 'a', 'those without activity');
      await transaction.endSessions({ nowMs: 1_001, msMax: 0, idleMsMax: 1_001 });
      t.equal(await alive(), '', 'those that are too old');
      const token = { name: 'billing', expiresAtMs: 9_000 };
      await transaction.addSession('b', userId, 1, token);
      await transaction.addSession('d', other, 1, token);
      await transaction.endSessions({ nowMs: 2, msMax: 0, idleMsMax: 0 });
      await transaction.keepSessions(userId, 0);
      t.equal(await alive(), 'bd', 'a token ends by neither');
      t.match(await transaction.findSession('b'), { token });
      t.strictSame(await transaction.listTokens(userId), [{ ...token, createdAtMs: 1, seenAtMs: 1 }]);
      await transaction.endSessions({ userId: other, token: 'billing' });
      t.equal(await alive(), 'b', 'one of a name, of its user only');
      await transaction.addSession('c', userId, 1);
      await transaction.endSessions({ userId, exceptHash: null });
      await transaction.addSession('d', other, 1);
      await transaction.removeUser(other);
      t.equal(await alive(), '');
    });
  });

  test('no text and no number of a call lets the store count as unusable', async (t) => {
    const { driver, store } = await open(t);
    const desk = new ConsoleDesk(
      driver,
      limits,
      wordsWith(() => null),
      noWebhooks,
    );
    t.teardown(() => desk.close());
    const credentials = { name: 'a\0b', password: 'p\0q'.repeat(4) };
    const by = await signedIn(store);
    const period = { accountId: null, fromMs: 0, toMs: 2 ** 63, step: 'day' };
    const asked: readonly (readonly [keyof ConsoleCalls, ...(readonly unknown[])])[] = [
      ['signIn', credentials, '192.0.2.1'],
      ['signIn', { ...credentials, name: '\ud800\u200b' }, '192.0.2.1'],
      ['device', 'a\0b'],
      ['invitation', { token: 'a\0b' }],
      ['acceptInvitation', { ...credentials, token: 'a\0b' }, '192.0.2.1'],
      ['session', 'a\0b'],
      ['createToken', by, { name: 'a\0b', days: 1 }],
      ['revokeToken', by, { name: 'a\0b' }],
      ['createAccount', by, { name: 'a\0b', credits: 1 }],
      ['account', by, { accountId: 2 ** 32 - 1 }],
      ['audit', by, { beforeId: 2 ** 63 }],
      ['usage', by, period],
    ];
    for (const [name, ...args] of asked) {
      const outcome = await desk.run(name, args);
      if (outcome.ok) continue;
      t.equal(outcome.reason, null, name);
      t.not(outcome.refusal.code, 'unavailable', name);
    }
  });

  test('one-time links are found, counted and removed', async (t) => {
    const { administration, store } = await open(t);
    await administration.createKey('ada', 5);
    await store.transact(async (transaction) => {
      const link = { kind: 'claim', accountId: null, expiresAtMs: 5_000 } as const;
      await transaction.addLink('a', link);
      await transaction.addLink('b', { kind: 'invitation', accountId: 1, expiresAtMs: 6_000 });
      await transaction.addLink('c', { kind: 'invitation', accountId: null, expiresAtMs: 7_000 });
      await transaction.addLink('d', { kind: 'recovery', accountId: null, expiresAtMs: 8_000 });
      t.strictSame(await transaction.findLink('a'), link);
      t.match(await transaction.findLink('b'), { kind: 'invitation', accountId: 1 });
      t.equal(await transaction.findLink('e'), null);
      t.equal(await transaction.countLinks(), 4);
      await transaction.removeLinks({ kind: 'recovery' });
      await transaction.removeLinks({ expiredAtMs: 5_000 });
      t.equal(await transaction.countLinks(), 2);
      t.match(await transaction.listLinks('invitation', 1), [{ accountId: 1, expiresAtMs: 6_000 }]);
      await transaction.removeLinks({ kind: 'invitation', accountId: 1 });
      t.strictSame(await transaction.listLinks('invitation', 1), []);
      t.match(await transaction.listLinks('invitation', null), [{ expiresAtMs: 7_000 }]);
      await transaction.removeLinks({ hash: 'c' });
      t.equal(await transaction.countLinks(), 0);
    });
  });

  test('the audit table is paged, and bounded by age, by action and by account', async (t) => {
    const { administration, store } = await open(t);
    await administration.createKey('ada', 5);
    await store.transact(async (transaction) => transaction.trimActs({ rowsMax: 0, accountId: null }));
    const act = (atMs: number, action = 'key.revoke', accountId: number | null = null) => ({
      atMs,
      accountId,
      actor: 'root',
      action,
      subject: 'svc_sk_abc',
      details: 'account ada',
    });
    await store.transact(async (transaction) => {
      for (let number = 1; number <= 10; number += 1)
        await transaction.record(act(number, number % 2 === 0 ? 'session.refuse' : undefined));
    });
    const times = () =>
      store.read(async (view) => (await view.listActs(null, 100)).map(({ atMs }) => atMs).join());
    await store.read(async (view) => {
      const page = await view.listActs(null, 3);
      t.strictSame(
        page.map(({ atMs, action }) => `${atMs} ${action}`),
        ['10 session.refuse', '9 key.revoke', '8 session.refuse'],
      );
      t.equal(page.length, 3);
      t.match(await view.listActs(page[2]?.auditId ?? 0, 2), [{ atMs: 7 }, { atMs: 6 }]);
    });
    await store.transact(async (transaction) => transaction.trimActs({ nowMs: 3, msMax: 0 }));
    t.equal(await times(), '10,9,8,7,6,5,4,3');
    await store.transact(async (transaction) =>
      transaction.trimActs({ rowsMax: 2, action: 'session.refuse' }),
    );
    t.equal(await times(), '10,9,8,7,5,3');
    await store.transact(async (transaction) => {
      for (let number = 11; number <= 14; number += 1) await transaction.record(act(number, undefined, 1));
      await transaction.trimActs({ rowsMax: 2, accountId: 1 });
    });
    t.equal(await times(), '14,13,10,9,8,7,5,3', 'acts of a member push out no other acts');
    await store.transact(async (transaction) => transaction.trimActs({ rowsMax: 4, accountId: null }));
    t.equal(await times(), '14,13,10,9,8,7');
  });

  test('what people do takes effect as a whole or not at all', async (t) => {
    const { store } = await open(t);
    const failing = store.transact(async (transaction) => {
      const user = { name: 'R', handle: 'r', role: 'operator', accountId: null, password: 'p' } as const;
      await transaction.addSession('a', await transaction.addUser(user, 1), 1);
      await transaction.addLink('a', { kind: 'claim', accountId: null, expiresAtMs: 1 });
      await transaction.record({
        atMs: 1,
        actor: 'r',
        accountId: null,
        action: 'a',
        subject: 's',
        details: '',
      });
      throw new Error('changed my mind');
    });
    await t.rejects(failing, /changed my mind/);
    await store.read(async (view) => {
      t.equal(await view.countOperators(), 0);
      t.equal(await view.findSession('a'), null);
      t.equal(await view.countLinks(), 0);
      t.strictSame(await view.listActs(null, 10), []);
    });
  });

  test('an act with a clock far ahead removes few of the acts before it', async (t) => {
    const { store } = await open(t);
    await store.transact(async (transaction) => {
      for (let atMs = 1; atMs <= 30; atMs++)
        await transaction.record({
          atMs,
          accountId: null,
          actor: 'root',
          action: 'key.revoke',
          subject: 'k',
          details: '',
        });
      await transaction.trimActs({ nowMs: 1_000, msMax: 0 });
    });
    const acts = await store.read(async (view) => view.listActs(null, 100));
    t.strictSame([acts.length, acts[0]?.atMs, acts.at(-1)?.atMs], [20, 30, 11]);
  });

  test('an account lists all its valid keys, and the newest revoked ones', async (t) => {
    const { administration, store } = await open(t);
    await administration.createKey('ada', 5);
    const dayMs = 86_400_000;
    await store.transact(async (transaction) => {
      for (let day = 1; day <= 210; day++) {
        const hash = new Uint8Array(32).fill(day);
        const keyId = await transaction.addKey('api', 1, hash, 'old', plain, day * dayMs);
        await transaction.revokeKey(keyId, day * dayMs);
      }
    });
    const listed = await store.read(async (view) => view.listKeys({ accountId: 1 }));
    t.equal(listed.length, 201);
    t.match(listed[0], { revokedAtMs: null });
    t.match(listed.at(-1), { createdAtMs: 210 * dayMs });
  });

  test('a hidden key is used by its id, and no list or search has it', async (t) => {
    const { administration, store, readAs, settled, driver } = await open(t);
    await administration.createKey('ada', 5);
    const hash = new Uint8Array(32).fill(7);
    const keyId = await store.transact(async (transaction) =>
      transaction.addKey('playground', 1, hash, 'Playground', plain, 1),
    );
    await t.rejects(
      store.transact(async (transaction) =>
        transaction.addKey('playground', 1, new Uint8Array(32), 'Playground', plain, 1),
      ),
      'an account has one',
    );
    await store.read(async (view) => {
      t.equal(await view.findPlaygroundKey(1), keyId);
      t.equal(await view.findPlaygroundKey(2), null);
      for (const by of [{ hash }, { prefix: 'Playground' }, { keyIds: [keyId] }])
        t.strictSame(await view.findKeys(by), []);
      for (const by of [null, { accountId: 1 }, { keyId }])
        t.notOk((await view.listKeys(by)).some((key) => key.keyId === keyId));
      t.match(await view.listAccounts(null, 0), [{ keys: 1 }]);
    });
    const reader = await readAs(1);
    await settled();
    t.match(reader.findActiveKey({ keyId }), { keyId, accountId: 1 });
    t.match(await readUsage(driver, { account: null, sinceMs: null }), [
      { keys: [{}, { prefix: 'Playground' }] },
    ]);
  });

  test('a deleted account keeps its ledger, and its keys and name are gone', async (t) => {
    const { administration, store, readAs, settled, driver, startWriter } = await open(t);
    const { key } = await administration.createKey('ada', 100);
    await administration.createKey('bell', null);
    const entry = chargeOf(1, 1, -10, 5_000);
    t.match(await startWriter().commit([entry]), { ok: true });
    await administration.deleteAccount('ada');
    await settled();
    t.equal((await readAs(1)).findActiveKey({ keyId: 1 }), null);
    const listed = await store.read(async (view) => view.listAccounts(null, 0));
    t.strictSame(
      listed.map(({ name }) => name),
      ['bell'],
    );
    t.match(await administration.list(), [{ revokedAtMs: Number }, { revokedAtMs: null }]);
    for (const refused of [
      () => administration.credit('ada', 5),
      () => administration.credit(key, 5),
      () => administration.deleteAccount('ada'),
      () => administration.suspend({ accountId: 1 }),
    ])
      await t.rejects(Promise.all([refused()]), /There is no/);
    await administration.createKey('ada', 7);
    await administration.deleteAccount('ada');
    t.match(await readUsage(driver, { account: null, sinceMs: null }), [
      { account: 'ada (deleted 1)', characters: 10, balance: 90 },
      { account: 'bell' },
      { account: 'ada (deleted 3)', balance: 7 },
    ]);
  });

  test('over any entries and any period, the rows of each step add up to the report', async (t) => {
    const { administration, driver, store, startWriter } = await open(t);
    await administration.createKey('ada', 10_000_000);
    await administration.createKey('bell', null);
    await administration.createKey('ada', null, { name: 'till' });
    const random = seededRandom(78);
    const startMs = Date.UTC(2026, 1, 27, 20);
    const entries = randomEntries({ random, count: 1_000, writer: 7, startMs, spanMs: 60 * HOUR_MS });
    t.match(await startWriter().commit(entries), { ok: true });
    const stepMs = { hour: HOUR_MS, day: 24 * HOUR_MS };
    /** The same, entry by entry. */
    const sumUp = (accountId: number | null, fromMs: number, toMs: number, step: UsageStep) => {
      const rows = new Map<string, Record<string, number | string>>();
      for (const entry of entries) {
        if (entry.atMs < fromMs || entry.atMs >= toMs) continue;
        if (accountId !== null && entry.accountId !== accountId) continue;
        const atMs = entry.atMs - (entry.atMs % stepMs[step]);
        const { keyId, voice, kind } = entry;
        const name = [String(atMs).padStart(15), keyId, voice].join('|');
        const row = rows.get(name) ?? { requests: 0, characters: 0, credits: 0, refunded: 0, audioMs: 0 };
        const add = (field: string, amount: number) => (row[field] = Number(row[field]) + amount);
        if (entry.beginsRequest) add('requests', 1);
        if (kind === 'usage') add('characters', entry.characters ?? 0);
        if (kind === 'usage') add('credits', -entry.amount);
        if (kind === 'refund') add('refunded', entry.amount);
        if (kind === 'usage') add('audioMs', entry.audioMs);
        rows.set(name, { atMs, keyId: keyId ?? 0, voice, ...row });
      }
      return [...rows].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, row]) => row);
    };
    const overview = new Overview(store, commandLine, Date.now);
    const hour = Math.ceil(startMs / HOUR_MS) * HOUR_MS;
    const periods = [
      [0, Number.MAX_SAFE_INTEGER],
      [hour, hour + 30 * HOUR_MS],
      [hour + 1, hour + HOUR_MS - 1],
      [hour + 5, hour + 5],
      [hour + 1_234_567, hour + 40.5 * HOUR_MS],
      [hour - 1, hour + HOUR_MS + 1],
      [hour, hour + 7],
    ] as const;
    for (const [fromMs, toMs] of periods)
      for (const step of ['hour', 'day'] as const)
        for (const accountId of [null, 1, 2]) {
          const question = { accountId, fromMs, toMs, step };
          const rows = await store.read(async (view) => view.readUsageRows(question, 10_000));
          t.strictSame(
            rows.map(({ accountId: _, account: _account, key: _key, keyName: _name, ...row }) => row),
            sumUp(accountId, fromMs, toMs, step),
            JSON.stringify(question),
          );
          const paged: UsageRow[] = [];
          for (let after: UsageQuestion['after'] | null; after !== null;) {
            const page = await overview.usage({ ...question, ...(after !== undefined && { after }) });
            paged.push(...page.rows);
            after = page.next;
          }
          t.strictSame(paged, rows, 'in the parts of pages, the same rows');
        }
    const all = { accountId: null, fromMs: 0, toMs: Number.MAX_SAFE_INTEGER, step: 'day' } as const;
    const rows = await store.read(async (view) => view.readUsageRows(all, 10_000));
    t.match(
      rows.find(({ keyId }) => keyId === 3),
      { accountId: 1, account: 'ada', key: /^svc_sk_/, keyName: 'till' },
    );
    for (const question of [
      all,
      { ...all, step: 'hour', fromMs: hour + 1_234_567, toMs: hour + 40.5 * HOUR_MS },
      { ...all, accountId: 1, fromMs: hour + 1_234_567 },
    ] as const) {
      const paged: UsageRow[] = [];
      for (let page: readonly UsageRow[] | null = null; page?.length !== 0; paged.push(...page)) {
        const after = paged.at(-1);
        page = await store.read(async (view) =>
          view.readUsageRows({ ...question, ...(after !== undefined && { after }) }, 4),
        );
        t.ok(page.length <= 4);
      }
      const whole = await store.read(async (view) => view.readUsageRows(question, 10_000));
      t.strictSame(paged, whole, 'page by page, the same rows');
    }
    const total = (name: 'characters' | 'credits' | 'refunded' | 'requests' | 'audioMs') =>
      rows.reduce((sum, row) => sum + row[name], 0);
    const report = await readUsage(driver, { account: null, sinceMs: null });
    for (const name of ['characters', 'credits', 'refunded', 'requests', 'audioMs'] as const)
      t.equal(
        total(name),
        report.reduce((sum, account) => sum + account[name], 0),
        name,
      );
  });

  test('changes of a balance are its grants, and what each day spent', async (t) => {
    const { administration, store, startWriter } = await open(t);
    await administration.createKey('ada', 1_000);
    await administration.createKey('ada', null);
    const day = 24 * HOUR_MS;
    const entries = [
      chargeOf(1, 1, -10, day + 1),
      chargeOf(2, 2, -20, day + 5 * HOUR_MS),
      chargeOf(3, 1, 5, day + 6 * HOUR_MS),
      chargeOf(4, 1, -7, 3 * day),
      chargeOf(5, 1, 0, 5 * day),
    ];
    t.match(await startWriter().commit(entries), { ok: true });
    const read = (rowsMax: number) => store.read(async (view) => view.readBalanceChanges(1, rowsMax));
    const [grant, ...days] = await read(10);
    t.match(grant, { kind: 'grant', amount: 1_000 });
    t.strictSame(days, [
      { atMs: 3 * day, kind: 'spent', amount: -7 },
      { atMs: day + 6 * HOUR_MS, kind: 'spent', amount: -25 },
    ]);
    t.equal((await read(2)).length, 2);
    const [account] = await store.read(async (view) => view.listAccounts(1, 2 * day));
    t.match(account, { balance: 968, recentCharacters: 7, keys: 2 });
  });
};
