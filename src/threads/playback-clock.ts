/**
 * When a listener hears which part of its audio. The scheduler, the synthesis threads, admission, the actor threads, the
 * metrics and the WebSockets read the same clock, each at its own position: what is queued, made, encoded or sent.
 *
 * A position is a time in the audio of one context, in milliseconds from its first sample. The clock says when it plays.
 * A listener is dry at a position when that moment has passed. It then waits, and all that follows plays later.
 */

/** Numbers of a clock in the shared memory. */
const FIELDS = 3;
const ORIGIN = 0;
const LEAD = 1;
const PACE = 2;

export class PlaybackClock {
  readonly #fields: Float64Array;

  /** @param fields of a `ClockTable`; absent: a clock that its thread keeps for itself */
  constructor(fields: Float64Array = new Float64Array(FIELDS)) {
    this.#fields = fields;
  }

  /**
   * Sets the clock.
   *
   * @param leadMs no position is due earlier than this after the start
   * @param pace how fast positions pass: 1 as in playback, 0.5 for audio that is due after half of its playing time
   */
  start(originMs: number, leadMs = 0, pace = 1): void {
    this.#fields[ORIGIN] = originMs;
    this.#fields[LEAD] = leadMs;
    this.#fields[PACE] = pace;
  }

  /** When this position plays, or is due. An aligned read of 8 bytes is never torn; a stale one costs a step. */
  at(positionMs = 0): number {
    const lead = this.#fields[LEAD]!;
    const passed = positionMs * (this.#fields[PACE] || 1);
    return this.#fields[ORIGIN]! + (lead > passed ? lead : passed);
  }

  /**
   * The audio from this position on is there now. If the listener was dry, it plays from now on.
   *
   * @returns how long the listener was dry, in milliseconds
   */
  reach(positionMs: number, nowMs: number): number {
    const originMs = this.#fields[ORIGIN]!;
    const lateMs = nowMs - this.at(positionMs);
    if (lateMs <= 0) return 0;
    // Not added: two threads may notice the same delay.
    this.#fields[ORIGIN] = originMs + lateMs;
    return lateMs;
  }

  /** All that follows plays so much later. */
  advance(durationMs: number): void {
    this.#fields[ORIGIN] = this.#fields[ORIGIN]! + durationMs;
  }

  /** This position plays at that moment at the latest. */
  limit(positionMs: number, latestMs: number): void {
    this.advance(Math.min(0, latestMs - this.at(positionMs)));
  }
}

/** The clocks that threads share, by number. The front thread takes and gives them back; the others only look them up. */
export class ClockTable {
  readonly buffer: SharedArrayBuffer;
  readonly #fields: Float64Array;
  readonly #free: number[] = [];
  #used = 0;

  /** @param source the most clocks at a time, or the memory of a table */
  constructor(source: number | SharedArrayBuffer) {
    const bytes = FIELDS * Float64Array.BYTES_PER_ELEMENT;
    this.buffer = typeof source === 'number' ? new SharedArrayBuffer(source * bytes) : source;
    this.#fields = new Float64Array(this.buffer);
  }

  /** Free clocks. */
  get free(): number {
    return this.#free.length + Math.floor(this.#fields.length / FIELDS) - this.#used;
  }

  /**
   * @returns the number of a free clock
   * @throws {RangeError} if all are taken
   */
  take(): number {
    if (this.free === 0) throw new RangeError('no playback clock is free');
    return this.#free.pop() ?? this.#used++;
  }

  /** The clock is free again. A job that still reads it gets a wrong deadline for its last step. */
  give(number: number): void {
    this.#free.push(number);
  }

  /** @throws {RangeError} if there is no such clock */
  clock(number: number): PlaybackClock {
    const start = number * FIELDS;
    if (!(start >= 0 && start + FIELDS <= this.#fields.length))
      throw new RangeError(`no playback clock ${number}`);
    return new PlaybackClock(this.#fields.subarray(start, start + FIELDS));
  }
}
