/** What a part of the service makes on this machine when nothing else runs: the measure that its throughput has. */
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import type { AudioFormat } from '../../src/api/formats.js';
import type { BareEncoderData } from './bare-encoder-thread.js';
import type { BareThreadData } from './bare-thread.js';

/** Threads that do one thing over and over, with nothing around it. */
export class BareLoop<Job> {
  readonly #threads: readonly Worker[];
  readonly #control: Int32Array;

  private constructor(threads: readonly Worker[], control: Int32Array) {
    this.#threads = threads;
    this.#control = control;
  }

  /** Idle until they are run. */
  static async start<Job>(entry: URL, threadCount: number, data: object): Promise<BareLoop<Job>> {
    const control = new SharedArrayBuffer(4);
    const threads = Array.from(
      { length: threadCount },
      () => new Worker(entry, { workerData: { ...data, control } }),
    );
    await Promise.all(threads.map((thread) => once(thread, 'message')));
    return new BareLoop(threads, new Int32Array(control));
  }

  /** Seconds of speech a second. */
  async throughput(durationMs: number, job: Job): Promise<number> {
    Atomics.store(this.#control, 0, 1);
    const startedMs = performance.now();
    const made = this.#threads.map((thread) => {
      thread.postMessage(job);
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

export type BareEngine = BareLoop<'run'>;

/** @param threadCount as many as the service has for synthesis */
export const startBareEngine = (
  threadCount: number,
  data: Omit<BareThreadData, 'control'>,
): Promise<BareEngine> => BareLoop.start(new URL('./bare-thread.js', import.meta.url), threadCount, data);

export type BareEncoder = BareLoop<AudioFormat>;

/** @param threadCount as many actor threads as the service has */
export const startBareEncoder = (
  threadCount: number,
  data: Omit<BareEncoderData, 'control'>,
): Promise<BareEncoder> =>
  BareLoop.start(new URL('./bare-encoder-thread.js', import.meta.url), threadCount, data);
