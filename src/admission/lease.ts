/** The right to speak: one slot of a key and a reservation of its account's credit. */
export interface Lease {
  readonly keyId: number;
  /** Charges part of the reservation, when its audio is handed to the listener. */
  settle(characters: number): void;
  /** Frees the slot and refunds what was not settled. Idempotent: a lease is closed once. */
  close(): void;
}
