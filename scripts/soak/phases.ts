/** How long the parts of a soak last. Only one that judges memory is long enough to want more than what it measures. */

/** Where the memory of the service's process can be read. */
export type MemoryAccess = 'at rest' | 'under load' | 'nowhere';

export interface Phases {
  readonly isMemoryJudged: boolean;
  /**
   * More clients for a while, before the warm-up: pools and heaps have the size that peaks give them then, and do not
   * come to it in the course of an hour, which looks like a leak. A calibration does the same.
   */
  readonly surge: { readonly factor: number; readonly ms: number } | null;
  /** V8 compiles what it meets often, and keeps what it saw: of a load like this, most of it in the first half hour. */
  readonly warmUpMs: number;
  /** From the end of the warm-up to that of all, in even distances; see `memory.ts`. */
  readonly rests: number;
}

/** Memory is judged from so many minutes on. */
export const minutesToJudgeMemory = 25;
export const defaultWarmUpMinutes = 30;
const minutesBetweenRests = 5;
const restsMax = 25;

/** What was asked for; `null`: nothing. */
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
