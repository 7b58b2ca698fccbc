/**
 * The commit mark: a file beside the store that says how far the store had come at its last commit. If a write-ahead
 * log is cut, changed or gone, the rest is a consistent store of an earlier time: SQLite takes what is missing for a
 * commit that was never finished. The commit mark shows that it was finished.
 *
 * It is written after the commit, without waiting for the disk: it can be behind the store, and never ahead of it. It
 * is valid for one file: a backup in the place of the store starts without one.
 */
import { statSync, writeFileSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import { crc32 } from 'node:zlib';
import { readRegular } from '../../regular-file.js';
import { StoreError } from '../store.js';
import { pragma, storePath } from './database.js';
import { makeFile } from './files.js';

export const commitMarkPath = (dataDir: string): string => `${storePath(dataDir)}-mark`;

/** These never decrease, and each commit increases one of them. */
const counts = ['entries', 'accounts', 'keys', 'revocations', 'changes'] as const;

/** A store of an older schema has no `changes`, nor has a commit mark of an older version. */
type Reached = Readonly<Record<Exclude<(typeof counts)[number], 'changes'>, number>> & {
  readonly store: string;
  readonly changes?: number;
};

interface CommitMark extends Reached {
  /** Identifies the file of the store. */
  readonly file: string;
}

const readReached = (database: DatabaseSync): string => `
  SELECT ${pragma(database, 'user_version') < 4 ? '' : '(SELECT changes FROM identity) AS changes,'}
    (SELECT store FROM identity) AS store, (SELECT coalesce(max(id), 0) FROM ledger) AS entries,
    (SELECT coalesce(max(id), 0) FROM accounts) AS accounts, (SELECT coalesce(max(id), 0) FROM api_keys) AS keys,
    (SELECT count(*) FROM api_keys WHERE revoked_at_ms IS NOT NULL) AS revocations
`;

const fileOf = (dataDir: string): string => {
  // The inode number of a removed file is soon reused: its time of birth is not.
  const { dev, ino, birthtimeNs } = statSync(storePath(dataDir), { bigint: true });
  return `${dev}:${ino}:${birthtimeNs}`;
};

/** One sector, so that it is written whole or not at all. */
const BYTES = 512;

const encode = (mark: CommitMark): string => {
  const text = JSON.stringify(mark);
  return `${crc32(text).toString(16).padStart(8, '0')} ${text}`.padEnd(BYTES - 1) + '\n';
};

const decode = (bytes: Buffer): CommitMark | null => {
  const line = bytes.toString('latin1').trimEnd();
  const text = line.slice(9);
  return Number.parseInt(line.slice(0, 8), 16) === crc32(text) ? (JSON.parse(text) as CommitMark) : null;
};

/** @returns a function to call after each commit of this connection */
export const prepareCommitMark = (dataDir: string, database: DatabaseSync): (() => void) => {
  const statement = database.prepare(readReached(database));
  const file = fileOf(dataDir);
  let written = '';
  return () => {
    const bytes = encode({ ...(statement.get() as unknown as Reached), file });
    if (bytes === written) return;
    try {
      makeFile(commitMarkPath(dataDir));
      // In its place: `w` would empty the file first.
      writeFileSync(commitMarkPath(dataDir), bytes, { flag: 'r+' });
      written = bytes;
    } catch {
      // The commit is durable. An older commit mark, or none, detects less, and is never wrong.
    }
  };
};

/**
 * @param ofCopies also one of another file, as in a folder that was copied
 * @returns `null` if there is none for this file, or it is damaged itself
 */
export const readCommitMark = (dataDir: string, ofCopies = false): CommitMark | null => {
  try {
    const mark = decode(readRegular(commitMarkPath(dataDir)));
    return ofCopies || mark?.file === fileOf(dataDir) ? mark : null;
  } catch {
    return null;
  }
};

/**
 * @param mark read before the store: commits in between only add to the store
 * @throws {StoreError} the store lacks entries that were committed
 */
export const checkCommitMark = (dataDir: string, mark: CommitMark | null, database: DatabaseSync): void => {
  if (mark === null) return;
  const path = storePath(dataDir);
  const remedy =
    `restore a backup (npm run store -- restore FILE); or, to use this store as it is, remove ` +
    `${commitMarkPath(dataDir)} and start again`;
  const reached = database.prepare(readReached(database)).get() as unknown as Reached;
  if (reached.store !== mark.store)
    throw new StoreError('short', `The store ${path} has the contents of another one: ${remedy}`);
  const lacks = counts
    .filter((name) => (reached[name] ?? Infinity) < (mark[name] ?? 0))
    .map((name) => `${reached[name]} ${name} of ${mark[name]}`);
  if (lacks.length > 0)
    throw new StoreError(
      'short',
      `The store ${path} lacks what had been committed (it has ${lacks.join(', ')}; its write-ahead log is damaged, ` +
        `belongs to another store or is gone): put that log back; or ${remedy}`,
    );
};
