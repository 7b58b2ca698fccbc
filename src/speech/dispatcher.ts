/**
 * The stage between transports and threads: opens contexts, gives them to the scheduler, and carries frames back.
 * Owns the synthesis threads and the actor threads, and links every one of the former to every one of the latter.
 */
import type { Config } from '../config.js';
import type { Bounds } from '../limits.js';
import type { Log } from '../log.js';
import type { Metrics } from '../metrics.js';
import { monotonicMs } from '../monotonic.js';
import { ActorThreads } from '../threads/actor-threads.js';
import { Context } from './context.js';
import { ContextMeter } from './playback.js';
import { Generations } from '../threads/generations.js';
import { Scheduler } from './scheduler.js';
import type { ContextOptions, FrameSink, Speech, SpeechContext } from './speech.js';
import { actorOfContext, type Frame } from '../threads/messages.js';
import type { SynthesisThread } from '../threads/synthesis-thread.js';
import { Watchdog } from '../threads/watchdog.js';
import type { VoiceCatalogue, Voices } from '../threads/voices.js';

export interface DispatcherOptions {
  readonly config: Pick<Config, 'synthesisThreads' | 'actorThreads' | 'executionProvider' | 'logLevel'>;
  readonly voices: Voices;
  readonly bounds: Bounds;
  readonly log: Log;
  readonly metrics: Metrics;
  /** A test can set its own. */
  readonly watchdog?: Watchdog;
  /** Compiled entries of the threads. */
  readonly synthesisEntry: URL;
  readonly actorEntry: URL;
}

export class Dispatcher implements Speech {
  readonly #bounds: Bounds;
  readonly #log: Log;
  readonly #metrics: Metrics;
  readonly #watchdog: Watchdog;
  readonly generations: Generations;
  readonly #actors: ActorThreads;
  readonly #scheduler: Scheduler;
  readonly #contexts = new Map<number, Context>();

  constructor(options: DispatcherOptions) {
    const { config, bounds, log } = options;
    this.#bounds = bounds;
    this.#log = log;
    this.#metrics = options.metrics;
    this.#watchdog = options.watchdog ?? new Watchdog(bounds, monotonicMs);
    this.generations = new Generations(options.voices, {
      threads: config.synthesisThreads,
      executionProvider: config.executionProvider,
      logLevel: config.logLevel,
      bounds,
      watchdog: this.#watchdog,
      log,
      entry: options.synthesisEntry,
    });
    this.#actors = new ActorThreads({
      threads: config.actorThreads,
      bounds,
      watchdog: this.#watchdog,
      entry: options.actorEntry,
      log,
    });
    this.#scheduler = new Scheduler({
      clock: monotonicMs,
      threads: config.synthesisThreads,
      jobsMax: config.synthesisThreads * bounds.jobsPerThreadMax,
      bounds,
    });
    this.#scheduler.setPaused(true);
    this.generations.on('thread', (thread) => {
      for (const actor of this.#actors.actors) this.#link(thread, actor);
    });
    this.generations.on('capacity', (readyThreads) => this.#scheduler.setPaused(readyThreads === 0));
    this.generations.on('switched', () => {
      for (const context of this.#contexts.values()) context.renew();
    });
    this.generations.on('overdue', () => {
      for (const context of [...this.#contexts.values()])
        if (context.isOutdated) context.fail('its voices were taken away by a reload', 'voiceRetired');
    });
    this.#actors.on('started', (actor) => {
      for (const thread of this.generations.ready) this.#link(thread, actor);
    });
    this.#actors.on('lost', (actor) => this.#failContextsOf(actor));
    this.#actors.on('frame', (frame) => this.#onFrame(frame));
  }

  /**
   * Resolves when every thread is ready; rejects with the reason when one cannot load its voices. Either way no thread
   * is inside a model's load any more, where ending it would abort the process, but for those that `close` then tells of.
   *
   * @throws {VoicesHangError} if one took too long
   */
  async ready(): Promise<void> {
    const { pool } = this.generations.current;
    const [loaded, actors] = await Promise.allSettled([pool.loaded(), this.#actors.loaded()]);
    if (loaded.status === 'rejected') throw loaded.reason;
    if (actors.status === 'rejected') throw actors.reason;
  }

  get voices(): VoiceCatalogue {
    return this.generations.current.voices;
  }

  /** All threads alive and loaded, but for those that hang and were replaced. */
  get isWhole(): boolean {
    return this.generations.current.pool.isWhole && this.#actors.isWhole;
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
    return { synthesis: this.generations.current.pool.ready.length, actor: this.#actors.readyThreads };
  }

  /** Threads that were replaced. */
  get restarts(): { readonly synthesis: number; readonly actor: number } {
    return { synthesis: this.generations.restarts, actor: this.#actors.restarts };
  }

  /** Reasons to send no speech here now. */
  faults(): readonly string[] {
    const faults = this.generations.faults();
    return faults.length > 0 || this.#actors.isWhole ? faults : ['threads are starting again'];
  }

  /** Bytes of audio, made or being made, that no socket has yet. */
  get unsentAudioBytes(): number {
    return this.#scheduler.audio.bytes;
  }

  open(options: ContextOptions, sink: FrameSink): SpeechContext | null {
    if (this.#contexts.size >= this.#bounds.contextsMax) return null;
    const id = this.#actors.assign();
    if (id === undefined) return null;
    const context = new Context({
      id,
      options,
      sink,
      scheduler: this.#scheduler,
      generations: this.generations,
      actors: this.#actors,
      bounds: this.#bounds,
      meter: new ContextMeter(this.#metrics, monotonicMs, options),
      onOver: (over) => {
        this.#contexts.delete(over.id);
        this.#actors.unassign(over.id);
      },
    });
    this.#contexts.set(context.id, context);
    return context;
  }

  /**
   * Fails what is still open, then ends the threads: synthesis first, which must not be inside a model run.
   * @returns false if a synthesis thread was still in a run after `timeoutMs`: the process must then end by signal
   */
  async close(timeoutMs: number): Promise<boolean> {
    for (const context of [...this.#contexts.values()]) context.fail('the service is shutting down');
    const clean = await this.generations.close(timeoutMs);
    this.#watchdog.close();
    await this.#actors.close();
    return clean;
  }

  #link(thread: SynthesisThread, actor: number): void {
    const port = thread.link(actor);
    if (port !== undefined) this.#actors.link(actor, port);
  }

  #onFrame(frame: Frame): void {
    const context = this.#contexts.get(frame.contextId);
    if (context !== undefined) context.deliver(frame);
    // Other frames of a context that is over are normal. A failure must reach the log.
    else if (frame.type === 'failed')
      this.#log.error({ contextId: frame.contextId, reason: frame.reason }, 'a context failed after its end');
  }

  #failContextsOf(actor: number): void {
    const lost = [...this.#contexts.values()].filter(({ id }) => actorOfContext(id) === actor);
    this.#log.error({ actor, contexts: lost.length }, 'contexts lost with their actor thread');
    for (const context of lost) context.fail('its actor thread ended');
  }
}
