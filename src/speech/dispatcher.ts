/**
 * Opens contexts on the threads, passes them the frames of their actors, and fails them when their actor thread dies. Owns
 * the threads and the scheduler.
 */
import { availableParallelism } from 'node:os';
import { KeyedBudget } from '../byte-budget.js';
import type { Config } from '../config.js';
import { idleCpuMs } from '../process.js';
import { describeFault, faultPlace } from '../fault.js';
import type { Bounds } from '../limits.js';
import type { Log } from '../log.js';
import type { Metrics } from '../metrics.js';
import { monotonicMs } from '../monotonic.js';
import { inSlices, OneByOne } from '../slices.js';
import { threadCpuMs } from '../threads/effort.js';
import type { Lexicons } from '../threads/lexicons.js';
import { actorOfContext, isSocketFraming, isWholeFraming, type Frame } from '../threads/messages.js';
import { longThreadsOf } from '../threads/synthesis-pool.js';
import { SYNTHESIS_NICENESS } from '../threads/synthesis-thread.js';
import { Threads, type ThreadsOptions } from '../threads/threads.js';
import type { VoiceCatalogue } from '../threads/voices.js';
import { Capacity, Cores, type Demand } from './capacity.js';
import { COMING_MS_MIN, Context } from './context.js';
import { Costs } from './costs.js';
import { Scheduler } from './scheduler.js';
import type { ContextOptions, FrameSink, OpenRefusal, Speech, SpeechContext, Utterance } from './speech.js';
import { aheadMs } from './utterances.js';

export interface DispatcherOptions extends ThreadsOptions {
  readonly config: ThreadsOptions['config'] & Pick<Config, 'overload'>;
  readonly metrics: Metrics;
  /** None by default. */
  readonly lexicons?: Pick<Lexicons, 'of'>;
  /** What is known of the costs of speech. Nothing by default. */
  readonly costs?: Costs;
}

/** Milliseconds between two measurements of the work: a neighbour that takes the CPU counts within seconds. */
const MEASURE_MS = 500;
/** Milliseconds between two lines of the log about refusals. */
const REFUSALS_LOGGED_MS = 10_000;
/** Milliseconds between two writes of the costs. */
const COSTS_KEPT_MS = 60_000;

export class Dispatcher implements Speech {
  readonly threads: Threads;
  readonly scheduler: Scheduler;
  readonly #bounds: Bounds;
  readonly #log: Log;
  readonly #metrics: Metrics;
  readonly #lexicons: Lexicons['of'];
  readonly #contexts = new Map<number, Context>();
  /** Contexts of each account that are not released: until then each has a clock. */
  readonly #contextBudget: KeyedBudget;
  readonly #capacity: Capacity;
  readonly #costs: Costs;
  readonly #cores: Cores;
  readonly #later = new OneByOne();
  readonly #refuses: boolean;
  readonly #measuring: NodeJS.Timeout;
  #measuredMs = monotonicMs();
  #idleCpuMs: number | null = null;
  #frontCpuMs = threadCpuMs();
  #costsKeptMs = monotonicMs();
  #isMeasuring = false;
  /** Since the last line about them. */
  #refusals = 0;
  #refusalsLoggedMs = Number.NEGATIVE_INFINITY;

