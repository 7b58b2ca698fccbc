/**
 * Who may use the console: users, and the one-time links that make them.
 *
 *   link --claim--> first operator      link of an operator who lost the password --claim--> new password
 *   link --accept--> operator or member
 *   name and password --sign in--> session
 *
 * The store has only hashes: of passwords, and of the tokens of sessions and links.
 */
import type { Bounds } from '../limits.js';
import type { Role, StoredLink, StoredUser, User } from '../store/people.js';
import {
  AdministrationError,
  conflict,
  invalid,
  notFound,
  type StoreAdministration,
  type StoreTransaction,
  type StoreView,
} from '../store/store.js';
import { quoted, record, REFUSED_SIGN_IN, refuseMember, type Actor } from './audit.js';
import { checkName, handleOf, isName, refuseImpostor } from './checks.js';
import type { Passwords } from './passwords.js';
import { findAccount } from './targets.js';
import { deviceOf, type OpenedSession, type Sessions } from './sessions.js';
import { hashToken, newToken } from './tokens.js';

export type AccessBounds = Pick<
  Bounds,
  'claimLinkMsMax' | 'invitationMsMax' | 'linksMax' | 'refusedSignInsPerMinuteMax'
>;

export interface OneTimeLink {
  readonly token: string;
  readonly expiresAtMs: number;
}

export interface Credentials {
  readonly name: string;
  readonly password: string;
}

export interface LinkCredentials extends Credentials {
  readonly token: string;
}

const MINUTE_MS = 60_000;

const NOBODY: Actor = { name: 'nobody', accountId: null };

/** What an invitation makes of the person who accepts it. */
export interface Invited {
  readonly role: Role;
  readonly account: string | null;
}

const invitedTo = (account: { readonly name: string } | null): Invited =>
  account === null ? { role: 'operator', account: null } : { role: 'member', account: account.name };

const inviteeOf = (account: { readonly name: string } | null): string =>
  account === null ? 'an operator' : `a member of ${account.name}`;

const wrongPassword = (): AdministrationError =>
  new AdministrationError('Name or password is wrong', 'forbidden');

export interface AccessOptions {
  readonly store: StoreAdministration;
  readonly sessions: Sessions;
  readonly passwords: Passwords;
  readonly bounds: AccessBounds;
  readonly nowMs?: () => number;
}

export class Access {
  readonly #store: StoreAdministration;
  readonly #sessions: Sessions;
  readonly #passwords: Passwords;
  readonly #bounds: AccessBounds;
  readonly #nowMs: () => number;
  /** Refused sign-ins of the present minute: only the first ones get rows of their own. */
  #refusals = { sinceMs: 0, recorded: 0, more: 0 };

  constructor({ store, sessions, passwords, bounds, nowMs = Date.now }: AccessOptions) {
    this.#store = store;
    this.#sessions = sessions;
    this.#passwords = passwords;
    this.#bounds = bounds;
    this.#nowMs = nowMs;
  }

  claimed(): Promise<boolean> {
    return this.#store.read(async (view) => (await view.countOperators()) > 0);
  }

