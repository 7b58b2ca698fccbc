/**
 * What accounts ask of a store. `sqlite/` and `postgres/` implement it; both pass `test/store/suite.ts`.
 *
 * The front thread reads synchronously, because it decides on a request within one tick. An embedded store answers
 * from its file. A store behind a network answers from a copy in memory that its notifications keep fresh, and throws
 * a `StoreError` while it cannot tell whether the copy is fresh. Everything else may wait for a network.
 */
import type { SpeakingDefaults } from '../api/speech-settings.js';
import type { Log } from '../log.js';
import type { Allotment, Allotments } from './allotments.js';
import type { Awaitable } from './awaitable.js';
import type { StoreFault } from './faults.js';
import type { PeopleTransaction, PeopleView } from './people.js';

export { AdministrationError, StoreError, type Objection, type StoreFault } from './faults.js';

/** What is set for a key, and can be changed. Of speech, `null` leaves it to the account. */
export interface KeyProperties extends SpeakingDefaults {
  /** For lists; empty if it has none. */
  readonly name: string;
  /** Wall clock, in milliseconds since 1970: from then on the key is refused. `null`: it does not expire. */
  readonly expiresAtMs: number | null;
  /** Credits that the key may spend in all, refunds taken off. `null`: its account's credit is the only bound. */
  readonly creditLimit: number | null;
  /** Ids of the voices that it may use; the service need not have them all. `null`: all voices. */
  readonly voices: readonly string[] | null;
}

/** The properties that restrict a key. */
export type Restriction = 'expiresAtMs' | 'creditLimit' | 'voices';

export interface StoredProperties extends KeyProperties {
  /** The restrictions that an operator set: members cannot change them. */
  readonly byOperator: readonly Restriction[];
}

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
  /** Throws if the store cannot be read. */
  probe(): void;
  /** Calls `listener` when keys are revoked, or their account is suspended. Absent: the reader learns it only when it is asked. */
  watchKeys?(listener: KeysListener): void;
  /** Idempotent. */
  close(): Awaitable<void>;
}

/** `grant` adds credit, `usage` charges speech, `refund` reverses a usage because the whole request failed. */
export type EntryKind = 'grant' | 'usage' | 'refund';

export interface LedgerEntry {
  /** With `entry`, the identity of the entry: a batch can be sent again, and is written once. */
  readonly writer: number;
  /** 1, 2, 3 ... for each writer, committed in this order. */
  readonly entry: number;
  readonly accountId: number;
  readonly keyId: number | null;
  readonly requestId: string | null;
  readonly kind: EntryKind;
  /** Credits, signed: the balance is their sum. */
  readonly amount: number;
  /** Code points charged or refunded; `null` for a grant. */
  readonly characters: number | null;
  /** Id of the voice; empty for a grant. */
  readonly voice: string;
  /** Audio that was handed over since the entry before it; 0 for a grant. */
  readonly audioMs: number;
  /** The first usage of its request: their number is the number of requests. */
  readonly beginsRequest: boolean;
  /** Wall clock, in milliseconds since 1970. */
  readonly atMs: number;
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
      /** Of the accounts of the batch, in a store that several services share. */
      readonly allotments?: readonly Allotment[];
    }
  | {
      readonly ok: false;
      readonly fault: LedgerFault;
      readonly message: string;
      /** Of `barred`: the last entry of the writer that the store has. It refuses those after it. */
      readonly lastEntry?: number;
    };

/** A batch that is in the store. */
export interface CommittedBatch {
  readonly entries: readonly LedgerEntry[];
  readonly allotments?: readonly Allotment[];
}

/** Keeps entries on the local disk until the store has them. */
export interface EntryJournal {
  /** Why entries cannot be kept now. */
  readonly fault: StoreFault | null;
  /** Where it stays, after the close, if the store has refused entries. */
  readonly refusedFolder: string;
  append(entry: LedgerEntry): void;
  /** Entries up to this one are in the store. */
  settled(entry: number): void;
}

