/** The synthesis and actor threads of the service. Links each synthesis thread to each actor thread. */
import type { Config, GpuConfig, Provider } from '../config.js';
import type { Bounds } from '../limits.js';
import type { Log } from '../log.js';
import { monotonicMs } from '../monotonic.js';
import { ActorThreads } from './actor-threads.js';
import { Generations } from './generations.js';
import { ClockTable } from './playback-clock.js';
import { GpuState } from './gpu.js';
import type { SynthesisThread, SynthesisThreadOptions } from './synthesis-thread.js';
import type { Voices } from './voices.js';
import { Watchdog } from './watchdog.js';

export interface ThreadsOptions {
  readonly config: Pick<Config, 'synthesisThreads' | 'actorThreads' | 'logLevel'> & {
    readonly executionProvider: Provider;
    readonly gpu?: Pick<GpuConfig, 'graphs' | 'batchMax' | 'device'>;
  };
  readonly voices: Voices;
  /** The most voice packs that are loaded at once in each thread; absent: all. */
  readonly packsLoadedMax?: number;
  readonly bounds: Bounds;
  readonly log: Log;
  /** A test can set its own. */
  readonly watchdog?: Watchdog;
  readonly startThread?: SynthesisThreadOptions['startThread'];
  /** Compiled entries of the threads. */
  readonly synthesisEntry: URL;
  readonly actorEntry: URL;
}

export class Threads {
  readonly generations: Generations;
  readonly actors: ActorThreads;
  /** Of contexts, and of groups. */
  readonly clocks: ClockTable;
  readonly #watchdog: Watchdog;

  constructor({ config, voices, synthesisEntry, actorEntry, ...options }: ThreadsOptions) {
    const {
      bounds,
      log,
      packsLoadedMax,
      startThread,
      watchdog = new Watchdog(bounds, monotonicMs),
    } = options;
    const { synthesisThreads, actorThreads, executionProvider, gpu, logLevel } = config;
    this.clocks = new ClockTable(4 * bounds.contextsMax);
    const shared = { bounds, log, watchdog, clocks: this.clocks.buffer };
    const clock = monotonicMs;
    this.#watchdog = watchdog;
    this.generations = new Generations(voices, {
      ...shared,
      clock,
      threads: synthesisThreads,
      executionProvider,
      ...(executionProvider !== 'cpu' &&
        gpu !== undefined && { gpu: { ...gpu, state: new GpuState().buffer } }),
      logLevel,
      ...(packsLoadedMax !== undefined && { packsLoadedMax }),
      entry: synthesisEntry,
      ...(startThread !== undefined && { startThread }),
    });
    this.actors = new ActorThreads({ ...shared, threads: actorThreads, entry: actorEntry });
    this.generations.on('thread', (thread) => {
      for (const actor of this.actors.actors) this.#link(thread, actor);
    });
    this.actors.on('started', (actor) => {
      for (const thread of this.generations.ready) this.#link(thread, actor);
    });
  }

  /**
   * Resolves when every thread is ready. When it settles, no thread loads any more, so each can be ended; except threads
   * that hang in a load, which `close` reports.
   *
   * @throws the reason why a thread could not load its voices
   * @throws {VoicesHangError} if a load took too long
   */
  async ready(): Promise<void> {
    const { pool } = this.generations.current;
    for (const loaded of await Promise.allSettled([pool.loaded(), this.actors.loaded()]))
      if (loaded.status === 'rejected') throw loaded.reason;
  }

  /** Every thread is ready. A thread that hangs does not count if another one replaced it. */
  get isWhole(): boolean {
    return this.generations.current.pool.isWhole && this.actors.isWhole;
  }

  /** Threads that are ready. */
  get counts(): { readonly synthesis: number; readonly actor: number } {
    return { synthesis: this.generations.current.pool.ready.length, actor: this.actors.readyThreads };
  }

  /** Threads that were replaced. */
  get restarts(): { readonly synthesis: number; readonly actor: number } {
    return { synthesis: this.generations.restarts, actor: this.actors.restarts };
  }

  /** Reasons to send no speech here now. */
  faults(): readonly string[] {
    if (this.isWhole) return [];
    const { lostThreads } = this.generations.current.pool;
    return lostThreads > 0
      ? [
          `${lostThreads} synthesis threads hang inside a model run and were not replaced: restart the service`,
        ]
      : ['threads are starting again'];
  }

  /**
   * Ends the threads: first the synthesis threads, which must be outside native code.
   * @returns false if a synthesis thread was still in native code after `timeoutMs`: the process must then end by signal
   */
  async close(timeoutMs: number): Promise<boolean> {
    const clean = await this.generations.close(timeoutMs);
    this.#watchdog.close();
    await this.actors.close();
    return clean;
  }

  #link(thread: SynthesisThread, actor: number): void {
    const port = thread.link(actor);
    if (port !== undefined) this.actors.link(actor, port);
  }
}
