/** Admission of requests: the key, then credit, then a slot. Every question is answered synchronously, in one tick. */
import type { Bounds } from '../limits.js';
import type { Log } from '../log.js';
import type { LedgerQueue } from '../store/ledger.js';
import type { Reservations, Waiting } from '../store/reservations.js';
import {
  StoreError,
  type ActiveKey,
  type KeysListener,
  type LedgerFault,
  type StoreFault,
  type StoreReader,
} from '../store/store.js';
import { Credit } from './credit.js';
import { hashKey, looksLikeKey } from './keys.js';
import { CreditLease, Slots, type GrowingLease, type LeaseBounds, type SlotHolder } from './lease.js';

export type Authentication =
  | { readonly ok: true; readonly key: ActiveKey }
  | {
      readonly ok: false;
      /**
       * `keyMalformed`: not in the shape of a key. `keyUnknown`: it does not exist, was revoked, has expired, or its account
       * is suspended. `unavailable`: the store cannot be read.
       */
      readonly code: 'keyMissing' | 'keyMalformed' | 'keyUnknown' | 'unavailable';
    };

export type Admittance =
  | { readonly ok: true; readonly lease: GrowingLease }
  | { readonly ok: false; readonly code: 'creditExhausted' | 'slotsExhausted' | 'unavailable' };

/** What a key may still do, as it is now. `admit` decides. */
export interface Standing {
  readonly usedCharacters: number;
  /** `Infinity` for a key that is not metered. */
  readonly leftCharacters: number;
  readonly hasFreeSlot: boolean;
}

export const phrases: Readonly<Record<LedgerFault, string>> = {
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
  unreachable: 'the database of the store cannot be reached, or does not answer in time',
  uncertain: 'the database of the store did not say whether the change was made',
  barred: 'this process was declared dead by an operator or another service: restart it',
  unfit: 'the store does not take one of the values',
  unusable: 'the store refuses to work: see the log',
  behind: 'the disk of the store is too slow for what is to be written',
  stalled: 'the disk of the store, or of its journal in DATA_DIR, does not answer',
  restarting: 'the thread that writes the store is starting again',
};

export interface AdmissionOptions {
  readonly reader: StoreReader;
  readonly ledger: LedgerQueue;
  /** `null`, or absent: this process has the store for itself. */
  readonly reservations?: Reservations | null;
  readonly bounds: LeaseBounds & Pick<Bounds, 'slotsPerKey' | 'creditAheadCharacters'>;
  readonly creditsPerCharacter: number;
  /** Wall clock, in milliseconds since 1970: for entries of the ledger, and for keys that expire. */
  readonly clock: () => number;
  readonly log: Log;
}

