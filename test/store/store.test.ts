import { spawnSync } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readFileSync, statSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { Administration } from '../../src/accounts/administration.js';
import { StoreError, openExisting, storePath } from '../../src/store/sqlite/database.js';
import { prepareAppendBatch, type LedgerEntry } from '../../src/store/sqlite/entries.js';
import { hashKey } from '../../src/accounts/keys.js';
import { SCHEMA_VERSION } from '../../src/store/sqlite/schema.js';
import { Store, openStore } from '../../src/store/sqlite/store.js';
import { balances, temporaryFolder } from './support.js';

const keysCommand = fileURLToPath(new URL('../../scripts/keys.js', import.meta.url));

const keys = (dataDir: string, ...args: string[]) => {
  const { status, stderr } = spawnSync(process.execPath, [keysCommand, ...args], {
    env: { ...process.env, DATA_DIR: dataDir },
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(stderr);
};

const faultOf = (work: () => unknown): StoreError => {
  try {
    work();
  } catch (error) {
    if (error instanceof StoreError) return error;
    throw error;
  }
  throw new Error('the store opened');
};

const createKey = (dataDir: string, credits: number | null = null): string => {
  const administration = new Administration(dataDir);
  const { key } = administration.createKey(null, credits);
  administration.close();
  return key;
};

t.test('an open store sees what another process did at its very next question', (t) => {
  const dataDir = temporaryFolder(t);
  const key = createKey(dataDir, 5);
  const store = openStore(dataDir);
  const found = store.findActiveKey(hashKey(key));
  if (found === null) throw new Error('the key is not found');
  t.equal(store.readAccount(found.accountId, 1)?.balance, 5);
  keys(dataDir, 'credit', key, '7');
  t.strictSame(store.readAccount(found.accountId, 1), { metered: true, balance: 12, committedEntry: 0 });
  t.ok(store.isKeyActive(found.keyId));
  keys(dataDir, 'revoke', key);
  t.notOk(store.isKeyActive(found.keyId));
  t.equal(store.findActiveKey(hashKey(key)), null);
  store.close();
  store.close();
  t.end();
});

t.test('the store holds the hash of a key, never the key, and only its user reads it', (t) => {
  const dataDir = join(temporaryFolder(t), 'made', 'here');
  const key = createKey(dataDir);
  const bytes = readFileSync(storePath(dataDir));
  t.notOk(bytes.includes(key.slice(13)));
  t.ok(bytes.includes(Buffer.from(hashKey(key))));
  t.equal(statSync(dataDir).mode & 0o777, 0o700);
  t.equal(statSync(storePath(dataDir)).mode & 0o777, 0o600);
  t.end();
});

const entry = (number: number, amount: number, accountId = 1): LedgerEntry => ({
  writer: 7,
  entry: number,
  accountId,
  keyId: null,
  requestId: `r-${number}`,
  kind: 'usage',
  amount,
  characters: Math.abs(amount),
  beginsRequest: true,
  atMs: 1_000,
});

t.test('the balance is the sum of the ledger: batches are whole, and the same entry twice is one', (t) => {
  const dataDir = temporaryFolder(t);
  createKey(dataDir, 100);
  const database = openExisting(dataDir);
  const store = new Store(dataDir);
  const append = prepareAppendBatch(database);
  append([entry(1, -10), entry(2, -5)]);
  append([entry(1, -10), entry(2, -5), entry(3, -1)]);
  t.strictSame(store.readAccount(1, 7), { metered: true, balance: 84, committedEntry: 3 });
  t.equal(store.readAccount(1, 8)?.committedEntry, 0, 'another writer has entries of its own');
  t.equal(store.readAccount(2, 7), null);
  const impossible = { ...entry(5, -1), kind: 'gift' as 'grant' };
  t.throws(() => append([entry(4, -1), impossible]), /CHECK/);
  t.strictSame(store.readAccount(1, 7), { metered: true, balance: 84, committedEntry: 3 });
  t.throws(() => database.exec('UPDATE ledger SET amount = 0'), /append-only/);
  t.throws(() => database.exec('DELETE FROM ledger'), /append-only/);
  t.strictSame(balances(dataDir), [{ name: 'account-1', balance: 84, sum: 84 }]);
  store.close();
  database.close();
  t.end();
});

t.test('a balance beyond the integers of a number is read as the nearest one', (t) => {
  const dataDir = temporaryFolder(t);
  createKey(dataDir);
  const database = openExisting(dataDir);
  const append = prepareAppendBatch(database);
  append([entry(1, -Number.MAX_SAFE_INTEGER), entry(2, -Number.MAX_SAFE_INTEGER)]);
  const store = new Store(dataDir);
  t.equal(store.readAccount(1, 7)?.balance, -Number.MAX_SAFE_INTEGER);
  store.close();
  database.close();
  t.end();
});

t.test('a data folder that cannot be written is named, with what to do', (t) => {
  const dataDir = temporaryFolder(t);
  const file = join(dataDir, 'a-file');
  writeFileSync(file, '');
  for (const unusable of [file, join(file, 'below'), '/proc/no-such-folder']) {
    const error = faultOf(() => openStore(unusable));
    t.equal(error.fault, 'unwritable');
    t.ok(error.message.includes(unusable) && error.message.includes('DATA_DIR'), error.message);
    t.notOk(error.message.includes('\n'));
  }
  mkdirSync(storePath(dataDir));
  t.equal(faultOf(() => openStore(dataDir)).fault, 'unwritable');
  t.end();
});

t.test('a file that is no database, and one whose pages are garbage, are called damaged', (t) => {
  const noDatabase = temporaryFolder(t);
  writeFileSync(storePath(noDatabase), 'this is not a database, whatever its name says'.repeat(10));
  const error = faultOf(() => openStore(noDatabase));
  t.equal(error.fault, 'damaged');
  t.ok(error.message.includes(storePath(noDatabase)) && error.message.includes('backup'), error.message);

  const garbage = temporaryFolder(t);
  createKey(garbage);
  // The first page, with the schema, stays as it is: only reading the tables shows the damage.
  const file = openSync(storePath(garbage), 'r+');
  const { size } = statSync(storePath(garbage));
  writeSync(file, Buffer.alloc(size - 4096, 0xa5), 0, size - 4096, 4096);
  closeSync(file);
  const found = faultOf(() => openStore(garbage));
  t.equal(found.fault, 'damaged');
  t.notOk(found.message.includes('\n'), found.message);
  t.equal(faultOf(() => new Administration(garbage).createKey(null, null)).fault, 'damaged');
  t.end();
});

t.test('a store of a newer version and a database of another program are left as they are', (t) => {
  const newer = temporaryFolder(t);
  createKey(newer);
  const database = new DatabaseSync(storePath(newer));
  database.exec(`PRAGMA user_version = ${SCHEMA_VERSION + 1}`);
  database.close();
  const error = faultOf(() => openStore(newer));
  t.equal(error.fault, 'newer');
  t.match(error.message, new RegExp(`schema ${SCHEMA_VERSION + 1}; this one knows ${SCHEMA_VERSION}`));

  const foreign = temporaryFolder(t);
  const other = new DatabaseSync(storePath(foreign));
  other.exec('CREATE TABLE theirs (a INTEGER)');
  other.close();
  const before = readFileSync(storePath(foreign));
  t.equal(faultOf(() => openStore(foreign)).fault, 'foreign');
  t.ok(readFileSync(storePath(foreign)).equals(before));
  t.end();
});

t.test('an empty file is no store: one that lost all it had must not come back as a new one', (t) => {
  const dataDir = temporaryFolder(t);
  writeFileSync(storePath(dataDir), '');
  t.equal(faultOf(() => openStore(dataDir)).fault, 'damaged');
  t.equal(statSync(storePath(dataDir)).size, 0);
  t.end();
});

t.test('opening a store again changes nothing', (t) => {
  const dataDir = temporaryFolder(t);
  const key = createKey(dataDir);
  for (let round = 0; round < 3; round += 1) {
    const store = openStore(dataDir);
    t.ok(store.findActiveKey(hashKey(key)));
    store.close();
  }
  t.end();
});
