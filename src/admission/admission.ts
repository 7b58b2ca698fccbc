/** Who may speak: keys, then credit and slots. Every question is answered synchronously, in one turn. */
import type { Log } from '../log.js';
import { Credit } from './credit.js';
import { StoreError } from './database.js';
import { hashKey, looksLikeKey } from './keys.js';
import { CreditLease, type Lease } from './lease.js';
import type { LedgerQueue } from './ledger.js';
import { Slots } from './slots.js';
import type { ActiveKey, Store } from './store.js';

export type Authentication =
  | { readonly ok: true; readonly key: ActiveKey }
  | {
      readonly ok: false;
      /** `keyMissing`: absent, or no key of this service's shape. `unavailable`: the store cannot be read. */
      readonly code: 'keyMissing' | 'keyUnknown' | 'unavailable';
    };

export type Admittance =
  | { readonly ok: true; readonly lease: Lease }
  | { readonly ok: false; readonly code: 'creditExhausted' | 'slotsExhausted' | 'unavailable' };

export interface Admission {
  /** @param header the value of `x-api-key`, empty when absent */
  authenticate(header: string): Authentication;
  /** Whether a key that was authenticated before is still not revoked; true while the store cannot be read. */
  isActive(keyId: number): boolean;
  /**
   * Reserves the credit of a text, then takes a slot; or does neither. The lease is the caller's to close.
   *
   * @param characters code points of text to be spoken
   */
  admit(key: ActiveKey, characters: number, requestId: string): Admittance;
  /** What is promised at the moment, over all keys: both are 0 when every lease is closed. */
  readonly inFlight: { readonly slots: number; readonly reservedCredits: number };
}

export interface AdmissionOptions {
  readonly store: Store;
  readonly ledger: LedgerQueue;
  readonly limits: { readonly slotsPerKey: number };
  readonly creditsPerCharacter: number;
  /** Wall clock of the ledger's entries, in milliseconds since 1970. */
  readonly clock: () => number;
  readonly log: Log;
}

export const createAdmission = (options: AdmissionOptions): Admission => {
  const { store, ledger, limits, creditsPerCharacter, clock, log } = options;
  const credit = new Credit(store, ledger);
  const slots = new Slots(limits.slotsPerKey);
  let storeFails = false;

  /** Reads the store; `null` while it cannot be read, which is logged once. */
  const read = <T>(question: () => T): { readonly answer: T } | null => {
    try {
      const answer = question();
      if (storeFails) log.info('the store is read again');
      storeFails = false;
      return { answer };
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
      if (!storeFails) log.error({ reason: error.message }, 'the store cannot be read: nothing is admitted');
      storeFails = true;
      return null;
    }
  };

  return {
    authenticate: (header) => {
      if (!looksLikeKey(header)) return { ok: false, code: 'keyMissing' };
      const found = read(() => store.findActiveKey(hashKey(header)));
      if (found === null) return { ok: false, code: 'unavailable' };
      return found.answer === null ? { ok: false, code: 'keyUnknown' } : { ok: true, key: found.answer };
    },

    isActive: (keyId) => read(() => store.isKeyActive(keyId))?.answer ?? true,

    admit: (key, characters, requestId) => {
      if (!ledger.accepting) return { ok: false, code: 'unavailable' };
      const amount = characters * creditsPerCharacter;
      const available = read(() => credit.available(key.accountId));
      if (available === null) return { ok: false, code: 'unavailable' };
      if (amount > available.answer) return { ok: false, code: 'creditExhausted' };
      if (!slots.take(key.keyId)) return { ok: false, code: 'slotsExhausted' };
      credit.reserve(key.accountId, amount);
      const lease = new CreditLease({
        key,
        requestId,
        characters,
        creditsPerCharacter,
        credit,
        slots,
        ledger,
        nowMs: clock,
      });
      return { ok: true, lease };
    },

    get inFlight() {
      return { slots: slots.taken, reservedCredits: credit.reserved };
    },
  };
};
