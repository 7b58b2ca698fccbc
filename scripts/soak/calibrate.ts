/**
 * How many clients this machine can listen with: more and more of them, until first audio comes late, somebody's
 * speech breaks off, or the load itself is late; then a part less, so that what the soak finds is no want of capacity.
 */
import type { LoadTick } from './protocol.js';

export const calibration = {
  first: 16,
  growth: 1.5,
  /** Of each number, before it is looked at: clients begin, and come into their rhythm; others leave. */
  settleMs: 4_000,
  lookMs: 7_000,
  firstAudioP99MsMax: 120,
  loopLateP99MsMax: 60,
  /** For those to leave who were too many. */
  settlesMax: 15,
  /** Of the last number that held, unless another is asked for. */
  share: 0.4,
} as const;

export interface Calibrated {
  readonly contexts: number;
  /** Of those that held. */
  readonly share: number;
  /** The last number that held, and why the next did not; `null` where it was not tried further. */
  readonly held: number;
  readonly trouble: string | null;
}

export interface CalibrateParts {
  readonly max: number;
  /** How much of what held is taken. */
  readonly share: number;
  /** Resolves when so many clients are at it. */
  readonly populate: (contexts: number) => Promise<void>;
  /** What the load met with in that time, begun anew. */
  readonly look: (ms: number) => Promise<readonly LoadTick[]>;
  readonly onStep: (contexts: number) => void;
}

/** @returns what is wrong, `null` when nothing is */
export const troubleOf = (ticks: readonly LoadTick[]): string | null => {
  const last = ticks.at(-1);
  if (last === undefined) return 'the load does not report';
  if (last.underruns > 0) return `${String(last.underruns)} underruns`;
  const most = (pick: (tick: LoadTick) => number) => Math.max(...ticks.map(pick));
  const firstAudioMs = most(({ firstAudioMs: { p99 } }) => p99);
  if (firstAudioMs > calibration.firstAudioP99MsMax) return `first audio p99 ${firstAudioMs.toFixed(0)} ms`;
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
    // A noisy second is not a limit: twice is.
    if (trouble !== null) trouble = troubleOf(await parts.look(calibration.lookMs));
    if (trouble === null) {
      held = contexts;
      // After one that did not hold, smaller ones were looked for.
      if (contexts === parts.max || contexts < calibration.first) break;
      next = Math.ceil(contexts * calibration.growth);
    } else if (held > 0 || contexts === 1) break;
    else next = Math.ceil(contexts / 2);
  }
  return { contexts: Math.max(1, Math.floor(held * parts.share)), share: parts.share, held, trouble };
};

/**
 * Waits until what the last and largest number left behind is spoken, and no part of what is measured then.
 * @returns what is still wrong after all that time; `null`: nothing
 */
export const settle = async (look: CalibrateParts['look']): Promise<string | null> => {
  let trouble: string | null = null;
  for (let i = 0; i < calibration.settlesMax; i++) {
    trouble = troubleOf(await look(calibration.settleMs));
    if (trouble === null) return null;
  }
  return trouble;
};
