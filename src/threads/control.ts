/**
 * What the front thread and a synthesis thread share about running jobs: arrays over one SharedArrayBuffer, indexed by
 * the job's slot. A slot belongs to one job from its start until the thread answered.
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

  has(slot: number): boolean {
    return Number.isInteger(slot) && slot >= 0 && slot < this.slots;
  }

  /** Front: a job takes the slot. `playFromMs`: when its first sample plays, on the clock that all threads share. */
  begin(slot: number, playFromMs: number): void {
    this.#playFromMs[slot] = playFromMs;
    Atomics.store(this.#cancelled, slot, 0);
    Atomics.store(this.#stepping, slot, 0);
  }

  /** Front: the playback clock moved. An aligned write of 8 bytes is never torn; a stale read costs one step. */
  setPlayFrom(slot: number, playFromMs: number): void {
    this.#playFromMs[slot] = playFromMs;
  }

  /** Synthesis: the playback deadline of the sample at `madeMs` into the job. */
  dueMs(slot: number, madeMs: number): number {
    return (this.#playFromMs[slot] ?? 0) + madeMs;
  }

  /** Front: asks the job to end at its next step. A step itself cannot be interrupted. */
  cancel(slot: number): void {
    Atomics.store(this.#cancelled, slot, 1);
  }

  isCancelled(slot: number): boolean {
    return Atomics.load(this.#cancelled, slot) === 1;
  }

  /** Synthesis: the job's step runs. If the thread dies now, only this job fails. */
  setStepping(slot: number, stepping: boolean): void {
    Atomics.store(this.#stepping, slot, stepping ? 1 : 0);
  }

  isStepping(slot: number): boolean {
    return Atomics.load(this.#stepping, slot) === 1;
  }
}
