/**
 * Synthesis threads that have the same voices. Knows threads and jobs, nothing of contexts or order.
 *
 * A thread that dies is replaced. So is one that hangs, as far as it can be: in JavaScript or WebAssembly it is ended;
 * inside native code it cannot be, and is abandoned, with another beside it. One that hangs while the pool first loads
 * is not replaced: the pool is of no use then.
 */
import { EventEmitter, once } from 'node:events';
import type { Abandoned } from './abandoned.js';
import { SynthesisThread } from './synthesis-thread.js';
import type { JobOutcome, JobRequest, SynthesisThreadOptions } from './synthesis-thread.js';
import type { Watchdog } from './watchdog.js';

export interface SynthesisPoolOptions extends SynthesisThreadOptions {
  readonly threads: number;
  /** Milliseconds that a thread may take to load its voices. */
  readonly voicesLoadMsMax: number;
  readonly watchdog: Watchdog;
  /** Shared by all pools of the process. */
  readonly abandoned: Abandoned;
}

/** A segment that was given to a pool. */
export interface Job {
  /** Never rejects. */
  readonly outcome: Promise<JobOutcome>;
  /** The listener's clock moved. */
  setPlayFrom(playFromMs: number): void;
  /** Asks it to end at its next step. */
  cancel(): void;
}

interface SynthesisPoolEvents {
  /** A thread has its voices loaded: link it to the actor threads. */
  thread: [thread: SynthesisThread];
  /** The number of ready threads changed. */
  capacity: [readyThreads: number];
  /** A thread loaded its voices, or could not. */
  hello: [];
  /** A thread that died or hangs is replaced. */
  restart: [];
}

/** Milliseconds before a thread that could not even start is started anew: what it lacks it will lack again. */
const RESTART_DELAY_MS = 1_000;

/** Voices that take too long to load. One line for the operator; a thread may hang inside native code. */
export class VoicesHangError extends Error {
  override readonly name = 'VoicesHangError';
}

/** @returns whether it came true in time */
const within = async (ms: number, event: Promise<unknown>): Promise<boolean> => {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<false>((resolve) => {
    timer = setTimeout(() => resolve(false), ms);
  });
  const inTime = await Promise.race([event.then(() => true), timeout]);
  clearTimeout(timer);
  return inTime;
};

class PooledJob implements Job {
  readonly request: JobRequest;
  readonly outcome: Promise<JobOutcome>;
  readonly #settle: (outcome: JobOutcome) => void;
  #playFromMs: number;
  #place: { readonly thread: SynthesisThread; readonly slot: number } | undefined;
  #isSettled = false;

