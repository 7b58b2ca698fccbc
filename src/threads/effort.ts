/**
 * What the work of one thread has cost, in memory that it shares with the front thread: a row for each voice of a synthesis
 * thread, or for each encoding of an actor thread. The thread adds to the totals, and the front thread reads what they
 * grew by, without a message.
 */
import { monotonicMs } from '../monotonic.js';

/** The cost of some work, and the speech that it made. */
export interface Effort {
  /** CPU time of the thread in this work; its cost on the GPU, if the thread waits for one in it. */
  readonly cpuMs: number;
  /** CPU time of the thread between this work and the work before: messages, and garbage collection. */
  readonly aroundCpuMs: number;
  readonly speechMs: number;
  /** Segments that were begun: first steps, of a synthesis thread. */
  readonly begun: number;
  /** CPU time of these first steps; their cost on the GPU. */
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
        cpuMs: sum.cpuMs + effort.cpuMs,
        aroundCpuMs: sum.aroundCpuMs + effort.aroundCpuMs,
        speechMs: sum.speechMs + effort.speechMs,
        begun: sum.begun + effort.begun,
        beginMs: sum.beginMs + effort.beginMs,
      });
  }
  return sums;
};

const FIELDS = 5;

/** CPU time of the calling thread, in milliseconds. */
export const threadCpuMs = (): number => {
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
   * @returns ends it, for each thing that it made: the caller passes the speech, and gets the milliseconds that passed.
   *   `costMs` is what it costs if the thread waits for a GPU in it
   */
  begin(): (row: number, speechMs: number, isFirst?: boolean, costMs?: number) => number {
    const startMs = monotonicMs();
    const startCpuMs = threadCpuMs();
    let aroundCpuMs = startCpuMs - (this.#endedCpuMs ?? startCpuMs);
    return (row, speechMs, isFirst = false, costMs) => {
      this.#endedCpuMs = threadCpuMs();
      const cpuMs = costMs ?? this.#endedCpuMs - startCpuMs;
      this.#add(row, 0, cpuMs);
      this.#add(row, 1, aroundCpuMs);
      aroundCpuMs = 0;
      this.#add(row, 2, speechMs);
      if (isFirst) {
        this.#add(row, 3, 1);
        this.#add(row, 4, cpuMs);
      }
      return monotonicMs() - startMs;
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
      ...{ cpuMs: grown(0), aroundCpuMs: grown(1), speechMs: grown(2) },
      ...{ begun: grown(3), beginMs: grown(4) },
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
