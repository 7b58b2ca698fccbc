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
  /** Code points that were charged, or are refunded; `null` for a grant. */
  readonly characters: number | null;
  /** The first usage of its request: counting these counts requests. */
  readonly beginsRequest: boolean;
  /** Milliseconds of the wall clock since 1970. */
  readonly atMs: number;
}

/** A number for one writer of entries: random, so that no two runs of any process share it. */
export const newWriter = (): number => randomBytes(6).readUIntBE(0, 6);

const insert = `
  INSERT INTO ledger
    (writer, entry, account_id, key_id, request_id, kind, amount, characters, begins_request, at_ms)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (writer, entry) DO NOTHING
`;

/** @returns a function that appends one entry, within whatever transaction is open */
export const prepareAppend = (database: DatabaseSync): ((entry: LedgerEntry) => void) => {
  const statement = database.prepare(insert);
  return (entry) => {
    const { writer, accountId, keyId, requestId, kind, amount, characters, beginsRequest, atMs } = entry;
    const begins = beginsRequest ? 1 : 0;
    statement.run(writer, entry.entry, accountId, keyId, requestId, kind, amount, characters, begins, atMs);
  };
};

const FOREIGN_KEY_VIOLATED = 787;

const isForeignKeyViolated = (error: unknown): boolean =>
  (error as { errcode?: number } | null)?.errcode === FOREIGN_KEY_VIOLATED;

/**
 * @returns a function that appends a batch in one commit: all of it, or (it throws) nothing. Entries of an account or
 * key that the store has not are given up, and counted: they can never be written, and the others must not wait.
 */
export const prepareAppendBatch = (database: DatabaseSync): ((entries: readonly LedgerEntry[]) => number) => {
  const append = prepareAppend(database);
  return (entries) =>
    transact(database, () => {
      let givenUp = 0;
      for (const entry of entries)
        try {
          append(entry);
        } catch (error) {
          if (!isForeignKeyViolated(error)) throw error;
          givenUp += 1;
        }
      return givenUp;
    });
};
