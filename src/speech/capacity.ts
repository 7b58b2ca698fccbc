/**
 * Whether the machine can speak one more utterance: the one rule of admission.
 *
 *   An utterance is refused only if the machine cannot make, second by second, the speech that its admitted listeners play,
 *   with this one in addition.
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
 * A tenth is held back. A small account gets most of that, too, when the machine is full: so one account that fills the
 * machine cannot keep out the others.
 *
 * The contexts of a WebSocket are one group, and have one slot. For others the group counts as one listener; its further
 * contexts get what is left. Whole files have no listener. They get what listeners leave, and are never refused here.
 *
 * Pure policy: time, costs and demands are handed in.
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
  /** Speech that is asked for within that time, and the CPU time that it takes, in milliseconds. */
  readonly speechMs: number;
  readonly askedMs: number;
  /** CPU time that is promised within that time, in milliseconds. */
  readonly promisedMs: number;
  /** Cores that other programs leave. */
  readonly cores: number;
  /** Admitted contexts with speech to be made for a listener, and those of them that wait for first audio. */
  readonly listeners: number;
  readonly waiting: number;
  /** How long first audio may take now, in milliseconds. */
  readonly firstAudioMsMax: number;
}

/** The part of the supply that is promised. The rest covers errors of the estimates, and whole files. */
const PROMISED = 0.9;
/** The same for a small account, beside one that fills the machine. */
const PROMISED_TO_SMALL = 0.97;
/** An account is small beside one that has so many times its listeners. */
const LARGER_TIMES = 4;
/** How long a listener may wait for first audio before anybody is refused for it. */
const FIRST_AUDIO_MS_MAX = 150;
/** The same in a burst. */
const BURST_FIRST_AUDIO_MS_MAX = 1_000;
/** A burst lasts this long. The next one can begin after `CALM_MS` in which the usual time was enough for everyone. */
const BURST_MS = 1_000;
const CALM_MS = 5_000;
/** What a listener is to have in hand: an engine makes whole chunks of up to a second, and threads are not equally busy. */
const IN_HAND_MS = 1_600;
/** Not more than this work makes, in milliseconds of CPU time: slow voices have short chunks. */
const IN_HAND_CPU_MS = 25;
/** The rule looks so many seconds ahead: no context is given more audio than it plays in that time. */
const SECONDS = 24;

/** The counted demands are used for this long; utterances admitted meanwhile are added to them. */
const COUNT_KEPT_MS = 10;

/** Work by kind, within each second: at `kind + seconds - 1`, in milliseconds of CPU time; and the speech that it makes. */
type Work = Float64Array;
const SYNTHESIS = 0;
const LONG = SECONDS;
const ENCODING = 2 * SECONDS;
const SPEECH = 3 * SECONDS;
const noWork = (): Work => new Float64Array(4 * SECONDS);

/** What one group asks for. */
interface GroupWork {
  /** Of all its contexts. */
  readonly whole: Work;
  /** What it counts for others: at each second, as much as the context of it that needs most. */
  readonly most: Work;
}

/** Sums over the demands. */
class Load {
  /** Contexts with speech to be made, by whether their voice has long steps. */
  readonly busy = { short: 0, long: 0 };
  /** Those of them that wait for first audio. */
  waiting = 0;
  readonly #listenersOf = new Map<string, number>();
  /** Each group counts as one listener. */
  readonly fair = noWork();
  readonly #groups = new Map<object | string, GroupWork>();

  /** All listeners, with this work in addition. A group competes with its own further contexts, not with those of others. */
  with(group: object | string, work: Work): Work {
    const known = this.#groups.get(group);
    return this.fair.map(
      (value, i) => value + work[i]! + (known === undefined ? 0 : known.whole[i]! - known.most[i]!),
    );
  }

