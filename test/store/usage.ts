/** Entries of the first key of the first account. */
import type { NewEntry } from '../../src/store/ledger.js';

export const usageOf = (credits: number): NewEntry => ({
  accountId: 1,
  keyId: 1,
  requestId: 'r',
  kind: 'usage',
  amount: -credits,
  characters: credits,
  voice: 'wren',
  audioMs: 60 * credits,
  beginsRequest: true,
  atMs: 1_000,
});
