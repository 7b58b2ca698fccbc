/** Who may speak: keys, then credit and slots. Every question is answered synchronously, in one turn. */
import type { Log } from '../log.js';
import { Credit } from './credit.js';
import { StoreError, type StoreFault } from '../store/sqlite/database.js';
import { hashKey, looksLikeKey } from './keys.js';
import { CreditLease, type GrowingLease, type LeaseLimits } from './lease.js';
import type { LedgerFault, LedgerQueue } from '../store/sqlite/ledger.js';
import { Slots } from './slots.js';
import type { ActiveKey, Store } from '../store/sqlite/store.js';

export type Authentication =
  | { readonly ok: true; readonly key: ActiveKey }
  | {
      readonly ok: false;
      /** `keyMissing`: absent, or no key of this service's shape. `unavailable`: the store cannot be read. */
      readonly code: 'keyMissing' | 'keyUnknown' | 'unavailable';
    };

export type Admittance =
  | { readonly ok: true; readonly lease: GrowingLease }
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

/** Admission as its owner sees it. */
export interface AdmissionStage extends Admission {
  /** Why nothing is admitted, one phrase each for an operator; empty while all is well. Asks the store. */
  faults(): readonly string[];
}

const phrases: Readonly<Record<LedgerFault, string>> = {
  busy: 'the store is locked by another process',
  full: 'the disk of the store is full',
  unwritable: 'the store cannot be written: see its permissions and its disk',
  missing: 'the store is not where it was',
  replaced: 'another store is beside the write-ahead log of the one that was there',
  short: 'the store lacks what had been committed to it',
  held: 'another process is putting a store in its place',
  damaged: 'the store is damaged',
  foreign: 'another program’s database is in the place of the store',
  newer: 'the store is of a newer version of this program',
  unusable: 'the store refuses to work: see the log',
  behind: 'the disk of the store is too slow for what is to be written',
  stalled: 'the disk of the store does not answer',
  restarting: 'the thread that writes the store is starting again',
};

export interface AdmissionOptions {
  readonly store: Store;
  readonly ledger: LedgerQueue;
  readonly limits: LeaseLimits & { readonly slotsPerKey: number };
  readonly creditsPerCharacter: number;
  /** Wall clock of the ledger's entries, in milliseconds since 1970. */
  readonly clock: () => number;
  readonly log: Log;
}

export const createAdmission = (options: AdmissionOptions): AdmissionStage => {
  const { store, ledger, limits, creditsPerCharacter, clock, log } = options;
  const credit = new Credit(store, ledger);
  const slots = new Slots(limits.slotsPerKey);
  let readFault: StoreFault | null = null;

  /** Reads the store; `null` while it cannot be read, which is logged once a fault. */
  const read = <T>(question: () => T): { readonly answer: T } | null => {
    try {
      const answer = question();
      if (readFault !== null) log.info('the store is read again');
      readFault = null;
      return { answer };
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
      if (readFault !== error.fault)
        log.error({ reason: error.message }, 'the store cannot be read: nothing is admitted');
      readFault = error.fault;
      return null;
    }
  };

  /** Why the credit of a text cannot be promised now; `null` when it can. */
  const refuse = (key: ActiveKey, characters: number): 'creditExhausted' | 'unavailable' | null => {
    if (!ledger.accepting) return 'unavailable';
    const available = read(() => credit.available(key.accountId));
    if (available === null) return 'unavailable';
    return characters * creditsPerCharacter > available.answer ? 'creditExhausted' : null;
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
      const refusal = refuse(key, characters);
      if (refusal !== null) return { ok: false, code: refusal };
      if (!slots.take(key.keyId)) return { ok: false, code: 'slotsExhausted' };
      credit.reserve(key.accountId, characters * creditsPerCharacter);
      const lease = new CreditLease({
        key,
        requestId,
        characters,
        creditsPerCharacter,
        credit,
        slots,
        ledger,
        limits,
        nowMs: clock,
        reserve: (more) => {
          const refused = refuse(key, more);
          if (refused === null) credit.reserve(key.accountId, more * creditsPerCharacter);
          return refused;
        },
      });
      return { ok: true, lease };
    },

    faults: () => {
      // While nothing is admitted no request asks, so this does.
      read(() => store.probe());
      const found = [readFault, ledger.fault].filter((fault) => fault !== null);
      return [...new Set(found.map((fault) => phrases[fault]))];
    },

    get inFlight() {
      return { slots: slots.taken, reservedCredits: credit.reserved };
    },
  };
};
