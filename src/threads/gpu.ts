/**
 * The GPU of the process, as its threads share it. onnxruntime has one WebGPU device for all sessions of a process, and
 * two threads that use it at the same time end the process by a segmentation fault. So a thread holds a lock during each
 * load, run and release.
 *
 *   in use --(a run fails or hangs)--> lost --(a reload of the voices)--> in use
 *
 * A lost GPU is not used: the graphs run on the CPU. A GPU that other threads use for too long is not lost: the CPU runs the
 * graph this time. The watchdog decides whether a thread hangs.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { threadId } from 'node:worker_threads';

const LOCK = 0;
/** Counts up when the GPU is lost, and when it is tried again. Odd: it is lost. */
const EPOCH = 1;
/** The thread that hangs in the GPU. */
const HUNG = 2;
const FIELDS = 3;

/** No thread. The id of the main thread is 0. */
const NONE = 0;
const fieldOf = (id: number): number => id + 1;

/**
 * Milliseconds that a thread waits while others use the GPU. It gets them back by time in which it does not wait. So a step
 * waits this long and for half of its time, however many runs it has: far less than `threadHangMsMax`, or the watchdog
 * would end threads that wait for one that hangs.
 */
const WAIT_MS_MAX = 2_000;
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

/** Other threads use the GPU for too long. */
export class GpuBusyError extends Error {
  override readonly name = 'GpuBusyError';
}

/** A call waits for the GPU, and it is lost. */
export class GpuLostError extends Error {
  override readonly name = 'GpuLostError';
}

export class GpuState {
  readonly buffer: SharedArrayBuffer;
  readonly #fields: Int32Array;
  readonly #waitMsMax: number;
  #isHolding = false;
  /** Milliseconds that it may have waited when its last wait ended, and when that was. */
  #leftMs = Infinity;
  #waitedAtMs = 0;

  constructor(
    buffer = new SharedArrayBuffer(FIELDS * Int32Array.BYTES_PER_ELEMENT),
    waitMsMax = WAIT_MS_MAX,
  ) {
    this.buffer = buffer;
    this.#fields = new Int32Array(buffer);
    this.#waitMsMax = waitMsMax;
  }

  /** Sessions from before a loss belong to a device that is gone: they have another epoch. */
  get epoch(): number {
    return Atomics.load(this.#fields, EPOCH);
  }

  get isLost(): boolean {
    return this.epoch % 2 !== 0;
  }

  /**
   * No thread uses it any more.
   * @param epoch of the session that failed
   * @returns false if the GPU was lost already
   */
  lose(epoch = this.epoch): boolean {
    return epoch % 2 === 0 && Atomics.compareExchange(this.#fields, EPOCH, epoch, epoch + 1) === epoch;
  }

  /**
   * A thread hangs in native code. If it is a call of the GPU, no thread uses the GPU any more.
   * @returns false if it is none, or the GPU was lost already
   */
  loseIfHeldBy(id: number): boolean {
    if (Atomics.load(this.#fields, LOCK) !== fieldOf(id)) return false;
    Atomics.store(this.#fields, HUNG, fieldOf(id));
    return this.lose();
  }

  /** A thread is over. It may have been ended between the lock and its call. */
  freeFrom(id: number): void {
    if (Atomics.compareExchange(this.#fields, LOCK, fieldOf(id), NONE) === fieldOf(id))
      Atomics.notify(this.#fields, LOCK, 1);
  }

  /** Threads that load from now on try it again, unless a thread hangs in it: they would wait for that one. */
  restore(): void {
    const hung = Atomics.load(this.#fields, HUNG);
    if (hung !== NONE && Atomics.load(this.#fields, LOCK) === hung) return;
    const { epoch } = this;
    if (epoch % 2 !== 0) Atomics.compareExchange(this.#fields, EPOCH, epoch, epoch + 1);
  }

  /**
   * Runs a call of the GPU when no other thread does. Blocks the thread while it waits, as the call itself does.
   *
   * @throws {GpuBusyError} if others use it for too long
   */
  async hold<T>(run: () => Promise<T>): Promise<T> {
    // The thread would wait for itself.
    if (this.#isHolding) throw new Error('a second call of the GPU began during the first');
    this.#take();
    this.#isHolding = true;
    try {
      return await run();
    } finally {
      this.#isHolding = false;
      this.freeFrom(threadId);
    }
  }

  /**
   * Tries a call until other threads leave the GPU to it. No listener waits for such a call, and the event loop goes on between
   * two tries.
   *
   * @param epoch of the session
   * @throws {GpuLostError} if the GPU is lost since, and not free
   */
  async whenFree<T>(call: () => Promise<T>, epoch = this.epoch): Promise<T> {
    for (;;)
      try {
        return await call();
      } catch (error) {
        if (!(error instanceof GpuBusyError)) throw error;
        if (this.isLost || this.epoch !== epoch) throw new GpuLostError('the GPU is lost');
        await pause(LOOK_MS);
      }
  }

  #take(): void {
    const startMs = performance.now();
    const mayMs = Math.min(this.#waitMsMax, this.#leftMs + startMs - this.#waitedAtMs);
    for (;;) {
      const holder = Atomics.compareExchange(this.#fields, LOCK, NONE, fieldOf(threadId));
      const nowMs = performance.now();
      // A thread may hang in a lost GPU.
      const leftMs = Math.min(mayMs, this.isLost ? LOOK_MS : Infinity) - (nowMs - startMs);
      if (holder === NONE || leftMs <= 0) {
        this.#waitedAtMs = nowMs;
        this.#leftMs = Math.max(0, mayMs - (nowMs - startMs));
        if (holder === NONE) return;
        throw new GpuBusyError(`other threads used the GPU for ${Math.round(nowMs - startMs)} ms`);
      }
      Atomics.wait(this.#fields, LOCK, holder, Math.min(LOOK_MS, leftMs));
    }
  }
}
