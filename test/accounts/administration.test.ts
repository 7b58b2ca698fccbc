import { readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import t from 'tap';
import { CREDITS_MAX, firstKeyPath, writeFirstKey } from '../../src/accounts/administration.js';
import { hashKey } from '../../src/accounts/keys.js';
import { limits } from '../../src/limits.js';
import { openReader } from '../../src/store/sqlite/reader.js';
import { AdministrationError } from '../../src/store/store.js';
import { createKeys, operate } from '../../scripts/operator.js';
import { balances, memoryFolder } from '../store/support.js';

const createFirstKey = (dataDir: string, deliver: (key: string) => void): Promise<boolean> =>
  operate(dataDir, (administration) => administration.createFirstKey(deliver));

t.test('the first start creates one key of an account that is not metered, later starts none', async (t) => {
  const dataDir = memoryFolder(t);
  const seen: string[] = [];
  t.ok(await createFirstKey(dataDir, (key) => seen.push(key)));
  t.notOk(await createFirstKey(dataDir, (key) => seen.push(key)));
  t.equal(seen.length, 1);
  const reader = openReader(dataDir, limits, 1);
  const found = reader.findActiveKey(hashKey(seen[0] ?? ''));
  t.equal(reader.readAccount(found?.accountId ?? 0)?.metered, false);
  reader.close();
  await operate(dataDir, async (administration) => {
    const listed = await administration.list();
    t.match(listed, [{ account: { name: 'default' }, revokedAtMs: null }]);
    t.equal(listed.length, 1);
    await administration.revoke(seen[0] ?? '');
  });
  t.notOk(await createFirstKey(dataDir, (key) => seen.push(key)), 'a store of revoked keys is not empty');
});

t.test('a key that could not be delivered does not exist', async (t) => {
  const dataDir = memoryFolder(t);
  const lost = createFirstKey(dataDir, () => {
    throw new Error('not delivered');
  });
  await t.rejects(lost, /not delivered/);
  const seen: string[] = [];
  t.ok(await createFirstKey(dataDir, (key) => seen.push(key)));
  t.equal(seen.length, 1);
});

t.test('only the owner can read the file of the first key, even if an older file was readable', async (t) => {
  const dataDir = memoryFolder(t);
  writeFileSync(firstKeyPath(dataDir), 'an old key, longer than the new one'.repeat(9), { mode: 0o644 });
  const seen: string[] = [];
  await createFirstKey(dataDir, (key) => {
    seen.push(key);
    t.equal(writeFirstKey(dataDir, key), firstKeyPath(dataDir));
  });
  t.equal(readFileSync(firstKeyPath(dataDir), 'utf8'), `${seen[0]}\n`);
  t.equal(statSync(firstKeyPath(dataDir)).mode & 0o777, 0o600);
  t.strictSame(
    readdirSync(dataDir).filter((name) => name.startsWith('first-key')),
    ['first-key'],
  );
});

t.test(
  'credits are bounded, and an unmetered account becomes metered with exactly what it gets',
  async (t) => {
    const dataDir = memoryFolder(t);
    await createKeys(dataDir, [['free', null]]);
    await operate(dataDir, async (administration) => {
      for (const credits of [0, -1, 1.5, Number.NaN, CREDITS_MAX + 1])
        await t.rejects(administration.credit('free', credits), AdministrationError, String(credits));
      t.match(await administration.credit('free', 7), { becameMetered: true, account: { balance: 7 } });
      t.match(await administration.credit('free', 3), { becameMetered: false, account: { balance: 10 } });
      await t.rejects(administration.credit('free', CREDITS_MAX), /A balance is at most/);
      await t.rejects(administration.createKey('free', CREDITS_MAX), /A balance is at most/);
      t.equal((await administration.list()).length, 1, 'a refused act changes nothing');
    });
    t.strictSame(balances(dataDir), [{ name: 'free', balance: 10, sum: 10 }]);
  },
);
