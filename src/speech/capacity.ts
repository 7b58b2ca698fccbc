/**
 * Whether the machine can speak one more utterance in time.
 *
 * An utterance has to be made within the time until its listener would have played it all. So it needs, on average, this
 * part of a second of speech in each second:
 *
 *   need = remaining speech / (remaining speech + time until the listener has nothing left to play)
 *
 * Soon after its start it needs more, because an engine makes speech in chunks that grow to a second: the next listener gets
 * a whole chunk, even if it needs only a part of it now.
 *
 * The work of all utterances, each weighted by its need, must fit three supplies: the synthesis threads, the actor threads,
 * and the CPU that other programs leave. If it does, earliest deadline first serves them all in time. Two more signals
 * catch what the estimates miss: the wait for first audio, and listeners who have little left to play.
 *
 * The contexts of a WebSocket are one group, and have one slot. For others the group counts as one listener; its further
 * contexts get what is left.
 *
 * Costs are measured as the threads work. Pure policy: time, efforts and demands are handed in.
 */
import type { Encoding } from '../api/formats.js';
import type { Effort } from '../threads/effort.js';
import type { LongStep } from '../threads/voices.js';

/** What a context still needs. */
export interface Demand {
  /** Contexts with the same group share a slot. */
  readonly group: object;
  readonly voiceId: string;
  readonly encoding: Encoding;
  /** Speech to be made. */
  readonly remainingMs: number;
  /** Until its listener has nothing left to play; until a whole file is due. */
  readonly slackMs: number;
  /** `first`: its listener waits for first audio. `later`: its listener plays. `none`: nobody waits, for a whole
   * file that is being made, or for text that has not come.
   */
  readonly awaited: 'first' | 'later' | 'none';
}

/** What was measured since the last sample. */
export interface WorkSample {
  readonly elapsedMs: number;
  readonly voices: ReadonlyMap<string, Effort>;
  readonly encodings: ReadonlyMap<Encoding, Effort>;
  /** CPU time, over all cores, that no other program used: idle, or at a lower priority. `null` if the system does not say. */
  readonly spareCpuMs: number | null;
}

export interface Supply {
  readonly synthesisThreads: number;
  /** Those of them that run long steps. */
  readonly longThreads: number;
  readonly actorThreads: number;
  readonly cores: number;
}

/** The part of the supply that is promised. The rest covers errors of the estimates. */
const PROMISED = 0.9;
/** A listener should have first audio within this time. Below what a user notices, with room for an encoder. */
const FIRST_AUDIO_MS = 150;
/** A listener with less audio than this is tight. Audio for longer outlasts a few seconds on a machine that is a fifth slower. */
const TIGHT_MS = 600;
/** Tight listeners, as a part of all, that are normal: each has little audio just after its first chunks. */
const TIGHT_PART = 0.1;
/** In addition, as many are normal as the threads can give half a chunk each within this time. */
const TIGHT_WORK_MS = 40;
/** The longest chunk of an engine, in speech. */
const CHUNK_MS = 1_000;

/** Other programs always leave this much; a lower measurement is wrong. */
const SPARE_CORES_MIN = 0.01;

/** The cost of a voice or encoding that was not measured yet. */
const UNKNOWN_COST = { synthesis: 0.02, encoding: 0.005, beginMs: 8 } as const;

/** The counted demands are used for this long; utterances admitted meanwhile are added to them. */
const COUNT_KEPT_MS = 10;

/** A quotient of two sums in which older samples weigh less. */
class Rate {
  readonly #halfLifeMs: number;
  #amount = 0;
  #per = 0;

  constructor(halfLifeMs: number) {
    this.#halfLifeMs = halfLifeMs;
  }

