/**
 * What the front thread and a synthesis thread share about running jobs: arrays over one SharedArrayBuffer, indexed by
 * the job's slot. A slot belongs to one job from its start until the thread answered. All threads share one number for
 * each group of contexts.
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

/** Milliseconds of audio that a group's listeners have in hand, as far as others can tell, while it has had its share. */
const LEAD_MS = 500;

/**
 * One playback clock for a group of contexts (those of a WebSocket), as if all their audio went to one listener: a number
 * that the threads share while they speak for the group.
 *
 * No job of the group counts as due before it. So under contention all contexts of a group together get what one context
 * gets. It is never more than `LEAD_MS` ahead of the present. So speech that the group got from an idle machine does not
 * count against it later, and once the other listeners have `LEAD_MS` in hand, the group gets what they do not need.
 */
export class GroupClock {
  static #groups = 0;
  readonly buffer: SharedArrayBuffer;
  /** The deadline, and the number of the group. */
  readonly #fields: Float64Array;

  /** @param buffer of the clock of a group; absent: the clock of a new group */
  constructor(buffer?: SharedArrayBuffer) {
    this.buffer = buffer ?? new SharedArrayBuffer(2 * Float64Array.BYTES_PER_ELEMENT);
    this.#fields = new Float64Array(this.buffer);
    if (buffer === undefined) this.#fields[1] = ++GroupClock.#groups;
  }

  /** The same for all jobs of a group. */
  get id(): number {
    return this.#fields[1] ?? 0;
  }

  get dueMs(): number {
    return this.#fields[0] ?? 0;
  }

  /**
   * Audio was made for the group. If two threads report at the same moment, one report can be lost: it costs one chunk.
   *
   * @param jobDueMs the playback deadline of the job that made it, before
   */
  made(durationMs: number, jobDueMs: number, nowMs: number): void {
    const startMs = Math.max(this.dueMs, Math.min(jobDueMs, nowMs));
    this.#fields[0] = Math.min(startMs + durationMs, nowMs + LEAD_MS);
  }
}
