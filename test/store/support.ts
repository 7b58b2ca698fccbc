/** What the tests of admission share. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { storePath } from '../../src/store/sqlite/database.js';

interface Teardown {
  teardown(handler: () => void): unknown;
}

/** A folder that goes when the test ends. */
export const temporaryFolder = (t: Teardown): string => {
  const folder = mkdtempSync(join(tmpdir(), 'syrinx-admission-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
};

export interface AccountSum {
  readonly name: string;
  readonly balance: number;
  readonly sum: number;
}

/** Every account's balance beside the sum of its ledger, read as any SQLite client would. */
export const balances = (dataDir: string): AccountSum[] => {
  const database = new DatabaseSync(storePath(dataDir));
  try {
    const rows = database
      .prepare(
        `SELECT name, balance, coalesce((SELECT sum(amount) FROM ledger WHERE account_id = accounts.id), 0) AS sum
         FROM accounts ORDER BY id`,
      )
      .all() as unknown as AccountSum[];
    return rows.map((row) => ({ ...row }));
  } finally {
    database.close();
  }
};

export interface Charged {
  /** Credits, less what was given back. */
  readonly credits: number;
  /** Entries that it took. */
  readonly entries: number;
}

/** What the ledger has of each request. */
export const chargesOf = (dataDir: string): Map<string, Charged> => {
  const database = new DatabaseSync(storePath(dataDir));
  try {
    const rows = database
      .prepare(
        `SELECT request_id AS id, -sum(amount) AS credits, count(*) AS entries
         FROM ledger WHERE kind <> 'grant' GROUP BY request_id`,
      )
      .all() as unknown as (Charged & { readonly id: string })[];
    return new Map(rows.map(({ id, credits, entries }) => [id, { credits, entries }]));
  } finally {
    database.close();
  }
};
