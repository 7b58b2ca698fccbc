/**
 * The credit that this process may promise of a store that several processes share. No input or output: the caller
 * sends the exchanges, hands in the answers, and brings the clock.
 *
 *     balance of an account >= sum of all allotments
 *     allotment of a process = reserved part (never expires) + free part (expires by the clock of the database)
 *     reserved part = leases + entries that it has not settled + headroom
 *
 * A lease is admitted from the headroom alone, so the database knows each credit that a process can spend, also one that is
 * cut off. Exchanges refill the headroom ahead of need, first from the free part. What is not needed goes back
 * the same way. Until the answer to a give-back is known, that credit counts as given.
 */
import type { Bounds } from '../../limits.js';
import type { Allotment, Allotments, Waiting } from '../allotments.js';
import type { Exchange, Exchanged } from './host-schema.js';

export type CreditBounds = Pick<
  Bounds,
  | 'creditAheadMin'
  | 'creditFreeMs'
  | 'creditFreeMarginMs'
  | 'creditIdleMs'
  | 'creditRetryMs'
  | 'creditWaitMsMax'
  | 'creditWaitsMax'
  | 'storeStaleMsMax'
>;

interface Waiter extends Waiting {
  readonly amount: number;
  readonly sinceMs: number;
  /** Until the database has answered a question that was sent after the wait began, that for the answer; then that for others. */
  deadlineMs: number;
  isAnswered: boolean;
  readonly decide: () => void;
}

interface PendingEntry {
  readonly entry: number;
  readonly amount: number;
}

/** Half of the use is forgotten in this time. */
const RECENT_MS = 10_000;

class Account {
  version = 0;
  reserved = 0;
  settled = 0;
  leases = 0;
  pending: PendingEntry[] = [];
  pendingAmount = 0;
  /** Headroom that is being given back does not count. Valid until an exchange from this turn on is answered. */
  ceiling = Infinity;
  ceilingTurn = 0;
  free = 0;
  /** Monotonic clock, with the margin taken off. */
  freeUntilMs = 0;
  /** An exchange is on its way. */
  isAsking = false;
  /** The last one had no answer: the database may have done it, or may do it until a later one is answered. */
  isUnknown = false;
  /** Not before this time, unless a request waits. */
  askAgainMs = 0;
  waiters: Waiter[] = [];
  /** The call of another process that is not answered; 0 if none. */
  called = 0;
  hasCalled = false;
  isExhausted = false;
  recent = 0;
  lastUseMs = -Infinity;

  get used(): number {
    return this.leases + this.pendingAmount;
  }

  get headroom(): number {
    return Math.min(this.reserved, this.ceiling) - this.used;
  }

  settle(through: number): void {
    const count = this.pending.findIndex(({ entry }) => entry > through);
    for (const { amount } of this.pending.splice(0, count < 0 ? this.pending.length : count))
      this.pendingAmount -= amount;
  }
}

export class HostCredit implements Allotments {
  readonly #bounds: CreditBounds;
  readonly #clock: () => number;
  readonly #onDue: () => void;
  readonly #accounts = new Map<number, Account>();
  /** Accounts that may need an exchange. */
  readonly #due = new Set<number>();
  #turn = 0;
  #waits = 0;

  /**
   * @param clock monotonic, in milliseconds
   * @param onDue an exchange is due: call `exchanges` soon
   */
  constructor(bounds: CreditBounds, clock: () => number, onDue: () => void) {
    this.#bounds = bounds;
    this.#clock = clock;
    this.#onDue = onDue;
  }

  /** Credits that a lease may take now. */
  headroom(accountId: number): number {
    return this.#accounts.get(accountId)?.headroom ?? 0;
  }

  /** A request of a metered account is about to come. */
  expect(accountId: number): void {
    this.#use(accountId, this.#of(accountId), 0);
  }

  /** Why the headroom cannot pay for a request. */
  refusal(accountId: number): 'creditExhausted' | 'unavailable' {
    return this.#accounts.get(accountId)?.isExhausted === true ? 'creditExhausted' : 'unavailable';
  }

  /** @see Allotments.reserve */
  reserve(accountId: number, amount: number, isMetered: boolean): void {
    const account = this.#of(accountId);
    account.leases += amount;
    if (isMetered) this.#use(accountId, account, amount);
  }

  release(accountId: number, amount: number): void {
    const account = this.#of(accountId);
    account.leases -= amount;
    this.#decide(account);
  }

  /** An entry that uses so much was queued. */
  append(accountId: number, entry: number, amount: number): void {
    const account = this.#of(accountId);
    account.pending.push({ entry, amount });
    account.pendingAmount += amount;
  }

