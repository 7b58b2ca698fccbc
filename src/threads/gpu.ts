/**
 * The GPU of the process, as its threads share it. onnxruntime has one WebGPU device for all sessions of a process, and
 * two threads that use it at the same time end the process by a segmentation fault. So a thread holds a lock during each
 * load, run and release.
 *
 *   in use --(a run fails or hangs, or the lock is not free in time)--> lost --(a reload of the voices)--> in use
 *
 * A lost GPU is not used: the graphs run on the CPU.
 */

const LOCK = 0;
const LOST = 1;
const FIELDS = 2;

const FREE = 0;
const RUNNING = 1;
/** Shaders are compiled: that takes much longer than a run. */
const LOADING = 2;

/**
 * Milliseconds that a thread waits while another one runs a graph, and while that one loads a graph or runs it for the first
 * time. The first is less than the watchdog's time: the watchdog must end the thread that hangs, not one that waits.
 */
const waits = { runMs: 4_000, loadMs: 60_000 } as const;
const LOOK_MS = 100;

/** Where a graph runs, and the times of the runs that decided it; 0 if it was not measured. */
export interface Placement {
  readonly device: 'gpu' | 'cpu';
  /** The most runs of segments that are one run on the GPU. */
  readonly batch: number;
  /** Those that the load ran on the GPU. */
  readonly windows: readonly string[];
  /** Alone, and its part of the largest batch that is worth it. */
  readonly gpuMs: number;
  readonly itemMs: number;
  readonly cpuMs: number;
  /** The results on the GPU are wrong by this much. */
  readonly difference?: number;
}

/** Where a graph runs, and why, for the operator. */
export const describePlacement = ({ device, batch, gpuMs, itemMs, cpuMs, difference }: Placement): string => {
  const name = device.toUpperCase();
  if (difference !== undefined) return `${name}: on the GPU its results are wrong by ${difference}`;
  if (cpuMs === 0) return device === 'gpu' ? `${name}, as chosen, in batches of up to ${batch}` : name;
  const inBatch = batch > 1 ? ` (${itemMs} ms in a batch of ${batch})` : '';
  return `${name}: ${gpuMs} ms on the GPU${inBatch}, ${cpuMs} ms on the CPU, for the same runs`;
};

/** The GPU does not answer. */
export class GpuLostError extends Error {
  override readonly name = 'GpuLostError';
}

export class GpuState {
  readonly buffer: SharedArrayBuffer;
  readonly #fields: Int32Array;
  readonly #waits: Readonly<Record<keyof typeof waits, number>>;
  #isHolding = false;

  constructor(
    buffer = new SharedArrayBuffer(FIELDS * Int32Array.BYTES_PER_ELEMENT),
    waitsMax: Readonly<Record<keyof typeof waits, number>> = waits,
  ) {
    this.buffer = buffer;
    this.#fields = new Int32Array(buffer);
    this.#waits = waitsMax;
  }

  get isLost(): boolean {
    return Atomics.load(this.#fields, LOST) !== 0;
  }

  /** No thread uses it any more. Idempotent. */
  lose(): void {
    Atomics.store(this.#fields, LOST, 1);
  }

  /** A thread hangs in native code. If it is a call of the GPU, no thread uses the GPU any more. */
  loseIfHeld(): void {
    if (Atomics.load(this.#fields, LOCK) !== FREE) this.lose();
  }

  /** Threads that load from now on try it again, unless a thread hangs in it: they would wait for that one. */
  restore(): void {
    if (Atomics.load(this.#fields, LOCK) === FREE) Atomics.store(this.#fields, LOST, 0);
  }

  /**
   * Runs a call of the GPU when no other thread does. Blocks the thread while it waits, as the call itself does.
   *
   * @param isLoad it loads a graph, or runs it for the first time
   * @throws {GpuLostError} if another thread holds the GPU for too long: it hangs
   */
  async hold<T>(isLoad: boolean, run: () => Promise<T>): Promise<T> {
    // The thread would wait for itself and never go on.
    if (this.#isHolding) throw new Error('a second call of the GPU began during the first');
    this.#take(isLoad ? LOADING : RUNNING);
    this.#isHolding = true;
    try {
      return await run();
    } finally {
      this.#isHolding = false;
      Atomics.store(this.#fields, LOCK, FREE);
      Atomics.notify(this.#fields, LOCK, 1);
    }
  }

  #take(mine: number): void {
    const startMs = performance.now();
    let waitMsMax = mine === LOADING ? this.#waits.loadMs : this.#waits.runMs;
    for (;;) {
      const holder = Atomics.compareExchange(this.#fields, LOCK, FREE, mine);
      if (holder === FREE) return;
      if (holder === LOADING) waitMsMax = this.#waits.loadMs;
      if (performance.now() - startMs > waitMsMax) {
        this.lose();
        throw new GpuLostError(`the GPU did not answer for ${waitMsMax / 1_000} s`);
      }
      Atomics.wait(this.#fields, LOCK, holder, LOOK_MS);
    }
  }
}
