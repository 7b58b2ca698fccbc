/**
 * What the work of one thread has cost, in memory that it shares with the front thread: a row for each voice of a synthesis
 * thread and one for all its work, or a row for each encoding of an actor thread. The thread adds to the totals, and the front
 * thread reads what they grew by, without a message.
 */
import { monotonicMs } from '../monotonic.js';

/** The columns of a row. */
const fields = [
  // CPU time of the thread in this work, and between it and the work before: messages, and garbage collection. If the
  // thread waits for a GPU in the work, what that costs takes the place of its CPU time.
  'cpuMs',
  'speechMs',
  // Segments that were begun: first steps, of a synthesis thread.
  'begun',
  // The cost of these first steps alone.
  'beginMs',
] as const;

/** The cost of some work, and the speech that it made. */
export type Effort = Readonly<Record<(typeof fields)[number], number>>;

type Ended = Readonly<{ effort: Effort } & Record<'asideMs' | 'passedMs', number>>;

/** CPU time of the calling thread, in milliseconds. */
export const threadCpuMs = (): number => {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
};

let asideMs = 0;

/** Runs work that does not count as the cost of a voice, such as a change of language: one account could raise that cost for all. */
export const aside = (work: () => void): void => {
  const startMs = threadCpuMs();
  try {
    work();
  } finally {
    asideMs += threadCpuMs() - startMs;
  }
};

export class EffortTable {
  readonly buffer: SharedArrayBuffer;
  readonly rows: number;
  readonly #totals: Float64Array;
  /** Totals at the last `take`. */
  readonly #taken: Float64Array;
  /** CPU time of the thread when its last work ended. `null`: what it used since then belongs to no work. */
  #endedCpuMs: number | null = null;

  /** @param source rows of a new table, or the memory of one */
  constructor(source: number | SharedArrayBuffer) {
    const rowBytes = fields.length * Float64Array.BYTES_PER_ELEMENT;
    this.buffer = typeof source === 'number' ? new SharedArrayBuffer(source * rowBytes) : source;
    this.rows = this.buffer.byteLength / rowBytes;
    this.#totals = new Float64Array(this.buffer);
    this.#taken = new Float64Array(this.#totals.length);
  }

  /**
   * Its thread: work begins.
   *
   * @returns ends it, for each thing that it made: the caller passes the speech, and gets its cost and the milliseconds that
   *   passed, and those that went aside. `costMs` is what it costs if the thread waits for a GPU in it, `parts` the number of
   *   things
   */
  begin(): (speechMs: number, isFirst?: boolean, costMs?: number, parts?: number) => Ended {
    const startMs = monotonicMs();
    const startAsideMs = asideMs;
    const startCpuMs = threadCpuMs();
    let aroundCpuMs = startCpuMs - (this.#endedCpuMs ?? startCpuMs);
    return (speechMs, isFirst = false, costMs, parts = 1) => {
      this.#endedCpuMs = threadCpuMs();
      const wentAsideMs = (asideMs - startAsideMs) / parts;
      const ownMs = (costMs ?? this.#endedCpuMs - startCpuMs) - wentAsideMs;
      const first = isFirst ? { begun: 1, beginMs: ownMs } : { begun: 0, beginMs: 0 };
      const effort = { cpuMs: ownMs + aroundCpuMs, speechMs, ...first };
      aroundCpuMs = 0;
      return { effort, asideMs: wentAsideMs, passedMs: monotonicMs() - startMs };
    };
  }

  /** Its thread: counts work in a row. Only it writes to the totals. */
  add(row: number, effort: Effort): void {
    for (const [column, field] of fields.entries())
      this.#totals[row * fields.length + column]! += effort[field];
  }

  /** Its thread: what it does until the next work belongs to none. */
  leaveOut(): void {
    this.#endedCpuMs = null;
  }

  /** Front: the growth of a row since this was last called. */
  take(row: number): Effort {
    const grown = { cpuMs: 0, speechMs: 0, begun: 0, beginMs: 0 };
    for (const [column, field] of fields.entries()) {
      const at = row * fields.length + column;
      // Read once: the other thread adds to it meanwhile.
      const total = this.#totals[at]!;
      grown[field] = total - this.#taken[at]!;
      this.#taken[at] = total;
    }
    return grown;
  }
}
