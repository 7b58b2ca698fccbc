/** What the engine makes on this machine when nothing else runs: the measure that the service's throughput has. */
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import type { BareThreadData } from './bare-thread.js';

export class BareEngine {
  readonly #threads: readonly Worker[];
  readonly #control: Int32Array;

  private constructor(threads: readonly Worker[], control: Int32Array) {
    this.#threads = threads;
    this.#control = control;
  }

  /** As many threads as the service has for synthesis; idle until they are run. */
  static async start(threadCount: number, data: Omit<BareThreadData, 'control'>): Promise<BareEngine> {
    const control = new SharedArrayBuffer(4);
    const threads = Array.from(
      { length: threadCount },
      () =>
        new Worker(new URL('./bare-thread.js', import.meta.url), {
          workerData: { ...data, control } satisfies BareThreadData,
        }),
    );
    await Promise.all(threads.map((thread) => once(thread, 'message')));
    return new BareEngine(threads, new Int32Array(control));
  }

  /** Seconds of speech a second. */
  async throughput(durationMs: number): Promise<number> {
    Atomics.store(this.#control, 0, 1);
    const startedMs = performance.now();
    const made = this.#threads.map((thread) => {
      thread.postMessage('run');
      return once(thread, 'message') as Promise<[number]>;
    });
    await sleep(durationMs);
    const elapsedMs = performance.now() - startedMs;
    Atomics.store(this.#control, 0, 0);
    const audioMs = (await Promise.all(made)).reduce((sum, [threadMs]) => sum + threadMs, 0);
    return audioMs / elapsedMs;
  }

  /** Between two runs no model runs: the only time when a thread may be ended. */
  async close(): Promise<void> {
    await Promise.all(this.#threads.map((thread) => thread.terminate()));
  }
}
