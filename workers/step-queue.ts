/** Which job of a synthesis thread runs its next step. */
import { type Clock, monotonicMs } from '../src/monotonic.js';
import type { PlaybackClock } from '../src/threads/playback-clock.js';
import type { Batches } from './engines/engine.js';

/** What decides with which others a step can run as one. */
export interface BatchStep {
  /** Its engine must make batches, and be that of the others. */
  readonly engine: Pick<Batches, 'batchMax'> | undefined;
  /** The same for all of them. */
  readonly window: number;
}

/** When a caller's step is due, and what may precede it. */
export interface StepDue {
  /** When its sample plays, or is due. It moves. */
  readonly dueMs: () => number;
  /** What its group has had, as the clock of one listener. No step of the group is due before. */
  readonly share?: { readonly group: number; readonly clock: PlaybackClock } | undefined;
  /** `first`: its listener waits for first audio. `file`: a whole file, which no listener plays yet. */
  readonly urgency?: 'playing' | 'first' | 'file';
  /** Accounts take turns with first audio. */
  readonly account?: string;
}

interface WaitingStep<Step> extends StepDue {
  /** When other first audio of its account was last made. */
  accountMs: number;
  /** Of a long step; else 0. */
  readonly longMs: number;
  readonly step: Step | undefined;
  readonly resolve: (others: Step[]) => void;
}

/** A listener with less audio in hand than this goes before first audio: otherwise a burst would make others run dry. */
const PLAYING_MS = 100;
/** A margin for the next steps: they may take this many times as long as steps took lately. */
const STEP_MARGIN = 1.25;
/** The weight of the newest step in the mean duration of steps. */
const NEWEST_STEP = 0.1;
/** First audio does not let a listener go first whose account has so many times the jobs of its own with the thread. */
const LARGER_TIMES = 4;
/** When first audio has waited for so long, the next one goes before all that is due later. */
const FIRST_WAIT_MS = 500;
/** A listener with less than this in hand goes before whole files. */
export const BEFORE_FILES_MS = 400;
/** Whole files that are late get this part of the thread's time at least. */
const FILES_PART = 0.1;

interface RankedStep<Step> {
  readonly waiting: WaitingStep<Step>;
  /** With what it lets go first. */
  readonly dueMs: number;
  /** With what its group has had. */
  readonly sharedMs: number;
  readonly ownMs: number;
}

/** @param firstMs of first audio: when its step counts as due */
const rankOf = <Step>(waiting: WaitingStep<Step>, nowMs: number, firstMs?: number): RankedStep<Step> => {
  const { share, urgency, accountMs, longMs } = waiting;
  const ownMs = waiting.dueMs();
  const shareMs = share?.clock.at() ?? Number.NEGATIVE_INFINITY;
  const sharedMs = Math.max(ownMs, shareMs, accountMs);
  // However early it is due: what listeners with much in hand would get, they do not need now.
  if (urgency === 'file')
    return { waiting, ownMs, sharedMs, dueMs: nowMs + Math.max(BEFORE_FILES_MS, longMs) };
  return { waiting, ownMs, sharedMs, dueMs: Math.max(shareMs, firstMs ?? ownMs) };
};

const earlier = <Step>(a: RankedStep<Step>, b: RankedStep<Step>): number =>
  a.dueMs - b.dueMs || a.sharedMs - b.sharedMs || a.ownMs - b.ownMs;

const isEarlier = <Step>(a: RankedStep<Step>, b: RankedStep<Step> | undefined): boolean =>
  b === undefined || earlier(a, b) < 0;

/**
 * Decides which job runs the next step. Steps run one at a time. When one ends, the job with the earliest playback
 * deadline runs the next, which may be the same one: so a new utterance waits for a step, never for a segment. A job that
 * counts for a group is not due before the group has had its share. Within the group the job's own deadline decides.
 *
 * First audio lets listeners go first who would run dry behind it, and whole files let all go first who have little in hand. Files that
 * are late get a part of the time in any case. An account whose first audio was just made lets those go first that have waited
 * since then: so many requests of one account do not make another wait.
 *
 * A long step cannot be interrupted. It lets short ones go first that are due before its end, but waits for them no longer
 * than it takes itself.
 *
 * On a GPU several steps run as one: with the one that is due first, those that wait and have the same window, the most urgent
 * first. None waits for others to come.
 */