export const createAdmission = (options: AdmissionOptions) => {
  const { reader, ledger, reservations = null, bounds, creditsPerCharacter, clock, log } = options;
  const credit = new Credit(reader, ledger, reservations);
  const slots = new Slots(bounds.slotsPerKey);
  let readFault: StoreFault | null = null;

  /** Reads the store. @returns `null` while it cannot be read; each fault is logged once */
  const read = <T>(question: () => T): { readonly answer: T } | null => {
    try {
      const answer = question();
      if (readFault !== null) log.info('the store can be read again');
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

  /** Why the credit of a text cannot be reserved now; `null` if it can. */
  const refuse = (key: ActiveKey, characters: number): 'creditExhausted' | 'unavailable' | null => {
    if (!ledger.accepting) return 'unavailable';
    const refusal = read(() => credit.refusal(key, characters * creditsPerCharacter));
    return refusal === null ? 'unavailable' : refusal.answer;
  };

  const hasExpired = ({ expiresAtMs }: ActiveKey): boolean => expiresAtMs !== null && clock() >= expiresAtMs;

  const find = (by: Parameters<StoreReader['findActiveKey']>[0]): Authentication => {
    const found = read(() => reader.findActiveKey(by));
    if (found === null) return { ok: false, code: 'unavailable' };
    const key = found.answer;
    if (key === null || hasExpired(key)) return { ok: false, code: 'keyUnknown' };
    return { ok: true, key };
  };

  /**
   * Waits until the database has reserved credit, where the store is shared. A slot is held meanwhile.
   *
   * @param slotsOf whose slot; `null`: it is held already
   * @param isGrowing more text follows: some credit is reserved ahead of it
   * @param decide called once, later, unless the wait is cancelled: `admit` decides then
   * @returns `null`: `admit` decides now
   */
  const waitForCredit = (
    key: ActiveKey,
    characters: number,
    slotsOf: SlotHolder | null,
    isGrowing: boolean,
    decide: () => void,
  ): Waiting | null => {
    if (!ledger.accepting || (slotsOf !== null && !slots.hasFree(slotsOf))) return null;
    const giveSlot = (): void => {
      if (slotsOf !== null) slots.give(slotsOf);
    };
    const ahead = isGrowing ? bounds.creditAheadCharacters * creditsPerCharacter : 0;
    const found = read(() =>
      credit.wait(key, characters * creditsPerCharacter, ahead, () => {
        giveSlot();
        decide();
      }),
    );
    const waiting = found?.answer ?? null;
    if (waiting === null) return null;
    if (slotsOf !== null) slots.take(slotsOf);
    return {
      cancel: () => {
        const isCancelled = waiting.cancel();
        if (isCancelled) giveSlot();
        return isCancelled;
      },
    };
  };

  return {
    /** @param header the value of `x-api-key`, empty if absent */
    authenticate: (header: string): Authentication =>
      looksLikeKey(header)
        ? find({ hash: hashKey(header) })
        : { ok: false, code: header === '' ? 'keyMissing' : 'keyMalformed' },

    /** The same for a key that is known by its id, such as the hidden key of an account. */
    byId: (keyId: number): Authentication => find({ keyId }),

    /** See `StoreReader.refresh`. */
    refresh: async (): Promise<void> => reader.refresh?.(),

    /**
     * An authenticated key as it is now; `null` if it would not be authenticated any more. While the store cannot be read
     * it stays as it was, and can only expire.
     */
    renew: (key: ActiveKey): ActiveKey | null => {
      const found = read(() => reader.findActiveKey({ keyId: key.keyId }));
      const now = found === null ? key : found.answer;
      return now === null || hasExpired(now) ? null : now;
    },

    /** See `StoreReader.watchKeys`. One listener at most. */
    watchKeys: (listener: KeysListener): void => reader.watchKeys?.(listener),

    ...(reservations === null ? {} : { waitForCredit }),

    /**
     * Reserves the credit of a text, then takes a slot; or does neither. The caller must close the lease.
     *
     * @param characters code points of the text
     * @param slotsOf whose slots they are: by default the key's
     */
    admit: (
      key: ActiveKey,
      characters: number,
      requestId: string,
      slotsOf: SlotHolder = key.keyId,
    ): Admittance => {
      const refusal = refuse(key, characters);
      // It could not wait for credit, because the key had no free slot.
      if (refusal === 'unavailable' && reservations !== null && ledger.accepting && !slots.hasFree(slotsOf))
        return { ok: false, code: 'slotsExhausted' };
      if (refusal !== null) return { ok: false, code: refusal };
      if (!slots.take(slotsOf)) return { ok: false, code: 'slotsExhausted' };
      credit.reserve(key, characters * creditsPerCharacter);
      const lease = new CreditLease({
        key,
        requestId,
        characters,
        creditsPerCharacter,
        credit,
        slots,
        slotsOf,
        ledger,
        bounds,
        nowMs: clock,
        reserve: (more) => {
          const refused = refuse(key, more);
          if (refused === null) credit.reserve(key, more * creditsPerCharacter);
          return refused;
        },
      });
      return { ok: true, lease };
    },

    /** @returns `null` while the store cannot be read */
    standing: (key: ActiveKey): Standing | null => {
      const found = read(() => ({
        left: credit.available(key),
        spent: reader.readCredit(key.keyId)?.spent ?? 0,
      }));
      if (found === null) return null;
      const { left, spent } = found.answer;
      return {
        usedCharacters: creditsPerCharacter === 0 ? 0 : Math.floor(spent / creditsPerCharacter),
        leftCharacters: creditsPerCharacter === 0 ? Infinity : Math.floor(left / creditsPerCharacter),
        hasFreeSlot: slots.hasFree(key.keyId),
      };
    },

    /** Why nothing is admitted, in phrases for an operator; empty while the store works. Probes the store. */
    faults: (): readonly string[] => {
      // While nothing is admitted no request reads the store, so this does.
      read(() => reader.probe());
      const found = [readFault, ledger.fault].filter((fault) => fault !== null);
      return [...new Set(found.map((fault) => phrases[fault]))];
    },

    /** Slots taken and credits reserved over all keys. Both are 0 when every lease is closed. */
    get inFlight() {
      return { slots: slots.taken, reservedCredits: credit.reserved };
    },
  };
};

type AdmissionStage = ReturnType<typeof createAdmission>;
/** What a service with a store of its own need not have. */
type OfSharedStore = 'watchKeys' | 'waitForCredit';

export type Admission = Readonly<Omit<AdmissionStage, 'faults' | OfSharedStore>> &
  Partial<Pick<AdmissionStage, OfSharedStore>>;
