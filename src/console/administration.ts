/**
 * The administration thread as the console sees it: users, sessions, one-time links, accounts, keys, usage and the audit
 * table. All of it is work on the store or on passwords, which the front thread must not wait for.
 *
 * Every method rejects with a `ConsoleRefusal`: `unavailable` while the store cannot be used, the thread is starting again
 * or too many calls wait. Any other error is a defect. An act takes effect whole or not at all, with its row in the audit
 * table.
 */
import { Worker } from 'node:worker_threads';
import { wrap, type Remote } from 'comlink';
import type { Installed } from '../accounts/checks.js';
import type { AddedWord, ConsoleCalls, ConsoleDesk, Outcome } from '../accounts/console-calls.js';
import { nodeEndpoint } from '../comlink-node.js';
import type { Bounds } from '../limits.js';
import type { Log } from '../log.js';
import type { StorePlace } from '../store/driver.js';
import type { Pronouncing } from '../threads/messages.js';
import type { Answer, CallName, KeyView, Question, Role, User } from './contract.js';
import { ConsoleRefusal } from './refusal.js';

/**
 * Calls of the page that only ask the store. Each looks the user up again, in the same transaction as the act, and by the
 * role that it has now: `signedOut` if it was removed, `forbidden` if a member makes a call of operators, `notFound` for
 * anything outside of a member's account.
 */
export type StoreCall = Extract<
  CallName,
  | 'account'
  | 'keys'
  | 'revokeKey'
  | 'tokens'
  | 'createToken'
  | 'revokeToken'
  | 'usage'
  | 'balance'
  | 'users'
  | 'accounts'
  | 'createAccount'
  | 'credit'
  | 'meterAccount'
  | 'suspendAccount'
  | 'deleteAccount'
  | 'invitations'
  | 'withdrawInvitations'
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
export interface ConsoleAdministration extends StoreCalls, Pronouncing {
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
   * The value that a browser keeps after this user signed in. Attempts with it have a count of their own. It is derived
   * from the stored password, so a new password makes it void. An unknown name gets a random one.
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

  /** A key of the actor's. */
  key(by: Actor, question: { readonly keyId: number }): Promise<KeyView>;
  /** @param installed what the key may name */
  createKey(by: Actor, question: Question<'createKey'>, installed: Installed): Promise<Answer<'createKey'>>;
  /** As `createKey`. The key keeps voices and a lexicon that it has already, even if they are not installed. */
  changeKey(by: Actor, question: Question<'changeKey'>, installed: Installed): Promise<Answer<'changeKey'>>;
  /** The same for an account. For operators. */
  changeAccount(
    by: Actor,
    question: Question<'changeAccount'>,
    installed: Installed,
  ): Promise<Answer<'changeAccount'>>;
  /** For operators. The caller makes the URL. */
  invite(by: Actor, question: Question<'invite'>): Promise<OneTimeLink>;
  /** The hidden key of an account, made at first use. `Admission.byId` takes it. */
  playgroundKey(by: Actor, question: { readonly accountId: number }): Promise<number>;
  /** @returns `null` if the word is there already */
  addWord(by: Actor, question: Question<'addWord'>): Promise<AddedWord | null>;
  /** Notes an act of an operator that changes nothing in the store, such as `voices.reload`. */
  record(by: Actor, action: string, subject: string): Promise<void>;

  /** Threads that ended and were replaced. */
  readonly restarts: number;
  /** Waits a moment for the calls under way, and ends the thread. Idempotent. */
  close(): Promise<void>;
}

export interface AdministrationOptions {
  readonly store: StorePlace;
  readonly bounds: Bounds;
  readonly log: Log;
  /** Of the thread; a test can set its own. */
  readonly entry?: URL;
}

const unavailable = (message: string): ConsoleRefusal => new ConsoleRefusal({ code: 'unavailable', message });

type AnswerOf<Name extends keyof ConsoleCalls> = Awaited<ReturnType<ConsoleCalls[Name]>>;

type Desk = ConsoleDesk & Pronouncing;

/** Calls the thread, starts it at the first call, and starts it again when it ended. */
class AdministrationThread {
  readonly #options: AdministrationOptions;
  #running: { readonly worker: Worker; readonly remote: Remote<Desk> } | null = null;
  /** Fails the calls under way. */
  readonly #underWay = new Set<(error: Error) => void>();
  #endedAtMs = -Infinity;
  #restarts = 0;
  /** Why the store could not be used last; `null` since it could. */
  #reason: string | null = null;
  #closed: Promise<void> | undefined;
  #onIdle: () => void = () => undefined;

  constructor(options: AdministrationOptions) {
    this.#options = options;
  }

  get restarts(): number {
    return this.#restarts;
  }

