/**
 * The administration thread as the console sees it: users, sessions, one-time links, accounts, keys, usage and the audit
 * table. All of it is work on the store or on passwords, which the front thread must not wait for.
 *
 * Every method rejects with a `ConsoleRefusal`: `unavailable` while the store cannot be used, the thread is starting again
 * or too many calls wait. Any other error is a defect. An act takes effect whole or not at all, with its row in the audit
 * table.
 */
import type { Answer, CallName, Question, Role, User } from './contract.js';

/**
 * Calls of the page that only ask the store. Each looks the user up again, in the same transaction as the act, and by the
 * role that it has now: `signedOut` if it was removed, `forbidden` if a member calls for operators, `notFound` for
 * whatever is not of a member's account.
 */
export type StoreCall = Extract<
  CallName,
  | 'account'
  | 'keys'
  | 'createKey'
  | 'changeKey'
  | 'revokeKey'
  | 'usage'
  | 'balance'
  | 'users'
  | 'accounts'
  | 'createAccount'
  | 'credit'
  | 'suspendAccount'
  | 'deleteAccount'
  | 'removeUser'
  | 'audit'
>;

/** Who acts: the user of the session. */
export type Actor = Pick<User, 'userId'>;

export type StoreCalls = {
  readonly [Name in StoreCall]: (by: Actor, question: Question<Name>) => Promise<Answer<Name>>;
};

/** A session that just began. */
export interface OpenedSession {
  /** For the cookie. The store has only its hash, so it is not shown again. */
  readonly token: string;
  /** See `device`. */
  readonly device: string;
  readonly user: User;
}

/** The token of a one-time link. The store has only its hash. */
export interface OneTimeLink {
  readonly token: string;
  readonly expiresAtMs: number;
}

/** Sessions are known by the SHA-256 of their token, in base64url: `hashToken` of `src/accounts/tokens.ts`. */
export interface ConsoleAdministration extends StoreCalls {
  /** Whether there is an operator. */
  claimed(): Promise<boolean>;
  /**
   * A link for the first start: it claims the console. Older ones end.
   *
   * @returns `null` if there is an operator already
   */
  claimLink(): Promise<OneTimeLink | null>;

  /**
   * Spends a link of `claimLink` or of `npm run console -- link`. The first operator is created; with a link that was made
   * later, the operator of that name gets a new password, and its sessions end.
   *
   * @param address of the client, for the audit table
   */
  claim(question: Question<'claim'>, address: string): Promise<OpenedSession>;
  /** Refuses a wrong name or password with `forbidden`, in the same time. The caller slows attempts down. */
  signIn(question: Question<'signIn'>, address: string): Promise<OpenedSession>;
  /** `notFound` if the link is spent, expired or forged. */
  invitation(
    question: Question<'invitation'>,
  ): Promise<{ readonly role: Role; readonly account: string | null }>;
  acceptInvitation(question: Question<'acceptInvitation'>, address: string): Promise<OpenedSession>;
  /**
   * What a browser of this user has after a sign-in, so that its attempts are counted by themselves. It follows from the
   * stored password, so a new password makes it void. An unknown name gets a random one.
   */
  device(name: string): Promise<string>;

  /** Who is signed in with this session; `null` if it ended. Notes the activity, at most once a minute. */
  session(tokenHash: string): Promise<User | null>;
  /** Which of these sessions have not ended. Notes no activity. */
  liveSessions(tokenHashes: readonly string[]): Promise<readonly string[]>;
  /** Ends the session, or all of its user. A session that ended already stays so. */
  signOut(tokenHash: string, everywhere: boolean): Promise<void>;
  /** Ends the user's other sessions. `forbidden` with the field `current` if that is wrong. */
  changePassword(tokenHash: string, question: Question<'changePassword'>): Promise<void>;

  /** For operators. The caller makes the URL. */
  invite(by: Actor, question: Question<'invite'>): Promise<OneTimeLink>;
  /** The hidden key of an account, made at first use. `Admission.byId` takes it. */
  playgroundKey(by: Actor, question: { readonly accountId: number }): Promise<number>;
  /** Notes an act of an operator that changes nothing in the store, such as `voices.reload`. */
  record(by: Actor, action: string, subject: string): Promise<void>;

  /** Waits a moment for the calls under way, and ends the thread. Idempotent. */
  close(): Promise<void>;
}