/** What a service needs besides reader and writer if others share its store. */
export interface Sharing {
  readonly allotments: Allotments;
  readonly journal: EntryJournal;
  /** Entries of earlier processes that the store will never take. */
  readonly entriesRefused: number;
  committed(batch: CommittedBatch): void;
  /** @param end what became of the entries: they are in the store, only in the journal, or refused */
  close(end: 'durable' | 'left' | 'refused'): Promise<void>;
}

/** Makes entries durable. The ledger gives it one batch at a time, and replaces it once it has ended. */
export interface LedgerWriter {
  readonly hasEnded: boolean;
  /**
   * The whole batch is durable, or nothing of it. An entry that was committed before is skipped. An empty batch checks
   * whether the store could be written. Never rejects.
   */
  commit(entries: readonly LedgerEntry[]): Promise<CommitResult>;
  end(): Promise<void>;
}

/** For speech it sets what its keys do not. */
export interface Account extends SpeakingDefaults {
  readonly accountId: number;
  readonly name: string;
  readonly metered: boolean;
  readonly balance: number;
  /** `null` unless it is suspended: then its keys are refused. */
  readonly suspendedAtMs: number | null;
  /** `null` unless it is deleted: then only its ledger is of interest. */
  readonly deletedAtMs: number | null;
}

export interface ListedAccount extends Account {
  readonly createdAtMs: number;
  /** That are not revoked. */
  readonly keys: number;
  readonly users: number;
  /** Code points charged since the hour that was asked for. */
  readonly recentCharacters: number;
}

export interface StoredKey extends StoredProperties {
  readonly keyId: number;
  readonly prefix: string;
  readonly createdAtMs: number;
  readonly revokedAtMs: number | null;
  /** See `CreditState.spent`. */
  readonly spent: number;
  readonly account: Account;
}

export interface ListedKey extends StoredKey {
  /** Code points charged, as `readUsage` has them. */
  readonly characters: number;
  /** Time of its newest entry; `null` if it has none. */
  readonly lastUsedAtMs: number | null;
}

/**
 * `playground`: the one hidden key of an account, for its users in the console. Nobody knows the key itself. It is used by
 * its id, and `findKeys` and `listKeys` do not show it.
 */
export type KeyKind = 'api' | 'playground';

export type UsageStep = 'hour' | 'day';

/** The place of a row of usage in the order of all rows. */
export interface UsagePosition {
  readonly atMs: number;
  readonly keyId: number;
  readonly voice: string;
}

export interface UsageQuestion {
  /** `null` for all accounts. */
  readonly accountId: number | null;
  readonly fromMs: number;
  /** Exclusive. */
  readonly toMs: number;
  readonly step: UsageStep;
  /** Only the rows after this one. */
  readonly after?: UsagePosition;
}

/** Sums over the entries of a period. */
interface Sums {
  /** Requests charged, refunded ones included. */
  readonly requests: number;
  /** Code points charged. */
  readonly characters: number;
  /** Credits charged. */
  readonly credits: number;
  /** The part of these credits that was given back. */
  readonly refunded: number;
  /** Of what was charged. */
  readonly audioMs: number;
}

/** What one key spent with one voice in one step of time. */
export interface UsageRow extends Sums, UsagePosition {
  /** Start of the hour, or of the day in UTC. */
  readonly atMs: number;
  readonly accountId: number;
  /** Its name. */
  readonly account: string;
  /** The key's prefix; "Playground" for the hidden key of an account. */
  readonly key: string;
  readonly keyName: string;
  /** Empty for speech that was charged before voices were recorded. */
  readonly voice: string;
}

/** A grant, or what a day spent. */
export interface BalanceChange {
  /** Of a day: its last entry. */
  readonly atMs: number;
  readonly kind: 'grant' | 'spent';
  /** Credits, signed. */
  readonly amount: number;
}

