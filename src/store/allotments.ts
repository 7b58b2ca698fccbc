/** Credit of a store that several services share. A store that one service has for itself needs none of this. */

/** What a service may spend of one account, of a store that several services share. */
export interface Allotment {
  readonly accountId: number;
  /** Later ones are larger. */
  readonly version: number;
  /** Credits of leases and of entries that are not in the store, and headroom. */
  readonly reserved: number;
  /** The last entry of the service that was taken off `reserved`. */
  readonly settled: number;
}

/** Something that waits, and is called back once, unless it is cancelled. */
export interface Waiting {
  /** @returns false if it was called back, or cancelled before */
  cancel(): boolean;
}

/** Credit of accounts that this process may promise. A store that one service has for itself needs none. */
export interface Allotments {
  /** Credits that a lease may take now. */
  headroom(accountId: number): number;
  /** A request is about to come. */
  expect(accountId: number): void;
  /** Why the headroom cannot pay for a request. */
  refusal(accountId: number): 'creditExhausted' | 'unavailable';
  /** @param isMetered otherwise the lease is only counted, for the time when its account becomes metered */
  reserve(accountId: number, amount: number, isMetered: boolean): void;
  release(accountId: number, amount: number): void;
  /** An entry that uses so much was queued. */
  append(accountId: number, entry: number, amount: number): void;
  /**
   * Waits until `headroom` and `refusal` can decide. Requests of an account wait in their order.
   *
   * @param decide called once, and never from within this call
   * @returns `null`: they can decide now
   */
  wait(accountId: number, amount: number, decide: () => void): Waiting | null;
}
