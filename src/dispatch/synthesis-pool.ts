/**
 * The synthesis threads, under piscina. Knows threads and jobs, nothing of contexts or order.
 *
 * A thread that dies takes with it every job it held, but only the job whose step was running is to blame: that one
 * is reported as failed, the others as interrupted, to be run again. piscina starts the replacement.
 */
import { EventEmitter, once } from 'node:events';
import { MessageChannel, type MessagePort } from 'node:worker_threads';
import { Piscina } from 'piscina';
import type { ExecutionProvider } from '../config.js';
import { describeFault, faultPlace } from '../fault.js';
import { limits } from '../limits.js';
import type { Log } from '../log.js';
import { JobControl } from './control.js';
import type {
  SynthesisControl,
  SynthesisHello,
  SynthesisJob,
  SynthesisResult,
  SynthesisThreadData,
} from './messages.js';
import type { VoicePack } from '../../workers/engines/voice-pack.js';

export interface SynthesisPoolOptions {
  readonly threads: number;
  readonly packs: readonly VoicePack[];
  readonly executionProvider: ExecutionProvider;
  /** Of each thread's heap: exhausting it ends that thread. */
  readonly heapMiBMax: number;
  readonly log: Log;
  /** The compiled entry of a synthesis thread. */
  readonly entry: URL;
}

/** `failed` also stands for a job whose step killed its thread: running it again would do so again. */
export type JobOutcome =
  | SynthesisResult
  /** The thread died in another job's step. */
  | { readonly type: 'interrupted' };

interface SynthesisPoolEvents {
  /** A thread has its voices loaded: link it to the actor threads. */
  thread: [threadId: number];
  /** The number of ready threads changed. */
  capacity: [readyThreads: number];
  /** A thread loaded its voices, or could not. */
  hello: [];
}

interface ReadyThread {
  readonly control: MessagePort;
}

export class SynthesisPool extends EventEmitter<SynthesisPoolEvents> {
  readonly #threads: number;
  readonly #log: Log;
  readonly #control: JobControl;
  readonly #freeSlots: number[];
  readonly #ready = new Map<number, ReadyThread>();
  /** Threads that could not load their voices and try again, with the reason. */
  readonly #failed = new Map<number, string>();
  readonly #running = new Set<Promise<unknown>>();
  readonly #pool: Piscina;
  #closing = false;
  #restarts = 0;

