/**
 * One synthesis thread: its jobs, their slots in the shared memory, and its safe end.
 *
 *   loading --ready--> ready --(dies)--> over
 *   loading --(dies)--> over
 *   any --(hangs)--> abandoned: its jobs settle, it gets no others
 *   any --end--> over, once it is outside native code
 *
 * A thread that dies or hangs fails only the job whose step was running. Its other jobs end as interrupted, to run again.
 *
 * Each thread is a piscina pool of its own; `SynthesisPool` balances the load between them. One pool of many threads
 * cannot serve here. piscina 5.3.2 lacks three things:
 *
 * - To start a thread beside one that hangs. The hung thread counts towards `minThreads`; the pool grows beyond that only
 *   by a task that it can give to no thread.
 * - To end one thread for good. The pool replaces it, since `minThreads` is fixed. `destroy` ends all threads, also the
 *   one that hangs in native code, and that aborts the process.
 * - To try again after a replacement died while it loaded. From then on the pool replaces no dead thread by itself (its
 *   `workerFailsDuringBootstrap` stays set), and reports nothing.
 *
 * It also gives all threads the same `workerData`, but each needs shared memory of its own.
 */
import { EventEmitter } from 'node:events';
import { MessageChannel, type MessagePort } from 'node:worker_threads';
import { Piscina } from 'piscina';
import { describeFault, faultPlace } from '../fault.js';
import type { Log } from '../log.js';
import { JobControl } from './control.js';
import { EffortTable } from './effort.js';
import type {
  SynthesisControl,
  SynthesisHello,
  SynthesisJob,
  SynthesisResult,
  SynthesisThreadData,
} from './messages.js';
import { GpuState } from './gpu.js';
import { Vitals } from './vitals.js';
import type { PlaybackClock } from './playback-clock.js';
import type { LongStep } from './voices.js';
import type { Watchdog } from './watchdog.js';

/** A segment to speak. The thread that runs it adds the slot. */
export type JobRequest = Omit<SynthesisJob, 'slot'>;

/** `failed` also stands for a job whose step killed its thread, or hangs: running it again would do so again. */
export type JobOutcome =
  | SynthesisResult
  | {
      readonly type: 'interrupted';
      /** The thread died, or hangs, in another job's step; false: in no step, so this job may be the cause. */
      readonly inStep: boolean;
    };

/** A segment that was given to a pool. It waits until a thread has room. */
export class Job {
  readonly request: JobRequest;
  /** Its steps are long. */
  readonly isLong: boolean;
  /** Never rejects. */
  readonly outcome: Promise<JobOutcome>;
  readonly #resolve: (outcome: JobOutcome) => void;
  readonly #clock: PlaybackClock;
  #startMs: number;
  /** Where it runs. */
  #place: { readonly control: JobControl; readonly slot: number } | undefined;
  #isSettled = false;

