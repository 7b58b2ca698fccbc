/** Folders for stores, and their contents as any SQLite client reads them. */
import { chmodSync, existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { storePath } from '../../src/store/sqlite/database.js';

interface Teardown {
  teardown(handler: () => void): unknown;
}

const folderIn = (t: Teardown, parent: string): string => {
  const folder = mkdtempSync(join(parent, 'syrinx-test-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
};

/** A folder that is removed when the test ends. */
export const temporaryFolder = (t: Teardown): string => folderIn(t, tmpdir());

/** The commit mark needs a file's time of birth, which some file systems in memory do not keep. */
const keepsBirth = (folder: string): boolean => {
  const probe = join(folder, 'probe');
  writeFileSync(probe, '');
  const { birthtimeNs } = statSync(probe, { bigint: true });
  chmodSync(probe, 0o600);
  writeFileSync(probe, 'x');
  const kept = statSync(probe, { bigint: true }).birthtimeNs === birthtimeNs;
  rmSync(probe);
  return kept;
};

/** A temporary folder for small stores, in memory if the system offers that: a commit then waits for no disk. */
export const memoryFolder = (t: Teardown): string => {
  if (!existsSync('/dev/shm')) return temporaryFolder(t);
  const folder = folderIn(t, '/dev/shm');
  return keepsBirth(folder) ? folder : temporaryFolder(t);
};

export interface AccountSum {
  readonly name: string;
  readonly balance: number;
  readonly sum: number;
}

/** The balance of each account beside the sum of its entries. */
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
  /** Credits charged, less credits refunded. */
  readonly credits: number;
  /** Number of entries. */
  readonly entries: number;
}

/** Charges by request. */
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
