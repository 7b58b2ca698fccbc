/**
 * Sessions of the console. A browser's session ends by a sign-out, without activity for `sessionIdleMsMax`, and after
 * `sessionMsMax` in any case. A user makes sessions for programs, too: tokens, which end at a time that the user chooses. All
 * of a user's end with a new password. The store has only the hash of a token.
 */
import { createHmac } from 'node:crypto';
import type { Bounds } from '../limits.js';
import type { StoredToken, StoredUser, User } from '../store/people.js';
import {
  AdministrationError,
  conflict,
  notFound,
  StoreError,
  type StoreAdministration,
  type StoreTransaction,
  type StoreView,
} from '../store/store.js';
import { record } from './audit.js';
import { checkName } from './checks.js';
import { hashToken, newProgramToken, newToken } from './tokens.js';

export type SessionBounds = Pick<
  Bounds,
  'sessionIdleMsMax' | 'sessionMsMax' | 'sessionSeenMs' | 'sessionsPerUserMax' | 'tokensPerUserMax'
>;

const DAY_MS = 86_400_000;

export interface OpenedSession {
  readonly token: string;
  /** See `deviceOf`. */
  readonly device: string;
  readonly user: User;
}

/** Without its password. */
const userOf = ({ password: _, ...user }: StoredUser): User => user;

/** Shows that a browser was signed in. It follows from the stored password, so a new password makes it void. */
export const deviceOf = (password: string): string =>
  createHmac('sha256', password).update('device').digest('base64url');

export class Sessions {
  readonly #store: StoreAdministration;
  readonly #bounds: SessionBounds;
  readonly #nowMs: () => number;
  /** Hashes of sessions whose activity is being noted. */
  readonly #noting = new Set<string>();

  constructor(store: StoreAdministration, bounds: SessionBounds, nowMs: () => number = Date.now) {
    this.#store = store;
    this.#bounds = bounds;
    this.#nowMs = nowMs;
  }

  /** Begins a session of a user, who stands in the store. */
  async open(store: StoreTransaction, user: StoredUser): Promise<OpenedSession> {
    const { userId, password } = user;
    const nowMs = this.#nowMs();
    const { sessionIdleMsMax, sessionMsMax, sessionsPerUserMax } = this.#bounds;
    const token = newToken();
    await store.endSessions({ nowMs, msMax: sessionMsMax, idleMsMax: sessionIdleMsMax });
    await store.addSession(hashToken(token), userId, nowMs);
    await store.keepSessions(userId, sessionsPerUserMax);
    return { token, device: deviceOf(password), user: userOf({ ...user, lastSeenAtMs: nowMs }) };
  }

  /** @returns `null` if it ended */
  async find(
    view: StoreView,
    hash: string,
  ): Promise<{ readonly user: StoredUser; readonly seenAtMs: number } | null> {
    const session = await view.findSession(hash);
    const nowMs = this.#nowMs();
    const { sessionIdleMsMax, sessionMsMax } = this.#bounds;
    if (session === null) return null;
    const { createdAtMs, seenAtMs, token } = session;
    const endsAtMs = token?.expiresAtMs ?? Math.min(seenAtMs + sessionIdleMsMax, createdAtMs + sessionMsMax);
    if (nowMs >= endsAtMs) return null;
    const user = await view.findUser({ userId: session.userId });
    return user && { user, seenAtMs: session.seenAtMs };
  }

  /**
   * The user of a session, with the role that it has now. An act asks in its own transaction: it fails after the session ended.
   *
   * @throws {AdministrationError} `signedOut`
   */
  async userOf(view: StoreView, hash: string): Promise<StoredUser> {
    const found = await this.find(view, hash);
    if (found === null) throw new AdministrationError('You are signed out: sign in again', 'signedOut');
    return found.user;
  }

  async session(hash: string): Promise<User | null> {
    const found = await this.#store.read(async (view) => this.find(view, hash));
    if (found === null) return null;
    const nowMs = this.#nowMs();
    if (nowMs - found.seenAtMs >= this.#bounds.sessionSeenMs) void this.#note(hash, nowMs);
    return userOf(found.user);
  }

  liveSessions(hashes: readonly string[]): Promise<readonly string[]> {
    return this.#store.read(async (view) => {
      const live: string[] = [];
      for (const hash of hashes) if ((await this.find(view, hash)) !== null) live.push(hash);
      return live;
    });
  }

  /** Nothing waits for it: a store that cannot be written can still be read. */
  async #note(hash: string, nowMs: number): Promise<void> {
    if (this.#noting.has(hash)) return;
    this.#noting.add(hash);
    try {
      await this.#store.transact(async (store) => store.seeSession(hash, nowMs));
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
    } finally {
      this.#noting.delete(hash);
    }
  }

  /** Those of the session's user that have not expired. */
  tokens(hash: string): Promise<readonly StoredToken[]> {
    return this.#store.read(async (view) => this.#tokensOf(view, (await this.userOf(view, hash)).userId));
  }

  async #tokensOf(view: StoreView, userId: number): Promise<readonly StoredToken[]> {
    return (await view.listTokens(userId)).filter(({ expiresAtMs }) => expiresAtMs > this.#nowMs());
  }

  /** @returns the token, which is not shown again */
  makeToken(hash: string, name: string, days: number): Promise<{ token: string; view: StoredToken }> {
    checkName('a token', name);
    return this.#store.transact(async (store) => {
      const user = await this.userOf(store, hash);
      const { userId } = user;
      const nowMs = this.#nowMs();
      const tokens = await this.#tokensOf(store, userId);
      if (tokens.some((other) => other.name === name))
        throw conflict('You have a token of this name: choose another one, or revoke it', 'name');
      const { tokensPerUserMax } = this.#bounds;
      if (tokens.length >= tokensPerUserMax)
        throw conflict(`A user has ${tokensPerUserMax} tokens at most: revoke one first`);
      // One of this name may have expired.
      await store.endSessions({ userId, token: name });
      const token = newProgramToken();
      const view = { name, expiresAtMs: nowMs + days * DAY_MS, createdAtMs: nowMs, seenAtMs: nowMs };
      await store.addSession(hashToken(token), userId, nowMs, view);
      const details = `until ${new Date(view.expiresAtMs).toISOString()}`;
      await record(store, user, { atMs: nowMs, action: 'token.create', subject: name, details });
      return { token, view };
    });
  }

  revokeToken(hash: string, name: string): Promise<void> {
    return this.#store.transact(async (store) => {
      const user = await this.userOf(store, hash);
      const { userId } = user;
      if (!(await store.listTokens(userId)).some((token) => token.name === name))
        throw notFound('You have no token of this name', 'name');
      await store.endSessions({ userId, token: name });
      await record(store, user, { atMs: this.#nowMs(), action: 'token.revoke', subject: name, details: '' });
    });
  }

  signOut(hash: string, everywhere: boolean): Promise<void> {
    return this.#store.transact(async (store) => {
      const found = await this.find(store, hash);
      if (found === null) return;
      const { user } = found;
      const { userId, name } = user;
      await store.endSessions(everywhere ? { userId, exceptHash: null } : { hash });
      await record(store, user, {
        atMs: this.#nowMs(),
        action: 'session.signOut',
        subject: name,
        details: everywhere ? 'everywhere' : '',
      });
    });
  }
}