  /**
   * @param clock of its context
   * @param startMs position of its first sample in the audio of the context
   */
  constructor(request: JobRequest, clock: PlaybackClock, startMs: number, isLong = false) {
    this.request = request;
    this.isLong = isLong;
    this.#clock = clock;
    this.#startMs = startMs;
    ({ promise: this.outcome, resolve: this.#resolve } = Promise.withResolvers<JobOutcome>());
  }

  get isSettled(): boolean {
    return this.#isSettled;
  }

  /** When its first sample is due. */
  get dueMs(): number {
    return this.#clock.at(this.#startMs);
  }

  /** The position of its first sample is better known. */
  setStart(startMs: number): void {
    this.#startMs = startMs;
    if (!this.#isSettled) this.#place?.control.setStart(this.#place.slot, startMs);
  }

  /**
   * Asks the job to end at its next step. A job that waits ends at once. So does one with long steps, for its owner: the
   * thread discards what the step makes.
   */
  cancel(): void {
    if (!this.#isSettled) this.#place?.control.cancel(this.#place.slot);
    if (this.#place === undefined || this.isLong) this.settle({ type: 'cancelled', effort: null });
  }

  /** Its thread: the job takes the slot. */
  begin(control: JobControl, slot: number): void {
    control.begin(slot, this.#startMs);
    this.#place = { control, slot };
  }

  /** Its pool or thread. The first outcome counts. */
  settle(outcome: JobOutcome): void {
    this.#isSettled = true;
    this.#resolve(outcome);
  }
}

/**
 * Niceness of synthesis threads above that of the process: the front thread's sends come first. Not more, because a busy program
 * of normal priority would take nearly all of a core: with 10 it leaves a tenth, with 2 two fifths.
 */
export const SYNTHESIS_NICENESS = 2;

/** A pool of one thread, which runs jobs. */
export type ThreadOfJobs = Pick<Piscina, 'threads' | 'on' | 'run' | 'destroy'>;

export interface SynthesisThreadOptions extends Omit<SynthesisThreadData, 'control' | 'vitals' | 'effort'> {
  readonly watchdog: Watchdog;
  readonly log: Log;
  /** The compiled entry. */
  readonly entry: URL;
  /** A test can play the thread. */
  readonly startThread?: (data: SynthesisThreadData) => ThreadOfJobs;
}

const startThread = (entry: URL, workerData: SynthesisThreadData): ThreadOfJobs => {
  const { bounds } = workerData;
  return new Piscina({
    filename: entry.href,
    workerData,
    minThreads: 1,
    maxThreads: 1,
    concurrentTasksPerWorker: bounds.jobsPerThreadMax,
    idleTimeout: Number.POSITIVE_INFINITY,
    // The default freezes an idle thread's event loop: no messages, no timers.
    atomics: 'disabled',
    // The front thread's sends must not wait for inference.
    niceIncrement: SYNTHESIS_NICENESS,
    execArgv: ['--disable-warning=ExperimentalWarning'],
    resourceLimits: {
      maxOldGenerationSizeMb: bounds.synthesisHeapMiBMax,
      maxYoungGenerationSizeMb: bounds.synthesisYoungHeapMiBMax,
    },
  });
};

/** What a thread says when its voices are loaded. */
export type LoadedThread = Extract<SynthesisHello, { type: 'ready' }>;

interface SynthesisThreadEvents {
  /** Its voices are loaded, but those of the packs with a fault: link it to the actor threads. */
  ready: [loaded: LoadedThread];
  /** It could not load the default voices. It tries again. */
  'load-failed': [reason: string];
  /** A job needed a pack that was not loaded. */
  'pack-loaded': [ms: number];
  /** A step of a voice took long that the load had not found long. */
  'slow-step': [voiceId: string, step: LongStep];
  died: [wasReady: boolean, steppingVoices: readonly string[]];
  /** It hangs in a step, or with an event loop that does not turn; or its load takes too long. */
  hung: [];
}

/** Milliseconds between two checks whether a thread has left native code. They double, for a thread that hangs there. */
const OUTSIDE_POLL_MS = { first: 5, last: 500 } as const;

export class SynthesisThread extends EventEmitter<SynthesisThreadEvents> {
  readonly #options: SynthesisThreadOptions;
  readonly threadId: number;
  /** What its steps cost, by voice in the order of the packs. */
  readonly effort: EffortTable;
  readonly #vitals = new Vitals();
  readonly #control: JobControl;
  readonly #freeSlots: number[];
  /** By slot. */
  readonly #jobs = new Map<number, Job>();
  #longJobs = 0;
  #loadedPacks = 0;
  readonly #piscina: ThreadOfJobs;
  #loaded: LoadedThread | undefined;
  #unwatch: () => void = () => undefined;
  #isAbandoned = false;
  #isDead = false;
  #isEnding = false;
  #ended: Promise<void> | undefined;

  constructor(options: SynthesisThreadOptions) {
    super();
    this.#options = options;
    const { packs, packsLoadedMax, executionProvider, gpu, logLevel, bounds, clocks, entry, log } = options;
    this.#control = new JobControl(bounds.jobsPerThreadMax);
    this.effort = new EffortTable(packs.reduce((sum, { voices }) => sum + voices.length, 1));
    this.#freeSlots = Array.from({ length: bounds.jobsPerThreadMax }, (_, slot) => slot);
    const workerData: SynthesisThreadData = {
      packs,
      ...(packsLoadedMax !== undefined && { packsLoadedMax }),
      executionProvider,
      ...(gpu !== undefined && { gpu }),
      logLevel,
      bounds,
      control: this.#control.buffer,
      vitals: this.#vitals.buffer,
      effort: this.effort.buffer,
      clocks,
    };
    this.#piscina = options.startThread?.(workerData) ?? startThread(entry, workerData);
    this.threadId = this.#piscina.threads[0]!.threadId;
    this.#piscina.on('message', (message: SynthesisHello) => this.#onHello(message));
    this.#piscina.on('error', (error: Error) => log.error(describeFault(error), 'synthesis thread failed'));
    this.#piscina.on('workerDestroy', () => this.#onDestroyed());
    this.#expectLoaded();
  }

  /** Once it is ready. */
  get loaded(): LoadedThread | undefined {
    return this.#loaded;
  }

  get isReady(): boolean {
    return this.#loaded !== undefined && !this.#isAbandoned && !this.#isDead;
  }

  get jobs(): number {
    return this.#jobs.size;
  }

  get hasLongJobs(): boolean {
    return this.#longJobs > 0;
  }

  get loadedPacks(): number {
    return this.#loadedPacks;
  }

  get hasRoom(): boolean {
    return this.isReady && this.#freeSlots.length > 0;
  }

  /** @throws if it has no room */
  start(job: Job): void {
    const slot = this.#freeSlots.pop();
    if (slot === undefined) throw new Error('no free job slot');
    job.begin(this.#control, slot);
    this.#jobs.set(slot, job);
    if (job.isLong) this.#longJobs++;
    void this.#run({ ...job.request, slot }).then((outcome) => {
      this.#jobs.delete(slot);
      if (job.isLong) this.#longJobs--;
      // Not earlier: a thread that was abandoned may still read the slot.
      this.#freeSlots.push(slot);
      job.settle(outcome);
    });
  }

  /** Gives it a port to an actor thread. @returns the other end, for the actor thread */
  link(actor: number): MessagePort | undefined {
    if (this.#loaded === undefined) return undefined;
    const { port1, port2 } = new MessageChannel();
    const message: SynthesisControl = { type: 'actor', actor, port: port1 };
    this.#loaded.control.postMessage(message, [port1]);
    return port2;
  }

  /**
   * Gives up a thread that hangs: settles its jobs, and starts no others. If it goes on, it drops them at their next step.
   * @returns true if it hangs outside native code, where it can be ended
   */
  abandon(): boolean {
    this.#isAbandoned = true;
    const isOutside = this.#vitals.closeGuard();
    for (const [slot, job] of this.#jobs) {
      this.#control.cancel(slot);
      job.settle(this.#outcomeIfOver(slot, 'its synthesis thread hangs'));
    }
    return isOutside;
  }

  /** Of the jobs whose step runs. */
  get steppingVoices(): string[] {
    return [...this.#jobs].flatMap(([slot, { request }]) =>
      this.#control.isStepping(slot) ? [request.settings.voiceId] : [],
    );
  }

  /** Fails its jobs that speak with one of these voices. If their step ends, it drops them. */
  failJobs(voiceIds: ReadonlySet<string>, outcome: JobOutcome): void {
    for (const [slot, job] of this.#jobs) {
      if (!voiceIds.has(job.request.settings.voiceId)) continue;
      this.#control.cancel(slot);
      job.settle(outcome);
    }
  }

  /** Asks its jobs to end at their next step. Resolves when they have; a long step may still run. */
  async idle(): Promise<void> {
    const jobs = [...this.#jobs.values()];
    for (const job of jobs) job.cancel();
    await Promise.all(jobs.map(({ outcome }) => outcome));
  }

  /**
   * Ends the thread: at once if it is outside native code, else when it leaves it, which may be never. Its jobs settle.
   * Idempotent.
   */
  end(): Promise<void> {
    this.#isEnding = true;
    this.#ended ??= this.#end();
    return this.#ended;
  }

  async #end(): Promise<void> {
    this.#vitals.closeGuard();
    // A thread that died inside native code never leaves it.
    const isInside = () => this.#vitals.isInside && !this.#isDead;
    for (let pollMs: number = OUTSIDE_POLL_MS.first; isInside();) {
      // Unreferenced: a thread that hangs for ever must not keep the process.
      await new Promise((resolve) => setTimeout(resolve, pollMs).unref());
      pollMs = Math.min(2 * pollMs, OUTSIDE_POLL_MS.last);
    }
    await this.#piscina.destroy();
    this.#freeGpu();
    this.#unwatch();
  }

  #freeGpu(): void {
    const { gpu } = this.#options;
    if (gpu !== undefined) new GpuState(gpu.state).freeFrom(this.threadId);
  }

  async #run(job: SynthesisJob): Promise<JobOutcome> {
    try {
      return (await this.#piscina.run(job)) as SynthesisResult;
    } catch (error) {
      // Jobs report their own failures as results: a rejection means that the thread died.
      return this.#outcomeIfOver(job.slot, `its synthesis thread ended: ${faultPlace(error)}`);
    }
  }

  #outcomeIfOver(slot: number, reason: string): JobOutcome {
    if (this.#control.isStepping(slot)) return { type: 'failed', reason };
    return { type: 'interrupted', inStep: this.#control.isAnyStepping };
  }

  #onHello(message: SynthesisHello): void {
    if (this.#isEnding) return;
    switch (message.type) {
      case 'ready': {
        const { watchdog, log } = this.#options;
        this.#loaded = message;
        this.#loadedPacks = message.loadedPacks;
        message.control.unref();
        this.#unwatch();
        watchdog.watch(this.#vitals, () => this.emit('hung'));
        this.#unwatch = () => watchdog.unwatch(this.#vitals);
        log.debug({ threadId: this.threadId, loadMs: message.loadMs }, 'synthesis thread ready');
        this.emit('ready', message);
        return;
      }
      case 'pack-loaded': {
        const { pack, ms, loadedPacks } = message;
        this.#loadedPacks = loadedPacks;
        const loadMs = Math.round(ms);
        this.#options.log.info({ threadId: this.threadId, pack, loadMs, loadedPacks }, 'voice pack loaded');
        this.emit('pack-loaded', ms);
        return;
      }
      case 'slow-step':
        this.emit('slow-step', message.voiceId, message.step);
        return;
      case 'load-failed':
        this.#expectLoaded();
        this.emit('load-failed', message.message);
    }
  }

  /** Starts the deadline of a load. */
  #expectLoaded(): void {
    const { bounds, packs, watchdog } = this.#options;
    this.#unwatch();
    const loadMsMax = (bounds.voicesLoadMsMax * (packs.length + 1)) / 2;
    this.#unwatch = watchdog.expect(loadMsMax, () => this.emit('hung'));
  }

  #onDestroyed(): void {
    this.#isDead = true;
    if (this.#isEnding) return;
    this.#freeGpu();
    this.#unwatch();
    // Else piscina would start another thread, which nothing watches.
    void this.#piscina.destroy();
    const { steppingVoices } = this;
    setImmediate(() => this.emit('died', this.#loaded !== undefined, steppingVoices));
  }
}
