/**
 * Sessions of the console. A session ends by a sign-out, without activity for `sessionIdleMsMax`, and after
 * `sessionMsMax` in any case. The store has only the hash of its token.
 */
import { createHmac } from 'node:crypto';
import type { Bounds } from '../limits.js';
import type { PeopleView, StoredUser, User } from '../store/people.js';
import { StoreError, type StoreAdministration, type StoreTransaction } from '../store/store.js';
import { record } from './audit.js';
import { hashToken, newToken } from './tokens.js';

export type SessionBounds = Pick<
  Bounds,
  'sessionIdleMsMax' | 'sessionMsMax' | 'sessionSeenMs' | 'sessionsPerUserMax'
>;

export interface OpenedSession {
  readonly token: string;
  /** See `deviceOf`. */
  readonly device: string;
  readonly user: User;
}

/** Without its password. */
const userOf = ({ userId, name, role, accountId, account, createdAtMs, lastSeenAtMs }: StoredUser): User => ({
  userId,
  name,
  role,
  accountId,
  account,
  createdAtMs,
  lastSeenAtMs,
});

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
    await store.endSessions({ beganBeforeMs: nowMs - sessionMsMax, seenBeforeMs: nowMs - sessionIdleMsMax });
    await store.addSession(hashToken(token), userId, nowMs);
    await store.keepSessions(userId, sessionsPerUserMax);
    return { token, device: deviceOf(password), user: userOf({ ...user, lastSeenAtMs: nowMs }) };
  }

  /** @returns `null` if it ended */
  async find(
    view: PeopleView,
    hash: string,
  ): Promise<{ readonly user: StoredUser; readonly seenAtMs: number } | null> {
    const session = await view.findSession(hash);
    const nowMs = this.#nowMs();
    const { sessionIdleMsMax, sessionMsMax } = this.#bounds;
    if (session === null || nowMs - session.seenAtMs >= sessionIdleMsMax) return null;
    if (nowMs - session.createdAtMs >= sessionMsMax) return null;
    const user = await view.findUser({ userId: session.userId });
    return user && { user, seenAtMs: session.seenAtMs };
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
