/**
 * The administration thread as the console sees it: users, sessions, one-time links, accounts, keys, usage and the audit
 * table. All of it is work on the store or on passwords, which the front thread must not wait for.
 *
 * Every method rejects with a `ConsoleRefusal`: `unavailable` while the store cannot be used, the thread is starting again
 * or too many calls wait. Any other error is a defect. An act takes effect whole or not at all, with its row in the audit
 * table.
 */
import { Worker } from 'node:worker_threads';
import { wrap, type Remote } from 'comlink';
import type { AdministrationData, ConsoleCalls, ConsoleDesk, Outcome } from '../accounts/console-calls.js';
import { nodeEndpoint } from '../comlink-node.js';
import type { Bounds } from '../limits.js';
import type { Log } from '../log.js';
import type { StorePlace } from '../store/driver.js';
import { CHECK_FIRST } from '../store/faults.js';
import type { Pronouncing } from '../threads/messages.js';
import { ConsoleRefusal } from './refusal.js';

/** Each call, made on the thread. */
type ThreadCalls = {
  readonly [Name in keyof ConsoleCalls]: (...args: Parameters<ConsoleCalls[Name]>) => Promise<AnswerOf<Name>>;
};

export interface ConsoleAdministration extends ThreadCalls, Pronouncing {
  /** Threads that ended and were replaced. */
  readonly restarts: number;
  /** Ends messages to webhooks. */
  stopSending(): void;
  /** Waits a moment for the calls under way, and ends the thread. Idempotent. */
  close(): Promise<void>;
}

export interface AdministrationOptions {
  readonly store: StorePlace;
  /** `WEBHOOK_ALLOW` */
  readonly webhookAllow?: readonly string[];
  readonly bounds: Bounds;
  readonly log: Log;
  /** Of the thread; a test can set its own. */
  readonly entry?: URL;
}

const unavailable = (message: string): ConsoleRefusal => new ConsoleRefusal('unavailable', message);

type AnswerOf<Name extends keyof ConsoleCalls> = Awaited<ReturnType<ConsoleCalls[Name]>>;

type Desk = ConsoleDesk & Pronouncing;

/** Calls the thread, starts it at the first call, and starts it again when it ended. */
class AdministrationThread {
  readonly #options: AdministrationOptions;
  #running: { readonly worker: Worker; readonly remote: Remote<Desk> } | null = null;
  /** Fails the calls under way. */
  readonly #underWay = new Set<(error: Error) => void>();
  #endedAtMs = -Infinity;
  #restarts = 0;
  /** Why the store could not be used last; `null` since it could. */
  #reason: string | null = null;
  #closed: Promise<void> | undefined;
  #onIdle: () => void = () => undefined;

  constructor(options: AdministrationOptions) {
    this.#options = options;
  }

  get restarts(): number {
    return this.#restarts;
  }

  async call<Name extends keyof ConsoleCalls>(
    name: Name,
    ...args: Parameters<ConsoleCalls[Name]>
  ): Promise<AnswerOf<Name>> {
    const remote = this.#remote();
    const outcome = await this.#untilEnd<Outcome>(remote.run(name, args));
    const reason = outcome.ok ? null : outcome.reason;
    if (reason !== null && reason !== this.#reason)
      this.#options.log.error({ reason }, 'the console cannot use the store');
    this.#reason = reason;
    if (outcome.ok) return outcome.answer as AnswerOf<Name>;
    const { code, message, ...more } = outcome.refusal;
    throw new ConsoleRefusal(code, message, more);
  }

  pronounce(...question: Parameters<Pronouncing['pronounce']>): ReturnType<Pronouncing['pronounce']> {
    return this.#untilEnd(this.#remote().pronounce(...question));
  }

  stopSending(): void {
    void this.#running?.remote.stopSending();
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  /** @throws {ConsoleRefusal} it takes no call now */
  #remote(): Remote<Desk> {
    if (this.#closed !== undefined) throw unavailable('The service is stopping.');
    if (this.#underWay.size >= this.#options.bounds.administrationCallsMax)
      throw unavailable('Too many calls wait for the store. Try again in a moment.');
    return (this.#running ??= this.#start()).remote;
  }

  /** A comlink call never settles if the thread dies: its exit fails the calls. */
  async #untilEnd<T>(answer: Promise<T>): Promise<T> {
    let fail: (error: Error) => void = () => undefined;
    const ended = new Promise<never>((_, reject) => (fail = reject));
    this.#underWay.add(fail);
    try {
      return await Promise.race([answer, ended]);
    } finally {
      this.#underWay.delete(fail);
      if (this.#underWay.size === 0) this.#onIdle();
    }
  }

  #start(): { readonly worker: Worker; readonly remote: Remote<Desk> } {
    const { bounds, entry, store, webhookAllow = [] } = this.#options;
    if (performance.now() - this.#endedAtMs < bounds.administrationRestartMs)
      throw unavailable('The console is starting again. Try again in a moment.');
    const worker = new Worker(entry ?? new URL('../../workers/administration.js', import.meta.url), {
      name: 'administration',
      workerData: { store, bounds, webhookAllow } satisfies AdministrationData,
      resourceLimits: { maxOldGenerationSizeMb: bounds.administrationHeapMiBMax },
    });
    let reason = 'it ended by itself';
    // An 'error' without a listener would end the process; 'exit' follows it.
    worker.on('error', (error: Error) => (reason = error.message));
    worker.once('exit', () => this.#ended(reason));
    return { worker, remote: wrap<Desk>(nodeEndpoint(worker)) };
  }

  #ended(reason: string): void {
    this.#running = null;
    this.#endedAtMs = performance.now();
    if (this.#closed === undefined) {
      this.#restarts += 1;
      this.#options.log.error({ reason }, 'the administration thread ended');
    }
    const error = new ConsoleRefusal('uncertain', `The console was interrupted. ${CHECK_FIRST}`);
    for (const fail of [...this.#underWay]) fail(error);
  }

  async #close(): Promise<void> {
    const running = this.#running;
    if (running === null) return;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, this.#options.bounds.administrationCloseMsMax);
    });
    const idle = new Promise<void>((resolve) => (this.#onIdle = resolve));
    if (this.#underWay.size > 0) await Promise.race([idle, late]);
    // A thread that died has let go of the store.
    await Promise.race([this.#untilEnd(running.remote.close()), late]).catch(() => undefined);
    clearTimeout(timer);
    await running.worker.terminate();
  }
}

/** Starts no thread yet: the first call does. */
export const startAdministration = (options: AdministrationOptions): ConsoleAdministration => {
  const thread = new AdministrationThread(options);
  return new Proxy(thread, {
    get: (_, name: keyof ConsoleCalls): unknown => {
      const own: unknown = Reflect.get(thread, name);
      if (typeof own === 'function') return own.bind(thread);
      return own ?? ((...args: Parameters<ConsoleCalls[typeof name]>) => thread.call(name, ...args));
    },
  }) as unknown as ConsoleAdministration;
};
