/**
 * Credit of a store that several processes share. A process may spend only what the database counts as reserved by it:
 * one row for each account. No input or output: the ledger sends the claims with its entries, in one statement.
 *
 *     reserved in the database >= leases + entries that are not in the database + spare
 *
 * A claim has the whole sum, not a difference. So a claim that was lost, or whose answer was, is mended by the next one.
 */
import type { Bounds } from '../limits.js';

/** Something that waits, and is called back once, unless it is cancelled. */
export interface Waiting {
  /** @returns false if it was called back, or cancelled before */
  cancel(): boolean;
}

interface Waiter extends Waiting {
  readonly amount: number;
  readonly decide: () => void;
  readonly timer: NodeJS.Timeout;
}

/** What a commit asks for one account, in credits. */
export interface Claim {
  readonly accountId: number;
  /** What the database counts already: leases, entries that come after those of the commit, and what is spare. */
  readonly kept: number;
  /** Each is granted whole, or not at all. */
  readonly requests: readonly { readonly amount: number }[];
  /** Beyond that, if the account has plenty. */
  readonly ahead: number;
}

export interface Grant {
  readonly accountId: number;
  /** What the database counts now. */
  readonly reserved: number;
  /** For each request of the claim. */
  readonly granted: readonly boolean[];
}

export type ReservationBounds = Pick<Bounds, 'storeStaleMsMax'>;

class Account {
  /** The database counts so much, or more. */
  reserved = 0;
  leases = 0;
  /** Entries that are not in the database yet, oldest first. */
  pending: { readonly entry: number; readonly amount: number }[] = [];
  pendingAmount = 0;
  /** What to have spare while there are leases. */
  ahead = 0;
  /** The database may have a row. */
  isClaimed = false;
  waiters: Waiter[] = [];
  /** Why the request that is being decided was not granted. */
  refusal: 'creditExhausted' | 'unavailable' = 'unavailable';

  get used(): number {
    return this.leases + this.pendingAmount;
  }

  get spare(): number {
    return this.reserved - this.used;
  }

  get isIdle(): boolean {
    return this.leases === 0 && this.waiters.length === 0;
  }

  /** @returns the credits of the pending entries up to this one */
  pendingThrough(last: number): number {
    let sum = 0;
    for (const { entry, amount } of this.pending) if (entry <= last) sum += amount;
    return sum;
  }
}

export class Reservations {
  /** Claims are due: the ledger sends them soon, after this tick at the earliest. */
  onDue: () => void = () => undefined;
  readonly #bounds: ReservationBounds;
  readonly #accounts = new Map<number, Account>();
  readonly #due = new Set<number>();

  constructor(bounds: ReservationBounds) {
    this.#bounds = bounds;
  }

  /** Credits that a lease may take now. */
  spare(accountId: number): number {
    return this.#accounts.get(accountId)?.spare ?? 0;
  }

  /** Why what is spare cannot pay for a request. */
  refusal(accountId: number): 'creditExhausted' | 'unavailable' {
    return this.#accounts.get(accountId)?.refusal ?? 'unavailable';
  }

  /** A lease takes so much. Of an account that is not metered it is only counted, for the time when it becomes metered. */
  reserve(accountId: number, amount: number): void {
    const account = this.#of(accountId);
    account.leases += amount;
    if (account.ahead > 0 && account.spare < account.ahead / 2) this.#isDue(accountId);
  }

  release(accountId: number, amount: number): void {
    const account = this.#of(accountId);
    account.leases -= amount;
    if (account.isClaimed) this.#isDue(accountId);
    else this.#forget(accountId, account);
  }

  /** An entry that uses so much was queued. */
  append(accountId: number, entry: number, amount: number): void {
    const account = this.#of(accountId);
    account.pending.push({ entry, amount });
    account.pendingAmount += amount;
    if (account.isClaimed) this.#isDue(accountId);
  }

