/**
 * The ledger on the front thread: entries queue here, and a writer commits them in groups. While it makes one group
 * durable the next one gathers, so the disk sets the pace.
 *
 * An entry leaves the queue when its commit is acknowledged. After a failure or the death of a writer the same batch
 * is sent again; its entries carry an identity, so an entry whose acknowledgement was lost is written once. While the
 * queue is empty, empty commits probe the writer.
 */
import type { Bounds } from '../limits.js';
import type { Log } from '../log.js';
import { within } from '../within.js';
import {
  newWriter,
  type EntryJournal,
  type LedgerEntry,
  type LedgerFault,
  type LedgerWriter,
  type StoreDriver,
} from './store.js';
import { Reservations, type ReservationBounds } from './reservations.js';

/** An entry without its identity, which the ledger adds. */
export type NewEntry = Omit<LedgerEntry, 'writer' | 'entry'>;

export type LedgerBounds = Pick<
  Bounds,
  | 'ledgerQueueMax'
  | 'ledgerBatchMax'
  | 'ledgerRetryMs'
  | 'ledgerProbeMs'
  | 'ledgerStallMsMax'
  | 'ledgerCloseMsMax'
>;

export interface LedgerOptions {
  /** Identifies the entries of this ledger. */
  readonly writer: number;
  readonly startWriter: () => LedgerWriter;
  readonly bounds: LedgerBounds;
  readonly log: Log;
  /** Without it, a kill loses the entries that are not in the store. */
  readonly journal?: EntryJournal | undefined;
  /** Of a store that services share: their claims go with the entries. */
  readonly reservations?: Reservations | undefined;
  /** The store took a commit. */
  readonly onCommitted?: (() => void) | undefined;
}

export { newWriter };

export class Ledger {
  readonly #options: LedgerOptions;
  /** Entries not yet acknowledged, in order. A batch that is being committed is still at the front. */
  readonly #queue: LedgerEntry[] = [];
  #writer: LedgerWriter;
  #lastEntry = 0;
  #acknowledged = 0;
  #committing = false;
  /** Until the next retry or probe. */
  #timer: NodeJS.Timeout | undefined;
  #writeFault: LedgerFault | null = null;
  /** Callers that wait for the running commit: the close, and calls of the console. The console's connections bound their number. */
  readonly #waiters: (() => void)[] = [];
  #closed: Promise<void> | undefined;
  /** Nothing is written any more. A commit that is still running must not start another writer. */
  #ended = false;
  #restarts = 0;
  #entriesRefused = 0;

