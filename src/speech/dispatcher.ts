/**
 * Opens contexts on the threads, passes them the frames of their actors, and fails them when their actor thread dies. Owns
 * the threads and the scheduler.
 */
import { availableParallelism } from 'node:os';
import type { Config } from '../config.js';
import { spareCpuMs } from '../process.js';
import { describeFault } from '../fault.js';
import type { Bounds } from '../limits.js';
import type { Log } from '../log.js';
import type { Metrics } from '../metrics.js';
import { monotonicMs } from '../monotonic.js';
import { inSlices, OneByOne } from '../slices.js';
import type { Lexicons } from '../threads/lexicons.js';
import { actorOfContext, type Frame } from '../threads/messages.js';
import { longThreadsOf } from '../threads/synthesis-pool.js';
import { Threads, type ThreadsOptions } from '../threads/threads.js';
import type { VoiceCatalogue } from '../threads/voices.js';
import { Capacity, type Demand } from './capacity.js';
import { Context } from './context.js';
import { demandOf } from './demand.js';
import { ContextMeter } from './playback.js';
import { Scheduler } from './scheduler.js';
import type { ContextOptions, FrameSink, Speech, SpeechContext, Utterance } from './speech.js';

export interface DispatcherOptions extends ThreadsOptions {
  readonly config: ThreadsOptions['config'] & Pick<Config, 'overload'>;
  readonly metrics: Metrics;
  /** None by default. */
  readonly lexicons?: Pick<Lexicons, 'of'>;
}

/** Milliseconds between two measurements of the work: a neighbour that takes the CPU counts within seconds. */
const MEASURE_MS = 250;
/** Milliseconds between two lines of the log about refusals. */
const REFUSALS_LOGGED_MS = 10_000;

export class Dispatcher implements Speech {
  readonly threads: Threads;
  readonly #bounds: Bounds;
  readonly #log: Log;
  readonly #metrics: Metrics;
  readonly #lexicons: Lexicons['of'];
  readonly #scheduler: Scheduler;
  readonly #contexts = new Map<number, Context>();
  readonly #capacity: Capacity;
  readonly #later = new OneByOne();
  readonly #refuses: boolean;
  readonly #measuring: NodeJS.Timeout;
  #measuredMs = monotonicMs();
  #spareCpuMs: number | null = null;
  #isMeasuring = false;
  /** Since the last line about them. */
  #refusals = 0;
  #refusalsLoggedMs = Number.NEGATIVE_INFINITY;

