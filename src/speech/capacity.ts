/**
 * Whether the machine can speak one more utterance: the one rule of admission. Time, costs and demands are handed in.
 *
 *   An utterance is refused only if the machine cannot make, second by second, the speech that its admitted listeners play
 *   and a little in hand, with this one in addition.
 *
 * A listener with so much in hand needs nothing until that is played, then a second of speech each second until its
 * utterance ends. Added up over all listeners, weighted by what their voices and encodings cost, this is the work that must
 * be done within the first second from now, within the first two, and so on. If each sum fits what the machine can do in that
 * time, the earliest deadline first serves everyone. First audio may take 150 ms. In the first second in
 * which that does not suffice it may take a whole second: so a burst is no overload.
 *
 * The machine has four supplies: synthesis threads, those of them that run long steps, actor threads, and the cores that
 * other programs leave to all of them. The rule holds for each. An idle thread is never left idle: one utterance for each is
 * admitted, however slow its voice.
 *
 * A listener is to have some more in hand than it plays: less of that in a burst, and still less for a small account, for
 * which first audio may take a second, too. So one account that fills the machine does not keep out the others.
 *
 * The contexts of a WebSocket are one group, and have one slot. For others the group counts as one listener; its further
 * contexts get what is left. Whole files have no listener. They get what listeners leave, and are never refused here.
 */
import type { Encoding } from '../api/formats.js';
import type { LongStep } from '../threads/voices.js';
import type { Costs } from './costs.js';

/** What a listener still needs. */
export interface Demand {
  /** The name of the account that pays. */
  readonly account: string;
  /** Contexts with the same group share a slot. */
  readonly group: object | string;
  readonly voiceId: string;
  readonly encoding: Encoding;
  /** Speech to be made. */
  readonly remainingMs: number;
  /** Until its listener has nothing left to play. Negative: since when it waits. */
  readonly slackMs: number;
  /** Its listener waits for first audio. */
  readonly isAwaiting: boolean;
}

export interface Supply {
  readonly synthesisThreads: number;
  /** Those of them that run long steps. */
  readonly longThreads: number;
  readonly actorThreads: number;
  /** What other programs leave. */
  readonly cores: number;
}

/** Where the rule is tightest. */
export interface Fullness {
  /** Work that is asked for, as a part of what is promised; above 1 the rule refuses. */
  readonly ratio: number;
  readonly supply: 'synthesis threads' | 'threads for long steps' | 'actor threads' | 'cores';
  /** Within so many seconds from now. */
  readonly withinSeconds: number;
  /** Speech that is asked for within that time, and the CPU time that it takes, of which first steps, in milliseconds. */
  readonly speechMs: number;
  readonly askedMs: number;
  readonly firstStepsMs: number;
  /** CPU time that is promised within that time, in milliseconds. */
  readonly promisedMs: number;
  /** Cores that other programs leave. */
  readonly cores: number;
  /** Admitted contexts with speech to be made for a listener, and those of them that wait for first audio. */
  readonly listeners: number;
  readonly waiting: number;
  /** How long first audio may take now, and what a listener is to have in hand, in milliseconds. */
  readonly firstAudioMsMax: number;
  readonly inHandMs: number;
}

/** An account is small beside one that has so many times its listeners. */
const LARGER_TIMES = 4;
/** A burst lasts this long. The next one can begin after `CALM_MS` in which the usual time was enough for everyone. */
const BURST_MS = 1_000;
const CALM_MS = 5_000;
/**
 * What the rule asks for each listener: how long it may wait for first audio before anybody is refused for it, and what it is to
 * have in hand, because an engine makes whole chunks of up to a second, and threads are not equally busy. `promised` is the
 * part of the supply for it: the rest covers errors of the estimates, and whole files; in the first seconds of a burst also
 * answers and refusals, which no figure has yet. `small`: when a small account asks beside a large one.
 */
const terms = {
  usual: { firstAudioMsMax: 150, inHandMs: 1_600, promised: 0.9 },
  burst: { firstAudioMsMax: 1_000, inHandMs: 1_000, promised: 0.7 },
  small: { firstAudioMsMax: 1_000, inHandMs: 500, promised: 0.9 },
} as const;
type Terms = keyof typeof terms;
/** After so many seconds what a burst brings has been measured. */
const UNMEASURED_SECONDS = 2;
/** In hand is not more than this work makes, in milliseconds of CPU time: slow voices have short chunks. */
const IN_HAND_CPU_MS = 25;
/**
 * How many seconds ahead the rule looks: at each of the first, and then far beyond what a fast reader may have in hand, because
 * it needs speech again when that is played.
 */
