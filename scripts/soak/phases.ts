/**
 * The phases of a soak: calibration, which finds how many clients this machine can serve, and how long the others last.
 *
 * Calibration adds clients until first audio comes late, a listener has an underrun, or the load itself is late. The soak
 * uses a part of the last number that held, so that what it finds is not a lack of capacity.
 */
import type { LoadTick } from './measures.js';

export const calibration = {
  first: 16,
  growth: 1.5,
  /** Per number of clients, before it is judged: clients begin, others leave. */
  settleMs: 4_000,
  lookMs: 7_000,
  firstAudioP99MsMax: 120,
  loopLateP99MsMax: 60,
  /** For surplus clients to leave. */
  settlesMax: 15,
  /** Of the last number that held, unless `--share` says otherwise. */
  share: 0.4,
} as const;

export interface Calibrated {
  readonly contexts: number;
  /** The part of `held` that is used. */
  readonly share: number;
  /** The last number that held, and why the next did not; `null`: no further number was tried, or it is not known. */
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
  readonly onStep: (contexts: number) => void;
}

/** @returns what is wrong; `null`: nothing */
export const troubleOf = (
  ticks: readonly LoadTick[],
  firstAudioMsMax: number = calibration.firstAudioP99MsMax,
): string | null => {
  const last = ticks.at(-1);
  if (last === undefined) return 'the load does not report';
  if (last.underruns > 0) return `${last.underruns} underruns`;
  const most = (pick: (tick: LoadTick) => number) => Math.max(...ticks.map(pick));
  const firstAudioMs = most(({ firstAudioMs: { p99 } }) => p99);
  if (firstAudioMs > firstAudioMsMax) return `first audio p99 ${firstAudioMs.toFixed(0)} ms`;
  const lateMs = most(({ loopLateMs: { p99 } }) => p99);
  return lateMs > calibration.loopLateP99MsMax ? `the load is late by ${lateMs.toFixed(0)} ms` : null;
};

export const calibrate = async (parts: CalibrateParts): Promise<Calibrated> => {
  let held = 0;
  let trouble: string | null = null;
  let next: number = calibration.first;
  for (;;) {
    const contexts = Math.min(next, parts.max);
    parts.onStep(contexts);
    await parts.populate(contexts);
    await parts.look(calibration.settleMs);
    trouble = troubleOf(await parts.look(calibration.lookMs));
    // One noisy moment is not a limit.
    if (trouble !== null) trouble = troubleOf(await parts.look(calibration.lookMs));
    if (trouble === null) {
      held = contexts;
      // Below the first number, the search goes downwards.
      if (contexts === parts.max || contexts < calibration.first) break;
      next = Math.ceil(contexts * calibration.growth);
    } else if (held > 0 || contexts === 1) break;
    else next = Math.ceil(contexts / 2);
  }
  return { contexts: Math.max(1, Math.floor(held * parts.share)), share: parts.share, held, trouble };
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
