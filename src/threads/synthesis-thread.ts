/**
 * One synthesis thread, a piscina of one: its jobs and their slots, what it is linked to, and its safe end.
 *
 *   loading --ready--> ready --(dies)--> loading       piscina starts it again, under another thread id
 *   loading --(dies)--> dead                           piscina does not
 *   any --end, once outside native code--> ended       --abandon--> its jobs settle now, whatever it does
 *
 * A thread that dies takes with it every job it held, but only the job whose step was running is to blame: that one
 * is reported as failed, the others as interrupted, to be run again.
 */
import { EventEmitter } from 'node:events';
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
import { Vitals } from './vitals.js';

/** A segment to speak; its slot is given by the thread that it comes to. */
export type JobRequest = Omit<SynthesisJob, 'slot'>;

/** `failed` also stands for a job whose step killed its thread, or hangs: running it again would do so again. */
export type JobOutcome =
  | SynthesisResult
  /** The thread died, or hangs, in another job's step. */
  | { readonly type: 'interrupted' };

/** A job with its thread. */
export interface StartedJob {
  readonly slot: number;
  /** Never rejects. */
  readonly outcome: Promise<JobOutcome>;
}

export interface SynthesisThreadOptions extends Omit<SynthesisThreadData, 'control' | 'vitals'> {
  /** Of the thread's heap: exhausting it ends the thread. */
  readonly heapMiBMax: number;
  readonly log: Log;
  /** The compiled entry. */
  readonly entry: URL;
}

interface SynthesisThreadEvents {
  /** Its voices are loaded: link it to the actor threads. Again after each death. */
  ready: [];
  'load-failed': [reason: string];
  /** It died, and piscina starts another in its place. */
  gone: [];
  /** It died while it loaded, and nothing takes its place. */
  dead: [];
}

/** Milliseconds between looks whether a thread has come out of native code: more and more, should it hang there. */
const OUTSIDE_POLL_MS = { first: 5, last: 500 } as const;

export class SynthesisThread extends EventEmitter<SynthesisThreadEvents> {
  readonly vitals = new Vitals();
  readonly #control = new JobControl(limits.jobsPerThreadMax);
  readonly #freeSlots = Array.from({ length: limits.jobsPerThreadMax }, (_, slot) => slot);
  /** By slot: settles a job before its thread does. */
  readonly #breakOff = new Map<number, (outcome: JobOutcome) => void>();
  readonly #running = new Set<Promise<JobOutcome>>();
  readonly #log: Log;
  readonly #pool: Piscina;
  #port: MessagePort | undefined;
  #threadId = 0;
  #executionProvider: Exclude<ExecutionProvider, 'auto'> = 'cpu';
  #abandoned = false;
  #ended: Promise<void> | undefined;

