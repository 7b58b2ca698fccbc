/** The phases of a soak: the search for the number of clients that this machine can serve, and how long the others last. */
import { searchCapacity, type SearchSettings } from '../rig/capacity-search.js';
import type { LoadTick } from './measures.js';

export const calibration = {
  /** A load that fails leaves clients that still speak, so the search does not go back from there. */
  search: { first: 16, growth: 1.4, refinements: 0, trials: 2, secondThoughts: 0 },
  /** Per number of clients, before it is judged: clients begin, others leave. */
  settleMs: 4_000,
  lookMs: 7_000,
  firstAudioP99MsMax: 120,
  loopLateP99MsMax: 60,
  /** For surplus clients to leave. */
  settlesMax: 15,
  /** Of the last number that held, unless `--share` or `--load` says otherwise. */
  share: 0.4,
} as const satisfies { readonly search: Omit<SearchSettings, 'max'> } & Record<string, unknown>;

export interface Calibrated {
  readonly contexts: number;
  /** The part of `held` that is used. */
  readonly share: number;
  /** The last number that held, and why the next did not; `null`: no further number was tried. */
  readonly held: number;
  readonly trouble: string | null;
}

export interface CalibrateParts {
  readonly max: number;
  /** The part of what held that is used. */
  readonly share: number;
  /** Resolves when so many clients run. */
  readonly populate: (contexts: number) => Promise<void>;
  /** What the load reports in that time, with counts from zero. */
  readonly look: (ms: number) => Promise<readonly LoadTick[]>;
  readonly onStep: (contexts: number, trouble: string | null) => void;
}

/** @returns what is wrong; `null`: nothing */
export const troubleOf = (ticks: readonly LoadTick[]): string | null => {
  const last = ticks.at(-1);
  if (last === undefined) return 'the load does not report';
  if (last.underruns > 0) return `${last.underruns} underruns`;
  if (last.refusals > 0) return `${last.refusals} refused`;
  const most = (pick: (tick: LoadTick) => number) => Math.max(...ticks.map(pick));
  const firstAudioMs = most(({ firstAudioMs: { p99 } }) => p99);
  if (firstAudioMs > calibration.firstAudioP99MsMax) return `first audio p99 ${firstAudioMs.toFixed(0)} ms`;
  const lateMs = most(({ loopLateMs: { p99 } }) => p99);
  return lateMs > calibration.loopLateP99MsMax ? `the load is late by ${lateMs.toFixed(0)} ms` : null;
};

/** Adds clients until first audio is late, a listener has an underrun or is refused, or the load itself is late. */
export const calibrate = async ({
  look,
  max,
  onStep,
  populate,
  share,
}: CalibrateParts): Promise<Calibrated> => {
  let trouble: string | null = null;
  const { held, failed } = await searchCapacity({ ...calibration.search, max }, async (contexts) => {
    await populate(contexts);
    await look(calibration.settleMs);
    const found = troubleOf(await look(calibration.lookMs));
    trouble = found ?? trouble;
    onStep(contexts, found);
    return found === null;
  });
  const contexts = Math.max(1, Math.floor(held * share));
  return { contexts, share, held, trouble: failed === null ? null : trouble };
};

/**
 * Waits until everything that the largest number of clients asked for is spoken.
 * @returns what is still wrong in the end; `null`: nothing
 */
export const settle = async (look: CalibrateParts['look']): Promise<string | null> => {
  let trouble: string | null = null;
  for (let i = 0; i < calibration.settlesMax; i++) {
    trouble = troubleOf(await look(calibration.settleMs));
    if (trouble === null) return null;
  }
  return trouble;
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