  /** A sample without a divisor says nothing, and is not counted. */
  add(amount: number, per: number, elapsedMs: number): void {
    if (per <= 0) return;
    const kept = 0.5 ** (elapsedMs / this.#halfLifeMs);
    this.#amount = this.#amount * kept + amount;
    this.#per = this.#per * kept + per;
  }

  /** `undefined` before the first sample. */
  get value(): number | undefined {
    return this.#per > 0 ? this.#amount / this.#per : undefined;
  }
}

/** Costs change with the texts: they are averaged over more time than the pressure of other programs. */
const COST_HALF_LIFE_MS = 3_000;
const PRESSURE_HALF_LIFE_MS = 700;
/** A cost that was not measured for so long is unknown again: one bad sample must not refuse a voice for ever. */
const COST_KEPT_MS = 10_000;

/** What one voice or encoding costs. */
class Cost {
  readonly #cpu = new Rate(COST_HALF_LIFE_MS);
  readonly #begin = new Rate(COST_HALF_LIFE_MS);
  #unseenMs = 0;

  add({ cpuMs, aroundCpuMs, speechMs, begun, beginMs }: Effort, elapsedMs: number): void {
    this.#unseenMs = speechMs > 0 ? 0 : this.#unseenMs + elapsedMs;
    this.#cpu.add(cpuMs + aroundCpuMs, speechMs, elapsedMs);
    this.#begin.add(beginMs, begun, elapsedMs);
  }

  /** CPU time of a millisecond of speech, in milliseconds. `undefined` if it is unknown. */
  get cpu(): number | undefined {
    return this.#unseenMs < COST_KEPT_MS ? this.#cpu.value : undefined;
  }

  /** Time of a first step, in milliseconds. `undefined` if it is unknown. */
  get beginMs(): number | undefined {
    return this.#unseenMs < COST_KEPT_MS ? this.#begin.value : undefined;
  }
}

interface Work {
  readonly synthesisCores: number;
  /** The part of these that only threads for long steps can do. */
  readonly longCores: number;
  readonly encodingCores: number;
  /** Time of the first steps that listeners wait for. */
  readonly beginMs: number;
}

const noWork: Work = { synthesisCores: 0, longCores: 0, encodingCores: 0, beginMs: 0 };

const combine =
  (one: (a: number, b: number) => number) =>
  (a: Work, b: Work): Work => ({
    synthesisCores: one(a.synthesisCores, b.synthesisCores),
    longCores: one(a.longCores, b.longCores),
    encodingCores: one(a.encodingCores, b.encodingCores),
    beginMs: one(a.beginMs, b.beginMs),
  });

const sum = combine((a, b) => a + b);
const minus = combine((a, b) => a - b);
const larger = combine(Math.max);

/** A listener who plays. */
interface Playing {
  readonly slackMs: number;
  /** CPU time of half a chunk for it. */
  readonly chunkMs: number;
}

/** What one group asks for. */
interface GroupLoad {
  /** Of all its contexts. */
  readonly whole: Work;
  /** What it counts for others: as much as the context of it that needs most. */
  readonly most: Work;
  /** The only context of the group plays. `null` if it does not play, or has others beside it. */
  readonly playing: Playing | null;
}

const laneOf = ({ longCores }: Work): 'long' | 'short' => (longCores > 0 ? 'long' : 'short');

/** Sums over the demands. */
class Load {
  /** Contexts with speech to be made, by whether their voice has long steps. */
  readonly busy = { short: 0, long: 0 };
  /** Groups of one context that play, and those of them that may run dry. Several contexts may ask for more than a slot. */
  playing = 0;
  tight = 0;
  /** CPU time of half a chunk for each of those. */
  tightMs = 0;
  /** Each group counts as one listener. */
  fair = noWork;
  readonly #groups = new Map<object, GroupLoad>();

  /** All listeners, with this work in addition. A group competes with its own further contexts, not with those of others. */
  with(group: object, work: Work): Work {
    const known = this.#groups.get(group);
    const others = known === undefined ? this.fair : sum(minus(this.fair, known.most), known.whole);
    return sum(others, work);
  }

