/**
 * What the work of one thread has cost, in memory that it shares with the front thread: a row for each voice of a synthesis
 * thread, or for each encoding of an actor thread. The thread adds to the totals, and the front thread reads what they
 * grew by, without a message.
 */
import { monotonicMs } from '../monotonic.js';

/** The cost of some work, and the speech that it made. */
export interface Effort {
  /** Time that passed, including waits for a core. */
  readonly wallMs: number;
  /** CPU time of the thread in this work; the time that passed, if the thread waits for a GPU in it. */
  readonly cpuMs: number;
  /** CPU time of the thread between this work and the work before: messages, and garbage collection. */
  readonly aroundCpuMs: number;
  readonly speechMs: number;
  /** Segments that were begun: first steps, of a synthesis thread. */
  readonly begun: number;
  /** Time that passed in these first steps. */
  readonly beginMs: number;
}

/** Adds up the efforts of several threads. */
export const sumEfforts = <Key>(efforts: Iterable<readonly [Key, Effort]>): Map<Key, Effort> => {
  const sums = new Map<Key, Effort>();
  for (const [key, effort] of efforts) {
    const sum = sums.get(key);
    if (sum === undefined) sums.set(key, effort);
    else
      sums.set(key, {
        wallMs: sum.wallMs + effort.wallMs,
        cpuMs: sum.cpuMs + effort.cpuMs,
        aroundCpuMs: sum.aroundCpuMs + effort.aroundCpuMs,
        speechMs: sum.speechMs + effort.speechMs,
        begun: sum.begun + effort.begun,
        beginMs: sum.beginMs + effort.beginMs,
      });
  }
  return sums;
};

const FIELDS = 6;

/** CPU time of the calling thread, in milliseconds. */
const threadCpuMs = (): number => {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
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
    const rowBytes = FIELDS * Float64Array.BYTES_PER_ELEMENT;
    this.buffer = typeof source === 'number' ? new SharedArrayBuffer(source * rowBytes) : source;
    this.rows = this.buffer.byteLength / rowBytes;
    this.#totals = new Float64Array(this.buffer);
    this.#taken = new Float64Array(this.#totals.length);
  }

  /**
   * Its thread: work begins.
   *
   * @param hasWaits the thread waits for a GPU in this work, and does nothing else meanwhile
   * @param parts the work makes so many things, each with a row
   * @returns ends it, for each part: the caller passes what was made, and gets the milliseconds that passed
   */
  begin(hasWaits = false, parts = 1): (row: number, speechMs: number, isFirst?: boolean) => number {
    const startMs = monotonicMs();
    const startCpuMs = threadCpuMs();
    const aroundCpuMs = startCpuMs - (this.#endedCpuMs ?? startCpuMs);
    return (row, speechMs, isFirst = false) => {
      const wallMs = monotonicMs() - startMs;
      this.#endedCpuMs = threadCpuMs();
      this.#add(row, 0, wallMs / parts);
      this.#add(row, 1, (hasWaits ? wallMs : this.#endedCpuMs - startCpuMs) / parts);
      this.#add(row, 2, aroundCpuMs / parts);
      this.#add(row, 3, speechMs);
      if (isFirst) {
        this.#add(row, 4, 1);
        this.#add(row, 5, wallMs / parts);
      }
      return wallMs;
    };
  }

  /** Its thread: what it does until the next work belongs to none. */
  leaveOut(): void {
    this.#endedCpuMs = null;
  }

  /** Front: the growth of a row since this was last called. */
  take(row: number): Effort {
    const grown = (field: number) => this.#grown(row, field);
    return {
      ...{ wallMs: grown(0), cpuMs: grown(1), aroundCpuMs: grown(2) },
      ...{ speechMs: grown(3), begun: grown(4), beginMs: grown(5) },
    };
  }

  #add(row: number, field: number, more: number): void {
    const at = row * FIELDS + field;
    // Only its own thread writes to it.
    this.#totals[at] = (this.#totals[at] ?? 0) + more;
  }

  #grown(row: number, field: number): number {
    const at = row * FIELDS + field;
    const total = this.#totals[at] ?? 0;
    const grown = total - (this.#taken[at] ?? 0);
    this.#taken[at] = total;
    return grown;
  }
}