  constructor(options: SynthesisPoolOptions) {
    super();
    this.#threads = options.threads;
    this.#log = options.log;
    this.#control = new JobControl(options.threads * limits.jobsPerThreadMax);
    this.#freeSlots = Array.from({ length: this.#control.slots }, (_, slot) => slot);
    const workerData: SynthesisThreadData = {
      packs: options.packs,
      executionProvider: options.executionProvider,
      control: this.#control.buffer,
    };
    this.#pool = new Piscina({
      filename: options.entry.href,
      workerData,
      minThreads: options.threads,
      maxThreads: options.threads,
      concurrentTasksPerWorker: limits.jobsPerThreadMax,
      idleTimeout: Number.POSITIVE_INFINITY,
      // The default freezes an idle thread's event loop: no messages, no timers.
      atomics: 'disabled',
      // The front thread's sends must not wait behind inference.
      niceIncrement: 10,
      execArgv: ['--disable-warning=ExperimentalWarning'],
      resourceLimits: { maxOldGenerationSizeMb: options.heapMiBMax },
      // piscina would hand jobs to a thread that is still loading; ready ones are quicker even when busy.
      loadBalancer: (_task, workers) => {
        let best = null;
        for (const worker of workers) {
          if (!this.#ready.has(worker.id) || worker.terminating || worker.destroyed) continue;
          if (worker.currentUsage >= limits.jobsPerThreadMax) continue;
          if (best === null || worker.currentUsage < best.currentUsage) best = worker;
        }
        return best;
      },
    });
    this.#pool.on('message', (message: SynthesisHello) => this.#onHello(message));
    this.#pool.on('error', (error: Error) => this.#log.error(describeFault(error), 'synthesis thread ended'));
  }

  /** Threads that can take jobs now. */
  get readyThreads(): number {
    return this.#ready.size;
  }

  get isWhole(): boolean {
    return this.#ready.size === this.#threads;
  }

  /** Threads that died in service. */
  get restarts(): number {
    return this.#restarts;
  }

  /** Jobs that can be with the threads at once. */
  get capacity(): number {
    return this.#control.slots;
  }

  /**
   * Resolves when every thread has loaded its voices.
   * @throws the reason of one that could not, when none is loading any more
   */
  async loaded(): Promise<void> {
    while (this.#ready.size + this.#failed.size < this.#threads) await once(this, 'hello');
    for (const message of this.#failed.values()) throw new Error(message);
  }

  /** The threads that are ready, by id. */
  get threadIds(): Iterable<number> {
    return this.#ready.keys();
  }

  /**
   * Takes a slot for a job.
   * @throws if none is free: the scheduler never starts more than `capacity` jobs
   */
  reserve(playFromMs: number): number {
    const slot = this.#freeSlots.pop();
    if (slot === undefined) throw new Error('no free job slot');
    this.#control.begin(slot, playFromMs);
    return slot;
  }

  /** Runs a job in its reserved slot, which is free again when the promise resolves. Never rejects. */
  run(job: SynthesisJob): Promise<JobOutcome> {
    const settled = this.#run(job).finally(() => {
      this.#freeSlots.push(job.slot);
      this.#running.delete(settled);
    });
    this.#running.add(settled);
    return settled;
  }

  setPlayFrom(slot: number, playFromMs: number): void {
    this.#control.setPlayFrom(slot, playFromMs);
  }

  cancel(slot: number): void {
    this.#control.cancel(slot);
  }

  /** Gives a synthesis thread a port to an actor thread; what the actor shall listen on is returned. */
  link(threadId: number, actor: number): MessagePort | undefined {
    const thread = this.#ready.get(threadId);
    if (thread === undefined) return undefined;
    const { port1, port2 } = new MessageChannel();
    const message: SynthesisControl = { type: 'actor', actor, port: port1 };
    thread.control.postMessage(message, [port1]);
    return port2;
  }

  /**
   * Ends all threads, once no job runs: ending a thread inside a model run aborts the process.
   * @returns false if jobs still ran after `timeoutMs`; the threads are then left as they are
   */
  async close(timeoutMs: number): Promise<boolean> {
    this.#closing = true;
    for (let slot = 0; slot < this.#control.slots; slot++) this.#control.cancel(slot);
    let timer: NodeJS.Timeout | undefined;
    const timeout = new Promise<false>((resolve) => {
      timer = setTimeout(() => resolve(false), timeoutMs);
    });
    const idle = Promise.allSettled([...this.#running]).then(() => true);
    const clean = await Promise.race([idle, timeout]);
    clearTimeout(timer);
    if (clean) await this.#pool.destroy();
    return clean;
  }

  async #run(job: SynthesisJob): Promise<JobOutcome> {
    try {
      return (await this.#pool.run(job)) as SynthesisResult;
    } catch (error) {
      // Jobs report their own failures as results: a rejection means that the thread died.
      if (!this.#control.isStepping(job.slot)) return { type: 'interrupted' };
      return { type: 'failed', reason: `its synthesis thread ended: ${faultPlace(error)}` };
    }
  }

  #onHello(message: SynthesisHello): void {
    switch (message.type) {
      case 'ready':
        this.#failed.delete(message.threadId);
        this.#ready.set(message.threadId, { control: message.control });
        message.control.unref();
        // The port closes with the thread, however that ends; piscina's own event no longer knows its id by then.
        message.control.on('close', () => this.#onThreadGone(message.threadId));
        this.#log.debug({ threadId: message.threadId, loadMs: message.loadMs }, 'synthesis thread ready');
        this.emit('thread', message.threadId);
        this.emit('capacity', this.#ready.size);
        break;
      case 'load-failed':
        this.#failed.set(message.threadId, message.message);
        this.#log.error(
          { threadId: message.threadId, reason: message.message },
          'voices could not be loaded',
        );
        break;
    }
    this.emit('hello');
  }

  #onThreadGone(threadId: number): void {
    if (!this.#ready.delete(threadId)) return;
    if (!this.#closing) {
      this.#restarts++;
      this.#log.error({ threadId }, 'synthesis thread gone; a new one starts');
    }
    this.emit('capacity', this.#ready.size);
  }
}
