/** What a part of the service achieves on this machine when nothing else runs: the measure for its throughput. */
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import type { AudioFormat } from '../../src/api/formats.js';
import { sumOf } from '../rig/statistics.js';
import type { BareEncoderData, BareEngineData, BareWork } from './bare-thread.js';

export interface BareFigures {
  /** Seconds of speech a second, all threads together. */
  readonly throughput: number;
  /** Milliseconds of CPU for a second of speech: other load on the machine hardly changes it. */
  readonly cpuMs: number;
}

/** Threads that do one thing over and over, with nothing around it. */
export class BareLoop {
  readonly #threads: readonly Worker[];
  readonly #control: Int32Array;

  private constructor(threads: readonly Worker[], control: Int32Array) {
    this.#threads = threads;
    this.#control = control;
  }

  /** @param threadCount the number of the service's threads that do this */
  static async start(threadCount: number, data: BareEngineData | BareEncoderData): Promise<BareLoop> {
    const control = new SharedArrayBuffer(4);
    const entry = new URL('./bare-thread.js', import.meta.url);
    const threads = Array.from(
      { length: threadCount },
      () => new Worker(entry, { workerData: { data, control } }),
    );
    await Promise.all(threads.map((thread) => once(thread, 'message')));
    return new BareLoop(threads, new Int32Array(control));
  }

  /** @param format of an encoder */
  async measure(durationMs: number, format?: AudioFormat): Promise<BareFigures> {
    Atomics.store(this.#control, 0, 1);
    const startedMs = performance.now();
    const made = this.#threads.map((thread) => {
      thread.postMessage(format);
      return once(thread, 'message') as Promise<[BareWork]>;
    });
    await sleep(durationMs);
    const elapsedMs = performance.now() - startedMs;
    Atomics.store(this.#control, 0, 0);
    const works = (await Promise.all(made)).flat();
    const audioMs = sumOf(works.map((work) => work.audioMs));
    const cpuMs = sumOf(works.map((work) => work.cpuMs));
    return { throughput: audioMs / elapsedMs, cpuMs: (cpuMs * 1000) / audioMs };
  }

  /** Only between two runs: a thread must not be ended while a model runs. */
  async close(): Promise<void> {
    await Promise.all(this.#threads.map((thread) => thread.terminate()));
  }
}
