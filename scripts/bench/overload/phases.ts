/** The phases of an overload: how long they last, and what is asked of them. */
import { median } from '../../rig/statistics.js';
import type { CrowdFigures } from './crowd.js';

export const overloads = ['2', '4', '10'] as const;
export type Overload = (typeof overloads)[number];

/** Parts that are shares of the capacity: it is searched for first. */
export const capacityParts = ['half', 'steady', 'neighbour', '0.8', ...overloads] as const;
export const overloadParts = ['cold', 'warm', ...capacityParts, 'burst', 'flood', 'greedy'] as const;
export type OverloadPart = (typeof overloadParts)[number];

/** Listeners who begin at once. */
export const togetherCount = 18;

export const bars = {
  /** Of a load that the machine carries. */
  capacityFirstAudioP99MsMax: 200,
  /** Of half of the capacity, at once. */
  halfFirstAudioP95MsMax: 500,
  /** Of the admitted visits of an overload; see `visitBars`. */
  dryShareMax: 0.02,
  overloadFirstAudioP95MsMax: 400,
  overloadFirstAudioP99MsMax: 1_000,
  /** Speech delivered, against the load of capacity. */
  servedRatioMin: 0.85,
  refusalP95MsMax: 50,
  /** Whole files of another key, against those of the calm service; less than the floor is always met. */
  wholeP95RatioMax: 2,
  wholeP95MsFloor: 150,
} as const;

/** A load that the machine carries leaves less than this unspoken when it ends, for each of its listeners. */
const owedMsMax = 500;

const drainMsMax = 20_000;

export type Timing = ReturnType<typeof timingOf>;

/** @param seconds of each overload */
export const timingOf = (seconds: number, isQuick: boolean) => {
  const load = (durationMs: number) => ({ warmUpMs: isQuick ? 1_000 : 3_000, durationMs, drainMsMax });
  return {
    search: {
      first: 64,
      growth: isQuick ? 2 : 1.6,
      refinements: isQuick ? 1 : 3,
      max: 1_600,
      trials: isQuick ? 1 : 2,
      secondThoughts: isQuick ? 0 : 2,
    },
    trial: { ...load(isQuick ? 3_000 : 9_000), drainMsMax: 2_000 },
    warmUpMs: isQuick ? 2_000 : 6_000,
    /** Before the shares, with half of the capacity: 400 sentences, after which the code of the voice is compiled. */
    longWarmUpMs: isQuick ? 2_000 : 30_000,
    /** Runs below capacity, for each way of admission. */
    calmRuns: isQuick ? 1 : 2,
    calm: load(isQuick ? 3_000 : 12_000),
    /** Without speech, before listeners begin at once. */
    silenceMs: isQuick ? 500 : 3_000,
    /** Times that they do, and how far apart: longer than an utterance and the silence. */
    rounds: isQuick ? 1 : 2,
    everyMs: 13_000,
    steady: load(isQuick ? 3_000 : 60_000),
    /** A busy program starts after `neighbourAfterMs` and runs for `neighbourMs`. */
    shared: load(isQuick ? 5_000 : 20_000),
    neighbourAfterMs: isQuick ? 2_000 : 8_000,
    neighbourMs: isQuick ? 2_000 : 10_000,
    overload: { warmUpMs: 0, durationMs: seconds * 1_000, drainMsMax },
    /** Whole files of another key: short ones, long ones, and how long they are asked for. */
    wholes: isQuick ? { short: 5, long: 1, askMsMax: 2_000 } : { short: 40, long: 5, askMsMax: 10_000 },
    burstConnections: 1_000,
  };
};

/** @returns why a load is more than the machine carries; `null`: it carries it */
export const troubleOf = (figures: CrowdFigures, listeners: number): string | null => {
  const { owedMs, visits } = figures;
  if (visits.admitted === 0) return 'nobody was served';
  if (visits.failed > 0) return `${visits.failed} failed (${figures.faults})`;
  if (visits.refused > 0) return `${visits.refused} refused`;
  if (visits.everDry > 0) return `${visits.everDry} ran dry (up to ${visits.dryMsMax.toFixed(0)} ms)`;
  const p99Ms = visits.firstAudioMs?.p99 ?? Infinity;
  if (p99Ms > bars.capacityFirstAudioP99MsMax) return `first audio p99 ${p99Ms.toFixed(0)} ms`;
  const owedEachMs = owedMs / listeners;
  return owedEachMs > owedMsMax ? `${owedEachMs.toFixed(0)} ms of speech behind for each listener` : null;
};

/** How far equal runs differ, and whether one kind is worse than the other by more. */
export const compareRuns = (these: readonly number[], others: readonly number[]) => {
  const range = (values: readonly number[]) => Math.max(...values) - Math.min(...values);
  const spread = Math.max(range(these), range(others));
  const [mine, theirs] = [median(these), median(others)];
  return { these: mine, others: theirs, spread, isNoWorse: mine <= theirs + spread };
};
