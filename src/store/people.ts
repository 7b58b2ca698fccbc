/**
 * What a store keeps of people: the users of the console, their sessions, one-time links, and the audit table. Hashes of
 * tokens and passwords are made above; a store never sees a token or a password.
 */
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
  /** To the minute. */
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