  constructor(options: LedgerOptions) {
    this.#options = options;
    this.#writer = options.startWriter();
    if (options.reservations !== undefined)
      options.reservations.onDue = () => {
        if (this.#writeFault === null) void this.#commit();
      };
    this.#wait();
  }

  /** False while there is a fault, and after the close: nothing new may be admitted then. */
  get accepting(): boolean {
    return this.fault === null && this.#closed === undefined;
  }

  /** `null` while writes succeed, as far as is known. */
  get fault(): LedgerFault | null {
    return this.#writeFault ?? (this.full ? 'behind' : (this.#options.journal?.fault ?? null));
  }

  /** The queue holds as many entries as it may. Leases then gather what they owe. */
  get full(): boolean {
    return this.#queue.length >= this.#options.bounds.ledgerQueueMax;
  }

  /** The last entry known to be durable; 0 if none. */
  get acknowledged(): number {
    return this.#acknowledged;
  }

  /** Writers that ended and were replaced. */
  get restarts(): number {
    return this.#restarts;
  }

  /** Entries not yet acknowledged. */
  get queued(): number {
    return this.#queue.length;
  }

  /** Entries that the store will never take. */
  get entriesRefused(): number {
    return this.#entriesRefused;
  }

  /** Queues an entry and never refuses it: what was spoken is charged. @returns its number */
  append(entry: NewEntry): number {
    const numbered = { ...entry, writer: this.#options.writer, entry: ++this.#lastEntry };
    this.#queue.push(numbered);
    this.#options.journal?.append(numbered);
    // While writes fail, the timer decides when the next attempt is made.
    if (this.#writeFault === null) void this.#commit();
    return this.#lastEntry;
  }

  /** Resolves when every entry is durable. Waits while the store takes no writes. */
  async drain(): Promise<void> {
    while (this.#queue.length > 0) await this.#nextResult();
  }

  /** Resolves when the store has every entry that is queued now, or when it takes no writes. */
  async settled(): Promise<void> {
    const last = this.#lastEntry;
    while (this.#acknowledged < last && this.#writeFault === null && !this.#ended) await this.#nextResult();
  }

  /** Drains for at most `ledgerCloseMsMax` and ends the writer. All leases must be closed before. Idempotent. */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    await within(this.#options.bounds.ledgerCloseMsMax, this.drain());
    clearTimeout(this.#timer);
    this.#ended = true;
    this.#wake();
    const { journal, log } = this.#options;
    if (this.#queue.length > 0 && journal === undefined)
      log.error({ entries: this.#queue.length }, 'ledger entries were given up');
    else if (this.#queue.length > 0)
      log.warn(
        { entries: this.#queue.length },
        'ledger entries are left in the journal: the next start sends them',
      );
    await this.#writer.end();
  }

  /** Commits the first batch of the queue; an empty batch if the queue is empty. */
  async #commit(): Promise<void> {
    if (this.#ended || this.#committing) return;
    clearTimeout(this.#timer);
    this.#committing = true;
    if (this.#writer.hasEnded) {
      this.#restarts++;
      this.#writer = this.#options.startWriter();
    }
    const { bounds, onCommitted, reservations } = this.#options;
    // All that this tick does to a lease belongs to one commit.
    if (reservations !== undefined) await Promise.resolve();
    const { ledgerBatchMax, ledgerStallMsMax } = bounds;
    const batch = this.#queue.slice(0, ledgerBatchMax);
    const last = this.#acknowledged + batch.length;
    const claims = reservations?.claims(last) ?? [];
    const stall = setTimeout(() => this.#fail('stalled', 'a commit has not come back'), ledgerStallMsMax);
    const result = await this.#writer.commit(batch, claims);
    clearTimeout(stall);
    this.#committing = false;
    if (result.ok) {
      this.#acknowledge(batch.length, result.givenUp);
      const accountIds = batch.map(({ accountId }) => accountId);
      reservations?.committed(last, accountIds, claims, result.grants ?? []);
      onCommitted?.();
    } else {
      reservations?.failed(claims);
      this.#fail(result.fault, result.message, result.lastEntry);
    }
    if (result.ok && (this.#queue.length > 0 || reservations?.areDue === true)) void this.#commit();
    else this.#wait();
  }

  #acknowledge(entries: number, givenUp: number): void {
    this.#acknowledged += entries;
    this.#queue.splice(0, entries);
    const { journal, log } = this.#options;
    if (entries > 0) journal?.settled(this.#acknowledged);
    if (givenUp > 0)
      log.error({ entries: givenUp }, 'ledger entries were given up: the store does not have their accounts');
    if (this.#writeFault !== null) log.info('the ledger can be written again');
    this.#writeFault = null;
    this.#wake();
  }

  #nextResult(): Promise<void> {
    return new Promise((resolve) => this.#waiters.push(resolve));
  }

  #wake(): void {
    for (const resolve of this.#waiters.splice(0)) resolve();
  }

  /** Others may have spent the credit of these entries. @param lastEntry the store has the entries up to this one */
  #refuse(lastEntry: number): void {
    const queued = this.#queue.splice(0);
    const refused = queued.filter(({ entry }) => entry > lastEntry);
    const [first] = refused;
    if (first !== undefined) {
      const credits = refused.reduce((sum, { amount }) => sum - amount, 0);
      const journal = this.#options.journal?.refusedFolder;
      this.#options.log.error(
        { writer: first.writer, entries: refused.length, firstEntry: first.entry, credits, journal },
        'ledger entries were refused: this process was declared dead; restart it, charge them by hand, from the first one on, then remove the journal',
      );
      this.#entriesRefused += refused.length;
    }
  }

  #fail(fault: LedgerFault, reason: string, lastEntry = 0): void {
    if (this.#ended) return;
    // One line for each fault, not for each attempt.
    if (this.#writeFault !== fault)
      this.#options.log.error({ reason }, 'the ledger cannot be written: nothing is admitted');
    this.#writeFault = fault;
    if (fault === 'barred') this.#refuse(lastEntry);
    this.#wake();
  }

  #wait(): void {
    if (this.#ended) return;
    const { ledgerProbeMs, ledgerRetryMs } = this.#options.bounds;
    const delayMs = this.#writeFault === null ? ledgerProbeMs : ledgerRetryMs;
    this.#timer = setTimeout(() => void this.#commit(), delayMs);
  }
}

/** The part of the ledger that admission needs. */
export type LedgerQueue = Pick<Ledger, 'accepting' | 'fault' | 'full' | 'acknowledged' | 'append'>;

/** @throws {StoreError} see `StoreDriver.openReader` */
export const openStore = async (driver: StoreDriver, bounds: LedgerBounds & ReservationBounds, log: Log) => {
  const writer = newWriter();
  const reader = await driver.openReader(writer);
  const sharing = await driver.share?.(writer, log).catch(async (error: unknown) => {
    await reader.close();
    throw error;
  });
  const reservations = sharing && new Reservations(bounds);
  const ledger = new Ledger({
    writer,
    startWriter: () => driver.startWriter(writer),
    bounds,
    log,
    journal: sharing?.journal,
    reservations,
    onCommitted: sharing && (() => sharing.answered()),
  });
  let closed: Promise<boolean> | undefined;
  const close = async (): Promise<boolean> => {
    reservations?.close();
    await ledger.close();
    const end = ledger.entriesRefused > 0 ? 'refused' : ledger.queued > 0 ? 'left' : 'durable';
    const canExit = (await sharing?.close(end)) ?? true;
    await reader.close();
    return canExit;
  };
  return {
    reader,
    ledger,
    /** `null`: the service has the store for itself. */
    reservations: reservations ?? null,
    /** Entries of this process and of earlier ones that the store will never take. */
    get entriesRefused(): number {
      return ledger.entriesRefused + (sharing?.entriesRefused ?? 0);
    },
    /** Makes the ledger durable, see `Ledger.close`, and lets go of the store. Idempotent. @returns as `Sharing.close` */
    close: (): Promise<boolean> => (closed ??= close()),
  };
};

/** A store as a service uses it. */
export type Store = Awaited<ReturnType<typeof openStore>>;
