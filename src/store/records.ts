/** What a store keeps of accounts, keys and what they spend. */
import { randomBytes } from 'node:crypto';
import type { SpeakingDefaults } from '../api/speech-settings.js';

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

/** `grant` adds credit, `usage` charges speech, `refund` reverses a usage because the whole request failed. */
export type EntryKind = 'grant' | 'usage' | 'refund';

/** A number for one writer of entries. It is random, so that no two runs of any process share it. */
export const newWriter = (): number => randomBytes(6).readUIntBE(0, 6);

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

/** For speech it sets what its keys do not. */
export interface Account extends SpeakingDefaults {
  readonly accountId: number;
  readonly name: string;
  readonly metered: boolean;
  /** Credits left; below zero only if it is not metered. */
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
 * `playground`: the one hidden key of an account, for its users in the console. The key itself is never shown. It is used by
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