const HORIZONS = [...Array.from({ length: 24 }, (_, second) => second + 1), 32, 48, 64, 96, 128, 192, 256];
/** A small account is admitted if all are served for so many seconds: one that fills the machine must leave room. */
const SMALL_SECONDS = 24;

/** The counted demands are used for this long; utterances admitted meanwhile are added to them. */
const COUNT_KEPT_MS = 20;
/** And for so long for each demand beyond 50. Counting one takes about 1 us, so a count of 50 takes less than a refusal does. */
const DEMAND_KEPT_MS = 0.02;

/** Work by kind, within each horizon: at `kind + place`, in milliseconds of CPU time; and the speech that it makes. */
type Work = Float64Array;
const SYNTHESIS = 0;
const LONG = HORIZONS.length;
const ENCODING = 2 * HORIZONS.length;
const SPEECH = 3 * HORIZONS.length;
const FIRST_STEPS = 4 * HORIZONS.length;
const noWork = (): Work => new Float64Array(5 * HORIZONS.length);

const addTo = (sum: Work, work: Work, sign = 1): void => {
  for (let i = 0; i < sum.length; i++) sum[i] = sum[i]! + sign * work[i]!;
};

/** The counted demands, and sums over them. */
class Load {
  /** Contexts with speech to be made, by whether their voice has long steps. */
  readonly busy = { short: 0, long: 0 };
  /** Those of them that wait for first audio. */
  waiting = 0;
  readonly #options: CapacityOptions;
  readonly #listenersOf = new Map<string, number>();
  readonly #groups = new Map<object | string, Demand[]>();
  /** Each group counts as one listener. */
  readonly #fair = new Map<Terms, Work>();

  constructor(options: CapacityOptions) {
    this.#options = options;
  }

  get listeners(): number {
    return this.busy.short + this.busy.long;
  }

