import { readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import t from 'tap';
import { Administration } from '../../src/accounts/administration.js';
import { firstKeyPath, makeFirstKey, writeFirstKey } from '../../src/accounts/first-key.js';
import { hashKey } from '../../src/accounts/keys.js';
import { openStore } from '../../src/store/sqlite/store.js';
import { temporaryFolder } from '../store/support.js';

t.test('the first start makes one key of an account that is never out of credit, later ones none', (t) => {
  const dataDir = temporaryFolder(t);
  const seen: string[] = [];
  t.ok(makeFirstKey(dataDir, (key) => seen.push(key)));
  t.notOk(makeFirstKey(dataDir, (key) => seen.push(key)));
  t.equal(seen.length, 1);
  const store = openStore(dataDir);
  const found = store.findActiveKey(hashKey(seen[0] ?? ''));
  t.equal(store.readAccount(found?.accountId ?? 0, 1)?.metered, false);
  store.close();
  const administration = new Administration(dataDir);
  t.match(administration.list(), [{ account: 'default', revokedAtMs: null }]);
  t.equal(administration.list().length, 1);
  // A store whose keys were all revoked is no empty one.
  administration.revoke(seen[0] ?? '');
  administration.close();
  t.notOk(makeFirstKey(dataDir, (key) => seen.push(key)));
  t.end();
});

t.test('a key that could not be delivered does not exist', (t) => {
  const dataDir = temporaryFolder(t);
  t.throws(
    () =>
      makeFirstKey(dataDir, () => {
        throw new Error('nobody took it');
      }),
    /nobody took it/,
  );
  const seen: string[] = [];
  t.ok(makeFirstKey(dataDir, (key) => seen.push(key)));
  t.equal(seen.length, 1);
  t.end();
});

t.test('the file of the first key is for its owner alone, even where an older one was not', (t) => {
  const dataDir = temporaryFolder(t);
  writeFileSync(firstKeyPath(dataDir), 'an old key, longer than the new one'.repeat(9), { mode: 0o644 });
  const seen: string[] = [];
  makeFirstKey(dataDir, (key) => {
    seen.push(key);
    t.equal(writeFirstKey(dataDir, key), firstKeyPath(dataDir));
  });
  t.equal(readFileSync(firstKeyPath(dataDir), 'utf8'), `${seen[0]}\n`);
  t.equal(statSync(firstKeyPath(dataDir)).mode & 0o777, 0o600);
  t.strictSame(
    readdirSync(dataDir).filter((name) => name.startsWith('first-key')),
    ['first-key'],
  );
  t.end();
});