  constructor(options: DispatcherOptions) {
    const { config, bounds, log } = options;
    this.#bounds = bounds;
    this.#contextBudget = new KeyedBudget(bounds.contextsMax, bounds.slotsPerKey);
    this.#log = log;
    this.#metrics = options.metrics;
    this.#lexicons = (account, settings) => options.lexicons?.of(account, settings) ?? [];
    this.threads = new Threads(options);
    this.scheduler = new Scheduler({
      clock: monotonicMs,
      clocks: this.threads.clocks,
      isFull: () => this.#capacity.isFull(monotonicMs()),
      threads: config.synthesisThreads,
      jobsMax: config.synthesisThreads * bounds.jobsPerThreadMax,
      bounds,
    });
    this.scheduler.setPaused(true);
    this.#refuses = config.overload === 'refuse';
    this.#costs = options.costs ?? new Costs();
    this.#cores = new Cores(availableParallelism(), config.synthesisThreads, SYNTHESIS_NICENESS);
    this.#capacity = new Capacity({
      demands: () => this.#demands(),
      supply: () => {
        const { synthesis, actor } = this.threads.counts;
        return {
          synthesisThreads: Math.max(1, synthesis),
          longThreads: longThreadsOf(synthesis),
          actorThreads: Math.max(1, actor),
          cores: this.#cores.free,
        };
      },
      costs: this.#costs,
      longStepOf: (voiceId) => this.threads.generations.current.pool.longStep(voiceId),
    });
    this.#measuring = setInterval(() => {
      this.#measure().catch((error: unknown) =>
        this.#log.error(describeFault(error), 'the capacity could not be measured'),
      );
    }, MEASURE_MS).unref();
    const { generations, actors } = this.threads;
    generations.on('thread', (_, { costs }) => {
      for (const [voiceId, cost] of costs) this.#costs.voices.measured(voiceId, cost);
    });
    actors.on('costs', (costs) => {
      for (const [encoding, cpu] of costs) this.#costs.encodings.measured(encoding, { cpu, beginMs: 0 });
    });
    generations.on('capacity', (readyThreads) => this.scheduler.setPaused(readyThreads === 0));
    generations.on('switched', () => this.#withEach((context) => context.renew()));
    generations.on('overdue', (aReloadWaits) =>
      this.#withEach((context) => {
        if (context.isOutdated && (aReloadWaits || context.isQuiet))
          context.fail('its voices were taken away by a reload', 'voiceRetired');
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

  /** For the metrics. */
  get figures() {
    const { speakerIds } = this.voices;
    return {
      /** Milliseconds of audio made and not handed to its socket. */
      bufferedAudioMs: this.scheduler.unsentAudioMs,
      /** What is in use of the speech that the machine can make in time; 1 is full. */
      capacityRatio: this.#capacity.fullness(monotonicMs()).ratio,
      /** Cores that other programs leave to speech. */
      freeCores: this.#cores.free,
      /** What admission counts for a second of speech, in seconds of CPU time, by voice. */
      speechCpu: new Map(speakerIds.map((voiceId) => [voiceId, this.#costs.voices.of(voiceId).cpu])),
    };
  }

  admits(utterance: Utterance): boolean {
    if (!this.#refuses || isWholeFraming(utterance.framing)) return true;
    const nowMs = monotonicMs();
    const demand = this.#demandOf(utterance);
    const refusal = this.#capacity.refusal(demand, nowMs);
    if (refusal === null) return true;
    this.#refusals++;
    if (nowMs - this.#refusalsLoggedMs >= REFUSALS_LOGGED_MS) {
      const { cpu, beginMs: firstStepMs } = this.#costs.voices.of(demand.voiceId);
      const encodingMsPerSecond = 1_000 * this.#costs.encodings.of(demand.encoding).cpu;
      this.#log.warn(
        {
          ...{ refusals: this.#refusals, ...refusal },
          ...{ voiceMsPerSecond: 1_000 * cpu, encodingMsPerSecond, firstStepMs },
        },
        'an utterance was refused: the speech that is asked for within the next seconds would take more CPU time than is promised',
      );
      this.#refusals = 0;
      this.#refusalsLoggedMs = nowMs;
    }
    return false;
  }

  open(options: ContextOptions, sink: FrameSink): SpeechContext | OpenRefusal {
    const { account } = options.lease;
    const refusal = this.#contextBudget.refusal(account, 1);
    // It would wait for other listeners of its account: perhaps for ever.
    const waits = this.#refuses && !isWholeFraming(options.framing) && this.scheduler.isStuck(account);
    if (refusal === 'account' || waits) {
      this.#capacity.freed();
      return 'contextsOfAccountExhausted';
    }
    // Its group may need a clock, too.
    if (refusal === 'pool' || this.threads.clocks.free < 2) return 'contextPoolExhausted';
    const { generations, actors } = this.threads;
    // Throws for an unknown voice: before anything is taken.
    generations.current.voices.sampleRateHz(options.settings.voiceId);
    const id = actors.assign();
    if (id === undefined) return 'contextPoolExhausted';
    const context = new Context({
      id,
      options,
      sink,
      scheduler: this.scheduler,
      generations,
      actors,
      bounds: this.#bounds,
      lexicons: this.#lexicons,
      clocks: this.threads.clocks,
      metrics: this.#metrics,
      log: this.#log,
      later: this.#later,
      admits: (utterance) => {
        if (!this.admits(utterance)) return false;
        // It counts only if its text, which is added now, makes a segment.
        this.#capacity.freed();
        return true;
      },
      returns: (demand) => !this.#refuses || this.#capacity.returns(demand, monotonicMs()),
      onOver: (over) => {
        this.#capacity.freed();
        this.#contexts.delete(over.id);
        actors.unassign(over.id);
      },
      onReleased: () => this.#contextBudget.giveBack(account, 1),
    });
    this.#contextBudget.take(account, 1);
    this.#contexts.set(context.id, context);
    return context;
  }

  /** Fails the open contexts, then ends the threads. @returns false as `Threads.close` */
  async close(timeoutMs: number): Promise<boolean> {
    clearInterval(this.#measuring);
    for (const context of [...this.#contexts.values()]) context.fail('the service is shutting down');
    await this.#keepCosts();
    return this.threads.close(timeoutMs);
  }

  async #keepCosts(): Promise<void> {
    await this.#costs.keep().catch((error: unknown) => {
      this.#log.warn({ reason: faultPlace(error) }, 'the measured costs of speech could not be written');
    });
  }

  /** Of an utterance that has not begun. */
  #demandOf({ group = {}, lease, settings, format, framing, pieces, uncutMs = 0 }: Utterance): Demand {
    const { voiceId } = settings;
    const lexicons = this.#lexicons(lease.account, settings);
    const textMs = aheadMs(pieces, settings, this.voices.language(voiceId), lexicons);
    return {
      account: lease.account,
      group,
      voiceId,
      encoding: format.encoding,
      // Text on a WebSocket goes on.
      remainingMs: Math.max(uncutMs + textMs, isSocketFraming(framing) ? COMING_MS_MIN : 0),
      slackMs: 0,
      isAwaiting: true,
    };
  }

  *#demands(): Iterable<Demand> {
    for (const context of this.#contexts.values()) {
      const demand = context.demandNow();
      if (demand !== null) yield demand;
    }
  }

  async #measure(): Promise<void> {
    if (this.#isMeasuring) return;
    this.#isMeasuring = true;
    const idleMs = await idleCpuMs().finally(() => (this.#isMeasuring = false));
    const nowMs = monotonicMs();
    const frontMs = threadCpuMs() - this.#frontCpuMs;
    this.#frontCpuMs += frontMs;
    let speechMs = 0;
    for (const [voiceId, effort] of this.threads.generations.takeEffort())
      if (voiceId === null) speechMs += effort.cpuMs;
      else this.#costs.voices.add(voiceId, effort);
    for (const [encoding, effort] of this.threads.actors.takeEffort()) {
      speechMs += effort.cpuMs;
      this.#costs.encodings.add(encoding, effort);
    }
    if (idleMs !== null && this.#idleCpuMs !== null)
      this.#cores.add(nowMs, nowMs - this.#measuredMs, idleMs - this.#idleCpuMs, speechMs, frontMs);
    this.#measuredMs = nowMs;
    this.#idleCpuMs = idleMs;
    for (const { listener } of this.#contexts.values()) listener.standsStill(nowMs);
    this.scheduler.wake();
    if (nowMs - this.#costsKeptMs >= COSTS_KEPT_MS) {
      this.#costsKeptMs = nowMs;
      void this.#keepCosts();
    }
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