  /** Another account has many times the listeners that this one would have with one more. */
  isSmall(account: string): boolean {
    const own = (this.#listenersOf.get(account) ?? 0) + 1;
    return Math.max(0, ...this.#listenersOf.values()) >= LARGER_TIMES * own;
  }

  isLong({ voiceId }: Demand): boolean {
    return this.#options.longStepOf?.(voiceId) !== undefined;
  }

  add(demand: Demand): void {
    const { account, group: key, isAwaiting } = demand;
    this.#listenersOf.set(account, (this.#listenersOf.get(account) ?? 0) + 1);
    this.busy[this.isLong(demand) ? 'long' : 'short']++;
    if (isAwaiting) this.waiting++;
    const group = this.#groups.get(key) ?? [];
    this.#groups.set(key, group);
    for (const [on, sum] of this.#fair) addTo(sum, this.#mostOf(group, on), -1);
    group.push(demand);
    for (const [on, sum] of this.#fair) addTo(sum, this.#mostOf(group, on));
  }

  /** What all listeners ask for. */
  fair(on: Terms): Work {
    let sum = this.#fair.get(on);
    if (sum !== undefined) return sum;
    sum = noWork();
    for (const group of this.#groups.values()) addTo(sum, this.#mostOf(group, on));
    this.#fair.set(on, sum);
    return sum;
  }

  /** The same with an utterance in addition. Its group competes with its own further contexts, not with those of others. */
  with(utterance: Demand, on: Terms): Work {
    const sum = this.fair(on).slice();
    const group = this.#groups.get(utterance.group) ?? [];
    addTo(sum, this.#mostOf(group, on), -1);
    for (const demand of [...group, utterance]) addTo(sum, this.#workOf(demand, on));
    return sum;
  }

  /** What a group counts for others: at each second, as much as the context of it that needs most. Used at once. */
  #mostOf(group: readonly Demand[], on: Terms): Work {
    if (group.length === 1) return this.#workOf(group[0]!, on);
    const most = noWork();
    for (const demand of group) {
      const work = this.#workOf(demand, on);
      for (let i = 0; i < most.length; i++) if (work[i]! > most[i]!) most[i] = work[i]!;
    }
    return most;
  }

  /** Used at once: the next call overwrites it. */
  readonly #work = noWork();
  #workOf(demand: Demand, on: Terms): Work {
    const { voiceId, encoding, remainingMs, slackMs, isAwaiting } = demand;
    const { firstAudioMsMax, inHandMs } = terms[on];
    const { costs } = this.#options;
    const { cpu, beginMs } = costs.voices.of(voiceId);
    const encodingCpu = costs.encodings.of(encoding).cpu;
    const isLong = this.isLong(demand);
    const dryMs = Math.max(0, slackMs + (isAwaiting ? firstAudioMsMax : 0));
    const aheadMs = Math.min(inHandMs, IN_HAND_CPU_MS / cpu);
    // A long first step is no more than the speech that it makes.
    const firstStepMs = isAwaiting && !isLong ? beginMs : 0;
    const work = this.#work;
    for (const [i, seconds] of HORIZONS.entries()) {
      const endMs = seconds * 1_000;
      const playedMs = endMs - dryMs;
      // Who begins has a chunk in hand, and gets the rest while it plays: a crowd must not ask for all of it at once.
      const reserveMs = isAwaiting ? Math.min(aheadMs, playedMs) : aheadMs;
      const speechMs = playedMs > 0 ? Math.min(remainingMs, playedMs + reserveMs) : 0;
      work[SYNTHESIS + i] = playedMs > 0 ? speechMs * cpu + firstStepMs : 0;
      work[LONG + i] = isLong ? speechMs * cpu : 0;
      work[ENCODING + i] = speechMs * encodingCpu;
      work[SPEECH + i] = speechMs;
      work[FIRST_STEPS + i] = playedMs > 0 ? firstStepMs : 0;
    }
    return work;
  }
}

export interface CapacityOptions {
  /** Of all contexts that have speech to be made for a listener. */
  readonly demands: () => Iterable<Demand>;
  readonly supply: () => Supply;
  readonly costs: Record<'voices' | 'encodings', Pick<Costs['voices'], 'of'>>;
  /** The longest step of a voice whose steps are long. */
  readonly longStepOf?: (voiceId: string) => LongStep | undefined;
}

export class Capacity {
  readonly #options: CapacityOptions;
  #load: Load;
  #countedMs = Number.NEGATIVE_INFINITY;
  /** Less is asked for than was counted. */
  #isStale = false;
  /** When the last burst began, and when the usual time was last too short for an utterance. */
  #burstMs = Number.NEGATIVE_INFINITY;
  #crowdedMs = Number.NEGATIVE_INFINITY;

  constructor(options: CapacityOptions) {
    this.#options = options;
    this.#load = new Load(options);
  }

  /** How full the machine is: by the rule, without a further utterance. */
  fullness(nowMs: number): Fullness {
    this.#count(nowMs, COUNT_KEPT_MS);
    const on = this.#isBurst(nowMs) ? 'burst' : 'usual';
    return this.#fullnessOf(this.#load.fair(on), on);
  }

  /** @returns `null` if the utterance is admitted: it counts from now on. Otherwise how full the machine would be with it */
  refusal(utterance: Demand, nowMs: number): Fullness | null {
    this.#count(nowMs, COUNT_KEPT_MS);
    let tooMuch = this.#tooMuch(utterance, 'usual');
    if (tooMuch !== null && this.#isStale) {
      this.#count(nowMs, 0);
      tooMuch = this.#tooMuch(utterance, 'usual');
    }
    if (tooMuch !== null) {
      if (nowMs - this.#crowdedMs > CALM_MS) this.#burstMs = nowMs;
      this.#crowdedMs = nowMs;
      if (this.#load.isSmall(utterance.account)) tooMuch = this.#tooMuch(utterance, 'small');
      else if (this.#isBurst(nowMs)) tooMuch = this.#tooMuch(utterance, 'burst');
    }
    if (tooMuch === null) this.#load.add(utterance);
    return tooMuch;
  }

  /** @returns whether a listener who had left the load counts again: only if the machine has room for it */
  returns(demand: Demand, nowMs: number): boolean {
    this.#count(nowMs, COUNT_KEPT_MS);
    if (this.#tooMuch(demand, 'usual') !== null) return false;
    this.#load.add(demand);
    return true;
  }

  /** A context is over, or may not use what it asked for: that is free at once. */
  freed(): void {
    this.#isStale = true;
  }

  /** The machine has lately had more to do than it makes with first audio in the usual time. */
  isFull(nowMs: number): boolean {
    return nowMs - this.#crowdedMs < CALM_MS;
  }

  #isBurst(nowMs: number): boolean {
    return nowMs - this.#burstMs < BURST_MS;
  }

  /** @returns where the rule refuses the utterance */
  #tooMuch(utterance: Demand, on: Terms): Fullness | null {
    const { busy } = this.#load;
    const { synthesisThreads, longThreads } = this.#options.supply();
    const idle = this.#load.isLong(utterance)
      ? longThreads - busy.long
      : synthesisThreads - Math.min(busy.long, longThreads) - busy.short;
    if (idle > 0) return null;
    const fullness = this.#fullnessOf(this.#load.with(utterance, on), on);
    return fullness.ratio > 1 ? fullness : null;
  }

  #count(nowMs: number, keptMs: number): void {
    if (nowMs - this.#countedMs < Math.max(keptMs, DEMAND_KEPT_MS * (this.#load.listeners - 50))) return;
    this.#countedMs = nowMs;
    this.#isStale = false;
    this.#load = new Load(this.#options);
    for (const demand of this.#options.demands()) this.#load.add(demand);
  }

  #fullnessOf(work: Work, on: Terms): Fullness {
    const { synthesisThreads, longThreads, actorThreads, cores } = this.#options.supply();
    const { listeners, waiting } = this.#load;
    const { firstAudioMsMax, inHandMs } = terms[on];
    let fullest: Fullness = {
      ...{ ratio: 0, supply: 'cores', withinSeconds: 1 },
      ...{ speechMs: 0, askedMs: 0, firstStepsMs: 0, promisedMs: 0 },
      ...{ cores, listeners, waiting, firstAudioMsMax, inHandMs },
    };
    const consider = (supply: Fullness['supply'], count: number, askedMs: number, place: number): void => {
      const withinSeconds = HORIZONS[place]!;
      const { promised } = terms[withinSeconds > UNMEASURED_SECONDS ? 'usual' : on];
      const promisedMs = count * withinSeconds * 1_000 * promised;
      const ratio = askedMs / promisedMs;
      if (ratio <= fullest.ratio) return;
      const speechMs = work[SPEECH + place]!;
      const firstStepsMs = work[FIRST_STEPS + place]!;
      fullest = { ...fullest, ratio, supply, withinSeconds, speechMs, askedMs, firstStepsMs, promisedMs };
    };
    for (const [place, seconds] of HORIZONS.entries()) {
      if (on === 'small' && seconds > SMALL_SECONDS) break;
      const synthesisMs = work[SYNTHESIS + place]!;
      const encodingMs = work[ENCODING + place]!;
      consider('cores', cores, synthesisMs + encodingMs, place);
      consider('synthesis threads', synthesisThreads, synthesisMs, place);
      consider('actor threads', actorThreads, encodingMs, place);
      consider('threads for long steps', longThreads, work[LONG + place]!, place);
    }
    return fullest;
  }
}

/** How long another program must run before it counts. */
const LASTING_MS = 2_000;

/** Against 1 of a thread of normal priority: each step of niceness is a quarter. */
const weightOf = (niceness: number): number => 1.25 ** -niceness;

/**
 * The cores that other programs leave to speech.
 *
 * What was idle and what speech used is free for speech. What the front thread uses counts at once: in an overload it refuses
 * many. Another program counts once it has run for about two seconds, and no longer than it runs: the most that was free in
 * any part of the last two seconds is what counts. And programs and threads of normal priority cannot take everything: synthesis
 * threads get their fair share of the cores beside them.
 */
export class Cores {
  readonly #cores: number;
  readonly #weight: number;
  /** What the front thread used lately. */
  #front = 0;
  /** The newest last. */
  #samples: readonly { readonly atMs: number; readonly free: number }[] = [];

  /** @param cores of the machine that the process may use @param threads synthesis threads, with this niceness */
  constructor(cores: number, threads: number, niceness: number) {
    this.#cores = cores;
    this.#weight = threads * weightOf(niceness);
  }

  /**
   * @param elapsedMs since the last sample
   * @param idleMs CPU time, over all cores, in which nothing ran
   * @param speechMs CPU time that synthesis and encoding used
   * @param frontMs CPU time that the calling thread used, for requests and refusals
   */
  add(nowMs: number, elapsedMs: number, idleMs: number, speechMs: number, frontMs: number): void {
    if (elapsedMs <= 0) return;
    const free = Math.min(this.#cores, Math.max(0, (idleMs + speechMs + frontMs) / elapsedMs));
    this.#front = frontMs / elapsedMs;
    const recent = this.#samples.filter(({ atMs }) => nowMs - atMs < LASTING_MS);
    // What was not measured was free: the load of the voices is no neighbour.
    const before = recent.length > 0 ? recent : [{ atMs: nowMs - elapsedMs, free: this.#cores }];
    this.#samples = [...before, { atMs: nowMs, free }];
  }

  /** All of them until something was measured. */
  get free(): number {
    if (this.#samples.length === 0) return this.#cores;
    const free = Math.max(...this.#samples.map((sample) => sample.free)) - this.#front;
    const others = this.#cores - free;
    return Math.max(free, (this.#cores * this.#weight) / (this.#weight + others));
  }
}
