/**
 * How far the store had come at its last commit, in a file beside it. A write-ahead log that is cut, changed or gone
 * leaves a store that is whole in itself, of an earlier time: SQLite takes the rest for a commit that was never
 * finished. The mark tells that it was.
 *
 * It is written after the commit and never waited for: it can be behind the store, and is never ahead of it. It counts
 * for the file that it was written for: a backup that is put in its place begins anew.
 */
import { closeSync, openSync, readFileSync, statSync, writeSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import { crc32 } from 'node:zlib';
import { StoreError, storePath } from './database.js';
import { makeFile } from './files.js';

export const markPath = (dataDir: string): string => `${storePath(dataDir)}-mark`;

/** None of these ever gets less, and each commit makes one of them more. */
const counts = ['entries', 'accounts', 'keys', 'revocations'] as const;

type Reached = Readonly<Record<(typeof counts)[number], number>> & { readonly store: string };

interface Mark extends Reached {
  /** Tells the store's file from another one in its place. */
  readonly file: string;
}

const ask = `
  SELECT (SELECT store FROM identity) AS store, (SELECT coalesce(max(id), 0) FROM ledger) AS entries,
    (SELECT coalesce(max(id), 0) FROM accounts) AS accounts, (SELECT coalesce(max(id), 0) FROM api_keys) AS keys,
    (SELECT count(*) FROM api_keys WHERE revoked_at_ms IS NOT NULL) AS revocations
`;

const fileOf = (dataDir: string): string => {
  // The number of a removed file is soon another one's: its birth is not.
  const { dev, ino, birthtimeNs } = statSync(storePath(dataDir), { bigint: true });
  return `${dev}:${ino}:${birthtimeNs}`;
};

/** One sector: it is written whole or not at all. */
const BYTES = 512;

const encode = (mark: Mark): string => {
  const text = JSON.stringify(mark);
  return `${crc32(text).toString(16).padStart(8, '0')} ${text}`.padEnd(BYTES - 1) + '\n';
};

const decode = (bytes: Buffer): Mark | null => {
  const line = bytes.toString('latin1').trimEnd();
  const text = line.slice(9);
  return Number.parseInt(line.slice(0, 8), 16) === crc32(text) ? (JSON.parse(text) as Mark) : null;
};

/** Of one connection, for each of its commits. */
export const prepareMark = (dataDir: string, database: DatabaseSync): (() => void) => {
  const statement = database.prepare(ask);
  const file = fileOf(dataDir);
  let written = '';
  return () => {
    const mark: Mark = { ...(statement.get() as unknown as Reached), file };
    const bytes = encode(mark);
    if (bytes === written) return;
    try {
      makeFile(markPath(dataDir));
      const target = openSync(markPath(dataDir), 'r+');
      try {
        writeSync(target, bytes, 0);
      } finally {
        closeSync(target);
      }
      written = bytes;
    } catch {
      // The commit stands. An older mark, or none, sees less, and never what is not.
    }
  };
};

/** `null` when there is none for this file, or it is damaged itself. */
export const readMark = (dataDir: string): Mark | null => {
  try {
    const mark = decode(readFileSync(markPath(dataDir)));
    return mark?.file === fileOf(dataDir) ? mark : null;
  } catch {
    return null;
  }
};

/**
 * @param mark read before the store: what is committed in between only makes it more
 * @throws {StoreError} the store lacks what was committed to it
 */
export const checkMark = (dataDir: string, mark: Mark | null, database: DatabaseSync): void => {
  if (mark === null) return;
  const path = storePath(dataDir);
  const remedy =
    `restore a backup (npm run store -- restore FILE); or, when this store is what you want, remove ` +
    `${markPath(dataDir)} and start again`;
  const reached = database.prepare(ask).get() as unknown as Reached;
  if (reached.store !== mark.store)
    throw new StoreError('short', `The store ${path} has the contents of another one: ${remedy}`);
  const lacks = counts
    .filter((name) => reached[name] < mark[name])
    .map((name) => `${reached[name]} ${name} of ${mark[name]}`);
  if (lacks.length > 0)
    throw new StoreError(
      'short',
      `The store ${path} lacks what had been committed (it has ${lacks.join(', ')}; its write-ahead log is damaged, ` +
        `of another store or gone): put that log back; or ${remedy}`,
    );
};
