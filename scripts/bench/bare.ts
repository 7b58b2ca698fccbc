/** What a part of the service achieves on this machine when nothing else runs: the measure for its throughput. */
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import type { AudioFormat } from '../../src/api/formats.js';
import { sumOf } from '../rig/statistics.js';
import type { BareEncoderData, BareEngineData, BareOrder, BareWork } from './bare-thread.js';

export interface BareFigures {
  /** Seconds of speech a second, all threads together. */
  readonly throughput: number;
  /** Milliseconds of CPU for a second of speech: other load on the machine hardly changes it. */
  readonly cpuMs: number;
}

/** Threads that do one thing over and over, with nothing around it. */
export class BareLoop {
  readonly #threads: readonly Worker[];

  private constructor(threads: readonly Worker[]) {
    this.#threads = threads;
  }

  /** @param threadCount the number of the service's threads that do this */
  static async start(threadCount: number, workerData: BareEngineData | BareEncoderData): Promise<BareLoop> {
    const entry = new URL('./bare-thread.js', import.meta.url);
    const threads = Array.from({ length: threadCount }, () => new Worker(entry, { workerData }));
    await Promise.all(threads.map((thread) => once(thread, 'message')));
    return new BareLoop(threads);
  }

  async measure(durationMs: number, format?: AudioFormat): Promise<BareFigures> {
    const made = this.#threads.map((thread) => {
      thread.postMessage({ durationMs, format } satisfies BareOrder);
      return once(thread, 'message') as Promise<[BareWork]>;
    });
    const works = (await Promise.all(made)).flat();
    const audioMs = sumOf(works.map((work) => work.audioMs));
    const cpuMs = sumOf(works.map((work) => work.cpuMs));
    return { throughput: audioMs / durationMs, cpuMs: (cpuMs * 1000) / audioMs };
  }

  /** Only between two runs: a thread must not be ended while a model runs. */
  async close(): Promise<void> {
    await Promise.all(this.#threads.map((thread) => thread.terminate()));
  }
}
