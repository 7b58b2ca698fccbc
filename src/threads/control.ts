/**
 * What the front thread and a synthesis thread share about running jobs: arrays over one SharedArrayBuffer, indexed by
 * the job's slot. A slot belongs to one job from its start until the thread answered.
 */

const BYTES_PER_SLOT = Float64Array.BYTES_PER_ELEMENT + 2 * Int32Array.BYTES_PER_ELEMENT;

export class JobControl {
  readonly buffer: SharedArrayBuffer;
  readonly slots: number;
  readonly #startMs: Float64Array;
  readonly #cancelled: Int32Array;
  readonly #stepping: Int32Array;

  constructor(source: number | SharedArrayBuffer) {
    this.buffer = typeof source === 'number' ? new SharedArrayBuffer(source * BYTES_PER_SLOT) : source;
    this.slots = this.buffer.byteLength / BYTES_PER_SLOT;
    this.#startMs = new Float64Array(this.buffer, 0, this.slots);
    this.#cancelled = new Int32Array(this.buffer, this.slots * 8, this.slots);
    this.#stepping = new Int32Array(this.buffer, this.slots * 12, this.slots);
  }

  has(slot: number): boolean {
    return Number.isInteger(slot) && slot >= 0 && slot < this.slots;
  }

  /** Front: a job takes the slot. @param startMs position of its first sample in the audio of its context */
  begin(slot: number, startMs: number): void {
    this.#startMs[slot] = startMs;
    Atomics.store(this.#cancelled, slot, 0);
    Atomics.store(this.#stepping, slot, 0);
  }

  /** Front: the audio before it got another length. An aligned write of 8 bytes is never torn; a stale read costs one step. */
  setStart(slot: number, startMs: number): void {
    this.#startMs[slot] = startMs;
  }

  /** Synthesis: position of the job's first sample. */
  startMs(slot: number): number {
    return this.#startMs[slot] ?? 0;
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

  get isAnyStepping(): boolean {
    return this.#stepping.some((_, slot) => this.isStepping(slot));
  }
}
