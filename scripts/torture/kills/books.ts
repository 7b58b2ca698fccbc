/**
 * What the ledger must have, whatever breaks. The books read it over a connection of their own, as any other program would. What
 * they saw once is committed, and must never change or disappear.
 */
import { DatabaseSync } from 'node:sqlite';
import { limits } from '../../../src/limits.js';
import { verifyStore } from '../../../src/store/sqlite/backup.js';
import { storePath } from '../../../src/store/sqlite/database.js';
import type { LedgerEntry } from '../../../src/store/store.js';
import { CHARACTERS_MAX } from './traffic.js';

/** With all other columns. */
export interface Row {
  readonly id: number;
  readonly writer: number;
  readonly entry: number;
  readonly request_id: string | null;
  readonly kind: string;
  readonly amount: number;
}

export interface Ledger {
  /** A lower id can appear after a higher one, if it is lower by no more than this; 0: each id is one more than the last. */
  readonly idsOutOfOrderMax: number;
  /** In the order of their ids. */
  readonly rowsAfter: (id: number) => Promise<readonly Row[]>;
  /** What is wrong with the store besides: sums that are not those of their entries, limits that were passed. */
  readonly damage: () => Promise<readonly string[]>;
}

/** Of a data folder. It keeps no lock. */
export const sqliteLedger = (dataDir: string): Ledger => {
  const query = (text: string, ...parameters: readonly number[]): unknown[] => {
    using database = new DatabaseSync(storePath(dataDir), { readOnly: true, timeout: 2_000 });
    return database.prepare(text).all(...parameters);
  };
  return {
    idsOutOfOrderMax: 0,
    rowsAfter: (id) =>
      Promise.resolve(query('SELECT * FROM ledger WHERE id > ? ORDER BY id', id) as readonly Row[]),
    damage: () => {
      const passed = query('SELECT prefix FROM api_keys WHERE spent > credit_limit').length;
      try {
        verifyStore(dataDir, limits);
      } catch (error) {
        return Promise.resolve([(error as Error).message]);
      }
      return Promise.resolve(passed === 0 ? [] : [`${passed} keys have spent more than they may`]);
    },
  };
};

export class Books {
  readonly #ledger: Ledger;
  /** Entries that were read once, by id. */
  readonly #seen = new Map<number, string>();
  /** What each answer may be charged at most, and what the last ones must be charged at least. */
  readonly #costs = new Map<string, number>();
  readonly #due = new Map<string, number>();
  /** Entries that a killed host left in its journal, by writer and number. */
  readonly #left = new Map<string, LedgerEntry>();
  #granted = 0;
  #lastId = 0;

  constructor(ledger: Ledger) {
    this.#ledger = ledger;
  }

  get entries(): number {
    return this.#seen.size;
  }

  /** Entries that were left in journals so far. */
  get left(): number {
    return this.#left.size;
  }

  /** An operator's credit was acknowledged. */
  grant(credits: number): void {
    this.#granted += credits;
  }

  /**
   * @param cost the most that it may be charged
   * @param due the least
   */
  answer(requestId: string, cost: number, due = 0): void {
    this.#costs.set(requestId, cost);
    if (due > 0) this.#due.set(requestId, due);
  }

  /** The next start of a killed host must send these. */
  expect(left: readonly LedgerEntry[]): void {
    for (const entry of left) this.#left.set(`${entry.writer}:${entry.entry}`, entry);
  }

  /** Reads what was committed since: from now on it must stay. */
  async look(): Promise<void> {
    this.#note(await this.#ledger.rowsAfter(Math.max(0, this.#lastId - this.#ledger.idsOutOfOrderMax)));
  }

  /** @returns how many answers the ledger does not have in full */
  async countOwed(): Promise<number> {
    const found = await this.#ledger.rowsAfter(0);
    this.#note(found);
    const charges = this.#chargesOf(found);
    const owed = [...this.#due].filter(([id, due]) => (charges.get(id) ?? 0) < due);
    return owed.length + this.#notSent(found).length;
  }

  /** @returns what is wrong */
  async check(): Promise<string[]> {
    const wrong: string[] = [];
    const found = await this.#ledger.rowsAfter(0);
    const texts = new Map(found.map((row) => [row.id, JSON.stringify(row)]));
    for (const [id, text] of this.#seen)
      if (texts.get(id) !== text) wrong.push(`entry ${id} is lost or changed`);
    if (this.#ledger.idsOutOfOrderMax === 0 && found.some(({ id }, i) => id !== i + 1))
      wrong.push('an id is missing');
    this.#note(found);
    const granted = found.filter(({ kind }) => kind === 'grant').reduce((sum, { amount }) => sum + amount, 0);
    if (granted !== this.#granted) wrong.push(`granted ${this.#granted}, and the ledger has ${granted}`);
    const charges = this.#chargesOf(found);
    for (const [id, credits] of charges) {
      const max = this.#costs.get(id) ?? CHARACTERS_MAX;
      if (credits < 0 || credits > max) wrong.push(`${id} was charged ${credits}, and costs ${max} at most`);
    }
    for (const [id, due] of this.#due)
      if ((charges.get(id) ?? 0) < due)
        wrong.push(`${id} costs ${due} at least, and was charged ${charges.get(id) ?? 0}`);
    this.#due.clear();
    for (const id of this.#notSent(found)) wrong.push(`entry ${id} of a journal is not in the ledger`);
    return [...wrong, ...(await this.#ledger.damage())];
  }

  /** Entries of journals that these rows do not have as they were. */
  #notSent(found: readonly Row[]): string[] {
    const amounts = new Map(found.map(({ amount, entry, writer }) => [`${writer}:${entry}`, amount]));
    return [...this.#left].filter(([id, { amount }]) => amounts.get(id) !== amount).map(([id]) => id);
  }

  #chargesOf(found: readonly Row[]): ReadonlyMap<string, number> {
    const charges = new Map<string, number>();
    for (const { amount, kind, request_id: id } of found)
      if (kind !== 'grant' && id !== null) charges.set(id, (charges.get(id) ?? 0) - amount);
    return charges;
  }

  /** What was seen before stays as it was seen. */
  #note(rows: readonly Row[]): void {
    for (const row of rows) {
      if (!this.#seen.has(row.id)) this.#seen.set(row.id, JSON.stringify(row));
      this.#lastId = Math.max(this.#lastId, row.id);
    }
  }
}
