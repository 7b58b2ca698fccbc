/**
 * Who is signed in, and their open streams: speech, WebSockets and live views end with the session that opened them.
 */
import type { OpenedSession } from '../accounts/sessions.js';
import { hashToken, isProgramToken } from '../accounts/tokens.js';
import { KeyedBudget, type Member } from '../byte-budget.js';
import type { Exchange } from '../front/exchange.js';
import { withoutBearer, type RequestHead } from '../front/request-head.js';
import type { Bounds } from '../limits.js';
import type { Clock } from '../monotonic.js';
import { networkOf } from '../network.js';
import type { Log } from '../log.js';
import { describeFault } from '../fault.js';
import { Latest } from '../latest.js';
import type { ConsoleAdministration } from './administration.js';
import { signedOut } from './answers.js';
import type { CallOrder } from './call-order.js';
import type { User } from './contract.js';
import type { Cookies } from './headers.js';
import { ConsoleRefusal } from './refusal.js';
import { addressOf } from './throttle.js';

export interface Session {
  readonly user: User;
  readonly tokenHash: string;
  /** A program's, by a token of the user. */
  readonly isProgram: boolean;
}

/** Where a request shows who makes it: a program in `authorization`, a browser by its cookie. */
type Shown = Pick<RequestHead, 'authorization' | 'cookie'>;

/** A proxy in front may ask for a password of its own, which browsers send in the same header. */
export const isOfProgram = ({ authorization }: Pick<RequestHead, 'authorization'>): boolean =>
  /^Bearer /i.test(authorization);

export interface SessionsParts {
  readonly administration: Pick<ConsoleAdministration, 'session' | 'lastSessions' | 'liveSessions'>;
  readonly cookies: Cookies;
  readonly order: CallOrder;
  readonly clock: Clock;
  readonly bounds: Bounds;
  readonly log: Log;
}

/** What streams may have of the connections. The others are for calls: those of an operator, above all. */
const PART_OF_STREAMS = 3 / 4;

/** Sessions that were found last. */
const FOUND_MAX = 4_096;

/** Whose streams and connections are counted together: an account's, or one operator's. */
export const holderOf = ({ accountId, userId }: User): Member => accountId ?? `operator ${userId}`;

/** Ends speech, a WebSocket or a live view now. Its owner then calls what `open` returned. */
export type EndStream = () => void;

export class Sessions {
  readonly #parts: SessionsParts;
  readonly #streams = new Map<string, Set<EndStream>>();
  readonly #budget: KeyedBudget;
  /** Whose they are, by the hashes of their tokens. From before a start, the holder of their streams is not known. */
  readonly #found = new Latest<string, { readonly userId: number; readonly holder?: Member }>(FOUND_MAX);
  /** What the store says, and when it was asked: `Infinity` until then. */
  readonly #lookUps = new Latest<string, { atMs: number; readonly answer: Promise<unknown> }>(FOUND_MAX);
  #timer: NodeJS.Timeout | undefined;
  #isChecking = false;

  constructor(parts: SessionsParts) {
    this.#parts = parts;
    const { consoleConnectionsMax, slotsPerKey } = parts.bounds;
    this.#budget = new KeyedBudget(Math.floor(consoleConnectionsMax * PART_OF_STREAMS), slotsPerKey);
  }

  /** Hash of the session's token that the client sent; `null` if it sent none. */
  hashIn(head: Shown): string | null {
    const isProgram = isOfProgram(head);
    const token = isProgram ? withoutBearer(head.authorization) : this.#parts.cookies.session(head);
    // A token in a cookie, or a browser's session in the header, would be what it is not.
    return token === null || isProgramToken(token) !== isProgram ? null : hashToken(token);
  }