  constructor(options: DispatcherOptions) {
    const { config, bounds, log } = options;
    this.#bounds = bounds;
    this.#log = log;
    this.#metrics = options.metrics;
    this.#lexicons = (account, settings) => options.lexicons?.of(account, settings) ?? [];
    this.threads = new Threads(options);
    this.#scheduler = new Scheduler({
      clock: monotonicMs,
      threads: config.synthesisThreads,
      jobsMax: config.synthesisThreads * bounds.jobsPerThreadMax,
      bounds,
    });
    this.#scheduler.setPaused(true);
    this.#refuses = config.overload === 'refuse';
    const cores = availableParallelism();
    this.#capacity = new Capacity(
      () => this.#demands(),
      () => {
        const { synthesis, actor } = this.threads.counts;
        return {
          synthesisThreads: Math.max(1, synthesis),
          longThreads: longThreadsOf(synthesis),
          actorThreads: Math.max(1, actor),
          cores,
        };
      },
      (voiceId) => this.threads.generations.current.pool.longStep(voiceId),
    );
    this.#measuring = setInterval(() => {
      this.#measure().catch((error: unknown) =>
        this.#log.error(describeFault(error), 'the capacity could not be measured'),
      );
    }, MEASURE_MS).unref();
    const { generations, actors } = this.threads;
    generations.on('capacity', (readyThreads) => this.#scheduler.setPaused(readyThreads === 0));
    generations.on('switched', () => this.#withEach((context) => context.renew()));
    generations.on('overdue', () =>
      this.#withEach((context) => {
        if (context.isOutdated) context.fail('its voices were taken away by a reload', 'voiceRetired');
      }),
    );
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

  /** How long no thread has made speech. */
  get quietMs(): number {
    return this.#scheduler.quietMs;
  }

  /** Milliseconds of audio made and not handed to its socket. */
  get unsentAudioMs(): number {
    return this.#scheduler.unsentAudioMs;
  }

  /** Bytes of audio, made or being made, that no socket has yet. */
  get unsentAudioBytes(): number {
    return this.#scheduler.audio.bytes;
  }

  /** What is in use of the speech that the machine can make in time; 1 is full. */
  get capacityRatio(): number {
    return this.#capacity.ratio(monotonicMs());
  }

  admits(utterance: Utterance): boolean {
    if (!this.#refuses) return true;
    const nowMs = monotonicMs();
    if (this.#capacity.admits(demandOf(utterance), nowMs)) return true;
    this.#refusals++;
    if (nowMs - this.#refusalsLoggedMs >= REFUSALS_LOGGED_MS) {
      this.#log.warn(
        { refusals: this.#refusals, capacityRatio: this.#capacity.ratio(nowMs) },
        'the machine is at its capacity: further speech is refused',
      );
      this.#refusals = 0;
      this.#refusalsLoggedMs = nowMs;
    }
    return false;
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
      lexicons: this.#lexicons,
      meter: new ContextMeter(this.#metrics, monotonicMs, options),
      log: this.#log,
      later: this.#later,
      admits: (utterance) => this.admits(utterance),
      onOver: (over) => {
        this.#capacity.freed();
        this.#contexts.delete(over.id);
        actors.unassign(over.id);
      },
    });
    this.#contexts.set(context.id, context);
    return context;
  }

  /** Fails the open contexts, then ends the threads. @returns false as `Threads.close` */
  close(timeoutMs: number): Promise<boolean> {
    clearInterval(this.#measuring);
    for (const context of [...this.#contexts.values()]) context.fail('the service is shutting down');
    return this.threads.close(timeoutMs);
  }

  *#demands(): Iterable<Demand> {
    for (const { demand } of this.#contexts.values()) if (demand !== null) yield demand;
  }

  async #measure(): Promise<void> {
    if (this.#isMeasuring) return;
    this.#isMeasuring = true;
    const spareMs = await spareCpuMs();
    this.#isMeasuring = false;
    const nowMs = monotonicMs();
    const elapsedMs = nowMs - this.#measuredMs;
    const isKnown = spareMs !== null && this.#spareCpuMs !== null;
    this.#capacity.measure({
      ...this.threads.takeEffort(),
      elapsedMs,
      spareCpuMs: isKnown ? Math.max(0, spareMs - (this.#spareCpuMs ?? 0)) : null,
    });
    this.#measuredMs = nowMs;
    this.#spareCpuMs = spareMs;
  }

  #onFrame(frame: Frame): void {
    const context = this.#contexts.get(frame.contextId);
    if (context !== undefined) context.deliver(frame);
    // Other frames of a context that is over are normal. A failure must reach the log.
    else if (frame.type === 'failed')
      this.#log.error({ contextId: frame.contextId, reason: frame.reason }, 'a context failed after its end');
  }

  #failContextsOf(actor: number): void {
    let lost = 0;
    for (const id of this.#contexts.keys()) lost += actorOfContext(id) === actor ? 1 : 0;
    this.#log.error({ actor, contexts: lost }, 'contexts lost with their actor thread');
    this.#withEach((context) => {
      if (actorOfContext(context.id) === actor) context.fail('its actor thread ended');
    });
  }

  /** In slices: a context may be over before its turn. */
  #withEach(use: (context: Context) => void): void {
    const each = function* (contexts: Iterable<Context>): Generator<void> {
      for (const context of contexts) {
        use(context);
        yield;
      }
    };
    inSlices(each(this.#contexts.values()), { clock: monotonicMs, sliceMsMax: this.#bounds.sliceMsMax });
  }
}
