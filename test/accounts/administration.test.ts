import { readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import t from 'tap';
import { Administration } from '../../src/accounts/administration.js';
import { CREDITS_MAX } from '../../src/accounts/checks.js';
import { hashKey } from '../../src/accounts/keys.js';
import { firstKeyPath, writeFirstKey } from '../../src/accounts/secret-file.js';
import { limits } from '../../src/limits.js';
import { SqliteAdministration } from '../../src/store/sqlite/administration.js';
import { openReader } from '../../src/store/sqlite/reader.js';
import { AdministrationError, type KeyProperties } from '../../src/store/store.js';
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
  const found = reader.findActiveKey({ hash: hashKey(seen[0] ?? '') });
  t.equal(reader.readCredit(found?.keyId ?? 0)?.metered, false);
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

t.test('credits are bounded, and an account becomes metered with exactly what it gets', async (t) => {
  const dataDir = memoryFolder(t);
  await createKeys(dataDir, [['free', null]]);
  await operate(dataDir, async (administration) => {
    await t.rejects(administration.credit('free', 7), { objection: 'conflict', message: /is not metered/ });
    await t.rejects(administration.meter('free', true, CREDITS_MAX + 1), AdministrationError);
    t.match(await administration.meter('free', true, 7), { metered: true, balance: 7 });
    for (const credits of [0, -1, 1.5, Number.NaN, CREDITS_MAX + 1])
      await t.rejects(administration.credit('free', credits), AdministrationError, String(credits));
    t.match(await administration.credit('free', 3), { balance: 10 });
    await t.rejects(administration.credit('free', CREDITS_MAX), /A balance is at most/);
    await t.rejects(administration.createKey('free', CREDITS_MAX), /A balance is at most/);
    await t.rejects(administration.createKey('FREE', null), /There is an account "free" already/);
    t.equal((await administration.list()).length, 1, 'a refused act changes nothing');
  });
  t.strictSame(balances(dataDir), [{ name: 'free', balance: 10, sum: 10 }]);
});

t.test('properties of a key are checked, and a revoked key keeps its own', async (t) => {
  const store = new SqliteAdministration(memoryFolder(t), limits);
  t.teardown(() => store.close());
  const nowMs = Date.UTC(2026, 0, 1);
  const administration = new Administration(store, { nowMs: () => nowMs });
  const { key } = await administration.createKey('ada', null, { name: 'kiosk', voices: ['wren', 'wren'] });
  t.match(await administration.list(), [
    { name: 'kiosk', voices: ['wren'], expiresAtMs: null, creditLimit: null, spent: 0, lastUsedAtMs: null },
  ]);
  const refused: Partial<KeyProperties>[] = [
    { name: ' a' },
    { name: 'svc_sk_a' },
    { expiresAtMs: nowMs },
    { expiresAtMs: nowMs + 0.5 },
    { expiresAtMs: Date.UTC(10_000, 0, 1) },
    { creditLimit: -1 },
    { creditLimit: CREDITS_MAX + 1 },
    { voices: [] },
    { voices: [''] },
    { voices: ['wren,lark'] },
    { voices: ['a b'] },
    { voices: ['a'.repeat(201)] },
    ...[0.4, 2.1, Number.NaN].map((speed) => ({ speed })),
    ...['', ' a', '.', '../a', 'a/b', 'a\\b', 'a\nb', 'ü'.repeat(65)].map((lexiconId) => ({ lexiconId })),
    { voices: Array.from({ length: 101 }, (_, index) => `v${index}`) },
  ];
  for (const changes of refused) {
    await t.rejects(administration.change(key, changes), AdministrationError, JSON.stringify(changes));
    await t.rejects(administration.createKey('ada', null, changes), AdministrationError);
  }
  t.equal((await administration.list()).length, 1);
  const changed = await administration.change(key, { expiresAtMs: nowMs + 1, creditLimit: 0 });
  t.match(changed, { name: 'kiosk', voices: ['wren'], expiresAtMs: nowMs + 1, creditLimit: 0 });
  t.match(await administration.list(), [changed]);
  t.ok(await administration.suspend('ada'));
  t.notOk(await administration.suspend('ada'));
  t.match(await administration.list(), [{ account: { suspendedAtMs: nowMs } }]);
  t.ok(await administration.resume('ada'));
  t.notOk(await administration.resume('ada'));
  await t.rejects(administration.suspend('bell'), /no account "bell"/);
  await administration.revoke(key);
  await t.rejects(administration.change(key, { expiresAtMs: null }), /was revoked, and stays so/);
});
