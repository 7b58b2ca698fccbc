/**
 * Signs of life of a thread, which it shares with the front thread: an array over one SharedArrayBuffer.
 *
 * The gate keeps two things apart that must never meet: native code that runs in a thread, and the thread's end, which
 * would then abort the process. The thread passes the gate around each such call; the front bars it, for ever, and
 * knows by what it found there whether the thread is outside.
 */

const GATE = 0;
const BEATS = 1;
const STEPS = 2;
const FIELDS = 3;

/** Bits of the gate. */
const INSIDE = 1;
const BARRED = 2;

/** Milliseconds between two beats of a thread. */
const BEAT_MS = 500;

/** Runs a call of native code that cannot be broken off. */
export type NativeGuard = <T>(run: () => Promise<T>) => Promise<T>;

/** For a program of its own, which is not ended by anyone. */
export const unguarded: NativeGuard = (run) => run();

export class Vitals {
  readonly buffer: SharedArrayBuffer;
  readonly #fields: Int32Array;

  constructor(buffer = new SharedArrayBuffer(FIELDS * Int32Array.BYTES_PER_ELEMENT)) {
    this.buffer = buffer;
    this.#fields = new Int32Array(buffer);
  }

  /** Thread, first of all: clears what the one before it left, if that died, and lets the event loop beat from now on. */
  live(): void {
    Atomics.and(this.#fields, GATE, ~INSIDE);
    Atomics.store(this.#fields, STEPS, 0);
    setInterval(() => Atomics.add(this.#fields, BEATS, 1), BEAT_MS).unref();
  }

  /** Thread: a step begins, or ends. */
  setStepping(stepping: boolean): void {
    if (this.isStepping !== stepping) Atomics.add(this.#fields, STEPS, 1);
  }

  /** Thread: never resolves once the gate is barred; then the thread is about to be ended. One call at a time. */
  readonly native: NativeGuard = async (run) => {
    const found = Atomics.compareExchange(this.#fields, GATE, 0, INSIDE);
    if ((found & BARRED) !== 0) return new Promise(() => undefined);
    if (found !== 0) throw new Error('native code is not entered twice');
    try {
      return await run();
    } finally {
      Atomics.and(this.#fields, GATE, ~INSIDE);
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

  /** Inside native code now. */
  get isInside(): boolean {
    return (Atomics.load(this.#fields, GATE) & INSIDE) !== 0;
  }

  /**
   * Front: lets the thread enter native code never again.
   * @returns whether it is outside, and so may be ended; if not, `isInside` tells when it has come out
   */
  bar(): boolean {
    return (Atomics.or(this.#fields, GATE, BARRED) & INSIDE) === 0;
  }
}
