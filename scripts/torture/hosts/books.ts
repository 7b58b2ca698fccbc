/** What the ledger in the database must have, whatever breaks: a model of it, and its comparison. */
import { limits } from '../../../src/limits.js';
import { connect } from '../../../src/store/postgres/driver.js';
import type { LedgerEntry } from '../../../src/store/store.js';
import { findDamage } from '../../../src/store/postgres/verification.js';
import type { Hosts } from '../../rig/hosts.js';
import { CHARACTERS_MAX } from '../kills/traffic.js';

interface Row {
  readonly id: number;
  readonly writer: number;
  readonly entry: number;
  readonly account: string;
  readonly requestId: string | null;
  readonly kind: string;
  readonly amount: number;
}

const rows = `SELECT ledger.id, writer, entry, name AS account, request_id AS "requestId", kind, amount
  FROM syrinx.ledger JOIN syrinx.accounts ON accounts.id = account_id`;

/** What hosts hold of an account is never more than it has. */
const overPromised = `SELECT name, balance, promised FROM syrinx.accounts
  LEFT JOIN (SELECT account_id, sum(reserved) AS promised FROM syrinx.reservations GROUP BY 1) AS held ON account_id = id
  WHERE metered = 1 AND balance < coalesce(promised, 0)`;

/** Entries get their ids before they are committed, so that a lower id can appear after a higher one. */
const idsOutOfOrderMax = 5_000;

export class Books {
  readonly #hosts: Hosts;
  /** Entries that were read once, by id. */
  readonly #seen = new Map<number, string>();
  /** What each answer may be charged at most. */
  readonly #costs = new Map<string, number>();
  /** What each answer must be charged at least. */
  readonly #due = new Map<string, number>();
  /** Entries that a killed host left in its journal, by writer and number. */
  readonly #left = new Map<string, LedgerEntry>();
  #granted = 0;
  #lastId = 0;

  constructor(hosts: Hosts) {
    this.#hosts = hosts;
  }

  get entries(): number {
    return this.#seen.size;
  }

  /** An operator's credit was acknowledged. */
  grant(credits: number): void {
    this.#granted += credits;
  }

  /** Entries that were left in journals so far. */
  get left(): number {
    return this.#left.size;
  }

  /**
   * @param cost the most that it may be charged
   * @param due the least
   */
  answer(requestId: string, cost: number, due: number): void {
    this.#costs.set(requestId, cost);
    if (due > 0) this.#due.set(requestId, due);
  }

  /** The next start of a killed host must send these. */
  expect(left: readonly LedgerEntry[]): void {
    for (const entry of left) this.#left.set(`${entry.writer}:${entry.entry}`, entry);
  }

  /** Reads what was committed since: from now on it must stay. */
  async look(): Promise<void> {
    for (const row of await this.#rowsAfter(this.#lastId - idsOutOfOrderMax)) this.#note(row);
  }

  /** @returns how many answers the ledger does not have in full */
  async countOwed(): Promise<number> {
    await this.look();
    const seen = [...this.#seen.values()].map((text) => JSON.parse(text) as Row);
    const charges = this.#chargesOf(seen);
    const owed = [...this.#due].filter(([id, due]) => (charges.get(id) ?? 0) < due);
    return owed.length + this.#notSent(seen).length;
  }

  /** @returns what is wrong */
  async check(): Promise<string[]> {
    const wrong: string[] = [];
    const found = await this.#rowsAfter(0);
    const texts = new Map(found.map((row) => [row.id, JSON.stringify(row)]));
    for (const [id, text] of this.#seen)
      if (texts.get(id) !== text) wrong.push(`entry ${id} is lost or changed`);
    for (const row of found) this.#note(row);
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
    for (const { name, balance, promised } of await this.#hosts.query(overPromised))
      wrong.push(`${String(name)} has ${String(balance)}, and hosts hold ${String(promised)}`);
    return [...wrong, ...(await this.#damage())];
  }

  /** Sums that are not those of their entries. */
  async #damage(): Promise<readonly string[]> {
    const connection = await connect(this.#hosts.databaseUrl, limits, false);
    try {
      return await findDamage(connection, true);
    } finally {
      await connection.close();
    }
  }

  /** Entries of journals that these rows do not have as they were. */
  #notSent(found: readonly Row[]): string[] {
    const amounts = new Map(found.map(({ amount, entry, writer }) => [`${writer}:${entry}`, amount]));
    return [...this.#left].filter(([id, { amount }]) => amounts.get(id) !== amount).map(([id]) => id);
  }

  #chargesOf(found: readonly Row[]): ReadonlyMap<string, number> {
    const charges = new Map<string, number>();
    for (const { amount, kind, requestId } of found)
      if (kind !== 'grant' && requestId !== null)
        charges.set(requestId, (charges.get(requestId) ?? 0) - amount);
    return charges;
  }

  #note(row: Row): void {
    this.#seen.set(row.id, JSON.stringify(row));
    this.#lastId = Math.max(this.#lastId, row.id);
  }

  async #rowsAfter(id: number): Promise<readonly Row[]> {
    const found = await this.#hosts.query(`${rows} WHERE ledger.id > ${id} ORDER BY ledger.id`);
    // The client returns large integers as text.
    return found.map((row) => ({ ...row, ...numbersOf(row) })) as unknown as readonly Row[];
  }
}

const numbersOf = (row: Readonly<Record<string, unknown>>) =>
  Object.fromEntries(['id', 'writer', 'entry', 'amount'].map((name) => [name, Number(row[name])]));
