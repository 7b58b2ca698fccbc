/**
 * What accounts ask of a store. `sqlite/` and `postgres/` implement it; both pass `test/store/suite.ts`.
 *
 * The front thread reads synchronously, because it decides on a request within one tick. An embedded store answers
 * from its file. A store behind a network answers from a copy in memory that its notifications keep fresh, and throws
 * a `StoreError` while it cannot tell whether the copy is fresh. Everything else may wait for a network.
 */
import type { SpeakingDefaults } from '../api/speech-settings.js';
import type { Log } from '../log.js';
import type { Awaitable } from './awaitable.js';
import type { StoreFault } from './faults.js';
import type { Claim, Grant } from './reservations.js';
import type { AccountUsage, KeyProperties, LedgerEntry, UsagePeriod } from './records.js';
import type { Transaction } from './sql/transaction.js';

export * from './faults.js';
export * from './records.js';

/** A key that exists and is not revoked, of an account that is not suspended. It may have expired. */
export interface ActiveKey extends Pick<KeyProperties, 'expiresAtMs' | 'voices'> {
  readonly keyId: number;
  readonly accountId: number;
  /** The account's name. */
  readonly account: string;
  /** Of the key, and of its account where the key sets nothing. */
  readonly speaking: SpeakingDefaults;
}

/** Credit of a key and of its account, at one moment. */
export interface CreditState {
  /** An account that is not metered never runs out of credit. */
  readonly metered: boolean;
  readonly balance: number;
  readonly creditLimit: number | null;
  /** Credits that the key was charged, less those it was refunded. */
  readonly spent: number;
  /** The last entry of this reader's writer that balance and `spent` include; 0 if none. */
  readonly committedEntry: number;
}

/** @param keyIds of keys that can no longer be used */
export type KeysListener = (keyIds: readonly number[]) => void;

/** The front thread's view of the store, fresh at every question. Each method throws `StoreError` if it cannot tell. */
export interface StoreReader {
  /** @param by SHA-256 of the key, because the store never sees the key itself; or its id */
  findActiveKey(by: { readonly hash: Uint8Array } | { readonly keyId: number }): ActiveKey | null;
  /** @returns `null` if the store has no such key: another store may have taken its place */
  readCredit(keyId: number): CreditState | null;
  /**
   * The last entry of the writer of this reader that all further reads include. Never throws.
   *
   * @param acknowledged the last of its entries that is durable: a copy of the store may be older
   */
  settledEntry(acknowledged: number): number;
  /**
   * Resolves when further reads include what was committed before the call, or when the store cannot be read. Never rejects.
   * Absent: they always include it.
   */
  refresh?(): Promise<void>;
  /** Throws if the store cannot be read. */
  probe(): void;
  /** Calls `listener` when keys are revoked, or their account is suspended. Absent: the reader learns it only when it is asked. */
  watchKeys?(listener: KeysListener): void;
  /** Idempotent. */
  close(): Awaitable<void>;
}

/** Why the ledger cannot be written now. */
export type LedgerFault =
  | StoreFault
  /** The queue is full: the disk is slower than the traffic. */
  | 'behind'
  /** A commit has not come back in time. */
  | 'stalled'
  /** The writer has ended. */
  | 'restarting';

export type CommitResult =
  | {
      readonly ok: true;
      /** Entries of accounts or keys that the store does not have. They can never be written. */
      readonly givenUp: number;
      /** Answers to claims, in a store that several services share. */
      readonly grants?: readonly Grant[];
    }
  | {
      readonly ok: false;
      readonly fault: LedgerFault;
      readonly message: string;
      /** Of `barred`: the last entry of the writer that the store has. It refuses those after it. */
      readonly lastEntry?: number;
    };

/** Keeps entries on the local disk until the store has them. */
export interface EntryJournal {
  /** Why entries cannot be kept now. */
  readonly fault: LedgerFault | null;
  /** Where it stays, after the close, if the store has refused entries. */
  readonly refusedFolder: string;
  append(entry: LedgerEntry): void;
  /** Entries up to this one are in the store. */
  settled(entry: number): void;
}

/** What a service needs besides reader and writer if others share its store. */
export interface Sharing {
  readonly journal: EntryJournal;
  /** Entries of earlier processes that the store will never take. */
  readonly entriesRefused: number;
  /** The database took a commit of this process. */
  answered(): void;
  /**
   * @param end what became of the entries: they are in the store, only in the journal, or refused
   * @returns false if the disk of the journal does not answer
   */
  close(end: 'durable' | 'left' | 'refused'): Promise<boolean>;
}

/** Makes entries durable. The ledger gives it one batch at a time, and replaces it once it has ended. */
export interface LedgerWriter {
  readonly hasEnded: boolean;
  /**
   * The whole batch is durable, or nothing of it. An entry that was committed before is skipped. An empty batch checks
   * whether the store could be written. Never rejects.
   *
   * @param claims on credit, if services share the store
   */
  commit(entries: readonly LedgerEntry[], claims?: readonly Claim[]): Promise<CommitResult>;
  end(): Promise<void>;
}

/** The parts of an act. All of them take effect in one commit, or none does. */
export type StoreTransaction = Pick<Transaction, keyof Transaction>;

/** What is read in one consistent state of the store. */
export type StoreView = Pick<
  Transaction,
  Extract<keyof Transaction, `${'find' | 'list' | 'count' | 'read' | 'has'}${string}` | 'accountNames'>
>;

export interface StoreAdministration {
  /**
   * No other writer comes between the parts of `work`. If `work` throws, nothing has changed. Other processes see the
   * commit at their next question.
   */
  transact<T>(work: (transaction: StoreTransaction) => Promise<T>): Promise<T>;
  /** Reads beside writers, without holding them up. */
  read<T>(work: (view: StoreView) => Promise<T>): Promise<T>;
  /** Idempotent. */
  close(): Awaitable<void>;
}

/** A kind of store at one place. Everything it returns has to be closed by the caller. */
export interface StoreDriver {
  /**
   * Opens the store for a service. Creates it if there is none, checks it, and keeps it in its place until the close.
   *
   * @param writer the writer whose entries the caller has pending, see `CreditState.committedEntry`
   * @throws {StoreError} the store cannot be read and written, is damaged, or lacks entries that were committed
   */
  openReader(writer: number): Awaitable<StoreReader>;
  /**
   * Never throws: what prevents writing shows at the first commit.
   *
   * @param writer the number of the service's entries
   */
  startWriter(writer: number): LedgerWriter;
  /**
   * Lets a service share the store with others. Absent: one service has the store for itself.
   *
   * @throws {StoreError}
   */
  share?(writer: number, log: Log): Promise<Sharing>;
  /**
   * Opens the store for an operator, while services may use it.
   *
   * @param create whether to create the store if there is none
   * @throws {StoreError} there is no store, or it cannot be used
   */
  administer(create: boolean): Awaitable<StoreAdministration>;
  /**
   * Reads one consistent state of the store, which services may use meanwhile.
   *
   * @throws {StoreError} there is no store, or it cannot be read
   * @throws {AdministrationError} there is no such account
   */
  readUsage(period: UsagePeriod): Promise<readonly AccountUsage[]>;
}