  /** Another account has many times the listeners that this one would have with one more. */
  isSmall(account: string): boolean {
    const own = (this.#listenersOf.get(account) ?? 0) + 1;
    return Math.max(0, ...this.#listenersOf.values()) >= LARGER_TIMES * own;
  }

  /** @param work is kept */
  add({ account, group, isAwaiting }: Demand, work: Work, isLong: boolean): void {
    this.#listenersOf.set(account, (this.#listenersOf.get(account) ?? 0) + 1);
    this.busy[isLong ? 'long' : 'short']++;
    if (isAwaiting) this.waiting++;
    const known = this.#groups.get(group);
    if (known === undefined) {
      this.#groups.set(group, { whole: work, most: work });
      for (let i = 0; i < work.length; i++) this.fair[i] = this.fair[i]! + work[i]!;
      return;
    }
    const whole = known.whole.map((value, i) => value + work[i]!);
    const most = known.most.map((value, i) => Math.max(value, work[i]!));
    for (let i = 0; i < most.length; i++) this.fair[i] = this.fair[i]! + most[i]! - known.most[i]!;
    this.#groups.set(group, { whole, most });
  }
}

const waitMsMax = { always: FIRST_AUDIO_MS_MAX, burst: BURST_FIRST_AUDIO_MS_MAX } as const;
type Wait = keyof typeof waitMsMax;

export interface CapacityOptions {
  /** Of all contexts that have speech to be made for a listener. */
  readonly demands: () => Iterable<Demand>;
  readonly supply: () => Supply;
  readonly costs: Pick<Costs, 'voice' | 'encoding'>;
  /** The longest step of a voice whose steps are long. */
  readonly longStepOf?: (voiceId: string) => LongStep | undefined;
}

export class Capacity {
  readonly #options: CapacityOptions;
  /** What is asked for, by how long first audio may take. */
  #loads = { always: new Load(), burst: new Load() };
  #countedMs = Number.NEGATIVE_INFINITY;
  /** Less is asked for than was counted. */
  #isStale = false;
  /** When the last burst began, and when the usual time was last too short for an utterance. */
  #burstMs = Number.NEGATIVE_INFINITY;
  #crowdedMs = Number.NEGATIVE_INFINITY;

  constructor(options: CapacityOptions) {
    this.#options = options;
  }

  /** How full the machine is: by the rule, without a further utterance. */
  fullness(nowMs: number): Fullness {
    const wait = this.#isBurst(nowMs) ? 'burst' : 'always';
    this.#count(nowMs);
    return this.#fullnessOf(this.#loads[wait].fair, wait);
  }

  /**
   * @returns `null` if the utterance is admitted: it counts from now on. Otherwise how full the machine would be with it
   */
  refusal(utterance: Demand, nowMs: number): Fullness | null {
    this.#count(nowMs);
    let tooMuch = this.#tooMuch('always', utterance);
    if (tooMuch !== null && this.#isStale) {
      this.#countedMs = Number.NEGATIVE_INFINITY;
      this.#count(nowMs);
      tooMuch = this.#tooMuch('always', utterance);
    }
    if (tooMuch !== null) {
      if (nowMs - this.#crowdedMs > CALM_MS) this.#burstMs = nowMs;
      this.#crowdedMs = nowMs;
      if (!this.#isBurst(nowMs)) return tooMuch;
      const tooMuchInBurst = this.#tooMuch('burst', utterance);
      if (tooMuchInBurst !== null) return tooMuchInBurst;
    }
    this.#add(utterance);
    return null;
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
  #tooMuch(wait: Wait, utterance: Demand): Fullness | null {
    const load = this.#loads[wait];
    const work = this.#workOf(utterance, wait);
    const isLong = this.#isLong(utterance);
    const { synthesisThreads, longThreads } = this.#options.supply();
    const idle = isLong
      ? longThreads - load.busy.long
      : synthesisThreads - Math.min(load.busy.long, longThreads) - load.busy.short;
    if (idle > 0) return null;
    const promised = load.isSmall(utterance.account) ? PROMISED_TO_SMALL : PROMISED;
    const fullness = this.#fullnessOf(load.with(utterance.group, work), wait, promised);
    return fullness.ratio > 1 ? fullness : null;
  }

  #count(nowMs: number): void {
    if (nowMs - this.#countedMs < COUNT_KEPT_MS) return;
    this.#countedMs = nowMs;
    this.#isStale = false;
    this.#loads = { always: new Load(), burst: new Load() };
    for (const demand of this.#options.demands()) this.#add(demand);
  }

  #add(demand: Demand): void {
    const isLong = this.#isLong(demand);
    const work = this.#workOf(demand, 'always');
    this.#loads.always.add(demand, work, isLong);
    this.#loads.burst.add(demand, demand.isAwaiting ? this.#workOf(demand, 'burst') : work, isLong);
  }

  #isLong({ voiceId }: Demand): boolean {
    return this.#options.longStepOf?.(voiceId) !== undefined;
  }

  #workOf({ voiceId, encoding, remainingMs, slackMs, isAwaiting }: Demand, wait: Wait): Work {
    const { costs, longStepOf } = this.#options;
    const long = longStepOf?.(voiceId);
    const { cpu, beginMs } = costs.voice(voiceId);
    const encodingCpu = costs.encoding(encoding);
    const dryMs = Math.max(0, slackMs + (isAwaiting ? waitMsMax[wait] : 0));
    const inHandMs = Math.min(IN_HAND_MS, IN_HAND_CPU_MS / cpu);
    const work = noWork();
    for (let i = 0; i < SECONDS; i++) {
      const playedMs = (i + 1) * 1_000 - dryMs;
      if (playedMs <= 0) continue;
      const speechMs = Math.min(remainingMs, playedMs + inHandMs);
      // A long first step is no more than the speech that it makes.
      work[SYNTHESIS + i] = speechMs * cpu + (isAwaiting && long === undefined ? beginMs : 0);
      if (long !== undefined) work[LONG + i] = speechMs * cpu;
      work[ENCODING + i] = speechMs * encodingCpu;
      work[SPEECH + i] = speechMs;
    }
    return work;
  }

  #fullnessOf(work: Work, wait: Wait, promised = PROMISED): Fullness {
    const { synthesisThreads, longThreads, actorThreads, cores } = this.#options.supply();
    const { busy, waiting } = this.#loads[wait];
    let fullest: Fullness = {
      ...{ ratio: 0, supply: 'cores', withinSeconds: 1, speechMs: 0, askedMs: 0, promisedMs: 0 },
      ...{ cores, listeners: busy.short + busy.long, waiting, firstAudioMsMax: waitMsMax[wait] },
    };
    const consider = (
      supply: Fullness['supply'],
      count: number,
      askedMs: number,
      withinSeconds: number,
    ): void => {
      const promisedMs = count * withinSeconds * 1_000 * promised;
      const ratio = askedMs / promisedMs;
      if (ratio <= fullest.ratio) return;
      const speechMs = work[SPEECH + withinSeconds - 1]!;
      fullest = { ...fullest, ratio, supply, withinSeconds, speechMs, askedMs, promisedMs };
    };
    for (let i = 0; i < SECONDS; i++) {
      const synthesisMs = work[SYNTHESIS + i]!;
      const encodingMs = work[ENCODING + i]!;
      consider('cores', cores, synthesisMs + encodingMs, i + 1);
      consider('synthesis threads', synthesisThreads, synthesisMs, i + 1);
      consider('actor threads', actorThreads, encodingMs, i + 1);
      consider('threads for long steps', longThreads, work[LONG + i]!, i + 1);
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
 * What was idle and what speech used is free for speech. Another program counts once it has run for about two seconds,
 * and no longer than it runs: the most that was free in any part of the last two seconds is what counts. And programs of
 * normal priority cannot take everything: synthesis threads get their fair share of the cores beside them.
 */
export class Cores {
  readonly #cores: number;
  readonly #weight: number;
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
   */
  add(nowMs: number, elapsedMs: number, idleMs: number, speechMs: number): void {
    if (elapsedMs <= 0) return;
    const free = Math.min(this.#cores, Math.max(0, (idleMs + speechMs) / elapsedMs));
    const recent = this.#samples.filter(({ atMs }) => nowMs - atMs < LASTING_MS);
    // What was not measured was free: the load of the voices is no neighbour.
    const before = recent.length > 0 ? recent : [{ atMs: nowMs - elapsedMs, free: this.#cores }];
    this.#samples = [...before, { atMs: nowMs, free }];
  }

  /** All of them until something was measured. */
  get free(): number {
    if (this.#samples.length === 0) return this.#cores;
    const free = Math.max(...this.#samples.map((sample) => sample.free));
    const others = this.#cores - free;
    return Math.max(free, (this.#cores * this.#weight) / (this.#weight + others));
  }
}
