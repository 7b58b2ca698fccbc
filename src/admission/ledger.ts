/**
 * The ledger as the front thread writes it: entries queue here, and the writer thread (`workers/ledger.ts`) commits
 * them in groups. While one group is being made durable the next one gathers, so that the disk sets the pace.
 *
 * An entry leaves the queue when its commit is acknowledged. A writer that fails or dies gets the same batch again;
 * entries carry an identity, so that what was committed without the acknowledgement is not committed twice.
 */
import { Worker } from 'node:worker_threads';
import { wrap, type Remote } from 'comlink';
import { nodeEndpoint } from '../comlink-node.js';
import type { Log } from '../log.js';
import type { LedgerWriter } from '../../workers/ledger.js';
import { newWriter, type LedgerEntry } from './entries.js';

/** What admission knows of an entry; its identity is given here. */
export type NewEntry = Omit<LedgerEntry, 'writer' | 'entry'>;

/** The part of a ledger that admission needs. */
export interface LedgerQueue {
  /** Identifies the entries of this process. */
  readonly writer: number;
  /** False while writes fail or the queue is full: nothing new may be admitted then. */
  readonly accepting: boolean;
  /** Whether the queue holds as many entries as it may. Owners of a lease then gather what they owe. */
  readonly full: boolean;
  /** The last entry known to be durable; 0 when none. */
  readonly acknowledged: number;
  /** Queues an entry, never refusing: what was spoken is charged. @returns its number */
  append(entry: NewEntry): number;
}

export interface LedgerLimits {
  readonly ledgerQueueMax: number;
  readonly ledgerBatchMax: number;
  readonly ledgerRetryMs: number;
  readonly ledgerCloseMsMax: number;
}

export interface LedgerOptions {
  readonly dataDir: string;
  readonly limits: LedgerLimits;
  readonly log: Log;
}

type Outcome = { readonly ok: true } | { readonly ok: false; readonly message: string };

/** One writer thread. comlink's calls never settle when the thread dies: they are raced with its exit. */
class WriterThread {
  readonly #worker: Worker;
  readonly #remote: Remote<LedgerWriter>;
  readonly #exited: Promise<Outcome>;
  #alive = true;

  constructor(dataDir: string) {
    this.#worker = new Worker(new URL('../../workers/ledger.js', import.meta.url), {
      name: 'ledger',
      workerData: { dataDir },
    });
    this.#exited = new Promise((resolve) => {
      let message = 'the writer thread ended';
      // An 'error' without a listener would end the process; 'exit' follows it.
      this.#worker.on('error', (error: Error) => (message = error.message));
      this.#worker.once('exit', () => {
        this.#alive = false;
        resolve({ ok: false, message });
      });
    });
    this.#remote = wrap<LedgerWriter>(nodeEndpoint(this.#worker));
  }

  get alive(): boolean {
    return this.#alive;
  }

  /** Never rejects. */
  async commit(batch: readonly LedgerEntry[]): Promise<Outcome> {
    const committed = this.#remote
      .commit(batch)
      .catch((error: unknown): Outcome => ({ ok: false, message: String(error) }));
    return Promise.race([committed, this.#exited]);
  }

  async terminate(): Promise<void> {
    await this.#worker.terminate();
  }
}

export class Ledger implements LedgerQueue {
  readonly writer = newWriter();
  readonly #options: LedgerOptions;
  /** Not yet acknowledged, in order; a batch being committed is still at the front. */
  readonly #queue: LedgerEntry[] = [];
  #thread: WriterThread;
  #lastEntry = 0;
  #acknowledged = 0;
  #committing = false;
  #retryTimer: NodeJS.Timeout | undefined;
  #failing = false;
  #idleWaiters: (() => void)[] = [];
  #closed: Promise<void> | undefined;
  /** Nothing is written any more; a commit that is still out must not start another thread. */
  #ended = false;

  constructor(options: LedgerOptions) {
    this.#options = options;
    this.#thread = new WriterThread(options.dataDir);
  }

  get accepting(): boolean {
    return !this.#failing && !this.full && this.#closed === undefined;
  }

  get full(): boolean {
    return this.#queue.length >= this.#options.limits.ledgerQueueMax;
  }

  get acknowledged(): number {
    return this.#acknowledged;
  }

  /** Entries not yet acknowledged. */
  get queued(): number {
    return this.#queue.length;
  }

  append(entry: NewEntry): number {
    this.#lastEntry += 1;
    this.#queue.push({ ...entry, writer: this.writer, entry: this.#lastEntry });
    this.#pump();
    return this.#lastEntry;
  }

  /** Resolves when nothing is queued: all is durable. While the store takes no writes, it waits. */
  async drain(): Promise<void> {
    if (this.#queue.length === 0) return;
    await new Promise<void>((resolve) => this.#idleWaiters.push(resolve));
  }

  /**
   * Drains, for at most `limits.ledgerCloseMsMax`, and ends the thread. To be called when every lease is closed.
   * Idempotent.
   */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const timeout = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, this.#options.limits.ledgerCloseMsMax);
    });
    await Promise.race([this.drain(), timeout]);
    clearTimeout(timer);
    clearTimeout(this.#retryTimer);
    this.#ended = true;
    if (this.#queue.length > 0)
      this.#options.log.error({ entries: this.#queue.length }, 'ledger entries were given up');
    await this.#thread.terminate();
  }

  #pump(): void {
    if (this.#ended || this.#committing || this.#retryTimer !== undefined || this.#queue.length === 0) return;
    void this.#commit();
  }

  async #commit(): Promise<void> {
    this.#committing = true;
    // A dead thread is replaced when there is something to write: at once for the first, after a pause for a retry.
    if (!this.#thread.alive) this.#thread = new WriterThread(this.#options.dataDir);
    const batch = this.#queue.slice(0, this.#options.limits.ledgerBatchMax);
    const outcome = await this.#thread.commit(batch);
    this.#committing = false;
    if (outcome.ok) this.#acknowledge(batch.length);
    else this.#retryLater(outcome.message);
  }

  #acknowledge(entries: number): void {
    this.#acknowledged += entries;
    this.#queue.splice(0, entries);
    if (this.#failing) this.#options.log.info('the ledger is written again');
    this.#failing = false;
    if (this.#queue.length > 0) {
      this.#pump();
      return;
    }
    const waiters = this.#idleWaiters;
    this.#idleWaiters = [];
    for (const resolve of waiters) resolve();
  }

  #retryLater(reason: string): void {
    if (this.#ended) return;
    // Once a failure, not once a try.
    if (!this.#failing)
      this.#options.log.error({ reason }, 'the ledger cannot be written: nothing is admitted');
    this.#failing = true;
    this.#retryTimer = setTimeout(() => {
      this.#retryTimer = undefined;
      this.#pump();
    }, this.#options.limits.ledgerRetryMs);
  }
}