  /**
   * Makes a link that claims the console, or gives an operator a new password if there is one. Older ones end.
   *
   * @param actor for the audit table
   * @param onlyFirst makes no link if there is an operator: then `null`
   */
  makeLink(actor: string, onlyFirst: false): Promise<OneTimeLink>;
  makeLink(actor: string, onlyFirst: true): Promise<OneTimeLink | null>;
  makeLink(actor: string, onlyFirst: boolean): Promise<OneTimeLink | null> {
    return this.#store.transact(async (store) => {
      const isClaimed = (await store.countOperators()) > 0;
      if (isClaimed && onlyFirst) return null;
      for (const kind of ['claim', 'recovery'] as const) await store.removeLinks({ kind });
      const kind = isClaimed ? 'recovery' : 'claim';
      const expiresAtMs = this.#nowMs() + this.#bounds.claimLinkMsMax;
      const link = await this.#addLink(store, { kind, accountId: null, expiresAtMs });
      await this.#record(store, { name: actor, accountId: null }, 'console.link', kind);
      return link;
    });
  }

  /** Spends a link of `makeLink`. */
  async claim({ token, name, password }: LinkCredentials, address: string): Promise<OpenedSession> {
    const remedy = 'make a new one with `npm run console -- link`';
    const find = (view: StoreView) => this.#findLink(view, token, ['claim', 'recovery'], 'link', remedy);
    checkName('a user', name);
    // Before the hash, which costs time: forged links are cheap to refuse.
    await this.#store.read(find);
    const hashed = await this.#passwords.hash(password);
    return this.#store.transact(async (store) => {
      const link = await find(store);
      await store.removeLinks({ hash: hashToken(token) });
      const known = await store.findUser({ handle: handleOf(name) });
      if (link.kind === 'recovery') {
        if (known?.role !== 'operator') throw await this.#unknownOperator(store, name);
        await store.setPassword(known.userId, hashed);
        await store.endSessions({ userId: known.userId, exceptHash: null });
        await this.#record(store, known, 'user.recover', known.name, `from ${address}`);
        return this.#sessions.open(store, { ...known, password: hashed });
      }
      if ((await store.countOperators()) > 0) throw conflict('The console was claimed already: sign in');
      const user = await this.#addUser(store, name, hashed, link);
      await this.#record(store, user, 'console.claim', user.name, `from ${address}`);
      return this.#sessions.open(store, user);
    });
  }

  /** @param isStranger the user has not signed in before in this browser, which is not on this machine either */
  async signIn(
    { name, password }: Credentials,
    address: string,
    isStranger: boolean,
  ): Promise<OpenedSession> {
    const known = await this.#userOf(name);
    const isRight = await this.#passwords.verify(known?.password ?? null, password, isStranger);
    const session =
      isRight && known !== null
        ? await this.#store.transact(async (store) => {
            const user = await store.findUser({ userId: known.userId });
            // It may have been removed, or have got another password, meanwhile.
            if (user?.password !== known.password) return null;
            await this.#record(store, user, 'session.signIn', user.name, `from ${address}`);
            return this.#sessions.open(store, user);
          })
        : null;
    if (session !== null) return session;
    await this.#recordRefusal(known, address);
    throw wrongPassword();
  }

  /** What an invitation is for. */
  async invitation(token: string): Promise<Invited> {
    return this.#store.read(async (view) => {
      const { accountId } = await this.#findInvitation(view, token);
      return invitedTo(accountId === null ? null : await view.findAccount({ accountId }));
    });
  }

  async acceptInvitation(
    { token, name, password }: LinkCredentials,
    address: string,
  ): Promise<OpenedSession> {
    checkName('a user', name);
    await this.#store.read(async (view) => {
      await this.#findInvitation(view, token);
      await this.#refuseTaken(view, name);
    });
    const hashed = await this.#passwords.hash(password);
    return this.#store.transact(async (store) => {
      const link = await this.#findInvitation(store, token);
      await this.#refuseTaken(store, name);
      await store.removeLinks({ hash: hashToken(token) });
      const user = await this.#addUser(store, name, hashed, link);
      const details = `${user.role}${user.account === null ? '' : ` of ${quoted(user.account)}`}, from ${address}`;
      await this.#record(store, user, 'user.join', user.name, details);
      return this.#sessions.open(store, user);
    });
  }

  /** @returns what a browser of this user has after a sign-in; a random one for an unknown name */
  async device(name: string): Promise<string> {
    const user = await this.#userOf(name);
    return user === null ? newToken() : deviceOf(user.password);
  }

  async #userOf(name: string): Promise<StoredUser | null> {
    if (!isName(name)) return null;
    return this.#store.read(async (view) => view.findUser({ handle: handleOf(name) }));
  }

  async changePassword(hash: string, current: string, password: string): Promise<void> {
    const known = await this.#store.read((view) => this.#sessions.userOf(view, hash));
    if (!(await this.#passwords.verify(known.password, current, false)))
      throw new AdministrationError('This is not your password', 'forbidden', 'current');
    const hashed = await this.#passwords.hash(password);
    await this.#store.transact(async (store) => {
      const user = await this.#sessions.userOf(store, hash);
      if (user.password !== known.password)
        throw conflict('The password was changed meanwhile: sign in again');
      await store.setPassword(known.userId, hashed);
      await store.endSessions({ userId: known.userId, exceptHash: hash });
      await this.#record(store, user, 'user.changePassword', known.name);
    });
  }

  /** @param accountId `null` invites another operator */
  invite(hash: string, accountId: number | null): Promise<OneTimeLink & Invited> {
    return this.#operate(hash, async (store, actor) => {
      const account = accountId === null ? null : await findAccount(store, actor, { accountId });
      await store.removeLinks({ expiredAtMs: this.#nowMs() });
      if ((await store.countLinks()) >= this.#bounds.linksMax)
        throw conflict('There are too many open invitations: withdraw some, or wait until they expire');
      const expiresAtMs = this.#nowMs() + this.#bounds.invitationMsMax;
      const link = await this.#addLink(store, { kind: 'invitation', accountId, expiresAtMs });
      await this.#record(store, actor, 'user.invite', inviteeOf(account));
      return { ...link, ...invitedTo(account) };
    });
  }

  /** Open invitations to an account, or to become an operator (`null`). */
  invitations(
    hash: string,
    accountId: number | null,
  ): Promise<readonly (Pick<StoredLink, 'expiresAtMs'> & Invited)[]> {
    return this.#store.read(async (view) => {
      const actor = await this.#sessions.userOf(view, hash);
      refuseMember(actor);
      const account = accountId === null ? null : await findAccount(view, actor, { accountId });
      const links = await view.listLinks('invitation', accountId);
      return links.flatMap(({ expiresAtMs }) =>
        expiresAtMs > this.#nowMs() ? [{ expiresAtMs, ...invitedTo(account) }] : [],
      );
    });
  }

  /** Their links stop working at once. */
  withdrawInvitations(hash: string, accountId: number | null): Promise<void> {
    return this.#operate(hash, async (store, actor) => {
      const account = accountId === null ? null : await findAccount(store, actor, { accountId });
      await store.removeLinks({ kind: 'invitation', accountId });
      await this.#record(store, actor, 'user.withdrawInvitations', inviteeOf(account));
    });
  }

  removeUser(hash: string, removedId: number): Promise<void> {
    return this.#operate(hash, async (store, actor) => {
      const user = await store.findUser({ userId: removedId });
      if (user === null) throw notFound('There is no such user: it may have been removed');
      if (user.role === 'operator' && (await store.countOperators()) === 1)
        throw conflict('This is the only operator: invite another one first');
      await store.removeUser(removedId);
      // One of them may be a way back in. Who made each is not stored.
      if (user.role === 'operator') await store.removeLinks({ kind: 'invitation' });
      await this.#record(store, actor, 'user.remove', user.name, user.account ?? user.role);
    });
  }

  /** An operator sees the operators (`null`) or the members of an account, a member those of its own. */
  users(hash: string, accountId: number | null): Promise<readonly User[]> {
    return this.#store.read(async (view) => {
      const actor = await this.#sessions.userOf(view, hash);
      if (accountId === null) refuseMember(actor);
      else await findAccount(view, actor, { accountId });
      return view.listUsers(accountId);
    });
  }

  #operate<T>(hash: string, work: (store: StoreTransaction, actor: Actor) => Promise<T>): Promise<T> {
    return this.#store.transact(async (store) => {
      const actor = await this.#sessions.userOf(store, hash);
      refuseMember(actor);
      return work(store, actor);
    });
  }

  async #findLink(
    view: StoreView,
    token: string,
    kinds: readonly StoredLink['kind'][],
    what: string,
    remedy: string,
  ): Promise<StoredLink> {
    const link = await view.findLink(hashToken(token));
    if (link !== null && kinds.includes(link.kind) && this.#nowMs() < link.expiresAtMs) return link;
    throw notFound(`This ${what} was used, has expired or was replaced: ${remedy}`);
  }

  #findInvitation(view: StoreView, token: string): Promise<StoredLink> {
    return this.#findLink(view, token, ['invitation'], 'invitation', 'ask for a new one');
  }

  async #refuseTaken(view: StoreView, name: string): Promise<void> {
    if ((await view.findUser({ handle: handleOf(name) })) !== null)
      throw conflict('Somebody has this name: choose another one', 'name');
  }

  async #unknownOperator(view: StoreView, name: string): Promise<AdministrationError> {
    const names = (await view.listUsers(null)).map((operator) => operator.name);
    return invalid('name', `No operator is named "${name}": give the name of one (${names.join(', ')})`);
  }

  async #addLink(store: StoreTransaction, link: StoredLink): Promise<OneTimeLink> {
    const token = newToken();
    await store.addLink(hashToken(token), link);
    return { token, expiresAtMs: link.expiresAtMs };
  }

  async #addUser(
    store: StoreTransaction,
    name: string,
    password: string,
    { accountId }: StoredLink,
  ): Promise<StoredUser> {
    refuseImpostor(name);
    const role = accountId === null ? 'operator' : 'member';
    const userId = await store.addUser(
      { name, handle: handleOf(name), role, accountId, password },
      this.#nowMs(),
    );
    const user = await store.findUser({ userId });
    if (user === null) throw new Error(`user ${userId} is not in the store`);
    return user;
  }

  /** An unknown name is not recorded: people type passwords there. */
  async #recordRefusal(user: User | null, address: string): Promise<void> {
    const nowMs = this.#nowMs();
    if (Math.abs(nowMs - this.#refusals.sinceMs) >= MINUTE_MS)
      this.#refusals = { ...this.#refusals, sinceMs: nowMs, recorded: 0 };
    if (this.#refusals.recorded >= this.#bounds.refusedSignInsPerMinuteMax) {
      this.#refusals.more += 1;
      return;
    }
    const { more } = this.#refusals;
    this.#refusals.recorded += 1;
    this.#refusals.more = 0;
    const ofAccount = user !== null && user.account !== null ? `of ${quoted(user.account)}, ` : '';
    const details = `${ofAccount}from ${address}${more === 0 ? '' : `; ${more} more before it`}`;
    await this.#store.transact(async (store) =>
      this.#record(store, NOBODY, REFUSED_SIGN_IN, user?.name ?? 'an unknown name', details),
    );
  }

  #record(
    store: StoreTransaction,
    actor: Actor,
    action: string,
    subject: string,
    details = '',
  ): Promise<void> {
    return record(store, actor, { atMs: this.#nowMs(), action, subject, details });
  }
}
