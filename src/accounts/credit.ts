/**
 * Credit of the accounts: the balance in the store, less what this process has reserved or queued since.
 *
 *     available = balance in the store + entries queued but not yet in that balance - reserved
 */
import type { LedgerQueue, NewEntry } from '../store/ledger.js';
import type { StoreReader } from '../store/store.js';

interface PendingEntry {
  readonly entry: number;
  readonly amount: number;
}

class AccountBook {
  reserved = 0;
  /** Appended entries that the balance in the store may not include yet, oldest first. */
  readonly pending: PendingEntry[] = [];
  pendingAmount = 0;

  /** Drops the entries that a balance includes. */
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
  readonly #reader: StoreReader;
  readonly #ledger: LedgerQueue;
  readonly #books = new Map<number, AccountBook>();

  constructor(reader: StoreReader, ledger: LedgerQueue) {
    this.#reader = reader;
    this.#ledger = ledger;
  }

  /**
   * Credits that can be reserved now: `Infinity` for an account that is not metered, 0 for one that does not exist.
   *
   * @throws {StoreError} the store cannot be read
   */
  available(accountId: number): number {
    const account = this.#reader.readAccount(accountId);
    if (account === null) return 0;
    const { metered, balance, committedEntry } = account;
    const book = this.#books.get(accountId);
    book?.settleThrough(committedEntry);
    if (!metered) return Infinity;
    return book === undefined ? balance : balance + book.pendingAmount - book.reserved;
  }

  /** Reserves credits that the caller found available in this same tick. */
  reserve(accountId: number, amount: number): void {
    this.#book(accountId).reserved += amount;
  }

  /** Ends a reservation. */
  release(accountId: number, amount: number): void {
    this.#book(accountId).reserved -= amount;
  }

  /** Queues an entry. It counts from now on, whether or not the store has it yet. */
  append(entry: NewEntry): void {
    const book = this.#book(entry.accountId);
    book.settleThrough(this.#ledger.acknowledged);
    book.pending.push({ entry: this.#ledger.append(entry), amount: entry.amount });
    book.pendingAmount += entry.amount;
  }

  /** Reserved credits over all accounts. */
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