  /**
   * Waits until the headroom can pay, or it is clear that nothing can, or others did not give credit back within
   * `creditWaitMsMax` after the database has answered, or it has not answered within `storeStaleMsMax`. Requests of an account
   * wait in their order.
   *
   * @param decide called once, in which `headroom` and `refusal` decide; never from within this call
   * @returns `null`: they can decide now
   */
  wait(accountId: number, amount: number, decide: () => void): Waiting | null {
    const account = this.#of(accountId);
    if (account.waiters.length === 0 && account.headroom >= amount) return null;
    if (this.#waits >= this.#bounds.creditWaitsMax) return null;
    const nowMs = this.#clock();
    const waiter: Waiter = {
      amount,
      decide,
      sinceMs: nowMs,
      deadlineMs: nowMs + this.#bounds.storeStaleMsMax,
      isAnswered: false,
      cancel: () => this.#leave(account, waiter),
    };
    this.#waits += 1;
    account.waiters.push(waiter);
    this.#isDue(accountId);
    return waiter;
  }

  /** Requests that wait. */
  get waiting(): number {
    return this.#waits;
  }

  /** Another process needs credit. */
  called(accountId: number, call: number): void {
    const account = this.#accounts.get(accountId);
    if (account === undefined) return;
    account.called = Math.max(account.called, call);
    this.#isDue(accountId);
  }

  /** Another process gave credit of this account back, or called for some: requests that wait ask again. */
  changed(accountId: number): void {
    const account = this.#accounts.get(accountId);
    if (account !== undefined && account.waiters.length > 0) this.#isDue(accountId);
  }

  /** Entries up to this one are in the database. @param allotments of their accounts, where they have one */
  committed(through: number, accountIds: Iterable<number>, allotments: readonly Allotment[]): void {
    for (const allotment of allotments) {
      const account = this.#accounts.get(allotment.accountId);
      if (account !== undefined) this.#apply(account, allotment);
    }
    for (const accountId of accountIds) {
      const account = this.#accounts.get(accountId);
      account?.settle(through);
      if (account !== undefined) this.#decide(account);
    }
  }

  /** The exchanges that are due. Each must be answered, or reported as failed. */
  exchanges(): Exchange[] {
    const nowMs = this.#clock();
    const due = [...this.#due];
    this.#due.clear();
    return due.flatMap((accountId) => this.#exchangeOf(accountId, nowMs) ?? []);
  }

  answered(answer: Exchanged, sent: Exchange, sentAtMs: number): void {
    const account = this.#accounts.get(answer.accountId);
    if (account === undefined) return;
    account.isAsking = false;
    account.isUnknown = false;
    if (answer.turn >= account.ceilingTurn) account.ceiling = Infinity;
    this.#apply(account, answer);
    account.free = answer.free;
    account.freeUntilMs = sentAtMs + this.#bounds.creditFreeMs - this.#bounds.creditFreeMarginMs;
    if (answer.answered >= account.called) account.called = 0;
    const nowMs = this.#clock();
    account.askAgainMs = nowMs + this.#bounds.creditRetryMs;
    for (const waiter of account.waiters) {
      if (waiter.isAnswered || waiter.sinceMs > sentAtMs) continue;
      waiter.isAnswered = true;
      waiter.deadlineMs = nowMs + this.#bounds.creditWaitMsMax;
    }
    const [first] = account.waiters;
    const isOfFirst = first !== undefined && first.sinceMs <= sentAtMs;
    if (isOfFirst && sent.mayCall) account.hasCalled = true;
    // All who had credit have answered, and have taken more since: they are called again.
    const mustCall = answer.unanswered === 0 && answer.idleElsewhere > 0;
    if (mustCall) account.hasCalled = false;
    this.#decide(account, isOfFirst ? answer : undefined);
    const isLeft = account.waiters.length > 0 && (mustCall || account.waiters[0] !== first || !isOfFirst);
    if (account.called > 0 || isLeft) this.#isDue(answer.accountId);
  }

  /** No answer came. */
  failed(sent: Exchange): void {
    const account = this.#accounts.get(sent.accountId);
    if (account === undefined) return;
    account.isAsking = false;
    account.isUnknown = true;
    account.askAgainMs = this.#clock() + this.#bounds.creditRetryMs;
  }

  /** Call it several times a second: ends waits, finds what is idle, and repeats what failed. */
  beat(): void {
    const nowMs = this.#clock();
    for (const [accountId, account] of this.#accounts) {
      this.#decide(account);
      if (account.isAsking) continue;
      const isWanted = account.waiters.length > 0 || account.called > 0;
      const isDue = isWanted || (nowMs >= account.askAgainMs && this.#isOff(account, nowMs));
      if (isDue) this.#isDue(accountId);
      else if (this.#isForgotten(account, nowMs)) this.#accounts.delete(accountId);
    }
  }

  /** Ends all waits: the service closes. */
  close(): void {
    for (const account of this.#accounts.values())
      for (const waiter of [...account.waiters]) this.#end(account, waiter);
  }

  #of(accountId: number): Account {
    const known = this.#accounts.get(accountId);
    if (known !== undefined) return known;
    const account = new Account();
    this.#accounts.set(accountId, account);
    return account;
  }

  #use(accountId: number, account: Account, amount: number): void {
    const nowMs = this.#clock();
    account.recent = this.#recentOf(account, nowMs) + amount;
    account.lastUseMs = nowMs;
    if (nowMs >= account.askAgainMs && account.headroom < this.#aheadOf(account, nowMs) / 2)
      this.#isDue(accountId);
  }

  #isDue(accountId: number): void {
    this.#due.add(accountId);
    this.#onDue();
  }

  #recentOf({ recent, lastUseMs }: Account, nowMs: number): number {
    return recent === 0 ? 0 : recent * 2 ** ((lastUseMs - nowMs) / RECENT_MS);
  }

  /** Headroom to have: 0 for an idle account. */
  #aheadOf(account: Account, nowMs = this.#clock()): number {
    if (nowMs - account.lastUseMs >= this.#bounds.creditIdleMs) return 0;
    return Math.ceil(Math.max(this.#bounds.creditAheadMin, 2 * this.#recentOf(account, nowMs)));
  }

  /** Too little headroom, too much, or a free part that must be renewed or given back. */
  #isOff(account: Account, nowMs: number): boolean {
    if (account.isUnknown) return true;
    const ahead = this.#aheadOf(account, nowMs);
    if (ahead === 0) return account.headroom > 0 || account.free > 0;
    return account.headroom < ahead / 2 || account.headroom > 2 * ahead || nowMs >= account.freeUntilMs;
  }

  #isForgotten(account: Account, nowMs: number): boolean {
    const { reserved, free, leases, pending, waiters, isUnknown } = account;
    const isEmpty = reserved === 0 && free === 0 && leases === 0 && pending.length + waiters.length === 0;
    return isEmpty && !isUnknown && this.#aheadOf(account, nowMs) === 0;
  }

  #exchangeOf(accountId: number, nowMs: number): Exchange | null {
    const account = this.#accounts.get(accountId);
    if (account === undefined || account.isAsking) return null;
    const { used, called, headroom } = account;
    const [first, ...others] = account.waiters;
    const isAnswer = called > 0;
    const ahead = isAnswer ? 0 : this.#aheadOf(account, nowMs);
    const needed = used + (first?.amount ?? 0);
    const gives = isAnswer || (first === undefined && headroom > 2 * ahead);
    const exchange: Exchange = {
      turn: ++this.#turn,
      ...{ accountId, used, needed },
      ahead: isAnswer ? 0 : ahead + others.reduce((sum, { amount }) => sum + amount, 0),
      free: ahead,
      keep: gives ? used + ahead : null,
      mayCall: first !== undefined && !account.hasCalled,
      answers: called,
      settled: account.settled,
    };
    account.isAsking = true;
    if (exchange.keep !== null) {
      account.ceiling = Math.min(account.ceiling, exchange.keep);
      account.ceilingTurn = exchange.turn;
    }
    return exchange;
  }

  #apply(account: Account, { version, reserved, settled }: Allotment): void {
    if (version <= account.version) return;
    account.version = version;
    account.reserved = reserved;
    account.settled = settled;
    account.settle(settled);
  }

  /** Decides on the requests that wait, in their order. @param answer that has just come */
  #decide(account: Account, answer?: Exchanged): void {
    const nowMs = this.#clock();
    for (;;) {
      const [first] = account.waiters;
      if (first === undefined) return;
      const isExhausted = answer !== undefined && this.#isTooMuch(account, first, answer);
      if (account.headroom < first.amount && nowMs < first.deadlineMs && !isExhausted) return;
      account.isExhausted = isExhausted;
      this.#end(account, first);
      account.isExhausted = false;
      // The answer is about the first request only.
      answer = undefined;
    }
  }

  /** All hosts together have too little for it. */
  #isTooMuch(account: Account, { amount }: Waiter, answer: Exchanged): boolean {
    const { balance, room, unanswered, idleElsewhere } = answer;
    const wanted = account.used + amount;
    return (
      balance < wanted || (room < wanted && unanswered === 0 && idleElsewhere === 0 && account.hasCalled)
    );
  }

  #end(account: Account, waiter: Waiter): void {
    if (this.#leave(account, waiter)) waiter.decide();
  }

  /** @returns false if it does not wait any more */
  #leave(account: Account, waiter: Waiter): boolean {
    const index = account.waiters.indexOf(waiter);
    if (index < 0) return false;
    account.waiters.splice(index, 1);
    this.#waits -= 1;
    account.hasCalled = false;
    return true;
  }
}