  /**
   * Waits until the database has answered, `storeStaleMsMax` at most. Requests of an account wait in their order,
   * one of each connection at most.
   *
   * @param ahead credits to have spare from then on, for text that comes word by word
   * @param decide called once, and never from within this call: `spare` and `refusal` decide then
   * @returns `null`: they can decide now
   */
  wait(accountId: number, amount: number, ahead: number, decide: () => void): Waiting | null {
    const account = this.#of(accountId);
    account.ahead = Math.max(account.ahead, ahead);
    if (account.waiters.length === 0 && account.spare >= amount) return null;
    const waiter: Waiter = {
      amount,
      decide,
      timer: setTimeout(() => this.#end(account, waiter, 'unavailable'), this.#bounds.storeStaleMsMax),
      cancel: () => this.#leave(account, waiter),
    };
    account.waiters.push(waiter);
    this.#isDue(accountId);
    return waiter;
  }

  get areDue(): boolean {
    return this.#due.size > 0;
  }

  /**
   * The claims that are due. Each must be answered by `committed`, or reported as failed.
   *
   * @param last entry of the commit, which has all entries of an earlier one that had no answer
   */
  claims(last: number): Claim[] {
    const claims = [...this.#due].map((accountId) => {
      const account = this.#of(accountId);
      if (account.isIdle) account.ahead = 0;
      const spare = Math.min(Math.max(0, account.spare), account.ahead);
      // From now on: the database may do it at any time.
      account.reserved = account.used + spare;
      account.isClaimed = true;
      const kept = account.reserved - account.pendingThrough(last);
      return { accountId, kept, requests: [...account.waiters], ahead: account.ahead - spare };
    });
    this.#due.clear();
    return claims;
  }

  /** The database has the entries up to `last`, of these accounts, and has answered the claims. */
  committed(
    last: number,
    accountIds: Iterable<number>,
    claims: readonly Claim[],
    grants: readonly Grant[],
  ): void {
    for (const accountId of new Set(accountIds)) {
      const account = this.#of(accountId);
      const settled = account.pendingThrough(last);
      account.pending = account.pending.filter(({ entry }) => entry > last);
      account.pendingAmount -= settled;
      if (account.isClaimed) account.reserved -= settled;
      else this.#forget(accountId, account);
    }
    const answers = new Map(grants.map((grant) => [grant.accountId, grant]));
    for (const claim of claims) this.#answered(claim, answers.get(claim.accountId));
  }

  /** Whether the database has done it is not known. */
  failed(claims: readonly Claim[]): void {
    for (const { accountId } of claims) this.#due.add(accountId);
  }

  /** Ends all waits: the service closes. */
  close(): void {
    for (const account of this.#accounts.values())
      for (const waiter of [...account.waiters]) this.#end(account, waiter, 'unavailable');
  }

  #answered({ accountId, kept, requests }: Claim, grant: Grant | undefined): void {
    const account = this.#of(accountId);
    account.reserved += grant === undefined ? 0 : grant.reserved - kept;
    for (const [index, request] of requests.entries())
      this.#end(
        account,
        request as Waiter,
        grant?.granted[index] === true ? 'unavailable' : 'creditExhausted',
      );
    const isLeft = account.waiters.length > 0 || account.spare > account.ahead;
    if (isLeft || (account.isIdle && account.spare > 0)) this.#isDue(accountId);
    else this.#forget(accountId, account);
  }

  #of(accountId: number): Account {
    const known = this.#accounts.get(accountId);
    if (known !== undefined) return known;
    const account = new Account();
    this.#accounts.set(accountId, account);
    return account;
  }

  #forget(accountId: number, account: Account): void {
    const isEmpty = account.isIdle && account.pending.length === 0 && account.reserved === 0;
    if (isEmpty && !this.#due.has(accountId)) this.#accounts.delete(accountId);
  }

  #isDue(accountId: number): void {
    this.#due.add(accountId);
    this.onDue();
  }

  #end(account: Account, waiter: Waiter, refusal: Account['refusal']): void {
    if (!this.#leave(account, waiter)) return;
    account.refusal = refusal;
    waiter.decide();
    account.refusal = 'unavailable';
  }

  /** @returns false if it does not wait any more */
  #leave(account: Account, waiter: Waiter): boolean {
    const index = account.waiters.indexOf(waiter);
    if (index < 0) return false;
    account.waiters.splice(index, 1);
    clearTimeout(waiter.timer);
    return true;
  }
}