  constructor(options: SynthesisThreadOptions) {
    super();
    const { heapMiBMax, log, entry, ...data } = options;
    this.#log = log;
    const workerData: SynthesisThreadData = {
      ...data,
      control: this.#control.buffer,
      vitals: this.vitals.buffer,
    };
    this.#pool = new Piscina({
      filename: entry.href,
      workerData,
      minThreads: 1,
      maxThreads: 1,
      concurrentTasksPerWorker: limits.jobsPerThreadMax,
      idleTimeout: Number.POSITIVE_INFINITY,
      // The default freezes an idle thread's event loop: no messages, no timers.
      atomics: 'disabled',
      // The front thread's sends must not wait behind inference.
      niceIncrement: 10,
      execArgv: ['--disable-warning=ExperimentalWarning'],
      resourceLimits: { maxOldGenerationSizeMb: heapMiBMax },
    });
    this.#pool.on('message', (message: SynthesisHello) => this.#onHello(message));
    this.#pool.on('error', (error: Error) => this.#log.error(describeFault(error), 'synthesis thread ended'));
    this.#pool.on('workerDestroy', () => setImmediate(() => this.#onWorkerGone()));
  }

  get threadId(): number {
    return this.#threadId;
  }

  /** What its models run on, once it is ready. */
  get executionProvider(): Exclude<ExecutionProvider, 'auto'> {
    return this.#executionProvider;
  }

  get isReady(): boolean {
    return this.#port !== undefined && !this.#abandoned;
  }

  get jobs(): number {
    return this.#running.size;
  }

  get hasRoom(): boolean {
    return this.isReady && this.#freeSlots.length > 0;
  }

  /** @throws if it has no room */
  run(request: JobRequest, playFromMs: number): StartedJob {
    const slot = this.#freeSlots.pop();
    if (slot === undefined) throw new Error('no free job slot');
    this.#control.begin(slot, playFromMs);
    const { promise: brokenOff, resolve } = Promise.withResolvers<JobOutcome>();
    this.#breakOff.set(slot, resolve);
    const done = this.#run({ ...request, slot }).finally(() => {
      this.#breakOff.delete(slot);
      // A thread that was abandoned may still look at it.
      this.#freeSlots.push(slot);
    });
    const outcome = Promise.race([done, brokenOff]);
    this.#running.add(outcome);
    void outcome.then(() => this.#running.delete(outcome));
    return { slot, outcome };
  }

  setPlayFrom(slot: number, playFromMs: number): void {
    this.#control.setPlayFrom(slot, playFromMs);
  }

  cancel(slot: number): void {
    this.#control.cancel(slot);
  }

  /** Gives it a port to an actor thread; what the actor shall listen on is returned. */
  link(actor: number): MessagePort | undefined {
    if (this.#port === undefined) return undefined;
    const { port1, port2 } = new MessageChannel();
    const message: SynthesisControl = { type: 'actor', actor, port: port1 };
    this.#port.postMessage(message, [port1]);
    return port2;
  }

  /** It hangs: settles its jobs, and takes no others. Should it go on, it ends them at their next step. */
  abandon(): void {
    this.#abandoned = true;
    for (const [slot, breakOff] of this.#breakOff) {
      this.#control.cancel(slot);
      breakOff(this.#endedIn(slot, 'its synthesis thread hangs'));
    }
  }

  /** Resolves when none of its jobs runs. Asks them to end at their next step. */
  async idle(): Promise<void> {
    for (const slot of this.#breakOff.keys()) this.#control.cancel(slot);
    await Promise.allSettled([...this.#running]);
  }

  /**
   * Ends it: at once if it is outside native code, where alone that does not abort the process; else when it has come
   * out, should it ever. Its jobs settle. Idempotent.
   */
  end(): Promise<void> {
    this.#ended ??= this.#end();
    return this.#ended;
  }

  async #end(): Promise<void> {
    this.vitals.bar();
    // A thread that died inside says so for ever, unless another follows it.
    const isInside = () => this.vitals.isInside && this.#pool.threads.length > 0;
    for (let pollMs: number = OUTSIDE_POLL_MS.first; isInside();) {
      // One that hangs for ever must not keep the process.
      await new Promise((resolve) => setTimeout(resolve, pollMs).unref());
      pollMs = Math.min(2 * pollMs, OUTSIDE_POLL_MS.last);
    }
    await this.#pool.destroy();
    this.#port = undefined;
  }

  async #run(job: SynthesisJob): Promise<JobOutcome> {
    try {
      return (await this.#pool.run(job)) as SynthesisResult;
    } catch (error) {
      // Jobs report their own failures as results: a rejection means that the thread died.
      return this.#endedIn(job.slot, `its synthesis thread ended: ${faultPlace(error)}`);
    }
  }

  #endedIn(slot: number, reason: string): JobOutcome {
    return this.#control.isStepping(slot) ? { type: 'failed', reason } : { type: 'interrupted' };
  }

  #onHello(message: SynthesisHello): void {
    if (this.#ended !== undefined) return;
    switch (message.type) {
      case 'ready':
        this.#port = message.control;
        this.#threadId = message.threadId;
        this.#executionProvider = message.executionProvider;
        message.control.unref();
        // The port closes with the thread, however that ends; piscina's own event no longer knows its id by then.
        message.control.on('close', () => this.#onGone(message.control));
        this.#log.debug({ threadId: message.threadId, loadMs: message.loadMs }, 'synthesis thread ready');
        this.emit('ready');
        return;
      case 'load-failed':
        this.emit('load-failed', message.message);
    }
  }

  #onGone(port: MessagePort): void {
    if (this.#port !== port) return;
    this.#port = undefined;
    if (this.#ended === undefined) this.emit('gone');
  }

  /** piscina starts no more threads once one ended while it loaded. */
  #onWorkerGone(): void {
    if (this.#ended === undefined && this.#pool.threads.length === 0) this.emit('dead');
  }
}
