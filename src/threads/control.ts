/**
 * What the front thread and a synthesis thread share while a job runs: plain arrays over one SharedArrayBuffer,
 * indexed by the job's slot. A slot belongs to one job from dispatch until its promise settled.
 */

const BYTES_PER_SLOT = Float64Array.BYTES_PER_ELEMENT + 2 * Int32Array.BYTES_PER_ELEMENT;

export class JobControl {
  readonly buffer: SharedArrayBuffer;
  readonly slots: number;
  readonly #playFromMs: Float64Array;
  readonly #cancelled: Int32Array;
  readonly #stepping: Int32Array;

  constructor(source: number | SharedArrayBuffer) {
    this.buffer = typeof source === 'number' ? new SharedArrayBuffer(source * BYTES_PER_SLOT) : source;
    this.slots = this.buffer.byteLength / BYTES_PER_SLOT;
    this.#playFromMs = new Float64Array(this.buffer, 0, this.slots);
    this.#cancelled = new Int32Array(this.buffer, this.slots * 8, this.slots);
    this.#stepping = new Int32Array(this.buffer, this.slots * 12, this.slots);
  }

  /** Front: a job takes the slot. `playFromMs`: when its listener wants its first sample, on the shared clock. */
  begin(slot: number, playFromMs: number): void {
    this.#playFromMs[slot] = playFromMs;
    Atomics.store(this.#cancelled, slot, 0);
    Atomics.store(this.#stepping, slot, 0);
  }

  /** Front: the listener's clock moved. Torn reads cannot happen (aligned 8 bytes); a stale one costs one step. */
  setPlayFrom(slot: number, playFromMs: number): void {
    this.#playFromMs[slot] = playFromMs;
  }

  /** Synthesis: when the sample at `madeMs` into the job is due. */
  dueMs(slot: number, madeMs: number): number {
    return (this.#playFromMs[slot] ?? 0) + madeMs;
  }

  /** Front: ask the job to end at its next step. A step itself cannot be interrupted. */
  cancel(slot: number): void {
    Atomics.store(this.#cancelled, slot, 1);
  }

  isCancelled(slot: number): boolean {
    return Atomics.load(this.#cancelled, slot) === 1;
  }

  /** Synthesis: marks the job whose step runs, so that a thread's death is charged to it alone. */
  setStepping(slot: number, stepping: boolean): void {
    Atomics.store(this.#stepping, slot, stepping ? 1 : 0);
  }

  isStepping(slot: number): boolean {
    return Atomics.load(this.#stepping, slot) === 1;
  }
}