  add(group: object, work: Work, playing: Playing | null): void {
    this.busy[laneOf(work)]++;
    const known = this.#groups.get(group);
    if (known === undefined) {
      this.#groups.set(group, { whole: work, most: work, playing });
      this.fair = sum(this.fair, work);
      this.#countPlaying(playing, 1);
      return;
    }
    const most = larger(known.most, work);
    this.fair = sum(this.fair, minus(most, known.most));
    this.#countPlaying(known.playing, -1);
    this.#groups.set(group, { whole: sum(known.whole, work), most, playing: null });
  }

  #countPlaying(playing: Playing | null, by: 1 | -1): void {
    if (playing === null) return;
    this.playing += by;
    if (playing.slackMs >= TIGHT_MS) return;
    this.tight += by;
    this.tightMs += by * playing.chunkMs;
  }
}

const costOf = <Key>(costs: Map<Key, Cost>, key: Key): Cost => {
  let cost = costs.get(key);
  if (cost === undefined) costs.set(key, (cost = new Cost()));
  return cost;
};

export class Capacity {
  readonly #demands: () => Iterable<Demand>;
  readonly #supply: () => Supply;
  readonly #longStepOf: (voiceId: string) => LongStep | undefined;
  readonly #voices = new Map<string, Cost>();
  readonly #encodings = new Map<Encoding, Cost>();
  /** Time that passes for each millisecond of CPU: above 1 when a thread waits for a core. */
  readonly #synthesisDelay = new Rate(PRESSURE_HALF_LIFE_MS);
  readonly #actorDelay = new Rate(PRESSURE_HALF_LIFE_MS);
  /** Cores that other programs and the front thread leave. */
  readonly #spareCores = new Rate(PRESSURE_HALF_LIFE_MS);
  #counted = new Load();
  #countedMs = Number.NEGATIVE_INFINITY;
  /** Less is asked for than was counted. */
  #isStale = false;

  /**
   * @param demands of all contexts that have speech to be made
   * @param longStepOf the longest step of a voice whose steps are long
   */
  constructor(
    demands: () => Iterable<Demand>,
    supply: () => Supply,
    longStepOf: (voiceId: string) => LongStep | undefined = () => undefined,
  ) {
    this.#demands = demands;
    this.#supply = supply;
    this.#longStepOf = longStepOf;
  }