  constructor(request: JobRequest, playFromMs: number) {
    this.request = request;
    this.#playFromMs = playFromMs;
    const { promise, resolve } = Promise.withResolvers<JobOutcome>();
    this.outcome = promise;
    this.#settle = (outcome) => {
      this.#isSettled = true;
      resolve(outcome);
    };
  }

  /** While it waits for a thread: it was cancelled. */
  get isSettled(): boolean {
    return this.#isSettled;
  }

  startOn(thread: SynthesisThread): void {
    const { slot, outcome } = thread.run(this.request, this.#playFromMs);
    this.#place = { thread, slot };
    void outcome.then(this.#settle);
  }

  setPlayFrom(playFromMs: number): void {
    this.#playFromMs = playFromMs;
    if (!this.#isSettled) this.#place?.thread.setPlayFrom(this.#place.slot, playFromMs);
  }

  cancel(): void {
    if (this.#isSettled) return;
    if (this.#place === undefined) this.#settle({ type: 'cancelled', effort: null });
    else this.#place.thread.cancel(this.#place.slot);
  }

  /** While it waits for a thread: none will come. */
  fail(reason: string): void {
    if (!this.#isSettled && this.#place === undefined) this.#settle({ type: 'failed', reason });
  }
}

export class SynthesisPool extends EventEmitter<SynthesisPoolEvents> {
  readonly #options: SynthesisPoolOptions;
  readonly #threads = new Set<SynthesisThread>();
  /** Threads that hang in JavaScript, on their way out. */
  readonly #ending = new Set<SynthesisThread>();
  /** Threads that could not load their voices: they try again, or hang. */
  readonly #failed = new Map<SynthesisThread, Error>();
  /** Of threads that load: calls the deadline off. */
  readonly #loading = new Map<SynthesisThread, () => void>();
  /** Jobs that no thread had room for. The scheduler starts no more than all threads together hold. */
  readonly #waiting: PooledJob[] = [];
  readonly #restartTimers = new Set<NodeJS.Timeout>();
  #size: number;
  /** All threads were ready once. */
  #hasLoaded = false;
  #retired = false;
  #closing = false;

  constructor(options: SynthesisPoolOptions) {
    super();
    this.#options = options;
    this.#size = options.threads;
    for (let i = 0; i < options.threads; i++) this.#start();
  }

  /** The threads that are ready: they can take jobs, and be linked. */
  get ready(): SynthesisThread[] {
    return [...this.#threads].filter((thread) => thread.isReady);
  }

  /** Every thread that is to be there is ready. */
  get isWhole(): boolean {
    return this.#size === this.#options.threads && this.ready.length === this.#size;
  }

  /** Threads that are missing for good: they hang, and were not replaced. */
  get lostThreads(): number {
    return this.#options.threads - this.#size;
  }

  /**
   * Resolves when every thread has loaded its voices.
   * @throws the reason of one that could not, when none is loading any more
   * @throws {VoicesHangError} if one took longer than `voicesLoadMsMax`
   */
  async loaded(): Promise<void> {
    while (!this.#closing && this.ready.length + this.#failed.size < this.#size) await once(this, 'hello');
    for (const error of this.#failed.values()) throw error;
    this.#hasLoaded = true;
  }

  /** Other voices are those of now: jobs that no thread is left for fail, while those of now would wait for one. */
  retire(): void {
    this.#retired = true;
    this.#serveWaiting();
  }

  /** Runs a job as soon as a thread has room. */
  run(request: JobRequest, playFromMs: number): Job {
    const job = new PooledJob(request, playFromMs);
    void job.outcome.then(() => this.#serveWaiting());
    this.#waiting.push(job);
    this.#serveWaiting();
    return job;
  }

  /**
   * Ends all threads: first their jobs, at their next step, then the threads, each when it is outside native code.
   * @returns false if that took longer than `timeoutMs`, or a thread hangs inside: the process must then end by signal
   */
  async close(timeoutMs: number): Promise<boolean> {
    this.#closing = true;
    this.emit('hello');
    for (const timer of this.#restartTimers) clearTimeout(timer);
    for (const job of this.#waiting.splice(0)) job.cancel();
    const threads = [...this.#threads, ...this.#ending];
    await within(timeoutMs / 2, Promise.all(threads.map((thread) => thread.idle())));
    // One that is outside native code is ended now, even in the middle of a step.
    return within(timeoutMs / 2, Promise.all(threads.map((thread) => this.#end(thread))));
  }

  async #end(thread: SynthesisThread): Promise<void> {
    await thread.end();
    this.#loading.get(thread)?.();
    this.#options.watchdog.unwatch(thread.vitals);
    this.#threads.delete(thread);
    this.#ending.delete(thread);
  }

  /** Ready threads only, the least busy first: piscina itself would hand jobs to one that is still loading. */
  #serveWaiting(): void {
    if (this.#retired && this.#size === 0)
      for (const job of this.#waiting.splice(0)) job.fail('the threads of its voices hang');
    while (this.#waiting.length > 0) {
      if (this.#waiting[0]?.isSettled === true) this.#waiting.shift();
      else {
        let best: SynthesisThread | undefined;
        for (const thread of this.#threads)
          if (thread.hasRoom && (best === undefined || thread.jobs < best.jobs)) best = thread;
        if (best === undefined) return;
        this.#waiting.shift()?.startOn(best);
      }
    }
  }

  #start(): void {
    const thread = new SynthesisThread(this.#options);
    this.#threads.add(thread);
    this.#expectLoaded(thread);
    thread.on('ready', () => {
      this.#loading.get(thread)?.();
      this.#failed.delete(thread);
      if (!this.#closing) this.#options.watchdog.watch(thread.vitals, () => this.#onHung(thread));
      this.emit('thread', thread);
      this.#changed();
    });
    thread.on('load-failed', (reason) => {
      this.#options.log.error({ reason }, 'voices could not be loaded');
      this.#expectLoaded(thread);
      this.#failed.set(thread, new Error(reason));
      this.emit('hello');
    });
    thread.on('gone', () => {
      this.#options.watchdog.unwatch(thread.vitals);
      if (!this.#closing) {
        this.#options.log.error({ threadId: thread.threadId }, 'synthesis thread gone; a new one starts');
        this.emit('restart');
        this.#expectLoaded(thread);
      }
      this.#changed();
    });
    thread.on('dead', () => this.#onDead(thread));
  }

  /** From now on, or anew. */
  #expectLoaded(thread: SynthesisThread): void {
    const { watchdog, voicesLoadMsMax } = this.#options;
    this.#loading.get(thread)?.();
    if (this.#closing) return;
    const callOff = watchdog.expect(voicesLoadMsMax, () => this.#onLoadHung(thread));
    this.#loading.set(thread, () => {
      callOff();
      this.#loading.delete(thread);
    });
  }

  #onLoadHung(thread: SynthesisThread): void {
    this.#loading.delete(thread);
    const message = `the voices were not loaded within ${this.#options.voicesLoadMsMax / 1000} s`;
    this.#failed.delete(thread);
    this.#onHung(thread, new VoicesHangError(message));
  }

  #changed(): void {
    this.emit('capacity', this.ready.length);
    this.#serveWaiting();
    this.emit('hello');
  }

  #onDead(thread: SynthesisThread): void {
    this.#loading.get(thread)?.();
    if (this.#closing) return;
    this.#options.log.error('a synthesis thread ended while it loaded; a new one starts');
    void thread.end();
    this.#failed.set(thread, new Error('a synthesis thread ended while it loaded: see the log'));
    this.emit('hello');
    const timer = setTimeout(() => {
      this.#restartTimers.delete(timer);
      this.#failed.delete(thread);
      this.#threads.delete(thread);
      this.#startAnother();
    }, RESTART_DELAY_MS);
    this.#restartTimers.add(timer);
  }

  /** @param loadFault if it hangs while it loads */
  #onHung(thread: SynthesisThread, loadFault?: VoicesHangError): void {
    const { log, abandoned } = this.#options;
    const { threadId } = thread;
    const isOutside = thread.vitals.bar();
    thread.abandon();
    this.#threads.delete(thread);
    const ended = thread.end();
    const mayReplace = isOutside || abandoned.add(ended);
    const isFirstLoad = loadFault !== undefined && !this.#hasLoaded;
    const isReplaced = mayReplace && !isFirstLoad;
    const where = loadFault === undefined ? '' : ' as it loads';
    if (isOutside) {
      log.error(
        { threadId },
        `a synthesis thread hangs${where}: it is ended${isReplaced ? ', and a new one starts' : ''}`,
      );
      this.#ending.add(thread);
      void ended.then(() => this.#ending.delete(thread));
    } else {
      const remedy = isReplaced
        ? 'a new one starts beside it; restart the service when convenient'
        : mayReplace
          ? 'restart the service when convenient'
          : 'too many do for it to be replaced; restart the service';
      log.error(
        { threadId, hungThreads: abandoned.size },
        `a synthesis thread hangs inside a model ${loadFault === undefined ? 'run' : 'load'}, where it cannot be ended: ${remedy}`,
      );
      void ended.then(() => log.warn({ threadId }, 'a synthesis thread that hung came back, and was ended'));
    }
    if (isReplaced) this.#startAnother();
    else if (isFirstLoad) this.#failed.set(thread, loadFault);
    else {
      this.#size--;
      void ended.then(() => {
        this.#size++;
        this.#startAnother();
      });
    }
    this.#changed();
  }

  #startAnother(): void {
    if (this.#closing) return;
    this.emit('restart');
    this.#start();
  }
}
