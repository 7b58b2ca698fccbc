/** The suite of stores on PostgreSQL, what a start does with a journal, and how fresh a reader is when the database changes, stops or hangs. */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { createConnection, createServer, type Socket } from 'node:net';
import { basename, join } from 'node:path';
import { pipeline } from 'node:stream';
import t, { type Test } from 'tap';
import { Administration } from '../../src/accounts/administration.js';
import { ConsoleDesk } from '../../src/accounts/console-calls.js';
import { noSpeakingDefaults } from '../../src/api/speech-settings.js';
import { hashKey } from '../../src/accounts/keys.js';
import { Sessions } from '../../src/accounts/sessions.js';
import { hashToken } from '../../src/accounts/tokens.js';
import { limits } from '../../src/limits.js';
import { createLog } from '../../src/log.js';
import { Journal, leftJournals } from '../../src/store/journal.js';
import { openStore } from '../../src/store/ledger.js';
import { postgresSide } from '../../src/store/postgres/copying.js';
import { connect, postgresStore } from '../../src/store/postgres/driver.js';
import { ACTS_LOCK } from '../../src/store/postgres/host-schema.js';
import { migrations, SCHEMA } from '../../src/store/postgres/schema.js';
import { declareSilentText } from '../../src/store/postgres/writer.js';
import {
  StoreError,
  type StoreAdministration,
  type StoreDriver,
  type StoreReader,
} from '../../src/store/store.js';
import { noWebhooks, signedIn, wordsWith } from '../support/console-desk.js';
import { hasPostgres, startPostgres } from '../support/postgres.js';
import { eventually, pause, until } from '../support/waiting.js';
import { storeSuite } from './suite.js';
import { temporaryFolder } from './support.js';
import { usageOf } from './usage.js';

/** `PostgresReader`, as the driver returns it. */
type RefreshedReader = StoreReader & { refresh(): Promise<void> };

const faultOf = (work: () => unknown): string => {
  try {
    work();
  } catch (error) {
    if (error instanceof StoreError) return error.fault;
    throw error;
  }
  return 'none';
};

/** A reader notices after `storeStaleMsMax`, a second; the rest is for a busy machine. */
const noticedMsMax = 20_000;

/**
 * A reader that throws does not hold: on a busy machine its next poll may be late, too.
 * @returns how long it took @throws if the condition does not hold in time
 */
const untilHolds = async (holds: () => boolean): Promise<number> => {
  const startMs = performance.now();
  let held = false;
  await eventually(() => faultOf(() => (held = holds())) === 'none' && held, noticedMsMax);
  return performance.now() - startMs;
};