  measure({ elapsedMs, voices, encodings, spareCpuMs }: WorkSample): void {
    let [synthesisMs, synthesisCpuMs, encodingMs, encodingCpuMs, actorCpuMs] = [0, 0, 0, 0, 0];
    for (const [voiceId, effort] of voices) {
      costOf(this.#voices, voiceId).add(effort, elapsedMs);
      synthesisMs += effort.wallMs;
      synthesisCpuMs += effort.cpuMs;
    }
    for (const [encoding, effort] of encodings) {
      costOf(this.#encodings, encoding).add(effort, elapsedMs);
      encodingMs += effort.wallMs;
      encodingCpuMs += effort.cpuMs;
      actorCpuMs += effort.cpuMs + effort.aroundCpuMs;
    }
    this.#synthesisDelay.add(synthesisMs, synthesisCpuMs, elapsedMs);
    this.#actorDelay.add(encodingMs, encodingCpuMs, elapsedMs);
    // Synthesis threads have a low priority: what they use counts as spare already.
    if (spareCpuMs !== null) this.#spareCores.add(spareCpuMs + actorCpuMs, elapsedMs, elapsedMs);
  }

  /** What is in use of what can be promised: at 1 no further utterance is admitted. */
  ratio(nowMs: number): number {
    const load = this.#count(nowMs);
    return Math.max(this.#ratioOf(load, load.fair), this.#longRatioOf(load.fair));
  }

  /** @returns false if an utterance like this would come late, or make others late. One that is admitted counts from now on */
  admits(utterance: Demand, nowMs: number): boolean {
    const work = this.#workOf(utterance);
    if (this.#fits(this.#count(nowMs), utterance.group, work)) return true;
    if (!this.#isStale) return false;
    this.#countedMs = Number.NEGATIVE_INFINITY;
    return this.#fits(this.#count(nowMs), utterance.group, work);
  }

  #fits(load: Load, group: object, work: Work): boolean {
    const lane = laneOf(work);
    const { synthesisThreads, longThreads } = this.#supply();
    const threads = {
      short: synthesisThreads - Math.min(load.busy.long, longThreads),
      long: longThreads,
    };
    const isAlwaysAdmitted = load.busy[lane] < threads[lane];
    if (!isAlwaysAdmitted) {
      const all = load.with(group, work);
      if (this.#ratioOf(load, all) > 1 || (lane === 'long' && this.#longRatioOf(all) > 1)) return false;
    }
    load.add(group, work, null);
    return true;
  }

  /** A context is over: what it asked for is free at once. */
  freed(): void {
    this.#isStale = true;
  }

  #count(nowMs: number): Load {
    if (nowMs - this.#countedMs >= COUNT_KEPT_MS) {
      this.#countedMs = nowMs;
      this.#isStale = false;
      this.#counted = new Load();
      for (const demand of this.#demands())
        this.#counted.add(demand.group, this.#workOf(demand), this.#playingOf(demand));
    }
    return this.#counted;
  }

  #workOf({ voiceId, encoding, remainingMs, slackMs, awaited }: Demand): Work {
    // A listener who is owed audio waits at most as long as for first audio.
    const waitMs = Math.max(slackMs, FIRST_AUDIO_MS);
    const need = Math.max(
      remainingMs / (remainingMs + waitMs),
      Math.min(remainingMs, CHUNK_MS) / (waitMs + CHUNK_MS / 2),
    );
    const voice = this.#voices.get(voiceId);
    const long = this.#longStepOf(voiceId);
    const unknownCost = long === undefined ? UNKNOWN_COST.synthesis : long.ms / long.speechMs;
    const synthesisCores = need * (voice?.cpu ?? unknownCost);
    return {
      synthesisCores,
      longCores: long === undefined ? 0 : synthesisCores,
      encodingCores: need * (this.#encodings.get(encoding)?.cpu ?? UNKNOWN_COST.encoding),
      // First steps that are long hold up only each other.
      beginMs: awaited === 'first' && long === undefined ? (voice?.beginMs ?? UNKNOWN_COST.beginMs) : 0,
    };
  }

  #playingOf({ voiceId, slackMs, awaited }: Demand): Playing | null {
    // A listener of a voice with long steps has little audio before each of them.
    if (awaited !== 'later' || this.#longStepOf(voiceId) !== undefined) return null;
    const cpu = this.#voices.get(voiceId)?.cpu ?? UNKNOWN_COST.synthesis;
    return { slackMs, chunkMs: (cpu * CHUNK_MS) / 2 };
  }

  /** What is in use of the threads that run long steps. */
  #longRatioOf({ longCores }: Work): number {
    return (longCores * (this.#synthesisDelay.value ?? 1)) / this.#supply().longThreads / PROMISED;
  }

  #ratioOf({ playing, tight, tightMs }: Load, { synthesisCores, encodingCores, beginMs }: Work): number {
    const { synthesisThreads, actorThreads, cores } = this.#supply();
    const synthesis = (synthesisCores * (this.#synthesisDelay.value ?? 1)) / synthesisThreads;
    const encoding = (encodingCores * (this.#actorDelay.value ?? 1)) / actorThreads;
    const cpu =
      (synthesisCores + encodingCores) /
      Math.min(cores, Math.max(this.#spareCores.value ?? cores, SPARE_CORES_MIN));
    const work = Math.max(synthesis, encoding, cpu) / PROMISED;
    // First steps run before all else, and take their time from what is promised.
    const firstWait = beginMs / synthesisThreads / FIRST_AUDIO_MS;
    const lateness = Math.min(
      tight / (synthesisThreads + playing * TIGHT_PART),
      tightMs / (synthesisThreads * TIGHT_WORK_MS),
    );
    return Math.max(work + firstWait, lateness);
  }
}
