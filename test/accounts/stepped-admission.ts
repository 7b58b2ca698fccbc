/** Admission over a store in memory, whose ledger commits and acknowledges when the test says so. */
import { Administration } from '../../src/accounts/administration.js';
import { createAdmission, type Admission } from '../../src/accounts/admission.js';
import type { GrowingLease } from '../../src/accounts/lease.js';
import { limits } from '../../src/limits.js';
import { createLog } from '../../src/log.js';
import { newWriter, type LedgerQueue, type NewEntry } from '../../src/store/ledger.js';
import type { Reservations } from '../../src/store/reservations.js';
import { SqliteAdministration } from '../../src/store/sqlite/administration.js';
import { openExisting } from '../../src/store/sqlite/database.js';
import { openReader } from '../../src/store/sqlite/reader.js';
import { prepareAppendBatch } from '../../src/store/sqlite/writer.js';
import type { ActiveKey, CreditState, LedgerEntry, LedgerFault, StoreReader } from '../../src/store/store.js';
import { memoryFolder } from '../store/support.js';

export const log = createLog('silent', limits);

/** A ledger over the real statements. The test decides when it commits and when it acknowledges. */
export class SteppedLedger implements LedgerQueue {
  readonly writer = newWriter();
  readonly #commit: (entries: readonly LedgerEntry[]) => void;
  readonly queue: LedgerEntry[] = [];
  #last = 0;
  #committed = 0;
  acknowledged = 0;
  fault: LedgerFault | null = null;
  full = false;

  constructor(commit: (entries: readonly LedgerEntry[]) => void) {
    this.#commit = commit;
  }

  get accepting(): boolean {
    return this.fault === null;
  }

  append(entry: NewEntry): number {
    this.#last += 1;
    this.queue.push({ ...entry, writer: this.writer, entry: this.#last });
    return this.#last;
  }

  /** Makes entries durable. The front thread does not know it yet. */
  commit(entries = this.queue.length): void {
    const batch = this.queue.splice(0, entries);
    if (batch.length > 0) this.#commit(batch);
    this.#committed += batch.length;
  }

  acknowledge(): void {
    this.acknowledged = this.#committed;
  }
}

/** Answers from a copy of the store, as the reader of PostgreSQL does. The test decides when the copy is renewed. */
export class CopyingReader implements StoreReader {
  readonly #store: StoreReader;
  readonly #copies = new Map<number, CreditState | null>();
  #settled = 0;

  constructor(store: StoreReader) {
    this.#store = store;
  }

  renew(): void {
    for (const keyId of this.#copies.keys()) {
      const state = this.#store.readCredit(keyId);
      this.#copies.set(keyId, state);
      this.#settled = state?.committedEntry ?? 0;
    }
  }

  findActiveKey(by: Parameters<StoreReader['findActiveKey']>[0]): ActiveKey | null {
    return this.#store.findActiveKey(by);
  }

  readCredit(keyId: number): CreditState | null {
    if (!this.#copies.has(keyId)) this.#copies.set(keyId, this.#store.readCredit(keyId));
    return this.#copies.get(keyId) ?? null;
  }

  settledEntry(): number {
    return this.#settled;
  }

  probe(): void {
    this.#store.probe();
  }

  close(): void {
    void this.#store.close();
  }
}

export const setUp = (
  t: Parameters<typeof memoryFolder>[0],
  creditsPerCharacter = 1,
  clock: () => number = () => 1_000,
  leaseStepCharacters: number = limits.leaseStepCharacters,
  readAs: (reader: StoreReader) => StoreReader = (reader) => reader,
  reservations: Reservations | null = null,
) => {
  const dataDir = memoryFolder(t);
  const opened = new SqliteAdministration(dataDir, limits);
  const administration = new Administration(opened);
  const database = openExisting(dataDir, limits);
  // These tests do not cut the power.
  database.exec('PRAGMA synchronous = OFF');
  const ledger = new SteppedLedger(prepareAppendBatch(database));
  const reader = readAs(openReader(dataDir, limits, ledger.writer));
  const bounds = { ...limits, leaseStepCharacters };
  const admission = createAdmission({
    ...{ reader, ledger, reservations, bounds, creditsPerCharacter, clock, log },
  });
  t.teardown(() => {
    opened.close();
    database.close();
    void reader.close();
  });
  return { dataDir, administration, ledger, admission };
};

export const keyOf = (admission: Admission, header: string): ActiveKey => {
  const result = admission.authenticate(header);
  if (!result.ok) throw new Error(result.code);
  return result.key;
};

export const leaseOf = (result: ReturnType<Admission['admit']>): GrowingLease => {
  if (!result.ok) throw new Error(result.code);
  return result.lease;
};
