/**
 * The stage between transports and threads: opens contexts, gives them to the scheduler, and carries frames back.
 * Owns the synthesis pool and the actor threads, and links every one of the former to every one of the latter.
 */
import type { Config } from '../config.js';
import type { Limits } from '../limits.js';
import type { Log } from '../log.js';
import type { Metrics } from '../metrics.js';
import { monotonicMs } from '../monotonic.js';
import { ActorThreads } from './actor-threads.js';
import { Context } from './context.js';
import { ContextMeter } from './context-meter.js';
import { Scheduler } from './scheduler.js';
import type { ContextSchedule } from './scheduler.js';
import type { ContextOptions, FrameSink, Speech, SpeechContext, VoiceCatalogue } from './speech.js';
import { SynthesisPool } from './synthesis-pool.js';
import type { VoicePack } from '../../workers/engines/voice-pack.js';

export type DispatcherLimits = Readonly<
  Record<
    keyof Pick<
      Limits,
      'contextsMax' | 'unsentAudioMsMax' | 'unsentAudioMsPerLeaseMax' | 'synthesisHeapMiBMax'
    >,
    number
  >
>;

export interface DispatcherOptions {
  readonly config: Pick<Config, 'synthesisThreads' | 'actorThreads' | 'executionProvider'>;
  readonly voices: VoiceCatalogue;
  /** What the threads load. */
  readonly packs: readonly VoicePack[];
  readonly limits: DispatcherLimits;
  readonly log: Log;
  readonly metrics: Metrics;
  /** Compiled entries of the threads. */
  readonly synthesisEntry: URL;
  readonly actorEntry: URL;
}

export class Dispatcher implements Speech {
  readonly voices: VoiceCatalogue;
  readonly #contextsMax: number;
  readonly #log: Log;
  readonly #metrics: Metrics;
  readonly #pool: SynthesisPool;
  readonly #actors: ActorThreads;
  readonly #scheduler: Scheduler;
  readonly #contexts = new Map<number, Context>();
  readonly #bySchedule = new WeakMap<ContextSchedule, Context>();
  #nextContextId = 1;

  constructor(options: DispatcherOptions) {
    const { config, limits, log } = options;
    this.voices = options.voices;
    this.#contextsMax = limits.contextsMax;
    this.#log = log;
    this.#metrics = options.metrics;
    this.#pool = new SynthesisPool({
      threads: config.synthesisThreads,
      packs: options.packs,
      executionProvider: config.executionProvider,
      heapMiBMax: limits.synthesisHeapMiBMax,
      log,
      entry: options.synthesisEntry,
    });
    this.#actors = new ActorThreads({ threads: config.actorThreads, entry: options.actorEntry, log });
    this.#scheduler = new Scheduler({
      clock: monotonicMs,
      threads: config.synthesisThreads,
      jobsMax: this.#pool.capacity,
      unsentAudioMsMax: limits.unsentAudioMsMax,
      unsentAudioMsPerLeaseMax: limits.unsentAudioMsPerLeaseMax,
      start: (schedule, ...started) => this.#bySchedule.get(schedule)?.start(...started),
      moved: (schedule, segment, playFromMs) => this.#bySchedule.get(schedule)?.moved(segment, playFromMs),
    });
    this.#scheduler.setPaused(true);
    this.#pool.on('thread', (threadId) => {
      for (const actor of this.#actors.actors) this.#link(threadId, actor);
    });
    this.#pool.on('capacity', (readyThreads) => this.#scheduler.setPaused(readyThreads === 0));
    this.#actors.on('started', (actor) => {
      for (const threadId of this.#pool.threadIds) this.#link(threadId, actor);
    });
    this.#actors.on('lost', (actor) => this.#failContextsOf(actor));
    this.#actors.on('frame', (frame) => this.#contexts.get(frame.contextId)?.deliver(frame));
  }

  /**
   * Resolves when every thread is ready; rejects with the reason when one cannot load its voices. Either way no thread
   * is inside a model's load any more, where ending it would abort the process.
   */
  async ready(): Promise<void> {
    const [pool, actors] = await Promise.allSettled([this.#pool.loaded(), this.#actors.loaded()]);
    if (pool.status === 'rejected') throw pool.reason;
    if (actors.status === 'rejected') throw actors.reason;
  }

  /** All threads alive and loaded. */
  get isWhole(): boolean {
    return this.#pool.isWhole && this.#actors.isWhole;
  }

  get openContexts(): number {
    return this.#contexts.size;
  }

  /** Segments with the synthesis threads now. */
  get runningSegments(): number {
    return this.#scheduler.runningSegments;
  }

  /** Milliseconds of audio made and not handed to its socket. */
  get unsentAudioMs(): number {
    return this.#scheduler.unsentAudioMs;
  }

  /** Threads that are ready. */
  get threads(): { readonly synthesis: number; readonly actor: number } {
    return { synthesis: this.#pool.readyThreads, actor: this.#actors.readyThreads };
  }

  /** Threads that were replaced. */
  get restarts(): { readonly synthesis: number; readonly actor: number } {
    return { synthesis: this.#pool.restarts, actor: this.#actors.restarts };
  }

  open(options: ContextOptions, sink: FrameSink): SpeechContext | null {
    if (this.#contexts.size >= this.#contextsMax) return null;
    const actor = this.#actors.assign();
    if (actor === undefined) return null;
    const context = new Context({
      id: this.#nextContextId++,
      actor,
      sampleRateHz: this.voices.sampleRateHz(options.voiceId),
      options,
      sink,
      scheduler: this.#scheduler,
      pool: this.#pool,
      actors: this.#actors,
      meter: new ContextMeter(this.#metrics, monotonicMs, options),
      onOver: (over) => {
        this.#contexts.delete(over.id);
        this.#actors.unassign(over.actor);
      },
    });
    this.#contexts.set(context.id, context);
    this.#bySchedule.set(context.schedule, context);
    return context;
  }

  /**
   * Fails what is still open, then ends the threads: synthesis first, which must not be inside a model run.
   * @returns false if a synthesis thread was still in a run after `timeoutMs`: the process must then end by signal
   */
  async close(timeoutMs: number): Promise<boolean> {
    for (const context of [...this.#contexts.values()]) context.fail('the service is shutting down');
    const clean = await this.#pool.close(timeoutMs);
    await this.#actors.close();
    return clean;
  }

  #link(threadId: number, actor: number): void {
    const port = this.#pool.link(threadId, actor);
    if (port !== undefined) this.#actors.link(actor, port);
  }

  #failContextsOf(actor: number): void {
    const lost = [...this.#contexts.values()].filter((context) => context.actor === actor);
    this.#log.error({ actor, contexts: lost.length }, 'contexts lost with their actor thread');
    for (const context of lost) context.fail('its actor thread ended');
  }
}
