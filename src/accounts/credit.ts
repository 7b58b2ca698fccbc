/**
 * Credit of accounts and of keys with a limit: what the store has, less what this process has reserved or queued since.
 *
 *     account: balance in the store + entries queued but not yet in that balance - reserved
 *     key: its limit - what it has spent in the store + entries queued likewise - reserved
 *
 * A request may take the smaller of the two. In a store that several services share, the database must also have reserved the
 * credit of a metered account for this one.
 */
import type { LedgerQueue, NewEntry } from '../store/ledger.js';
import type { Reservations, Waiting } from '../store/reservations.js';
import type { StoreReader } from '../store/store.js';

interface PendingEntry {
  readonly entry: number;
  readonly amount: number;
}

/** What this process has reserved and queued for one account, or for one key. */
class Book {
  reserved = 0;
  /** Appended entries that the sum in the store may not include yet, oldest first. */
  readonly pending: PendingEntry[] = [];
  pendingAmount = 0;

  /** Drops the entries that the sum in the store includes. */
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

const bookOf = (books: Map<number, Book>, id: number): Book => {
  const known = books.get(id);
  if (known !== undefined) return known;
  const book = new Book();
  books.set(id, book);
  return book;
};

/** Who is charged: each counts for the account and for the key. */
export interface Payer {
  readonly accountId: number;
  readonly keyId: number;
}

export class Credit {
  readonly #reader: StoreReader;
  readonly #ledger: LedgerQueue;
  readonly #accounts = new Map<number, Book>();
  readonly #keys = new Map<number, Book>();
  readonly #reservations: Reservations | null;

  /** @param reservations `null`: this process has the store for itself */
  constructor(reader: StoreReader, ledger: LedgerQueue, reservations: Reservations | null = null) {
    this.#reader = reader;
    this.#ledger = ledger;
    this.#reservations = reservations;
  }

  /**
   * Why credit cannot be reserved now; `null` if it can. `unavailable`: the database has not reserved it for this service.
   *
   * @throws {StoreError} the store cannot be read
   */
  refusal(payer: Payer, amount: number): 'creditExhausted' | 'unavailable' | null {
    const { left, metered } = this.#stateOf(payer);
    if (amount > left) return 'creditExhausted';
    if (this.#reservations === null || !metered) return null;
    const { accountId } = payer;
    return amount > this.#reservations.spare(accountId) ? this.#reservations.refusal(accountId) : null;
  }

  /**
   * Waits until `refusal` can decide. @returns `null`: it can decide now
   *
   * @param ahead and `decide`: see `Reservations.wait`
   * @throws {StoreError} the store cannot be read
   */
  wait(payer: Payer, amount: number, ahead: number, decide: () => void): Waiting | null {
    if (this.#reservations === null) return null;
    const { left, metered } = this.#stateOf(payer);
    return metered && amount <= left ? this.#reservations.wait(payer.accountId, amount, ahead, decide) : null;
  }

  /**
   * Credits that key and account have: `Infinity` for a key without a limit of an account that is not metered, 0 for a key
   * that does not exist.
   *
   * @throws {StoreError} the store cannot be read
   */
  available(payer: Payer): number {
    return this.#stateOf(payer).left;
  }

  #stateOf(payer: Payer): { readonly left: number; readonly metered: boolean } {
    const state = this.#reader.readCredit(payer.keyId);
    if (state === null) return { left: 0, metered: true };
    const { metered, balance, creditLimit, spent, committedEntry } = state;
    const [account, key] = this.#booksOf(payer);
    const left = (book: Book, sum: number): number => {
      book.settleThrough(committedEntry);
      return sum + book.pendingAmount - book.reserved;
    };
    return {
      metered,
      left: Math.min(
        left(account, metered ? balance : Infinity),
        left(key, creditLimit === null ? Infinity : creditLimit - spent),
      ),
    };
  }

  /** Reserves credits that the caller found available in this same tick. */
  reserve(payer: Payer, amount: number): void {
    const [account, key] = this.#booksOf(payer);
    account.reserved += amount;
    key.reserved += amount;
    this.#reservations?.reserve(payer.accountId, amount);
  }

  /** Ends a reservation. */
  release(payer: Payer, amount: number): void {
    for (const book of this.#booksOf(payer)) book.reserved -= amount;
    this.#reservations?.release(payer.accountId, amount);
  }

  /** Queues an entry. It counts from now on, whether or not the store has it yet. */
  append(entry: NewEntry & Payer): void {
    const pending = { entry: this.#ledger.append(entry), amount: entry.amount };
    if (entry.kind === 'usage') this.#reservations?.append(entry.accountId, pending.entry, -entry.amount);
    const settled = this.#reader.settledEntry(this.#ledger.acknowledged);
    for (const book of this.#booksOf(entry)) {
      book.settleThrough(settled);
      book.pending.push(pending);
      book.pendingAmount += entry.amount;
    }
  }

  /** Reserved credits over all accounts. */
  get reserved(): number {
    let sum = 0;
    for (const { reserved } of this.#accounts.values()) sum += reserved;
    return sum;
  }

  #booksOf({ accountId, keyId }: Payer): readonly [account: Book, key: Book] {
    return [bookOf(this.#accounts, accountId), bookOf(this.#keys, keyId)];
  }
}