  async call<Name extends keyof ConsoleCalls>(
    name: Name,
    ...args: Parameters<ConsoleCalls[Name]>
  ): Promise<AnswerOf<Name>> {
    const remote = this.#remote();
    const outcome = await this.#untilEnd<Outcome>(remote.run(name, args));
    const reason = outcome.ok ? null : outcome.reason;
    if (reason !== null && reason !== this.#reason)
      this.#options.log.error({ reason }, 'the console cannot use the store');
    this.#reason = reason;
    if (!outcome.ok) throw new ConsoleRefusal(outcome.refusal);
    return outcome.answer as AnswerOf<Name>;
  }

  pronounce(...question: Parameters<Pronouncing['pronounce']>): ReturnType<Pronouncing['pronounce']> {
    return this.#untilEnd(this.#remote().pronounce(...question));
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  /** @throws {ConsoleRefusal} it takes no call now */
  #remote(): Remote<Desk> {
    if (this.#closed !== undefined) throw unavailable('The service is stopping.');
    if (this.#underWay.size >= this.#options.bounds.administrationCallsMax)
      throw unavailable('Too many calls wait for the store. Try again in a moment.');
    return (this.#running ??= this.#start()).remote;
  }

  /** A comlink call never settles if the thread dies: its exit fails the calls. */
  async #untilEnd<T>(answer: Promise<T>): Promise<T> {
    let fail: (error: Error) => void = () => undefined;
    const ended = new Promise<never>((_, reject) => (fail = reject));
    this.#underWay.add(fail);
    try {
      return await Promise.race([answer, ended]);
    } finally {
      this.#underWay.delete(fail);
      if (this.#underWay.size === 0) this.#onIdle();
    }
  }

  #start(): { readonly worker: Worker; readonly remote: Remote<Desk> } {
    const { bounds, store, entry } = this.#options;
    if (performance.now() - this.#endedAtMs < bounds.administrationRestartMs)
      throw unavailable('The console is starting again. Try again in a moment.');
    const worker = new Worker(entry ?? new URL('../../workers/administration.js', import.meta.url), {
      name: 'administration',
      workerData: { store, bounds },
      resourceLimits: { maxOldGenerationSizeMb: bounds.administrationHeapMiBMax },
    });
    let reason = 'it ended by itself';
    // An 'error' without a listener would end the process; 'exit' follows it.
    worker.on('error', (error: Error) => (reason = error.message));
    worker.once('exit', () => this.#ended(reason));
    return { worker, remote: wrap<Desk>(nodeEndpoint(worker)) };
  }

  #ended(reason: string): void {
    this.#running = null;
    this.#endedAtMs = performance.now();
    if (this.#closed === undefined) {
      this.#restarts += 1;
      this.#options.log.error({ reason }, 'the administration thread ended');
    }
    const error = unavailable(
      'The console was interrupted. Check whether the change was made, then try again.',
    );
    for (const fail of [...this.#underWay]) fail(error);
  }

  async #close(): Promise<void> {
    const running = this.#running;
    if (running === null) return;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, this.#options.bounds.administrationCloseMsMax);
    });
    const idle = new Promise<void>((resolve) => (this.#onIdle = resolve));
    if (this.#underWay.size > 0) await Promise.race([idle, late]);
    // A thread that died has let go of the store.
    await Promise.race([this.#untilEnd(running.remote.close()), late]).catch(() => undefined);
    clearTimeout(timer);
    await running.worker.terminate();
  }
}

/** Starts no thread yet: the first call does. */
export const startAdministration = (options: AdministrationOptions): ConsoleAdministration => {
  const thread = new AdministrationThread(options);
  const call =
    <Name extends keyof ConsoleCalls>(name: Name) =>
    (...args: Parameters<ConsoleCalls[Name]>): Promise<AnswerOf<Name>> =>
      thread.call(name, ...args);
  return {
    get restarts() {
      return thread.restarts;
    },
    close: () => thread.close(),
    claimed: call('claimed'),
    claimLink: call('claimLink'),
    claim: call('claim'),
    signIn: call('signIn'),
    invitation: call('invitation'),
    acceptInvitation: call('acceptInvitation'),
    device: call('device'),
    session: call('session'),
    liveSessions: call('liveSessions'),
    signOut: call('signOut'),
    changePassword: call('changePassword'),
    tokens: call('tokens'),
    createToken: call('createToken'),
    revokeToken: call('revokeToken'),
    invite: call('invite'),
    invitations: call('invitations'),
    withdrawInvitations: call('withdrawInvitations'),
    users: call('users'),
    removeUser: call('removeUser'),
    accounts: call('accounts'),
    account: call('account'),
    createAccount: call('createAccount'),
    credit: call('credit'),
    meterAccount: call('meterAccount'),
    changeAccount: call('changeAccount'),
    suspendAccount: call('suspendAccount'),
    deleteAccount: call('deleteAccount'),
    key: call('key'),
    keys: call('keys'),
    createKey: call('createKey'),
    changeKey: call('changeKey'),
    revokeKey: call('revokeKey'),
    playgroundKey: call('playgroundKey'),
    usage: call('usage'),
    balance: call('balance'),
    addWord: call('addWord'),
    pronounce: (...question) => thread.pronounce(...question),
    audit: call('audit'),
    record: call('record'),
  };
};
