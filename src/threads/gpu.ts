/**
 * The GPU of the process, as its threads share it. onnxruntime has one WebGPU device for all sessions of a process, and
 * two threads that use it at the same time end the process by a segmentation fault. A generation of voices has one thread
 * for it, but a reload has two generations. So a thread holds a lock during each load, run and release.
 *
 * A GPU on which a call fails or hangs is lost: the CPU runs its graphs until the service is restarted. The watchdog decides
 * whether a thread hangs.
 */
import { threadId } from 'node:worker_threads';

const LOCK = 0;
const LOST = 1;
const FIELDS = 2;

/** No thread. The id of the main thread is 0. */
const NONE = 0;
const fieldOf = (id: number): number => id + 1;

/** Milliseconds that a step waits: far less than `threadHangMsMax`, or the watchdog would end a thread that waits. */
const STEP_WAIT_MS_MAX = 2_000;
const LOOK_MS = 100;

/** Another thread uses the GPU for too long, or hangs in it. */
export class GpuBusyError extends Error {
  override readonly name = 'GpuBusyError';
}

export class GpuState {
  readonly buffer: SharedArrayBuffer;
  readonly #fields: Int32Array;
  readonly #stepWaitMsMax: number;
  /** A step waited in vain: its next runs do not wait, until one finds the GPU free. */
  #wasBusy = false;

  constructor(
    buffer = new SharedArrayBuffer(FIELDS * Int32Array.BYTES_PER_ELEMENT),
    stepWaitMsMax = STEP_WAIT_MS_MAX,
  ) {
    this.buffer = buffer;
    this.#fields = new Int32Array(buffer);
    this.#stepWaitMsMax = stepWaitMsMax;
  }

  get isLost(): boolean {
    return Atomics.load(this.#fields, LOST) !== 0;
  }

  /** No thread uses it any more. @returns false if it was lost already */
  lose(): boolean {
    return Atomics.exchange(this.#fields, LOST, 1) === 0;
  }

  /** A thread hangs in native code. @returns false if that is no call of the GPU, or the GPU was lost already */
  loseIfHeldBy(id: number): boolean {
    return Atomics.load(this.#fields, LOCK) === fieldOf(id) && this.lose();
  }

  /** A load of this thread would wait for another thread. */
  isBusyFor(id: number): boolean {
    return ![NONE, fieldOf(id)].includes(Atomics.load(this.#fields, LOCK));
  }

  /** A thread is over. It may have been ended between the lock and its call. */
  freeFrom(id: number): void {
    if (Atomics.compareExchange(this.#fields, LOCK, fieldOf(id), NONE) === fieldOf(id))
      Atomics.notify(this.#fields, LOCK, 1);
  }

  /**
   * Runs a call of the GPU when no other thread does. Blocks the thread while it waits, as the call itself does.
   *
   * @param isStep it waits for 2 s at most. A load waits until the GPU is free or lost
   * @throws {GpuBusyError} if it waited in vain
   */
  async hold<T>(run: () => Promise<T>, isStep = false): Promise<T> {
    this.#take(!isStep ? Infinity : this.#wasBusy ? 0 : this.#stepWaitMsMax);
    try {
      return await run();
    } finally {
      this.freeFrom(threadId);
    }
  }

  #take(waitMsMax: number): void {
    const startMs = performance.now();
    for (;;) {
      const holder = Atomics.compareExchange(this.#fields, LOCK, NONE, fieldOf(threadId));
      // It would wait for itself.
      if (holder === fieldOf(threadId)) throw new Error('a second call of the GPU began during the first');
      const leftMs = startMs + waitMsMax - performance.now();
      this.#wasBusy = holder !== NONE;
      if (holder === NONE) return;
      // A thread may hang in a lost GPU.
      if (leftMs <= 0 || this.isLost) throw new GpuBusyError('another thread uses the GPU');
      Atomics.wait(this.#fields, LOCK, holder, Math.min(LOOK_MS, leftMs));
    }
  }
}