if (hasPostgres()) {
  const server = await startPostgres();
  t.teardown(() => server.stop());

  /** A driver, and what makes its readers see all that was committed. */
  const createOn = async ({ name, url }: { readonly name: string; readonly url: string }) => {
    const readers: RefreshedReader[] = [];
    const plain = postgresStore(url, temporaryFolder(t), limits);
    const driver: StoreDriver = {
      ...plain,
      openReader: async (writer) => {
        const reader = (await plain.openReader(writer)) as RefreshedReader;
        readers.push(reader);
        return reader;
      },
    };
    const settled = async () => {
      await Promise.all(readers.map((reader) => reader.refresh()));
    };
    return { name, url, driver, settled };
  };

  /**
   * Another way to the server.
   * @param listen to a new connection, before its first bytes
   */
  const wayTo = async (
    t: Test,
    url: string,
    listen: (near: Socket, far: Socket) => void,
  ): Promise<string> => {
    const host = temporaryFolder(t);
    const way = createServer((near) => {
      const far = createConnection(server.socket);
      listen(near, far);
      pipeline(near, far, near, () => undefined);
    }).listen(join(host, basename(server.socket)));
    t.teardown(() => way.close());
    await once(way, 'listening');
    const led = new URL(url);
    led.searchParams.set('host', host);
    return led.href;
  };

  /** A way that counts the bytes of the answers. */
  const countAnswers = async (t: Test, url: string) => {
    let bytes = 0;
    const counted = await wayTo(t, url, (_, far) => {
      far.on('data', (answer: Buffer) => (bytes += answer.length));
    });
    return { counted, answered: () => bytes };
  };

  const createNone = async () => createOn(await server.database());
  // One for most tests: a database of its own takes a third of a second of CPU time for each.
  const shared = await server.database();
  await (await (await createOn(shared)).driver.administer(true)).close();
  /** An empty store: no test leaves a connection to it. */
  const create = async () => {
    await server.execute(
      shared.name,
      `SET session_replication_role = replica;
       DO $$ BEGIN EXECUTE (
         SELECT 'TRUNCATE ' || string_agg(format('%I.%I', schemaname, tablename), ', ') || ' RESTART IDENTITY'
         FROM pg_tables WHERE schemaname = '${SCHEMA}' AND tablename NOT IN ('version', 'store')
       ); END $$`,
    );
    return createOn(shared);
  };

  storeSuite('PostgreSQL', create, createNone);

  const withKey = async (t: Test) => {
    const { name, url, driver, settled } = await create();
    const store = await driver.administer(true);
    t.teardown(() => store.close());
    const administration = new Administration(store);
    const { key } = await administration.createKey('ada', 100);
    return { name, url, driver, settled, administration, key, hash: hashKey(key) };
  };

  t.test('a host whose clock is ahead deletes nothing that others need', async (t) => {
    const { driver } = await withKey(t);
    const [store, other] = [await driver.administer(false), await driver.administer(false)];
    t.teardown(() => Promise.all([store.close(), other.close()]));
    const ahead = () => Date.now() + 500 * 86_400_000;
    const user = { name: 'R', handle: 'r', role: 'operator', accountId: null, password: 'p' } as const;
    const link = { kind: 'invitation', accountId: null } as const;
    const openAs = (sessions: Sessions, on: StoreAdministration) =>
      on.transact(async (transaction) => {
        const found = await transaction.findUser({ handle: 'r' });
        return sessions.open(transaction, found!);
      });
    await store.transact(async (transaction) => {
      await transaction.addUser(user, 1);
      await transaction.addLink('open', { ...link, expiresAtMs: Date.now() + 86_400_000 });
      await transaction.addLink('expired', { ...link, expiresAtMs: Date.now() - 1 });
    });
    const sessions = new Sessions(store, limits);
    const { token } = await openAs(sessions, store);
    await openAs(new Sessions(other, limits, ahead), other);
    await new Administration(other, { nowMs: ahead }).credit('ada', 5);
    await other.transact(async (transaction) => transaction.removeLinks({ expiredAtMs: ahead() }));
    t.match(await sessions.session(hashToken(token)), { name: 'R' });
    await store.read(async (view) => {
      const actions = (await view.listActs(null, 10)).map(({ action }) => action);
      t.strictSame(actions, ['account.credit', 'key.create', 'account.create']);
      t.equal(await view.countLinks(), 1);
      t.not(await view.findLink('open'), null);
    });
  });

  t.test('a revocation and a grant reach a reader', async (t) => {
    const { administration, driver, key, hash } = await withKey(t);
    const reader = await driver.openReader(1);
    t.teardown(() => reader.close());
    await administration.credit('ada', 5);
    await untilHolds(() => reader.readCredit(1)?.balance === 105);
    t.not(reader.findActiveKey({ hash }), null);
    await administration.revoke(key);
    await untilHolds(() => reader.findActiveKey({ hash }) === null);
  });

  t.test('speaking defaults of a key and of an account reach a reader', async (t) => {
    const { administration, driver, key, hash } = await withKey(t);
    const reader = await driver.openReader(1);
    t.teardown(() => reader.close());
    const speed = () => reader.findActiveKey({ hash })?.speaking.speed;
    for (const [act, expected] of [
      [() => administration.changeAccount('ada', { speed: 1.2 }), 1.2],
      [() => administration.change(key, { speed: 1.1 }), 1.1],
    ] as const) {
      await act();
      t.ok(await untilHolds(() => speed() === expected), `${expected}`);
    }
  });

  t.test('a reader says which keys ended, and only these', async (t) => {
    const { administration, driver, key, settled } = await withKey(t);
    const second = await administration.createKey('bell', 100);
    const reader = await driver.openReader(1);
    t.teardown(() => reader.close());
    const ended: number[] = [];
    reader.watchKeys?.((keyIds) => void ended.push(...keyIds));
    await administration.credit('ada', 5);
    await settled();
    t.strictSame(ended, []);
    await administration.suspend({ accountId: 2 });
    await settled();
    t.strictSame(ended.splice(0), [2]);
    await administration.credit('bell', 5);
    await administration.revoke(key);
    await settled();
    t.strictSame(ended.splice(0), [1]);
    await administration.revoke(second.key);
    await settled();
    t.strictSame(ended, [2]);
  });

  t.test('an answer is as old as its question: one that comes late admits nothing', async (t) => {
    const { driver, name } = await withKey(t);
    const reader = await driver.openReader(1);
    t.teardown(() => reader.close());
    const faults: string[] = [];
    reader.watchKeys?.(() => void faults.push(faultOf(() => reader.probe())));
    await server.execute(
      name,
      `BEGIN; LOCK TABLE syrinx.accounts; UPDATE syrinx.api_keys SET revoked_at_ms = 1; SELECT pg_sleep(2); COMMIT`,
    );
    await untilHolds(() => faults.length > 0);
    t.strictSame(faults, ['unreachable']);
    await untilHolds(() => faultOf(() => reader.probe()) !== 'unreachable');
  });

  t.test('without announcements the poll finds a change', async (t) => {
    const { driver, hash, name } = await withKey(t);
    const reader = await driver.openReader(1);
    t.teardown(() => reader.close());
    const announce = (how: string) =>
      server.execute(name, `ALTER TABLE syrinx.api_keys ${how} TRIGGER key_is_announced`);
    await announce('DISABLE');
    t.teardown(() => announce('ENABLE'));
    await server.execute(name, 'UPDATE syrinx.api_keys SET revoked_at_ms = 1');
    await untilHolds(() => reader.findActiveKey({ hash }) === null);
  });

  t.test(
    'a full table refuses further keys, and nothing else: readers start, and know all keys',
    async (t) => {
      const { url, administration, hash } = await withKey(t);
      const { key } = await administration.createKey('ada', 100);
      const driver = postgresStore(url, temporaryFolder(t), { ...limits, storeKeysMax: 2 });
      const store = await driver.administer(false);
      t.teardown(() => store.close());
      const bounded = new Administration(store);
      await t.rejects(
        bounded.createKey('ada', 100),
        /The store has 2 keys, the most that a service can hold/,
      );
      // A store may have more, of an earlier version.
      const { key: third } = await administration.createKey('ada', 100);
      const reader = await driver.openReader(1);
      t.teardown(() => reader.close());
      for (const known of [hash, hashKey(key), hashKey(third)])
        t.not(reader.findActiveKey({ hash: known }), null);
      await administration.revoke(key);
      await administration.revoke(third);
      await bounded.createKey('ada', 100);
    },
  );

  t.test('a VACUUM of the ledger holds up neither acts nor commits, also beside a copy', async (t) => {
    const { administration, driver, name, url } = await withKey(t);
    const store = await openStore(driver, limits, createLog('silent', limits));
    t.teardown(() => store.close());
    // The lock of VACUUM, which takes minutes for a large table.
    const vacuum = server.execute(
      name,
      'BEGIN; LOCK TABLE syrinx.ledger IN SHARE UPDATE EXCLUSIVE MODE; SELECT pg_sleep(4); COMMIT',
    );
    const isHeld = async () =>
      (await server.execute(name, `SELECT 1 FROM pg_locks WHERE mode = 'ShareUpdateExclusiveLock'`)).length >
      0;
    await eventually(isHeld, noticedMsMax);
    const side = await postgresSide(url, limits, false);
    t.teardown(() => side.close());
    await t.rejects(
      side.transact(() => Promise.resolve()),
      { message: /is in use: a service has it open/ },
    );
    await administration.credit('ada', 5);
    store.ledger.append(usageOf(3));
    await store.ledger.drain();
    t.ok(await isHeld());
    await vacuum;
  });

  t.test('a host that stops in an act holds up the acts of others for a second', async (t) => {
    const { url } = await withKey(t);
    const patient = { ...limits, storeAnswerMsMax: 60_000 };
    const driver = postgresStore(url, temporaryFolder(t), patient);
    const [stopped, other] = [await driver.administer(false), await driver.administer(false)];
    t.teardown(() => Promise.all([stopped.close(), other.close()]));
    const startMs = performance.now();
    let tookMs = Infinity;
    const act = stopped.transact(async () => {
      await new Administration(other).credit('ada', 5);
      tookMs = performance.now() - startMs;
    });
    await t.rejects(act, 'the database ended its transaction');
    t.ok(tookMs < patient.storeAnswerMsMax / 2, `${tookMs} ms`);
  });

  t.test('an act waits for the commits of the ledger that are under way', async (t) => {
    const { administration, name } = await withKey(t);
    const commit = server.execute(
      name,
      `BEGIN; SELECT pg_advisory_xact_lock_shared(${ACTS_LOCK}); SELECT pg_sleep(4); COMMIT`,
    );
    let isOver = false;
    void commit.then(() => (isOver = true));
    const locks = (granted: boolean) =>
      server.execute(name, `SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND granted = ${granted}`);
    await eventually(async () => (await locks(true)).length > 0, noticedMsMax);
    const act = administration.credit('ada', 5);
    await eventually(async () => (await locks(false)).length > 0, noticedMsMax);
    t.notOk(isOver, 'it waits beside the commit');
    await Promise.all([act, commit]);
  });

  t.test('a start does without the check of sums if it takes long', async (t) => {
    const { driver, name } = await withKey(t);
    const slow = server.execute(name, 'BEGIN; LOCK TABLE syrinx.usage_hours; SELECT pg_sleep(8); COMMIT');
    const isHeld = async () =>
      (await server.execute(name, "SELECT 1 FROM pg_locks WHERE mode = 'AccessExclusiveLock'")).length > 0;
    await eventually(isHeld, noticedMsMax);
    const reader = await driver.openReader(1);
    t.teardown(() => reader.close());
    t.ok(await isHeld());
    await slow;
  });

  t.test('a change is found although an older transaction ends after it', async (t) => {
    const { driver, name, settled } = await withKey(t);
    const reader = await driver.openReader(1);
    t.teardown(() => reader.close());
    const slow = server.execute(
      name,
      `BEGIN; UPDATE syrinx.api_keys SET name = 'slow', revoked_at_ms = 1; SELECT pg_sleep(0.7); COMMIT`,
    );
    const sleeping = `SELECT 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'`;
    t.ok(await until(async () => (await server.execute(name, sleeping)).length > 0));
    await server.execute(name, 'UPDATE syrinx.accounts SET suspended_at_ms = 1');
    await untilHolds(() => reader.findActiveKey({ keyId: 1 }) === null);
    await server.execute(name, 'UPDATE syrinx.accounts SET suspended_at_ms = NULL');
    await slow;
    await settled();
    t.equal(reader.findActiveKey({ keyId: 1 }), null, 'the key was revoked by the slow transaction');
  });

  t.test(
    'what was answered is not answered again while an older transaction runs, in any database',
    async (t) => {
      const { name, url } = await withKey(t);
      const { counted, answered } = await countAnswers(t, url);
      const other = (await server.database()).name;
      const slow = server.execute(other, `BEGIN; SELECT pg_current_xact_id(); SELECT pg_sleep(5); COMMIT`);
      const sleeping = `SELECT 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'`;
      t.ok(await until(async () => (await server.execute(name, sleeping)).length > 0));
      const reader = (await postgresStore(counted, temporaryFolder(t), limits).openReader(
        1,
      )) as RefreshedReader;
      t.teardown(() => reader.close());
      await server.execute(
        name,
        `INSERT INTO syrinx.api_keys (hash, prefix, account_id, created_at_ms)
       SELECT sha256(place::text::bytea), 'svc_sk_', 1, 0 FROM generate_series(1, 500) AS place`,
      );
      await reader.refresh();
      t.not(reader.findActiveKey({ hash: createHash('sha256').update('500').digest() }), null);
      const before = answered();
      t.ok(before > 500 * 50, `${before} bytes have the keys`);
      await reader.refresh();
      const again = answered() - before;
      t.ok(again < 2_000, `${again} bytes`);
      t.ok((await server.execute(name, sleeping)).length > 0, 'the transaction still runs');
      await slow;
    },
  );

  t.test('a store of a dump of another cluster: each row is answered once, and a change again', async (t) => {
    const { administration, driver, name, url, key, hash } = await withKey(t);
    const { counted, answered } = await countAnswers(t, url);
    // What pg_restore leaves: it copies the rows before there are triggers, and this cluster is younger.
    await server.execute(
      name,
      `SET session_replication_role = replica;
       INSERT INTO syrinx.api_keys (hash, prefix, account_id, created_at_ms)
       SELECT sha256(place::text::bytea), 'svc_sk_', 1, 0 FROM generate_series(1, 500) AS place;
       UPDATE syrinx.accounts SET changed = '9999999999'; UPDATE syrinx.api_keys SET changed = '9999999999'`,
    );
    const open = async () =>
      (await postgresStore(counted, temporaryFolder(t), limits).openReader(1)) as RefreshedReader;
    const readers = await Promise.all([open(), open()]);
    t.teardown(async () => {
      for (const reader of readers) await reader.close();
    });
    const before = answered();
    t.ok(before > 2 * 500 * 50, `${before} bytes have the keys`);
    for (const reader of readers) await reader.refresh();
    const again = answered() - before;
    t.ok(again < 4_000, `${again} bytes`);
    await administration.revoke(key);
    for (const reader of readers) await untilHolds(() => reader.findActiveKey({ hash }) === null);
    const rows = 'SELECT xmin FROM syrinx.api_keys ORDER BY id';
    const known = await server.execute(name, rows);
    await (await driver.openReader(2)).close();
    t.same(await server.execute(name, rows), known, 'a further start writes nothing');
  });

  t.test('a database that stops: nothing is admitted after a second, and nothing is lost', async (t) => {
    const { driver } = await withKey(t);
    const store = await openStore(driver, limits, createLog('silent', limits));
    t.teardown(() => store.close());
    store.ledger.append(usageOf(1));
    await store.ledger.drain();
    await server.signal('SIGKILL');
    store.ledger.append(usageOf(2));
    const tookMs = await untilHolds(() => faultOf(() => store.reader.probe()) === 'unreachable');
    t.comment(`noticed after ${Math.round(tookMs)} ms`);
    await untilHolds(() => store.ledger.fault === 'unreachable');
    const decided: string[] = [];
    const ask = () =>
      store.reservations!.wait(1, 5, 0, () => void decided.push(store.reservations!.refusal(1)));
    ask();
    await untilHolds(() => decided.length > 0);
    t.strictSame(decided, ['unavailable']);
    await server.run();
    await store.ledger.drain();
    ask();
    await untilHolds(() => decided.length > 1);
    await untilHolds(() => store.reader.readCredit(1)?.balance === 97);
    t.ok(store.ledger.accepting);
  });

  t.test(
    'a database that hangs: nothing is admitted after a second, and an entry is written once',
    async (t) => {
      const { driver, name } = await withKey(t);
      const store = await openStore(driver, limits, createLog('silent', limits));
      t.teardown(() => store.close());
      // The first may be a poll that began long ago.
      await (store.reader as RefreshedReader).refresh();
      const askedMs = performance.now();
      await (store.reader as RefreshedReader).refresh();
      await server.signal('SIGSTOP');
      store.ledger.append(usageOf(3));
      await untilHolds(() => faultOf(() => store.reader.probe()) === 'unreachable');
      const tookMs = performance.now() - askedMs;
      t.ok(tookMs >= 500, `${tookMs} ms: a short pause is no fault`);
      // Longer than a statement may take: the batch is sent again on another connection.
      await pause(limits.storeAnswerMsMax);
      await server.signal('SIGCONT');
      await store.ledger.drain();
      await untilHolds(() => store.reader.readCredit(1)?.balance === 97);
      t.match(await server.execute(name, 'SELECT count(*)::int AS count FROM syrinx.ledger'), [{ count: 2 }]);
    },
  );

  t.test(
    'the ledger is append-only, and a start refuses balances that are not the sum of their entries',
    async (t) => {
      const { driver, name } = await withKey(t);
      for (const text of ['DELETE FROM', 'TRUNCATE', 'UPDATE'])
        await t.rejects(
          server.execute(name, `${text} syrinx.ledger ${text === 'UPDATE' ? 'SET amount = 1' : ''}`),
          /append-only/,
        );
      await server.execute(name, 'UPDATE syrinx.accounts SET balance = 7');
      await t.rejects(async () => driver.openReader(1), {
        fault: 'damaged',
        message: /account "ada" has a balance of 7, and the sum of its entries is 100/,
      });
    },
  );

  t.test('a store of the first version is migrated with its contents, and hosts can share it', async (t) => {
    const { name, url } = await server.database();
    await server.execute(
      name,
      `CREATE SCHEMA ${SCHEMA}; SET search_path = ${SCHEMA}; CREATE TABLE version (version BIGINT NOT NULL);
       ${migrations[0]} INSERT INTO version VALUES (1);
       INSERT INTO accounts (name, metered, created_at_ms) VALUES ('ada', 1, 1);
       INSERT INTO api_keys (account_id, hash, prefix, created_at_ms) VALUES (1, 'hash', 'svc', 1);
       INSERT INTO ledger (writer, entry, account_id, kind, amount, at_ms) VALUES (1, 1, 1, 'grant', 100, 1);
       INSERT INTO ledger (writer, entry, account_id, key_id, kind, amount, characters, at_ms)
       VALUES (1, 2, 1, 1, 'usage', -9, 4, 7), (1, 3, 1, 1, 'refund', 9, NULL, 8)`,
    );
    // The tables are changed later than a statement may take.
    const locked = server.execute(
      name,
      `BEGIN; LOCK TABLE ${SCHEMA}.usage_hours; SELECT pg_sleep(6); COMMIT`,
    );
    await eventually(
      async () =>
        (await server.execute(name, "SELECT 1 FROM pg_locks WHERE mode = 'AccessExclusiveLock'")).length > 0,
      noticedMsMax,
    );
    const store = await openStore(
      postgresStore(url, temporaryFolder(t), limits),
      limits,
      createLog('silent', limits),
    );
    t.teardown(() => store.close());
    t.equal(store.reader.readCredit(1)?.balance, 100);
    t.strictSame(store.reader.findActiveKey({ keyId: 1 })?.speaking, noSpeakingDefaults);
    let spare = 0;
    store.reservations?.wait(1, 60, 0, () => (spare = store.reservations?.spare(1) ?? 0));
    await untilHolds(() => spare === 60);
    store.ledger.append(usageOf(3));
    await store.ledger.drain();
    t.match(await server.execute(name, 'SELECT balance::int FROM syrinx.accounts'), [{ balance: 97 }]);
    await locked;
    const side = await postgresSide(url, limits, false);
    t.teardown(() => side.close());
    t.strictSame(await side.findDamage(), []);
    const kept =
      'SELECT charged_characters::int AS charged, day::int FROM syrinx.api_keys, syrinx.usage_days';
    t.match(await server.execute(name, kept), [{ charged: 7, day: 0 }]);
    await server.execute(
      name,
      'UPDATE syrinx.usage_days SET amount = 1 WHERE day = 0; UPDATE syrinx.api_keys SET charged_characters = 8',
    );
    t.strictSame(await side.findDamage(), [
      'the use of account 1 on day 0 is not the sum of its hours',
      'key svc... has spent 3 for 8 characters, and the sum of its entries is 3 for 7',
    ]);
  });

  t.test('a start sends a journal to its own store only, and keeps what that does not take', async (t) => {
    const { name, url } = await withKey(t);
    const [store] = await server.execute(name, 'SELECT id FROM syrinx.store');
    const dataDir = temporaryFolder(t);
    const log = createLog('silent', limits);
    const leave = async (writer: number, accountId = 1, storeId = String(store?.['id'])): Promise<string> => {
      const journal = Journal.create(dataDir, { writer, storeId }, limits, log);
      journal.append({ ...usageOf(3), writer, entry: 1, accountId });
      await journal.close('left');
      return join(dataDir, 'journal', String(writer));
    };
    const start = async (): Promise<number> => {
      const started = await openStore(postgresStore(url, dataDir, limits), limits, log);
      await started.close();
      return started.entriesRefused;
    };
    const balance = 'SELECT balance::int FROM syrinx.accounts';

    const foreign = await leave(11, 1, 'another');
    await t.rejects(start(), { fault: 'replaced', message: /journal.11 has entries for another database/ });
    t.ok(existsSync(foreign));
    await rm(foreign, { recursive: true });

    const known = await leave(12);
    const unknown = await leave(13, 99);
    t.equal(await start(), 0);
    t.match(await server.execute(name, balance), [{ balance: 97 }]);
    t.notOk(existsSync(known));
    t.ok(existsSync(`${unknown}.refused`), 'its account is not there');

    await leave(12);
    t.equal(await start(), 0, 'it has ended, and is not dead');
    t.notOk(existsSync(known) || existsSync(`${known}.refused`));

    await server.execute(name, `INSERT INTO syrinx.writers (id, host, dead_at) VALUES (14, 'x', now())`);
    const dead = await leave(14);
    t.equal(await start(), 1);
    t.ok(existsSync(`${dead}.refused`));
  });

  t.test(
    'a silent process is declared dead: its credit is free, and its late entries are refused',
    async (t) => {
      const { name, url } = await withKey(t);
      const log = createLog('silent', limits);
      const dataDir = temporaryFolder(t);
      const [store] = await server.execute(name, 'SELECT id FROM syrinx.store');
      const journal = Journal.create(dataDir, { writer: 15, storeId: String(store?.['id']) }, limits, log);
      journal.append({ ...usageOf(3), writer: 15, entry: 1 });
      await journal.close('left');
      await server.execute(
        name,
        `INSERT INTO syrinx.writers (id, host, seen_at) VALUES (15, 'x', now() - INTERVAL '3 seconds');
       INSERT INTO syrinx.reservations VALUES (1, 15, 60)`,
      );
      const bounds = { ...limits, writerSilentMsMax: 2_000 };
      const living = await openStore(postgresStore(url, temporaryFolder(t), bounds), limits, log);
      t.teardown(() => living.close());
      const dead = 'SELECT 1 FROM syrinx.writers WHERE id = 15 AND dead_at IS NOT NULL';
      // Seldom: each question is a new connection.
      const isDead = async () => {
        await pause(500);
        return (await server.execute(name, dead)).length > 0;
      };
      t.ok(await until(isDead, 30_000));
      t.same(await server.execute(name, 'SELECT 1 FROM syrinx.reservations WHERE writer = 15'), []);
      const returned = await openStore(postgresStore(url, dataDir, limits), limits, log);
      t.teardown(() => returned.close());
      t.equal(returned.entriesRefused, 1);
      t.match(await server.execute(name, 'SELECT balance::int FROM syrinx.accounts'), [{ balance: 100 }]);
    },
  );

  t.test('the clock of the database declares nobody dead: only silence does', async (t) => {
    const { name, url } = await withKey(t);
    await server.execute(
      name,
      `INSERT INTO syrinx.writers (id, host, seen_at) VALUES (16, 'beats by a clock that is an hour late', now() - INTERVAL '1 hour'),
         (17, 'silent since before the clock was set back', now() + INTERVAL '1 hour')`,
    );
    const bounds = { ...limits, writerSilentMsMax: 2_000 };
    const log = createLog('silent', limits);
    const living = await openStore(postgresStore(url, temporaryFolder(t), bounds), limits, log);
    t.teardown(() => living.close());
    const isDead = async (writer: number): Promise<boolean> => {
      const dead = `SELECT 1 FROM syrinx.writers WHERE id = ${writer} AND dead_at IS NOT NULL`;
      return (await server.execute(name, dead)).length > 0;
    };
    const beat = `UPDATE syrinx.writers SET seen_at = seen_at + INTERVAL '1 second' WHERE id = 16`;
    t.ok(
      await until(async () => {
        await pause(500);
        await server.execute(name, beat);
        return isDead(17);
      }, 30_000),
    );
    t.notOk(await isDead(16));
  });

  t.test('a process that gets no answer itself declares nobody dead', async (t) => {
    const { name, url } = await withKey(t);
    const bounds = { ...limits, writerSilentMsMax: 2_000, ledgerProbeMs: 600_000 };
    const log = createLog('silent', limits);
    const away = await openStore(postgresStore(url, temporaryFolder(t), bounds), bounds, log);
    t.teardown(() => away.close());
    await pause(11_000);
    await server.execute(name, `INSERT INTO syrinx.writers (id, host) VALUES (18, 'silent')`);
    await pause(7_000);
    const dead = 'SELECT 1 FROM syrinx.writers WHERE id = 18 AND dead_at IS NOT NULL';
    t.same(await server.execute(name, dead), []);
  });

  t.test('a process that shows a sign of life in the last moment is not declared dead', async (t) => {
    const { name, url } = await withKey(t);
    await server.execute(name, `INSERT INTO syrinx.writers (id, host) VALUES (18, 'x')`);
    const connection = await connect(url, limits, false);
    t.teardown(() => connection.close());
    const session = await connection.session();
    const [row] = await session.query<{ seenAt: string }>(
      'SELECT seen_at::text AS "seenAt" FROM writers WHERE id = 18',
    );
    const declare = () => session.query<{ held: number }>(declareSilentText, [18, row?.seenAt]);
    await session.query('UPDATE writers SET seen_at = clock_timestamp() WHERE id = 18');
    t.strictSame(await declare(), []);
    await session.query('UPDATE writers SET seen_at = $1 WHERE id = 18', [row?.seenAt]);
    t.match(await declare(), [{ held: 0 }]);
    t.strictSame(await declare(), [], 'once');
  });

  t.test('a stop whose end the database does not confirm keeps the journal for the next start', async (t) => {
    const { name, url } = await withKey(t);
    const dataDir = temporaryFolder(t);
    const log = createLog('silent', limits);
    const driver = postgresStore(url, dataDir, limits);
    const store = await openStore(driver, limits, log);
    await server.execute(name, 'ALTER FUNCTION syrinx.end_writer RENAME TO end_nobody');
    await store.close();
    const living = 'SELECT 1 FROM syrinx.writers WHERE ended_at IS NULL';
    t.equal((await server.execute(name, living)).length, 1);
    await server.execute(name, 'ALTER FUNCTION syrinx.end_nobody RENAME TO end_writer');
    await (await openStore(driver, limits, log)).close();
    t.equal((await server.execute(name, living)).length, 0);
    t.strictSame(leftJournals(dataDir), []);
  });

  t.test('an act whose commit has no answer says that it may be done, and is done once', async (t) => {
    const { driver, name, url } = await withKey(t);
    let loses: 'acts' | 'reads' | 'nothing' = 'nothing';
    let lose = (_: Socket): void => undefined;
    /** A way that loses answers to commits, which the database has done. */
    const lossy = await wayTo(t, url, (near, far) => {
      let begun = '';
      let isCommit = false;
      near.on('data', (asked: Buffer) => {
        if (asked.includes('BEGIN')) begun = asked.includes('READ ONLY') ? 'reads' : 'acts';
        isCommit = asked.includes('COMMIT\0');
      });
      far.on('data', () => {
        if (isCommit && begun === loses) lose(near);
      });
    });
    const hasty = { ...limits, storeAnswerMsMax: 2_000 };
    const distant = postgresStore(lossy, temporaryFolder(t), hasty);
    const [store, near] = [await distant.administer(false), await driver.administer(false)];
    t.teardown(() => Promise.all([store.close(), near.close()]));
    const words = wordsWith(() => null);
    const desk = new ConsoleDesk(distant, hasty, words, noWebhooks);
    t.teardown(() => desk.close());
    const by = await signedIn(near);
    const administration = new Administration(store);
    const balance = async () => (await near.read(async (view) => view.findAccount({ name: 'ada' })))?.balance;

    loses = 'acts';
    const ways = { cut: (way: Socket) => void way.destroy(), silence: (way: Socket) => way.cork() };
    let expected = 100;
    for (const [way, its] of Object.entries(ways)) {
      lose = its;
      await t.rejects(
        administration.credit('ada', 5),
        { fault: 'uncertain', message: /not known whether the change was made.*Check/ },
        way,
      );
      t.equal(await balance(), (expected += 5), way);
    }
    t.match(await desk.run('credit', [by, { accountId: 1, credits: 5 }]), {
      ok: false,
      refusal: { code: 'uncertain', message: /Check whether the change was made/ },
      reason: /did not answer/,
    });
    t.equal(await balance(), 115, 'the console does it once');

    loses = 'reads';
    lose = ways.cut;
    await t.rejects(
      store.read((view) => view.countLinks()),
      { fault: 'unreachable', message: /cannot be used/ },
      'a read changes nothing',
    );
    const terminate = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE state = 'idle in transaction'`;
    const act = store.transact(async (transaction) => {
      await transaction.grant(1, 5, Date.now());
      await server.execute(name, terminate);
      return transaction.countLinks();
    });
    await t.rejects(
      act,
      { fault: 'unreachable', message: /cannot be used/ },
      'it was lost before its commit',
    );
    t.equal(await balance(), 115);
    await administration.credit('ada', 5);
    t.equal(await balance(), 120);
  });

  t.test('errors name the database and the remedy, and never the password', async (t) => {
    const nowhere = postgresStore('postgres://user:secret@127.0.0.1:9/syrinx', temporaryFolder(t), limits);
    const error: unknown = await (async () => nowhere.openReader(1))().catch((reason: unknown) => reason);
    t.ok(error instanceof StoreError && error.fault === 'unreachable', String(error));
    t.match(String(error), /postgres:\/\/user@127\.0\.0\.1:9\/syrinx .*STORE_URL/);
    t.notMatch(String(error), /secret/);
  });

  t.test('a database that cannot hold all letters gets no store', async (t) => {
    const name = 'latin';
    await server.execute('postgres', `CREATE DATABASE ${name} ENCODING 'LATIN1' TEMPLATE template0`);
    const patient = { ...limits, storeConnectMsMax: 20_000 };
    const driver = postgresStore(server.urlOf(name), temporaryFolder(t), patient);
    await t.rejects(async () => driver.openReader(1), { fault: 'unusable', message: /LATIN1.*UTF8/ });
    const [row] = await server.execute(name, `SELECT to_regclass('${SCHEMA}.version')::text AS name`);
    t.equal(row?.['name'], null, 'no table is made');
  });
}
