/**
 * A store damaged in every way that we know: a start refuses it with one line, or serves it with exactly the balances
 * and keys that it had. `npm run torture` damages the store of a service that runs in the same ways.
 */
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { limits } from '../../src/limits.js';
import { newWriter } from '../../src/store/ledger.js';
import { openExisting } from '../../src/store/sqlite/database.js';
import { openReader } from '../../src/store/sqlite/reader.js';
import { prepareAppendBatch } from '../../src/store/sqlite/writer.js';
import { StoreError } from '../../src/store/store.js';
import { LeftStore, balancesOf } from '../../scripts/torture/store/left-store.js';
import { applyDamage, damageNames } from '../../scripts/torture/store/damage.js';
import { Dice } from '../../scripts/rig/random.js';
import { memoryFolder } from './support.js';

const SEED = 20_261;
const ROUNDS = 2;
const ENTRIES = 400;
/** Later than all entries. */
const AT_MS = Date.UTC(2026, 6, 1);
const ends = ['killed', 'closed'] as const;

const dice = new Dice(SEED);
const folder = memoryFolder(t);
const store = await LeftStore.make(join(folder, 'data'), ENTRIES, dice.unit);
const other = await LeftStore.make(join(folder, 'other'), ENTRIES, dice.unit);

/** @returns why a start is refused; `null` if it is not */
const startOf = (storeCheckBytesMax: number): StoreError | null => {
  try {
    openReader(store.dataDir, { ...limits, storeCheckBytesMax }, 1).close();
    return null;
  } catch (error) {
    if (error instanceof StoreError) return error;
    throw error;
  }
};

const CHARGE = 17;

/** Charges the first account as a request does. @returns the credits */
const chargeOnce = (): number => {
  const database = openExisting(store.dataDir, limits);
  try {
    const entry = {
      writer: newWriter(),
      entry: 1,
      accountId: 1,
      keyId: 1,
      requestId: 'request',
      kind: 'usage',
      amount: -CHARGE,
      characters: CHARGE,
      voice: 'wren',
      audioMs: 1_000,
      beginsRequest: true,
      atMs: AT_MS,
    } as const;
    prepareAppendBatch(database)([entry]);
    return CHARGE;
  } finally {
    database.close();
  }
};

const refusedOrCharged = (): number | 'refused' => {
  try {
    return chargeOnce();
  } catch (error) {
    if (error instanceof StoreError || (error as { code?: string }).code === 'ERR_SQLITE_ERROR')
      return 'refused';
    throw error;
  }
};

t.test('an undamaged store is served unchanged', (t) => {
  for (const end of ends)
    for (const wholeBytesMax of [limits.storeCheckBytesMax, 0]) {
      store.putBack(end);
      t.equal(startOf(wholeBytesMax), null);
      t.same(balancesOf(store.dataDir), store.balances);
    }
  t.end();
});

/** @returns whether it was refused */
const tryDamage = (t: Test, name: string, wholeBytesMax: number, what: string): boolean => {
  applyDamage(name, { store, other, dice });
  const refusal = startOf(wholeBytesMax);
  if (refusal !== null) {
    if (refusal.message.includes('\n') || !refusal.message.includes(store.dataDir))
      t.fail(`${what}: ${refusal.message}`);
    return true;
  }
  t.same(balancesOf(store.dataDir), store.balances, what);
  const charged = refusedOrCharged();
  const before = Number(store.balances.accounts[0]?.['balance']);
  const after = before - (charged === 'refused' ? 0 : charged);
  t.equal(balancesOf(store.dataDir).accounts[0]?.['balance'], after, `${what}: the next charge`);
  return false;
};

for (const [how, wholeBytesMax] of [
  ['read whole', limits.storeCheckBytesMax],
  ['too large to be read whole', 0],
] as const)
  for (const end of ends)
    t.test(`${end}, ${how}: the store is refused, or served with its balances`, (t) => {
      const outcomes = { refused: 0, served: 0 };
      for (let round = 0; round < ROUNDS; round += 1)
        for (const name of damageNames[end]) {
          store.putBack(end);
          const refused = tryDamage(t, name, wholeBytesMax, `${name}, round ${round}`);
          outcomes[refused ? 'refused' : 'served'] += 1;
        }
      t.comment(JSON.stringify(outcomes));
      t.ok(outcomes.refused > 20 && outcomes.served > 10, JSON.stringify(outcomes));
      t.end();
    });
