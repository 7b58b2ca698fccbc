/**
 * The ledger as the front thread writes it: entries queue here, and the writer thread (`workers/ledger.ts`) commits
 * them in groups. While one group is being made durable the next one gathers, so that the disk sets the pace.
 *
 * An entry leaves the queue when its commit is acknowledged. A writer that fails or dies gets the same batch again;
 * entries carry an identity, so that what was committed without the acknowledgement is not committed twice. While
 * there is nothing to write, the writer is asked whether it could.
 */
import { Worker } from 'node:worker_threads';
import { wrap, type Remote } from 'comlink';
import { nodeEndpoint } from '../../comlink-node.js';
import type { Log } from '../../log.js';
import type { CommitResult, LedgerWriter } from '../../../workers/ledger.js';
import type { StoreFault } from './database.js';
import { newWriter, type LedgerEntry } from './entries.js';

/** What admission knows of an entry; its identity is given here. */
export type NewEntry = Omit<LedgerEntry, 'writer' | 'entry'>;

/** Why nothing can be promised now. */
export type LedgerFault =
  | StoreFault
  /** The queue is full: the disk is slower than what is to be written. */
  | 'behind'
  /** A commit has not come back. */
  | 'stalled'
  /** The writer thread ended. */
  | 'restarting';

/** The part of a ledger that admission needs. */
export interface LedgerQueue {
  /** Identifies the entries of this process. */
  readonly writer: number;
  /** False while there is a fault, or it is closed: nothing new may be admitted then. */
  readonly accepting: boolean;
  /** `null` while writes succeed, as far as is known. */
  readonly fault: LedgerFault | null;
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
  readonly ledgerProbeMs: number;
  readonly ledgerStallMsMax: number;
  readonly ledgerCloseMsMax: number;
}

export interface LedgerOptions {
  readonly dataDir: string;
  readonly limits: LedgerLimits;
  readonly log: Log;
}

type Outcome =
  | Extract<CommitResult, { ok: true }>
  | { readonly ok: false; readonly fault: LedgerFault; readonly message: string };

const restarting = (message: string): Outcome => ({ ok: false, fault: 'restarting', message });

/** One writer thread. comlink's calls never settle when the thread dies: its exit settles the one that is out. */
class WriterThread {
  readonly #worker: Worker;
  readonly #remote: Remote<LedgerWriter>;
  /** What every commit comes to, once it has died. */
  #end: Outcome | null = null;
  #giveUp: (end: Outcome) => void = () => undefined;

  constructor(dataDir: string) {
    this.#worker = new Worker(new URL('../../../workers/ledger.js', import.meta.url), {
      name: 'ledger',
      workerData: { dataDir },
    });
    let message = 'the writer thread ended';
    // An 'error' without a listener would end the process; 'exit' follows it.
    this.#worker.on('error', (error: Error) => (message = error.message));
    this.#worker.once('exit', () => {
      this.#end = restarting(message);
      this.#giveUp(this.#end);
    });
    this.#remote = wrap<LedgerWriter>(nodeEndpoint(this.#worker));
  }

  get alive(): boolean {
    return this.#end === null;
  }

  /** One at a time. Never rejects. */
  commit(batch: readonly LedgerEntry[]): Promise<Outcome> {
    if (this.#end !== null) return Promise.resolve(this.#end);
    // No race with a promise of its exit, which would keep something of every commit for as long as the thread lives.
    return new Promise((resolve) => {
      this.#giveUp = resolve;
      this.#remote.commit(batch).then(resolve, (error: unknown) => resolve(restarting(String(error))));
    });
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
  /** To the next retry or probe. */
  #timer: NodeJS.Timeout | undefined;
  #writeFault: LedgerFault | null = null;
  #idleWaiters: (() => void)[] = [];
  #closed: Promise<void> | undefined;
  /** Nothing is written any more; a commit that is still out must not start another thread. */
  #ended = false;
  #restarts = 0;

  constructor(options: LedgerOptions) {
    this.#options = options;
    this.#thread = new WriterThread(options.dataDir);
    this.#wait();
  }

  get accepting(): boolean {
    return this.fault === null && this.#closed === undefined;
  }

  get fault(): LedgerFault | null {
    return this.#writeFault ?? (this.full ? 'behind' : null);
  }

  get full(): boolean {
    return this.#queue.length >= this.#options.limits.ledgerQueueMax;
  }

  get acknowledged(): number {
    return this.#acknowledged;
  }

  /** Writer threads that ended and were replaced. */
  get restarts(): number {
    return this.#restarts;
  }

  /** Entries not yet acknowledged. */
  get queued(): number {
    return this.#queue.length;
  }

  append(entry: NewEntry): number {
    this.#lastEntry += 1;
    this.#queue.push({ ...entry, writer: this.writer, entry: this.#lastEntry });
    // While writes fail, the next try is at its time.
    if (this.#writeFault === null) void this.#commit();
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
    clearTimeout(this.#timer);
    this.#ended = true;
    if (this.#queue.length > 0)
      this.#options.log.error({ entries: this.#queue.length }, 'ledger entries were given up');
    await this.#thread.terminate();
  }

  /** What is queued, as far as it is one batch; an empty one when nothing is. */
  async #commit(): Promise<void> {
    if (this.#ended || this.#committing) return;
    clearTimeout(this.#timer);
    this.#committing = true;
    // A dead thread is replaced when there is something to ask it: at once for the first, after a pause for a retry.
    if (!this.#thread.alive) {
      this.#restarts++;
      this.#thread = new WriterThread(this.#options.dataDir);
    }
    const { ledgerBatchMax, ledgerStallMsMax } = this.#options.limits;
    const batch = this.#queue.slice(0, ledgerBatchMax);
    const stall = setTimeout(() => this.#fail('stalled', 'a commit has not come back'), ledgerStallMsMax);
    const outcome = await this.#thread.commit(batch);
    clearTimeout(stall);
    this.#committing = false;
    if (outcome.ok) this.#acknowledge(batch.length, outcome.givenUp);
    else this.#fail(outcome.fault, outcome.message);
    if (outcome.ok && this.#queue.length > 0) void this.#commit();
    else this.#wait();
  }

  /** @param entries of which `givenUp` were not written */
  #acknowledge(entries: number, givenUp: number): void {
    this.#acknowledged += entries;
    this.#queue.splice(0, entries);
    const { log } = this.#options;
    if (givenUp > 0)
      log.error({ entries: givenUp }, 'ledger entries of accounts not in the store were given up');
    if (this.#writeFault !== null) log.info('the ledger is written again');
    this.#writeFault = null;
    if (this.#queue.length > 0) return;
    const waiters = this.#idleWaiters;
    this.#idleWaiters = [];
    for (const resolve of waiters) resolve();
  }

  #fail(fault: LedgerFault, reason: string): void {
    if (this.#ended) return;
    // Once a fault, not once a try.
    if (this.#writeFault !== fault)
      this.#options.log.error({ reason }, 'the ledger cannot be written: nothing is admitted');
    this.#writeFault = fault;
  }

  #wait(): void {
    if (this.#ended) return;
    const { ledgerProbeMs, ledgerRetryMs } = this.#options.limits;
    const delayMs = this.#writeFault === null ? ledgerProbeMs : ledgerRetryMs;
    this.#timer = setTimeout(() => void this.#commit(), delayMs);
  }
}
