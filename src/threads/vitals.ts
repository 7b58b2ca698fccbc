/**
 * Signs of life of a thread, in memory that it shares with the front thread.
 *
 * They include the native guard. Ending a thread while it runs native code would abort the process. So the thread holds
 * the guard during each such call, and the front thread closes it for good before it ends the thread.
 */

const GUARD = 0;
const BEATS = 1;
const STEPS = 2;
const DECLARED_MS = 3;
const FIELDS = 4;

/** Bits of the guard. */
const INSIDE = 1;
const CLOSED = 2;

/** Runs a call of native code that cannot be interrupted. */
export type NativeGuard = <T>(run: () => Promise<T>) => Promise<T>;

/** For a program of its own, which ends no thread. */
export const unguarded: NativeGuard = (run) => run();

export class Vitals {
  readonly buffer: SharedArrayBuffer;
  readonly #fields: Int32Array;

  constructor(buffer = new SharedArrayBuffer(FIELDS * Int32Array.BYTES_PER_ELEMENT)) {
    this.buffer = buffer;
    this.#fields = new Int32Array(buffer);
  }

  /** Thread: starts the beats of its event loop, two in each of the watchdog's. */
  live(bounds: { readonly watchdogBeatMs: number }): void {
    setInterval(() => Atomics.add(this.#fields, BEATS, 1), bounds.watchdogBeatMs / 2).unref();
  }

  /** Thread: a step begins or ends. @param declaredMs what the engine declared for a long step */
  setStepping(stepping: boolean, declaredMs = 0): void {
    Atomics.store(this.#fields, DECLARED_MS, Math.ceil(declaredMs));
    if (this.isStepping !== stepping) Atomics.add(this.#fields, STEPS, 1);
  }

  /** Thread: one call at a time. Never resolves once the guard is closed: the front thread then ends this thread. */
  readonly native: NativeGuard = async (run) => {
    const found = Atomics.compareExchange(this.#fields, GUARD, 0, INSIDE);
    if ((found & CLOSED) !== 0) return new Promise(() => undefined);
    if (found !== 0) throw new Error('a second native call began during the first');
    try {
      return await run();
    } finally {
      Atomics.and(this.#fields, GUARD, ~INSIDE);
    }
  };

  /** Grows while the thread's event loop turns. */
  get beats(): number {
    return Atomics.load(this.#fields, BEATS);
  }

  /** Grows when a step begins and when it ends. */
  get steps(): number {
    return Atomics.load(this.#fields, STEPS);
  }

  get isStepping(): boolean {
    return this.steps % 2 !== 0;
  }

  /** Milliseconds that the engine declared for the step that is running, if it is a long one; else 0. */
  get declaredMs(): number {
    return Atomics.load(this.#fields, DECLARED_MS);
  }

  /** A native call is running. */
  get isInside(): boolean {
    return (Atomics.load(this.#fields, GUARD) & INSIDE) !== 0;
  }

  /**
   * Front: lets no further native call begin.
   * @returns true if none is running, so that the thread may be ended; if false, `isInside` shows when it returned
   */
  closeGuard(): boolean {
    return (Atomics.or(this.#fields, GUARD, CLOSED) & INSIDE) === 0;
  }
}