export class StepQueue<Step extends BatchStep = BatchStep> {
  readonly #clock: Clock;
  readonly #size: number;
  readonly #waiting = new Set<WaitingStep<Step>>();
  #taken = 0;
  /** Accounts whose first audio was chosen since the last choice. */
  readonly #begun = new Set<string>();
  /** The mean duration of a listener's step. */
  #stepMs = 0;
  /** When the step began that runs now, and whether it is that of a whole file. Of a queue for one at a time. */
  #sinceMs = 0;
  #runsFile = false;
  /** From then on a file that is late goes first. */
  #fileFromMs = Number.NEGATIVE_INFINITY;

  /** @param clock of the deadlines @param size the most callers that run at a time */
  constructor(clock: Clock = monotonicMs, size = 1) {
    this.#clock = clock;
    this.#size = size;
  }

  /**
   * Resolves when the caller's step may run; `leave` ends it. Reads the deadlines at each choice, because they move.
   *
   * @param step absent: it runs alone
   * @returns the steps of others that the caller runs with its own. Their `enter` never resolves
   */
  enter(due: StepDue, longMs = 0, step?: Step): Promise<Step[]> {
    return new Promise((resolve) => {
      this.#waiting.add({ ...due, accountMs: Number.NEGATIVE_INFINITY, longMs, step, resolve });
      if (this.#taken < this.#size) this.#next();
    });
  }

  /** Steps of the group that wait. */
  waitingOf(group: number): number {
    let waiting = 0;
    for (const { share } of this.#waiting) if (share?.group === group) waiting++;
    return waiting;
  }

  /** @param steps that ran for listeners and are not long */
  leave(steps = 0): void {
    const nowMs = this.#clock();
    const tookMs = nowMs - this.#sinceMs;
    if (this.#runsFile) this.#fileFromMs = nowMs + tookMs * (1 / FILES_PART - 1);
    else if (steps > 0) this.#stepMs += NEWEST_STEP * (tookMs / steps - this.#stepMs);
    this.#runsFile = false;
    // After the messages that arrived during the step: they may bring a job that is more urgent than all that wait. The
    // caller may enter again meanwhile.
    setImmediate(() => {
      this.#taken--;
      this.#next();
    });
  }

  readonly #next = (): void => {
    const nowMs = this.#clock();
    for (const waiting of this.#waiting)
      if (waiting.urgency === 'first' && this.#begun.has(waiting.account ?? '')) waiting.accountMs = nowMs;
    this.#begun.clear();
    let long: RankedStep<Step> | undefined;
    let short: RankedStep<Step> | undefined;
    let file: RankedStep<Step> | undefined;
    for (const ranked of this.#ranked(nowMs)) {
      const { waiting } = ranked;
      if (waiting.urgency === 'file') file = isEarlier(ranked, file) ? ranked : file;
      else if (waiting.longMs > 0) long = isEarlier(ranked, long) ? ranked : long;
      else short = isEarlier(ranked, short) ? ranked : short;
    }
    const played = short === undefined ? long : this.#firstOf(short, long, nowMs);
    const isFilesTurn = file !== undefined && file.ownMs <= nowMs && nowMs >= this.#fileFromMs;
    const next = file !== undefined && (isFilesTurn || isEarlier(file, played)) ? file : played;
    if (next === undefined) return;
    // Of a queue for several at a time nobody knows which of them leaves.
    this.#runsFile = next === file && this.#size === 1;
    this.#sinceMs = nowMs;
    this.#taken++;
    this.#take(next);
    next.waiting.resolve(this.#othersFor(next, nowMs));
  };

  #ranked(nowMs: number): RankedStep<Step>[] {
    const jobs = new Map<string | undefined, number>();
    const firsts: WaitingStep<Step>[] = [];
    const ranked: RankedStep<Step>[] = [];
    for (const waiting of this.#waiting) {
      const { account, urgency } = waiting;
      if (urgency !== 'file') jobs.set(account, (jobs.get(account) ?? 0) + 1);
      if (urgency === 'first') firsts.push(waiting);
      else ranked.push(rankOf(waiting, nowMs));
    }
    const playing = ranked
      .filter(({ waiting }) => waiting.urgency !== 'file')
      .sort((a, b) => a.dueMs - b.dueMs);
    const jobsOfPlaying = jobs.get(playing[0]?.waiting.account) ?? 0;
    const awaitedMs = Math.min(...firsts.map(({ dueMs }) => dueMs()));
    const yieldsMs = new Map<number | undefined, number>();
    for (const first of firsts) {
      const group = first.share?.group;
      const firstMs = yieldsMs.get(group) ?? this.#firstMs(playing, group, nowMs);
      yieldsMs.set(group, firstMs);
      const isSmall = LARGER_TIMES * jobs.get(first.account)! < jobsOfPlaying;
      ranked.push(
        rankOf(first, nowMs, isSmall ? first.dueMs() : Math.min(firstMs, awaitedMs + FIRST_WAIT_MS)),
      );
    }
    return ranked;
  }

  /**
   * When first audio of a group counts as due. It goes now if each listener still gets its step in time: a step waits for
   * first audio and for earlier steps. A group counts as one listener, so of its own only one who would run dry goes first;
   * while the group is ahead of its share, the own deadlines decide.
   */
  #firstMs(playing: readonly RankedStep<Step>[], group: number | undefined, nowMs: number): number {
    const stepMs = this.#stepMs * STEP_MARGIN;
    let firstMs = nowMs + PLAYING_MS;
    for (const [before, other] of playing.entries()) {
      const isOwn = group !== undefined && other.waiting.share?.group === group;
      const inHandMs = (isOwn ? other.ownMs : other.dueMs) - nowMs;
      // First audio always goes before whole files.
      if (inHandMs <= Math.max(isOwn ? 0 : PLAYING_MS, (before + 2) * stepMs))
        return Math.min(playing[0]!.dueMs + 1, nowMs + BEFORE_FILES_MS - 1);
      if (isOwn) firstMs = Math.min(firstMs, other.dueMs);
    }
    return firstMs;
  }

  #take({ waiting }: RankedStep<Step>): void {
    this.#waiting.delete(waiting);
    if (waiting.urgency === 'first' && waiting.account !== undefined) this.#begun.add(waiting.account);
  }

  #firstOf(short: RankedStep<Step>, long: RankedStep<Step> | undefined, nowMs: number): RankedStep<Step> {
    if (long === undefined || !isEarlier(long, short)) return short;
    const { longMs } = long.waiting;
    return short.dueMs < nowMs + longMs && nowMs < long.dueMs + longMs ? short : long;
  }

  /** Takes the steps that run with this one. */
  #othersFor({ waiting: { step: first, share } }: RankedStep<Step>, nowMs: number): Step[] {
    const count = (first?.engine?.batchMax ?? 1) - 1;
    if (first === undefined || count < 1) return [];
    const isFit = ({ step, longMs }: WaitingStep<Step>) =>
      step !== undefined && longMs === 0 && step.engine === first.engine && step.window === first.window;
    const ranked = this.#ranked(nowMs)
      .filter(({ waiting }) => isFit(waiting))
      .toSorted(earlier);
    // A group counts as one listener, which has one step in a batch. Its others get the places that are left.
    const groups = new Set(share === undefined ? [] : [share.group]);
    const others: RankedStep<Step>[] = [];
    const rest: RankedStep<Step>[] = [];
    for (const one of ranked) {
      const group = one.waiting.share?.group;
      if (group !== undefined && groups.has(group)) rest.push(one);
      else others.push(one);
      if (group !== undefined) groups.add(group);
    }
    const chosen = [...others, ...rest].slice(0, count);
    for (const one of chosen) this.#take(one);
    return chosen.map(({ waiting }) => waiting.step!);
  }
}
