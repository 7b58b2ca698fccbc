/** Entries of a ledger by a seeded generator. */
import type { LedgerEntry } from '../../src/store/store.js';

export const HOUR_MS = 3_600_000;

export interface RandomEntries {
  readonly random: () => number;
  readonly count: number;
  readonly writer: number;
  readonly startMs: number;
  readonly spanMs: number;
}

/** Usage and refunds of three keys: 1 and 3 of account 1, and 2 of account 2. Some lie exactly on an hour. */
export const randomEntries = ({ random, count, writer, startMs, spanMs }: RandomEntries): LedgerEntry[] =>
  Array.from({ length: count }, (_, index) => {
    const keyId = 1 + Math.floor(random() * 3);
    const characters = Math.floor(random() * 900);
    const refunds = random() < 0.1;
    const onTheHour = random() < 0.1;
    const atMs = startMs + Math.floor(random() * spanMs);
    return {
      writer,
      entry: index + 1,
      accountId: keyId === 2 ? 2 : 1,
      keyId,
      requestId: `r-${index}`,
      kind: refunds ? 'refund' : 'usage',
      amount: refunds ? 3 * characters : -3 * characters,
      characters,
      voice: ['', 'lark', 'wren'][Math.floor(random() * 3)] ?? '',
      audioMs: refunds ? 0 : Math.floor(random() * 20_000),
      beginsRequest: !refunds && random() < 0.7,
      atMs: onTheHour ? atMs - (atMs % HOUR_MS) : atMs,
    };
  });
