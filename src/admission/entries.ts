/** Entries of the ledger: append-only, and the same entry twice is one entry. */
import { randomBytes } from 'node:crypto';
import type { DatabaseSync } from 'node:sqlite';
import { transact } from './database.js';

/**
 * `grant` adds credit; `usage` charges speech that was handed to a listener; `refund` takes a usage back, because the
 * request as a whole failed.
 */
export type EntryKind = 'grant' | 'usage' | 'refund';

export interface LedgerEntry {
  /** Who appends, and its how many-th: together the identity of an entry, so that a batch can be sent again. */
  readonly writer: number;
  /** 1, 2, 3 ... of the writer, committed in this order. */
  readonly entry: number;
  readonly accountId: number;
  readonly keyId: number | null;
  readonly requestId: string | null;
  readonly kind: EntryKind;
  /** Credits, signed: the balance is the sum. */
  readonly amount: number;
  /** Milliseconds of the wall clock since 1970. */
  readonly atMs: number;
}

/** A number for one writer of entries: random, so that no two runs of any process share it. */
export const newWriter = (): number => randomBytes(6).readUIntBE(0, 6);

const insert = `
  INSERT INTO ledger (writer, entry, account_id, key_id, request_id, kind, amount, at_ms)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (writer, entry) DO NOTHING
`;

/** @returns a function that appends one entry, within whatever transaction is open */
export const prepareAppend = (database: DatabaseSync): ((entry: LedgerEntry) => void) => {
  const statement = database.prepare(insert);
  return ({ writer, entry, accountId, keyId, requestId, kind, amount, atMs }) =>
    void statement.run(writer, entry, accountId, keyId, requestId, kind, amount, atMs);
};

/** @returns a function that appends a batch in one commit: all of it, or (it throws) nothing */
export const prepareAppendBatch = (database: DatabaseSync): ((entries: readonly LedgerEntry[]) => void) => {
  const append = prepareAppend(database);
  return (entries) =>
    transact(database, () => {
      for (const entry of entries) append(entry);
    });
};