/** What an administration reads, in one consistent state of the store. */
export interface StoreView extends PeopleView {
  findAccount(by: { readonly name: string } | { readonly accountId: number }): Awaitable<Account | null>;
  /** Deleted ones included. */
  accountNames(): Awaitable<readonly string[]>;
  /** Deleted ones included. */
  countAccounts(): Awaitable<number>;
  /**
   * Those that are not deleted, in the order of their creation.
   *
   * @param recentSinceMs see `ListedAccount.recentCharacters`
   */
  listAccounts(accountId: number | null, recentSinceMs: number): Awaitable<readonly ListedAccount[]>;
  /** In the order of their creation. */
  findKeys(
    by:
      | { readonly hash: Uint8Array }
      | { readonly prefix: string }
      | { readonly keyIds: readonly number[] }
      | { readonly expiresFromMs: number; readonly expiresToMs: number },
  ): Awaitable<readonly StoredKey[]>;
  /** The same with their use, revoked ones included. */
  listKeys(
    by: { readonly accountId: number } | { readonly keyId: number } | null,
  ): Awaitable<readonly ListedKey[]>;
  /** Whether there is any key, revoked ones included. */
  hasKeys(): Awaitable<boolean>;
  /** @returns its id; `null` if the account has none yet */
  findPlaygroundKey(accountId: number): Awaitable<number | null>;
  /**
   * When an account, or any (`null`), was used next: to the hour.
   *
   * @returns at least `fromMs`; `null` if it was not
   */
  findUse(accountId: number | null, fromMs: number): Awaitable<number | null>;
  /** In the order of time, keys and voices. @param rowsMax the rest follows `after` the last of these rows */
  readUsageRows(question: UsageQuestion, rowsMax: number): Awaitable<readonly UsageRow[]>;
  /** The newest first. */
  readBalanceChanges(accountId: number, rowsMax: number): Awaitable<readonly BalanceChange[]>;
}

/** The parts of an act. All of them take effect in one commit, or none does. */
export interface StoreTransaction extends StoreView, PeopleTransaction {
  /** @returns its id */
  addAccount(name: string, metered: boolean, atMs: number): Awaitable<number>;
  /** @returns its id. @throws {AdministrationError} the account or the store has, or gets, too many keys */
  addKey(
    kind: KeyKind,
    accountId: number,
    hash: Uint8Array,
    prefix: string,
    properties: StoredProperties,
    atMs: number,
  ): Awaitable<number>;
  /** Replaces all its properties. */
  setKey(keyId: number, properties: StoredProperties): Awaitable<void>;
  setMetered(accountId: number, isMetered: boolean): Awaitable<void>;
  setSpeaking(accountId: number, defaults: SpeakingDefaults): Awaitable<void>;
  /** @param atMs `null` resumes the account */
  setSuspended(accountId: number, atMs: number | null): Awaitable<void>;
  /** Revokes all its keys, the hidden one too. Gives it another name, so that a new account can have its own. */
  deleteAccount(accountId: number, name: string, atMs: number): Awaitable<void>;
  /** Appends a grant to the ledger. */
  grant(accountId: number, amount: number, atMs: number): Awaitable<void>;
  /** A key that is revoked already stays as it is. */
  revokeKey(keyId: number, atMs: number): Awaitable<void>;
}

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

export interface Use extends Sums {
  /** First and last entry in the period, in milliseconds since 1970; `null` if there is none. */
  readonly firstAtMs: number | null;
  readonly lastAtMs: number | null;
}

export interface UsagePeriod {
  /** An account's name; `null` for all accounts. */
  readonly account: string | null;
  /** Milliseconds since 1970; `null` for the whole time. */
  readonly sinceMs: number | null;
}

export interface AccountUsage {
  readonly account: Account;
  /** All keys in the order of their creation, unused ones included. */
  readonly keys: readonly { readonly prefix: string; readonly revoked: boolean; readonly use: Use }[];
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
