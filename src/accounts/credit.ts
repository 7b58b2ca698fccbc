/**
 * Credit of the accounts: what the store says, less what this process has promised or written since.
 *
 *     available = balance in the store + entries queued but not yet in that balance - reserved
 */
import type { LedgerQueue, NewEntry } from '../store/sqlite/ledger.js';
import type { Store } from '../store/sqlite/store.js';

interface PendingEntry {
  readonly entry: number;
  readonly amount: number;
}

class AccountBook {
  reserved = 0;
  /** Appended, and perhaps not yet in the store's balance; oldest first. */
  readonly pending: PendingEntry[] = [];
  pendingAmount = 0;

  /** Forgets the entries that a balance includes. */
  settleThrough(committedEntry: number): void {
    let included = 0;
    for (const { entry, amount } of this.pending) {
      if (entry > committedEntry) break;
      this.pendingAmount -= amount;
      included += 1;
    }
    if (included > 0) this.pending.splice(0, included);
  }
}

export class Credit {
  readonly #store: Store;
  readonly #ledger: LedgerQueue;
  readonly #books = new Map<number, AccountBook>();

  constructor(store: Store, ledger: LedgerQueue) {
    this.#store = store;
    this.#ledger = ledger;
  }

  /**
   * Credits that can be promised now; Infinity for an account that is not metered, 0 for one that is no more.
   *
   * @throws {StoreError} when the store cannot be read
   */
  available(accountId: number): number {
    const account = this.#store.readAccount(accountId, this.#ledger.writer);
    if (account === null) return 0;
    const { metered, balance, committedEntry } = account;
    const book = this.#books.get(accountId);
    book?.settleThrough(committedEntry);
    if (!metered) return Infinity;
    return book === undefined ? balance : balance + book.pendingAmount - book.reserved;
  }

  /** Promises credits, which the caller found available in this same turn. */
  reserve(accountId: number, amount: number): void {
    this.#book(accountId).reserved += amount;
  }

  /** Takes a promise back. */
  release(accountId: number, amount: number): void {
    this.#book(accountId).reserved -= amount;
  }

  /** Queues an entry; from now on it counts, whether or not it is in the store yet. */
  append(entry: NewEntry): void {
    const book = this.#book(entry.accountId);
    book.settleThrough(this.#ledger.acknowledged);
    book.pending.push({ entry: this.#ledger.append(entry), amount: entry.amount });
    book.pendingAmount += entry.amount;
  }

  /** Promised over all accounts. */
  get reserved(): number {
    let sum = 0;
    for (const { reserved } of this.#books.values()) sum += reserved;
    return sum;
  }

  #book(accountId: number): AccountBook {
    const known = this.#books.get(accountId);
    if (known !== undefined) return known;
    const book = new AccountBook();
    this.#books.set(accountId, book);
    return book;
  }
}
