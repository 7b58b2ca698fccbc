/**
 * Synthesis threads that have the same voices. Gives each job to the thread with the fewest.
 *
 * A thread that dies is replaced. So is one that hangs, if possible: in JavaScript or WebAssembly the pool ends it; inside
 * native code it cannot be ended, and another starts beside it. A thread that hangs in the pool's first load is not
 * replaced: the pool is then useless.
 *
 * A pack is taken out if a thread cannot load it or hangs in its step, or if several die in its steps: replacements would do so too.
 */
import { EventEmitter, once } from 'node:events';
import type { Clock } from '../monotonic.js';
import { within } from '../within.js';
import { GpuState } from './gpu.js';
import { Job, SynthesisThread } from './synthesis-thread.js';
import type { JobOutcome, JobRequest, LoadedThread, SynthesisThreadOptions } from './synthesis-thread.js';
import type { PlaybackClock } from './playback-clock.js';
import type { LongStep, VoicePack } from './voices.js';

/**
 * The threads of a process that hang inside native code. They cannot be ended without ending the process, and they keep
 * memory and a core or a device. So only a few of them are replaced.
 */
export class HungThreads {
  readonly #replacedMax: number;
  #size = 0;

  constructor(replacedMax: number) {
    this.#replacedMax = replacedMax;
  }

  get size(): number {
    return this.#size;
  }

  /** More threads hang than are replaced: the cause would hang others too. */
  get isOverBound(): boolean {
    return this.#size > this.#replacedMax;
  }

  /**
   * @param ended resolves when the thread came back and was ended
   * @returns true if another thread may take its place
   */
  add(ended: Promise<void>): boolean {
    this.#size++;
    void ended.then(() => this.#size--);
    return !this.isOverBound;
  }
}

export interface SynthesisPoolOptions extends SynthesisThreadOptions {
  readonly threads: number;
  /** Shared by all pools of the process. */
  readonly hungThreads: HungThreads;
  /** Of playback deadlines. */
  readonly clock: Clock;
}

interface SynthesisPoolEvents {
  /** A thread has its voices loaded: link it to the actor threads. */
  thread: [thread: SynthesisThread, loaded: LoadedThread];
  /** A thread became ready, could not load its voices, or is gone. */
  changed: [];
  /** A job needed a pack that was not loaded. */
  'pack-loaded': [ms: number];
  /** The jobs of the pack fail from now on. `loadFault` is `null` if it made a thread hang, or several die. */
  'pack-out': [pack: VoicePack, loadFault: string | null];
  /** A thread that died or hangs is replaced. */
  restart: [];
}

/** The end of a thread waits for this many of its longest steps. They were measured while nothing else ran. */
const LONG_STEP_FACTOR = 2;
/** Milliseconds before a thread that died while it loaded is replaced: its replacement may die too. */
const RESTART_DELAY_MS = 1_000;
/** Threads that may die in steps of a pack within this time. A heap can be full by the work of others when a step asks for more. */
const DEATHS_MAX = 2;
const DEATHS_WITHIN_MS = 600_000;

/** Voices that take too long to load. The message is one line for the operator. A thread may hang inside native code. */
export class VoicesHangError extends Error {
  override readonly name = 'VoicesHangError';
}

/** The most threads that run long steps. */
export const longThreadsOf = (threads: number): number => Math.max(1, threads - 1);

const packIsOut: JobOutcome = { type: 'failed', reason: 'its voice pack is out: see the log' };

const isOf = ({ voices }: VoicePack, voiceIds: readonly string[]): boolean =>
  voices.some(({ id }) => voiceIds.includes(id));

const fewestJobs = (threads: readonly SynthesisThread[]): SynthesisThread | undefined => {
  let best: SynthesisThread | undefined;
  for (const thread of threads)
    if (thread.hasRoom && (best === undefined || thread.jobs < best.jobs)) best = thread;
  return best;
};

export class SynthesisPool extends EventEmitter<SynthesisPoolEvents> {
  readonly #options: SynthesisPoolOptions;
  /** All but those that hang inside native code. */
  readonly #threads = new Set<SynthesisThread>();
  /** Of threads that could not load their voices. */
  readonly #loadFaults = new Map<SynthesisThread, Error>();
  /** Jobs that no thread had room for. The scheduler starts no more than all threads together hold. */
  readonly #waiting: Job[] = [];
  /** The longest known step of each voice whose steps are long, by voice id. */
  readonly #longSteps = new Map<string, LongStep>();
  /** Of the packs that are out. */
  readonly #outVoices = new Set<string>();
  #deaths: readonly { readonly atMs: number; readonly steppingVoices: readonly string[] }[] = [];
  readonly #restartTimers = new Set<NodeJS.Timeout>();
  #size: number;
  /** All threads were ready once. */
  #hasLoaded = false;
  #isRetired = false;
  #isClosing = false;

