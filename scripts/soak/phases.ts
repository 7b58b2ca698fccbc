/** The phases of a soak: the search for the number of clients that this machine can serve, and how long the others last. */
import { searchCapacity } from '../rig/capacity-search.js';
import type { LoadTick } from './measures.js';

/** A load that fails leaves clients that still speak, so the search does not go back from there. */
const search = { first: 16, growth: 1.4, refinements: 0, trials: 2, secondThoughts: 0 } as const;
/** Per number of clients, before it is judged: clients begin, others leave. */
const settleMs = 4_000;
const lookMs = 7_000;
const firstAudioP99MsMax = 120;
const loopLateP99MsMax = 60;
/** For surplus clients to leave. */
const settlesMax = 15;

/** What the load counts in so many milliseconds. */
type Look = (ms: number) => Promise<LoadTick>;

/** @returns what is wrong; `null`: nothing */
const troubleOf = ({ firstAudioMs, loopLateMs, refusals, underruns }: LoadTick): string | null => {
  if (underruns > 0) return `${underruns} underruns`;
  if (refusals > 0) return `${refusals} refused`;
  if (firstAudioMs.p99 > firstAudioP99MsMax) return `first audio p99 ${firstAudioMs.p99.toFixed(0)} ms`;
  return loopLateMs.p99 > loopLateP99MsMax ? `the load is late by ${loopLateMs.p99.toFixed(0)} ms` : null;
};

/**
 * Adds clients until first audio is late, a listener has an underrun or is refused, or the load itself is late.
 *
 * @returns the last number that held; 0: not a single client
 */
export const calibrate = async (
  max: number,
  populate: (contexts: number) => Promise<void>,
  look: Look,
  say: (line: string) => void,
): Promise<number> => {
  const { held } = await searchCapacity({ ...search, max }, async (contexts) => {
    await populate(contexts);
    await look(settleMs);
    const trouble = troubleOf(await look(lookMs));
    say(`${contexts} streaming clients ${trouble === null ? 'held' : `did not hold: ${trouble}`}`);
    return trouble === null;
  });
  return held;
};

/** Waits until everything that the largest number of clients asked for is spoken. */
export const settle = async (look: Look, say: (line: string) => void): Promise<void> => {
  let trouble = troubleOf(await look(settleMs));
  for (let i = 1; trouble !== null && i < settlesMax; i++) trouble = troubleOf(await look(settleMs));
  if (trouble !== null) say(`the load of the calibration has not settled (${trouble})`);
};

/** When the memory of the service's process can be read. */
export type MemoryAccess = 'at rest' | 'under load' | 'nowhere';

export interface Phases {
  readonly isMemoryJudged: boolean;
  /**
   * More clients for a while, before the warm-up: pools and heaps then grow to the size of peaks at once, and not in the
   * course of an hour, which would look like a leak. A calibration has the same effect.
   */
  readonly surge: { readonly factor: number; readonly ms: number } | null;
  /** V8 compiles what runs often and keeps type feedback; with such a load, most of it in the first half hour. */
  readonly warmUpMs: number;
  /** Evenly spaced from the end of the warm-up to the end; see `memory.ts`. */
  readonly rests: number;
}

/** Shorter soaks do not judge memory. */
export const minutesToJudgeMemory = 25;
export const defaultWarmUpMinutes = 30;
const minutesBetweenRests = 5;
const restsMax = 25;

/** What was asked for; `null`: the default. */
interface Wanted {
  readonly minutes: number;
  readonly warmUpMinutes: number | null;
  readonly rests: number | null;
}

export const phasesOf = ({ minutes, rests, warmUpMinutes }: Wanted, memory: MemoryAccess): Phases => {
  const isJudged = memory !== 'nowhere' && minutes >= minutesToJudgeMemory;
  const restsToJudge = Math.min(restsMax, 1 + Math.round(minutes / minutesBetweenRests));
  return {
    isMemoryJudged: isJudged,
    surge: isJudged ? { factor: 1.5, ms: 120_000 } : null,
    warmUpMs: (warmUpMinutes ?? (isJudged ? defaultWarmUpMinutes : 0)) * 60_000,
    rests: rests ?? (isJudged && memory === 'at rest' ? restsToJudge : 0),
  };
};
