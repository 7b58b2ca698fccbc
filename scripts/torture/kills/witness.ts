/**
 * Reads the ledger over a connection of its own, as any other program would, and remembers what it saw: those entries are
 * committed, and must never change or disappear.
 */
import { createHash } from 'node:crypto';
import { DatabaseSync } from 'node:sqlite';
import { limits } from '../../../src/limits.js';
import { verifyStore } from '../../../src/store/sqlite/backup.js';
import type { KeyProperties } from '../../../src/store/store.js';
import { storePath } from '../../../src/store/sqlite/database.js';
import { speakingOf, toSpeaking, toVoices, type RowOf } from '../../../src/store/sql/rows.js';
import { columnsOf } from '../../../src/store/sql/sql.js';

interface Row {
  readonly id: number;
  readonly request_id: string | null;
  readonly kind: string;
  readonly amount: number;
}

const keyColumns = columnsOf([
  ...[
    'api_keys.name',
    'expires_at_ms',
    'credit_limit',
    'voices',
    ...speakingOf('api_keys'),
    'suspended_at_ms',
  ],
]);

/** Properties of the only key of an account. */
export interface ChangedKey extends KeyProperties {
  readonly isSuspended: boolean;
}

/** The hash of all rows up to one, in order. */
interface Seen {
  readonly id: number;
  readonly hash: string;
}

const nothing: Seen = { id: 0, hash: '' };

const extend = (seen: Seen, row: Row): Seen => ({
  id: row.id,
  hash: createHash('sha256').update(seen.hash).update(JSON.stringify(row)).digest('base64'),
});

export class Witness {
  readonly #dataDir: string;
  #database: DatabaseSync | null = null;
  /** What has been checked after a kill; later checks continue there. */
  #checked = nothing;
  #seen = nothing;
  #granted = 0;

  constructor(dataDir: string) {
    this.#dataDir = dataDir;
  }

  /** Credits granted in the part of the ledger that was checked. */
  get granted(): number {
    return this.#granted;
  }

  get entries(): number {
    return this.#checked.id;
  }

  /** Reads what was committed since the last time. It keeps no lock. */
  look(): void {
    for (const row of this.#rowsAfter(this.#seen.id)) this.#seen = extend(this.#seen, row);
  }

  /**
   * After the service has ended: everything that was seen is still there, unchanged.
   *
   * @returns what is wrong, and what each request was charged since the last check
   */
  check(thorough: boolean): {
    readonly wrong: readonly string[];
    readonly charges: ReadonlyMap<string, number>;
  } {
    const wrong: string[] = [];
    const charges = new Map<string, number>();
    const from = thorough ? nothing : this.#checked;
    let read = from;
    let atSeen = this.#seen.id === from.id ? from.hash : '';
    for (const row of this.#rowsAfter(from.id)) {
      if (row.id !== read.id + 1) wrong.push(`after entry ${read.id} comes ${row.id}`);
      read = extend(read, row);
      if (row.id === this.#seen.id) atSeen = read.hash;
      if (row.id <= this.#checked.id) continue;
      if (row.kind === 'grant') this.#granted += row.amount;
      else if (row.request_id !== null)
        charges.set(row.request_id, (charges.get(row.request_id) ?? 0) - row.amount);
    }
    if (read.id < this.#seen.id) wrong.push(`${this.#seen.id - read.id} entries that were seen are gone`);
    else if (atSeen !== this.#seen.hash) wrong.push('an entry that was seen has changed');
    this.#checked = read;
    this.#seen = read;
    wrong.push(...this.#wrongBalances());
    this.close();
    if (thorough)
      try {
        verifyStore(this.#dataDir, limits);
      } catch (error) {
        wrong.push((error as Error).message);
      }
    return { wrong, charges };
  }

  keyOf(account: string): ChangedKey {
    const row = this.#open()
      .prepare(
        `SELECT ${keyColumns} FROM api_keys JOIN accounts ON accounts.id = account_id WHERE accounts.name = ?`,
      )
      .get(account);
    const { voices, suspendedAtMs, ...key } = row as unknown as RowOf<Omit<KeyProperties, 'voices'>> & {
      readonly voices: string | null;
      readonly suspendedAtMs: number | null;
    };
    return { ...key, ...toSpeaking(key), voices: toVoices(voices), isSuspended: suspendedAtMs !== null };
  }

  /** Idempotent. */
  close(): void {
    this.#database?.close();
    this.#database = null;
  }

  #open(): DatabaseSync {
    return (this.#database ??= new DatabaseSync(storePath(this.#dataDir), {
      readOnly: true,
      timeout: 2_000,
    }));
  }

  #rowsAfter(id: number): Row[] {
    return this.#open().prepare('SELECT * FROM ledger WHERE id > ? ORDER BY id').all(id) as unknown as Row[];
  }

  #wrongBalances(): string[] {
    const balances = this.#open()
      .prepare(
        `SELECT name FROM accounts WHERE balance <>
           coalesce((SELECT sum(amount) FROM ledger WHERE account_id = accounts.id), 0)`,
      )
      .all()
      .map((row) => `the balance of ${String(row['name'])} is not the sum of its entries`);
    const keys = this.#open()
      .prepare(
        `SELECT prefix FROM api_keys WHERE spent > credit_limit OR spent <>
           coalesce((SELECT sum(-amount) FROM ledger WHERE key_id = api_keys.id AND kind <> 'grant'), 0)`,
      )
      .all()
      .map(
        (row) => `what ${String(row['prefix'])} has spent is above its limit, or not the sum of its entries`,
      );
    return [...balances, ...keys];
  }
}