  constructor(options: SynthesisPoolOptions) {
    super();
    this.#options = options;
    this.#size = options.threads;
    for (let i = 0; i < options.threads; i++) this.#start();
  }

  /** The threads that can take jobs and be linked. */
  get ready(): SynthesisThread[] {
    return [...this.#threads].filter((thread) => thread.isReady);
  }

  /** All threads are ready, and none is missing. */
  get isWhole(): boolean {
    return this.#size === this.#options.threads && this.ready.length === this.#size;
  }

  /** Threads that hang and are not replaced. */
  get lostThreads(): number {
    return this.#options.threads - this.#size;
  }

  /**
   * Resolves when all threads have loaded their voices.
   * @throws the reason of a thread that could not, once no thread is loading
   * @throws {VoicesHangError} if a load took longer than it may
   */
  async loaded(): Promise<void> {
    const isLoading = () => this.ready.length + this.#loadFaults.size < this.#size;
    while (!this.#isClosing && isLoading()) await once(this, 'changed');
    for (const error of this.#loadFaults.values()) throw error;
    this.#hasLoaded = true;
  }

  /** Another generation is the current one. If all threads of this one hang, its jobs fail instead of waiting. */
  retire(): void {
    this.#isRetired = true;
    this.#serveWaiting();
  }

  /** The longest step of a voice, if its steps are long. */
  longStep(voiceId: string): LongStep | undefined {
    return this.#longSteps.get(voiceId);
  }

  /** @returns whether it is longer than those before */
  #countLong(voiceId: string, step: LongStep): boolean {
    if (step.ms <= (this.#longSteps.get(voiceId)?.ms ?? 0)) return false;
    this.#longSteps.set(voiceId, step);
    return true;
  }

  /** Runs a job as soon as a thread has room. @param startMs position of its first sample, by the clock of its context */
  run(request: JobRequest, clock: PlaybackClock, startMs: number): Job {
    const job = new Job(request, clock, startMs, this.longStep(request.settings.voiceId) !== undefined);
    void job.outcome.then(() => this.#serveWaiting());
    if (this.#outVoices.has(request.settings.voiceId)) job.settle(packIsOut);
    this.#waiting.push(job);
    this.#serveWaiting();
    return job;
  }

  /**
   * Fails the jobs of a pack, now and from now on. The default pack stays, because requests without a voice speak with it.
   */
  takeOut(isPack: (pack: VoicePack) => boolean, loadFault: string | null = null): void {
    const [, ...others] = this.#options.packs;
    const pack = others.find(isPack);
    if (pack === undefined || pack.voices.some(({ id }) => this.#outVoices.has(id))) return;
    for (const { id } of pack.voices) this.#outVoices.add(id);
    for (const thread of this.#threads) thread.failJobs(this.#outVoices, packIsOut);
    for (const job of this.#waiting)
      if (this.#outVoices.has(job.request.settings.voiceId)) job.settle(packIsOut);
    this.emit('pack-out', pack, loadFault);
  }

  /**
   * Ends all threads. Their jobs end first, at their next step; then each thread ends when it is outside native code.
   * @returns false if that took longer than `timeoutMs`: a thread hangs inside, and the process must end by signal
   */
  async close(timeoutMs: number): Promise<boolean> {
    this.#isClosing = true;
    this.emit('changed');
    for (const timer of this.#restartTimers) clearTimeout(timer);
    for (const job of this.#waiting.splice(0)) job.cancel();
    const threads = [...this.#threads];
    await within(timeoutMs / 2, Promise.all(threads.map((thread) => thread.idle())));
    // A thread outside native code ends now, even in the middle of a step.
    const longMs = Math.min(LONG_STEP_FACTOR * this.#longestStepMs, this.#options.bounds.longStepEndMsMax);
    const endMs = timeoutMs / 2 + longMs;
    return within(endMs, Promise.all(threads.map((thread) => this.#end(thread))));
  }

  get #longestStepMs(): number {
    return Math.max(0, ...[...this.#longSteps.values()].map(({ ms }) => ms));
  }

  async #end(thread: SynthesisThread): Promise<void> {
    await thread.end();
    this.#threads.delete(thread);
  }

  #serveWaiting(): void {
    if (this.#isRetired && this.#size === 0)
      for (const job of this.#waiting.splice(0))
        job.settle({ type: 'failed', reason: 'the threads of its voices hang' });
    for (let job = this.#waiting[0]; job !== undefined; job = this.#waiting[0]) {
      if (!job.isSettled) {
        const thread = this.#threadFor(job);
        if (thread === undefined) return;
        thread.start(job);
      }
      this.#waiting.shift();
    }
  }

  /**
   * The thread with the fewest jobs. Long steps run on all threads but the last, if there are several: so there is a thread
   * on which a short step never waits for a long one, and jobs go there that are due before a long step would end.
   */
  #threadFor(job: Job): SynthesisThread | undefined {
    const threads = this.ready;
    if (job.isLong) return fewestJobs(threads.slice(0, longThreadsOf(threads.length)));
    const isUrgent = job.dueMs < this.#options.clock() + this.#longestStepMs;
    const free = isUrgent ? fewestJobs(threads.filter(({ hasLongJobs }) => !hasLongJobs)) : undefined;
    return free ?? fewestJobs(threads);
  }

  #start(): void {
    const thread = new SynthesisThread(this.#options);
    this.#threads.add(thread);
    thread.on('ready', (loaded) => {
      this.#loadFaults.delete(thread);
      for (const [name, fault] of loaded.faults)
        this.takeOut((pack) => pack.name === name, `a thread could not load it: ${fault}`);
      for (const [voiceId, step] of loaded.longSteps) this.#countLong(voiceId, step);
      this.emit('thread', thread, loaded);
      this.#changed();
    });
    thread.on('load-failed', (reason) => {
      this.#options.log.error({ reason }, 'voices could not be loaded');
      this.#loadFaults.set(thread, new Error(reason));
      this.#changed();
    });
    thread.on('pack-loaded', (ms) => this.emit('pack-loaded', ms));
    thread.on('slow-step', (voiceId, step) => {
      // The voices of a pack have one model. The default pack keeps all threads.
      const [, ...others] = this.#options.packs;
      const { voices = [] } = others.find((pack) => isOf(pack, [voiceId])) ?? {};
      const longer = voices.filter(({ id }) => this.#countLong(id, step));
      if (longer.length > 0)
        this.#options.log.warn(
          { voiceId, stepMs: Math.round(step.ms) },
          'a voice is slow: a thread is kept for others',
        );
    });
    thread.on('died', (wasReady, steppingVoices) => this.#onDied(thread, wasReady, steppingVoices));
    thread.on('hung', () => this.#onHung(thread));
  }

  #changed(): void {
    this.emit('changed');
    this.#serveWaiting();
  }

  #startAnother(): void {
    if (this.#isClosing) return;
    this.emit('restart');
    this.#start();
  }

  #onDied(thread: SynthesisThread, wasReady: boolean, steppingVoices: readonly string[]): void {
    const { clock, log } = this.#options;
    this.#threads.delete(thread);
    if (this.#isClosing) return;
    const atMs = clock();
    const recent = this.#deaths.filter((death) => death.atMs > atMs - DEATHS_WITHIN_MS);
    this.#deaths = [...recent, { atMs, steppingVoices }];
    this.takeOut((pack) => isOf(pack, steppingVoices) && this.#deathsIn(pack) > DEATHS_MAX);
    if (wasReady) {
      log.error({ threadId: thread.threadId }, 'synthesis thread ended; a new one starts');
      this.#startAnother();
    } else {
      log.error('a synthesis thread ended while it loaded; a new one starts');
      this.#loadFaults.set(thread, new Error('a synthesis thread ended while it loaded: see the log'));
      const timer = setTimeout(() => {
        this.#restartTimers.delete(timer);
        this.#loadFaults.delete(thread);
        this.#startAnother();
      }, RESTART_DELAY_MS);
      this.#restartTimers.add(timer);
    }
    this.#changed();
  }

  #deathsIn(pack: VoicePack): number {
    return this.#deaths.filter(({ steppingVoices }) => isOf(pack, steppingVoices)).length;
  }

  #onHung(thread: SynthesisThread): void {
    const { hungThreads, gpu, log } = this.#options;
    const isLoading = !thread.isReady;
    const { steppingVoices, threadId } = thread;
    const isOutside = thread.abandon();
    const ended = this.#end(thread);
    if (!isOutside) this.#threads.delete(thread);
    const device = gpu === undefined ? undefined : new GpuState(gpu.state);
    // Its successor must not wait for a GPU that does not answer.
    if (!isOutside && device?.loseIfHeldBy(threadId))
      log.warn(
        { threadId },
        'the GPU does not answer: the CPU runs all graphs until the service is restarted',
      );
    // A pack is not to blame for a hang between two steps, or while its load waits for the GPU.
    else if (!isOutside || !device?.isBusyFor(threadId)) this.takeOut((pack) => isOf(pack, steppingVoices));
    const mayReplace = isOutside || hungThreads.add(ended);
    const isFirstLoad = isLoading && !this.#hasLoaded;
    this.#loadFaults.delete(thread);
    this.#logHung(thread, ended, { isLoading, isOutside, mayReplace, isFirstLoad });
    if (isFirstLoad) {
      const message = 'the voices were not loaded in time: use fewer or smaller ones';
      this.#loadFaults.set(thread, new VoicesHangError(message));
    } else if (mayReplace) this.#startAnother();
    else {
      this.#size--;
      void ended.then(() => {
        this.#size++;
        this.#startAnother();
      });
    }
    this.#changed();
  }

  #logHung(
    { threadId }: SynthesisThread,
    ended: Promise<void>,
    is: Record<'isLoading' | 'isOutside' | 'mayReplace' | 'isFirstLoad', boolean>,
  ): void {
    const { log, hungThreads } = this.#options;
    const isReplaced = is.mayReplace && !is.isFirstLoad;
    if (is.isOutside) {
      const next = isReplaced ? ' and a new one starts' : '';
      log.error(
        { threadId },
        `a synthesis thread hangs${is.isLoading ? ' while it loads' : ''}: it is ended${next}`,
      );
      return;
    }
    const remedy = isReplaced
      ? 'a new one starts beside it; restart the service when convenient'
      : is.mayReplace
        ? 'restart the service when convenient'
        : 'too many threads hang to replace it; restart the service';
    log.error(
      { threadId, hungThreads: hungThreads.size },
      `a synthesis thread hangs inside a model ${is.isLoading ? 'load' : 'run'}, where it cannot be ended: ${remedy}`,
    );
    void ended.then(() => log.warn({ threadId }, 'a synthesis thread that hung came back and was ended'));
  }
}
