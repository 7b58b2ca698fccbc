/**
 * What a store keeps of people: the users of the console, their sessions, one-time links, and the audit table. Hashes of
 * tokens and passwords are made above; a store never sees a token or a password.
 */
import type { Awaitable } from './awaitable.js';

export type Role =
  /** Sees and changes all accounts, and the service. */
  | 'operator'
  /** Belongs to one account. */
  | 'member';

export interface User {
  readonly userId: number;
  readonly name: string;
  readonly role: Role;
  /** A member's account. */
  readonly accountId: number | null;
  readonly account: string | null;
  readonly createdAtMs: number;
  /** To the minute. */
  readonly lastSeenAtMs: number | null;
}

export interface StoredUser extends User {
  /** Its hash, with the parameters of the hash. */
  readonly password: string;
}

export interface NewUser {
  readonly name: string;
  /** The name as names are compared: no two users have the same. */
  readonly handle: string;
  readonly role: Role;
  readonly accountId: number | null;
  readonly password: string;
}

/** A program's session, which a user makes for it. No two of a user have the same name. */
export interface TokenTerms {
  readonly name: string;
  readonly expiresAtMs: number;
}

export interface StoredSession {
  readonly userId: number;
  readonly createdAtMs: number;
  readonly seenAtMs: number;
  /** `null`: a browser's session. */
  readonly token: TokenTerms | null;
}

export interface KnownSession {
  readonly hash: string;
  readonly userId: number;
}

export interface StoredToken extends TokenTerms {
  readonly createdAtMs: number;
  readonly seenAtMs: number;
}

/** `claim` makes the first operator, `recovery` gives an operator a new password. */
export type LinkKind = 'claim' | 'recovery' | 'invitation';

export interface StoredLink {
  readonly kind: LinkKind;
  /** The account of an invited member; `null` for an operator. */
  readonly accountId: number | null;
  readonly expiresAtMs: number;
}

export interface Act {
  readonly atMs: number;
  /** Who did it; "command line" for acts there. */
  readonly actor: string;
  /** Such as `account.credit`. */
  readonly action: string;
  /** What it was done to, such as an account's name or a key's prefix. */
  readonly subject: string;
  readonly details: string;
}

export interface NewAct extends Act {
  /** Of the member who did it; `null` for everybody else. */
  readonly accountId: number | null;
}

export interface AuditRow extends Act {
  /** Grows with each row. */
  readonly auditId: number;
  /** Of the member who did it; `null` for everybody else. */
  readonly account: string | null;
}

export interface ActFilter {
  /** In any of its texts; small and capital letters of ASCII are the same. */
  readonly search?: string;
  /** How the action begins, up to the dot. */
  readonly kind?: string;
}

export interface PeopleView {
  findUser(by: { readonly userId: number } | { readonly handle: string }): Awaitable<StoredUser | null>;
  /** In the order of their names. @param accountId the members of one account; `null` for the operators */
  listUsers(accountId: number | null): Awaitable<readonly User[]>;
  countOperators(): Awaitable<number>;
  findSession(hash: string): Awaitable<StoredSession | null>;
  /** Tokens of programs too. Those that were seen last, the oldest of them first; some may have ended. */
  listSessions(sessionsMax: number): Awaitable<readonly KnownSession[]>;
  /** In the order of their names. */
  listTokens(userId: number): Awaitable<readonly StoredToken[]>;
  findLink(hash: string): Awaitable<StoredLink | null>;
  countLinks(): Awaitable<number>;
  /** In the order of their ends. */
  listLinks(kind: LinkKind, accountId: number | null): Awaitable<readonly StoredLink[]>;
  /** The newest first. @param beforeId only older rows; `null` for the newest */
  listActs(beforeId: number | null, rowsMax: number, filter?: ActFilter): Awaitable<readonly AuditRow[]>;
}

export interface PeopleTransaction extends PeopleView {
  /** @returns its id, which no user had before */
  addUser(user: NewUser, atMs: number): Awaitable<number>;
  setPassword(userId: number, password: string): Awaitable<void>;
  /** With its sessions. */
  removeUser(userId: number): Awaitable<void>;
  /** @param token absent: of a browser */
  addSession(hash: string, userId: number, atMs: number, token?: TokenTerms): Awaitable<void>;
  /** Notes activity of a session, and of its user. */
  seeSession(hash: string, atMs: number): Awaitable<void>;
  /**
   * @param by one session; or all of a user but for one, tokens too; or a token of a user; or all of browsers that began or
   * were seen before these times
   */
  endSessions(
    by:
      | { readonly hash: string }
      | { readonly userId: number; readonly exceptHash: string | null }
      | { readonly userId: number; readonly token: string }
      | { readonly beganBeforeMs: number; readonly seenBeforeMs: number },
  ): Awaitable<void>;
  /** Ends the sessions of a user's browsers that were seen least recently. */
  keepSessions(userId: number, sessionsMax: number): Awaitable<void>;
  addLink(hash: string, link: StoredLink): Awaitable<void>;
  /** @param by one link, all of a kind, those that `listLinks` has, or all that have expired at a time */
  removeLinks(
    by:
      | { readonly hash: string }
      | { readonly kind: LinkKind; readonly accountId?: number | null }
      | { readonly expiredAtMs: number },
  ): Awaitable<void>;
  /** @returns the id of the row */
  record(act: NewAct): Awaitable<number>;
  /**
   * Removes the oldest rows of the audit table: those before a time, or beyond a number of one action, of the members of an
   * account, or of everybody else (`null`).
   */
  trimActs(
    by:
      | { readonly beforeMs: number }
      | (({ readonly action: string } | { readonly accountId: number | null }) & {
          readonly rowsMax: number;
        }),
  ): Awaitable<void>;
}