  /** Reads the sessions from before a start: a flood from the address of their users must not keep them out. Tries until they are read. */
  async recall(): Promise<void> {
    try {
      for (const { hash, userId } of await this.#parts.administration.lastSessions(FOUND_MAX))
        this.#found.add(hash, { userId });
    } catch (error) {
      this.#report(error);
      setTimeout(() => void this.recall(), this.#parts.bounds.consoleSessionRecheckMs).unref();
    }
  }

  /** A user has signed in. This may have ended an older session of the user. */
  began({ token, user }: Pick<OpenedSession, 'token' | 'user'>): void {
    this.#lookUps.clear();
    this.#found.add(hashToken(token), { userId: user.userId, holder: holderOf(user) });
  }

  /**
   * The user, and not the session: who signs in again and again may not call more often.
   *
   * @returns a name of the user whose session the client shows, if it was found lately
   */
  nameIn(head: Shown): string | null {
    const tokenHash = this.hashIn(head);
    const found = tokenHash === null ? undefined : this.#found.get(tokenHash);
    return found === undefined ? null : `user ${found.userId}`;
  }

  /** @returns why the client may open no stream, as far as this is known without the store */
  refusalOf(head: Shown): ConsoleRefusal | null {
    const tokenHash = this.hashIn(head);
    if (tokenHash === null) return signedOut(isOfProgram(head));
    const holder = this.#found.get(tokenHash)?.holder;
    return holder === undefined ? null : this.#refusalOf(tokenHash, holder);
  }

  /** @returns why a session may open no further stream */
  #refusalOf(tokenHash: string, holder: Member): ConsoleRefusal | null {
    const refuse = (message: string) => new ConsoleRefusal('tooManyAttempts', message);
    if ((this.#streams.get(tokenHash)?.size ?? 0) >= this.#parts.bounds.consoleStreamsPerSessionMax)
      return refuse('This browser has too many streams open. Close some of its windows.');
    return this.#budget.refusal(holder, 1) === null
      ? null
      : refuse('Too many streams are open for your account. Close some of its windows.');
  }

  /** Asks the store once for all requests of a moment, and one thing after another for a caller: no caller fills the queue of the thread. */
  lookUp<T>(name: string, caller: Member, ask: () => Promise<T>): Promise<T> {
    const { bounds, clock, order } = this.#parts;
    const known = this.#lookUps.get(name);
    if (known !== undefined && clock() - known.atMs < bounds.consoleSessionRecheckMs)
      return known.answer as Promise<T>;
    const made = () => {
      asked.atMs = clock();
      return ask();
    };
    const answer = order.run(`look-ups of ${caller}`, () => false, made);
    const asked = { atMs: Infinity, answer };
    answer.catch(() => (asked.atMs = -Infinity));
    this.#lookUps.delete(name);
    this.#lookUps.add(name, asked);
    return answer;
  }

  /**
   * @param counts its connection counts for the account; a WebSocket's counts itself
   * @throws {ConsoleRefusal} the connections of its account are too many, or its look-ups
   */
  async find(exchange: Exchange, head: RequestHead, counts = true): Promise<Session | null> {
    const tokenHash = this.hashIn(head);
    if (tokenHash === null) return null;
    const known = this.#found.get(tokenHash)?.holder ?? this.nameIn(head);
    const caller = known ?? `strangers of ${networkOf(addressOf(exchange, head))}`;
    const user = await this.lookUp(tokenHash, caller, () => this.#parts.administration.session(tokenHash));
    if (user === null) {
      this.#found.delete(tokenHash);
      return null;
    }
    const holder = holderOf(user);
    this.#found.delete(tokenHash);
    this.#found.add(tokenHash, { userId: user.userId, holder });
    if (counts) exchange.countFor(holder);
    if (counts && !exchange.services.connections.hasRoomFor(holder)) {
      exchange.noteRefusal('connectionsOfAccountExhausted');
      throw new ConsoleRefusal(
        'unavailable',
        'Your account has too many connections open. Close some of its windows.',
      );
    }
    return { user, tokenHash, isProgram: isOfProgram(head) };
  }

  /** @throws {ConsoleRefusal} `signedOut`, or as `find` */
  async demand(exchange: Exchange, head: RequestHead, counts = true): Promise<Session> {
    const session = await this.find(exchange, head, counts);
    if (session === null) throw signedOut(isOfProgram(head));
    return session;
  }

  /**
   * Registers an open stream.
   *
   * @returns for the owner to call when the stream has ended; idempotent
   * @throws {ConsoleRefusal} the session, or its account, has too many streams
   */
  open({ tokenHash, user }: Session, end: EndStream): () => void {
    const holder = holderOf(user);
    const refusal = this.#refusalOf(tokenHash, holder);
    if (refusal !== null) throw refusal;
    this.#budget.take(holder, 1);
    const open = this.#streams.get(tokenHash) ?? new Set();
    open.add(end);
    this.#streams.set(tokenHash, open);
    this.#timer ??= setInterval(() => void this.check(), this.#parts.bounds.consoleSessionRecheckMs).unref();
    return () => {
      if (!open.delete(end)) return;
      this.#budget.giveBack(holder, 1);
      if (open.size === 0 && this.#streams.get(tokenHash) === open) this.#streams.delete(tokenHash);
      if (this.#streams.size === 0) this.close();
    };
  }

  /** Ends the streams that may not continue; further requests look their session up again. While the store cannot be read, all streams continue. */
  async check(): Promise<void> {
    this.#lookUps.clear();
    if (this.#isChecking || this.#streams.size === 0) return;
    this.#isChecking = true;
    try {
      const asked = [...this.#streams.keys()];
      const live = new Set(await this.#parts.administration.liveSessions(asked));
      for (const tokenHash of asked) if (!live.has(tokenHash)) this.#endAll(tokenHash);
    } catch (error) {
      this.#report(error);
    } finally {
      this.#isChecking = false;
    }
  }

  /** Stops the checks. Idempotent. */
  close(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** A store that cannot be used now is in the log already. */
  #report(error: unknown): void {
    if (!(error instanceof ConsoleRefusal))
      this.#parts.log.error(describeFault(error), 'the sessions of the console cannot be read');
  }

  #endAll(tokenHash: string): void {
    for (const end of [...(this.#streams.get(tokenHash) ?? [])]) end();
  }
}
