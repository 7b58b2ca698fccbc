/**
 * Opens contexts on the threads, passes them the frames of their actors, and fails them when their actor thread dies. Owns
 * the threads and the scheduler.
 */
import type { Bounds } from '../limits.js';
import type { Log } from '../log.js';
import type { Metrics } from '../metrics.js';
import { monotonicMs } from '../monotonic.js';
import { actorOfContext, type Frame } from '../threads/messages.js';
import { Threads, type ThreadsOptions } from '../threads/threads.js';
import type { VoiceCatalogue } from '../threads/voices.js';
import { Context } from './context.js';
import { ContextMeter } from './playback.js';
import { Scheduler } from './scheduler.js';
import type { ContextOptions, FrameSink, Speech, SpeechContext } from './speech.js';

export interface DispatcherOptions extends ThreadsOptions {
  readonly metrics: Metrics;
}

export class Dispatcher implements Speech {
  readonly threads: Threads;
  readonly #bounds: Bounds;
  readonly #log: Log;
  readonly #metrics: Metrics;
  readonly #scheduler: Scheduler;
  readonly #contexts = new Map<number, Context>();

  constructor(options: DispatcherOptions) {
    const { config, bounds, log } = options;
    this.#bounds = bounds;
    this.#log = log;
    this.#metrics = options.metrics;
    this.threads = new Threads(options);
    this.#scheduler = new Scheduler({
      clock: monotonicMs,
      threads: config.synthesisThreads,
      jobsMax: config.synthesisThreads * bounds.jobsPerThreadMax,
      bounds,
    });
    this.#scheduler.setPaused(true);
    const { generations, actors } = this.threads;
    generations.on('capacity', (readyThreads) => this.#scheduler.setPaused(readyThreads === 0));
    generations.on('switched', () => {
      for (const context of this.#contexts.values()) context.renew();
    });
    generations.on('overdue', () => {
      for (const context of [...this.#contexts.values()])
        if (context.isOutdated) context.fail('its voices were taken away by a reload', 'voiceRetired');
    });
    actors.on('lost', (actor) => this.#failContextsOf(actor));
    actors.on('frame', (frame) => this.#onFrame(frame));
  }

  get voices(): VoiceCatalogue {
    return this.threads.generations.current.voices;
  }

  get openContexts(): number {
    return this.#contexts.size;
  }

  /** Segments that synthesis threads have. */
  get runningSegments(): number {
    return this.#scheduler.runningSegments;
  }

  /** Milliseconds of audio made and not handed to its socket. */
  get unsentAudioMs(): number {
    return this.#scheduler.unsentAudioMs;
  }

  /** Bytes of audio, made or being made, that no socket has yet. */
  get unsentAudioBytes(): number {
    return this.#scheduler.audio.bytes;
  }

  open(options: ContextOptions, sink: FrameSink): SpeechContext | null {
    if (this.#contexts.size >= this.#bounds.contextsMax) return null;
    const { generations, actors } = this.threads;
    // Throws for an unknown voice: before anything is taken.
    generations.current.voices.sampleRateHz(options.settings.voiceId);
    const id = actors.assign();
    if (id === undefined) return null;
    const context = new Context({
      id,
      options,
      sink,
      scheduler: this.#scheduler,
      generations,
      actors,
      bounds: this.#bounds,
      meter: new ContextMeter(this.#metrics, monotonicMs, options),
      log: this.#log,
      onOver: (over) => {
        this.#contexts.delete(over.id);
        actors.unassign(over.id);
      },
    });
    this.#contexts.set(context.id, context);
    return context;
  }

  /** Fails the open contexts, then ends the threads. @returns false as `Threads.close` */
  close(timeoutMs: number): Promise<boolean> {
    for (const context of [...this.#contexts.values()]) context.fail('the service is shutting down');
    return this.threads.close(timeoutMs);
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
