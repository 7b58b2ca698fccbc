/**
 * The journal of one process: entries that may not be in the database yet, in files of its data folder. A start sends
 * what an earlier process left, under the number of that process.
 *
 *   journal/WRITER/store               id of the store that the entries are for
 *   journal/WRITER/1.log, 2.log, ...   one line for each entry: checksum, entry
 *
 * Every entry is written at once, or after the synchronisation that is under way: a kill loses only those that wait for it.
 * The disk is synchronised only for entries that the database has not acknowledged within `journalSyncMs`. So the disk is
 * idle while the database answers, and while it is away a power cut loses only the last entries: those of twice
 * `journalSyncMs`, and of the time that a synchronisation takes.
 */
import { existsSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { open, truncate, unlink, type FileHandle } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { crc32 } from 'node:zlib';
import type { Bounds } from '../limits.js';
import type { Log } from '../log.js';
import { readRegular } from '../regular-file.js';
import { within } from '../within.js';
import { makeFolder, syncFile, syncFolder } from './sqlite/files.js';
import { StoreHold } from './sqlite/hold.js';
import { StoreError, type LedgerEntry } from './store.js';

export type JournalBounds = Pick<
  Bounds,
  'journalSyncMs' | 'journalFileBytes' | 'ledgerRetryMs' | 'ledgerStallMsMax' | 'ledgerCloseMsMax'
>;

const folderOf = (dataDir: string): string => join(dataDir, 'journal');
const refusedIn = (folder: string): string => `${folder}.refused`;
const storeIdIn = (folder: string): string => join(folder, 'store');
const fileIn = (folder: string, number: number): string => join(folder, `${number}.log`);

const checksum = (text: string): string => crc32(text).toString(16).padStart(8, '0');

export const toLine = (entry: LedgerEntry): string => {
  const text = JSON.stringify(entry);
  return `${checksum(text)} ${text}\n`;
};

const isGood = (line: string): boolean => line.slice(0, 8) === checksum(line.slice(9));

/** `stalled`: the disk does not answer. */
type JournalFault = 'full' | 'unwritable' | 'stalled';

interface JournalFile {
  readonly path: string;
  readonly lastEntry: number;
}

export class Journal {
  readonly #folder: string;
  readonly #hold: StoreHold;
  readonly #bounds: JournalBounds;
  readonly #log: Log;
  /** Lines that are not written yet, and the number of the last one. */
  #lines: string[] = [];
  #last = 0;
  #written = 0;
  /** What was written since the last synchronisation. */
  #unsynced: string[] = [];
  #isFolderSynced = false;
  #synced = 0;
  #settled = 0;
  /** When the oldest entry without an acknowledgement was written, as far as is known. */
  #writtenAtMs = 0;
  #file: FileHandle | null = null;
  #fileNumber = 0;
  #fileBytes = 0;
  #syncedBytes = 0;
  /** Files that are complete. */
  #files: JournalFile[] = [];
  /** A file that could not be written or synchronised, and the part of it that was. */
  #abandoned: { readonly path: string; readonly bytes: number } | null = null;
  #running: Promise<void> | null = null;
  #timer: NodeJS.Timeout | undefined;
  #fault: JournalFault | null = null;
  #isClosed = false;

  private constructor(folder: string, hold: StoreHold, bounds: JournalBounds, log: Log) {
    this.#folder = folder;
    this.#hold = hold;
    this.#bounds = bounds;
    this.#log = log;
  }

  /** @throws {StoreError} the folder cannot be written */
  static create(
    dataDir: string,
    { writer, storeId }: Pick<LeftJournal, 'writer' | 'storeId'>,
    bounds: JournalBounds,
    log: Log,
  ): Journal {
    const folder = join(folderOf(dataDir), String(writer));
    // Under its own name another start could take the hold first, and remove it.
    const made = `${folder}.new`;
    let hold: StoreHold | undefined;
    try {
      makeFolder(made);
      writeFileSync(storeIdIn(made), storeId, { mode: 0o600 });
      syncFile(storeIdIn(made));
      hold = StoreHold.seize(made, 0);
      syncFolder(made);
      renameSync(made, folder);
      syncFolder(dirname(folder));
    } catch (error) {
      hold?.release();
      throw new StoreError(
        'unwritable',
        `The journal ${folder} cannot be created (${(error as Error).message}): let the service write to DATA_DIR`,
      );
    }
    return new Journal(folder, hold, bounds, log);
  }

  /** Why entries cannot be written now. */
  get fault(): JournalFault | null {
    return this.#fault;
  }

  get refusedFolder(): string {
    return refusedIn(this.#folder);
  }

  append(entry: LedgerEntry): void {
    this.#lines.push(toLine(entry));
    this.#last = entry.entry;
    if (this.#fault === null) this.#runSoon(0);
  }

  /** Entries up to this one are in the database. */
  settled(entry: number): void {
    this.#settled = entry;
    // A file is emptied when that saves something, not after each commit.
    if (entry >= this.#last && this.#files.length > 0) this.#runSoon(0);
  }

  /**
   * Makes what is left durable. Idempotent.
   *
   * @param end the database has the entries and knows that the writer ended: they are removed; or will never take them: they
   *   are kept under another name; or neither: the next start sends them
   * @returns false if the disk does not answer: an exit of the process would wait for it
   */
  async close(end: 'ended' | 'refused' | 'left'): Promise<boolean> {
    if (this.#isClosed) return true;
    this.#isClosed = true;
    clearTimeout(this.#timer);
    const writeRest = async (): Promise<void> => {
      await this.#running;
      await this.#run();
      await this.#file?.close();
    };
    if (!(await within(this.#bounds.ledgerCloseMsMax, writeRest()))) {
      this.#log.error({ folder: this.#folder }, 'the journal is left as it is: its disk does not answer');
      return false;
    }
    if (end === 'ended') remove(this.#folder, this.#hold);
    else if (end === 'refused') keepRefused(this.#folder, this.#hold);
    else this.#hold.release();
    return true;
  }

  #runSoon(ms: number): void {
    if (this.#running !== null || this.#isClosed) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      const stall = setTimeout(
        () => this.#fail('stalled', 'its disk does not answer'),
        this.#bounds.ledgerStallMsMax,
      );
      this.#running = this.#run().finally(() => {
        clearTimeout(stall);
        this.#running = null;
        const delayMs = this.#nextMs();
        if (delayMs !== null) this.#runSoon(delayMs);
      });
    }, ms);
  }

  /** Milliseconds until there is more to do; `null`: nothing is known. */
  #nextMs(): number | null {
    if (this.#fault !== null) return this.#bounds.ledgerRetryMs;
    if (this.#lines.length > 0) return 0;
    return Math.max(this.#synced, this.#settled) < this.#written ? this.#bounds.journalSyncMs : null;
  }

  async #run(): Promise<void> {
    try {
      await this.#write();
      const isOld = this.#isClosed || performance.now() - this.#writtenAtMs >= this.#bounds.journalSyncMs;
      if (isOld && Math.max(this.#synced, this.#settled) < this.#written) await this.#sync();
      await this.#shorten();
      if (this.#fault !== null) this.#log.info('the journal can be written again');
      this.#fault = null;
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      const fault = code === 'ENOSPC' || code === 'EDQUOT' ? 'full' : 'unwritable';
      this.#fail(fault, message);
      // A part of a line may be there, and the disk may have lost what it did not synchronise, and say so only once: the next
      // file has all of it.
      this.#lines = [...this.#unsynced, ...this.#lines];
      this.#unsynced = [];
      await this.#abandonFile().catch(() => undefined);
    }
  }

  #fail(fault: JournalFault, reason: string): void {
    if (this.#fault !== fault)
      this.#log.error({ reason }, 'the journal cannot be written: nothing is admitted');
    this.#fault = fault;
  }

  /** Its lines are to be written again. Until the next file has them, it stays. */
  async #abandonFile(): Promise<void> {
    const file = this.#file;
    if (file === null) return;
    const path = fileIn(this.#folder, this.#fileNumber);
    if (this.#fileBytes === 0) {
      this.#file = null;
      await file.close();
      await unlink(path);
      return;
    }
    await file.truncate(this.#fileBytes).catch(() => undefined);
    this.#abandoned = { path, bytes: this.#syncedBytes };
    await this.#endFile();
  }

  /** The next file has its lines, except for those that were synchronised. So a disk that fails for long is not filled. */
  async #cutAbandoned(): Promise<void> {
    if (this.#abandoned === null) return;
    const { path, bytes } = this.#abandoned;
    this.#abandoned = null;
    if (bytes > 0) {
      await truncate(path, bytes);
      return;
    }
    await unlink(path);
    this.#files = this.#files.filter((file) => file.path !== path);
  }

  async #write(): Promise<void> {
    if (this.#lines.length === 0) return;
    if (this.#file === null) {
      this.#file = await open(fileIn(this.#folder, ++this.#fileNumber), 'a', 0o600);
      this.#isFolderSynced = false;
    }
    const last = this.#last;
    const count = this.#lines.length;
    const text = this.#lines.join('');
    const bytes = Buffer.from(text);
    await this.#file.writeFile(bytes);
    this.#lines.splice(0, count);
    this.#fileBytes += bytes.length;
    if (this.#settled >= this.#written) {
      this.#writtenAtMs = performance.now();
      this.#unsynced = [];
    }
    this.#unsynced.push(text);
    this.#written = last;
    await this.#cutAbandoned();
  }

  async #sync(): Promise<void> {
    const last = this.#written;
    const bytes = this.#fileBytes;
    if (!this.#isFolderSynced) {
      await using folder = await open(this.#folder);
      await folder.sync();
    }
    this.#isFolderSynced = true;
    await this.#file?.datasync();
    this.#synced = last;
    this.#syncedBytes = bytes;
    this.#unsynced = [];
    this.#writtenAtMs = performance.now();
  }

  /** Removes what is in the database. */
  async #shorten(): Promise<void> {
    if (this.#fileBytes < this.#bounds.journalFileBytes && this.#files.length === 0) return;
    if (this.#settled >= this.#written && this.#file !== null) {
      // All of it, so the file can be used again.
      await truncate(fileIn(this.#folder, this.#fileNumber), 0);
      this.#fileBytes = 0;
      this.#syncedBytes = 0;
    } else if (this.#fileBytes >= this.#bounds.journalFileBytes) {
      await this.#sync();
      await this.#endFile();
    }
    while (this.#files[0] !== undefined && this.#files[0].lastEntry <= this.#settled)
      await unlink(this.#files.shift()!.path);
  }

  async #endFile(): Promise<void> {
    if (this.#file === null) return;
    this.#files.push({ path: fileIn(this.#folder, this.#fileNumber), lastEntry: this.#written });
    const file = this.#file;
    this.#file = null;
    this.#fileBytes = 0;
    this.#syncedBytes = 0;
    await file.close();
  }
}

/** Under another name no start takes it for a journal that is left. Only then the hold ends. */
const moveAway = (folder: string, hold: StoreHold, name: string): string => {
  renameSync(folder, name);
  hold.release();
  return name;
};

/** @returns its new name */
const keepRefused = (folder: string, hold: StoreHold): string => moveAway(folder, hold, refusedIn(folder));

const remove = (folder: string, hold: StoreHold): void =>
  rmSync(moveAway(folder, hold, `${folder}.sent`), { recursive: true, force: true });

/** The journal of a process that ended before it had sent all its entries. */
export interface LeftJournal {
  readonly folder: string;
  readonly writer: number;
  /** Empty if it is not known. */
  readonly storeId: string;
  readonly entries: readonly LedgerEntry[];
  /** They are in the database: removes the journal. */
  remove(): void;
  /** The database will never take them: keeps the journal under another name, and returns that. */
  keepRefused(): string;
  /** Leaves it as it is. */
  release(): void;
}

const damaged = (path: string, line: number): StoreError =>
  new StoreError(
    'damaged',
    `The journal ${path} is damaged in line ${line}: it has entries that are not in the database. Restore it, or move its ` +
      'folder away to start without these entries',
  );

/** @param isLast the last record of the last file may be torn: it was never acknowledged */
const readFile = (path: string, isLast: boolean): LedgerEntry[] => {
  const lines = readRegular(path).toString().split('\n');
  // Empty, unless the last line is torn.
  const rest = lines.pop() ?? '';
  if (rest !== '' && !isLast) throw damaged(path, lines.length + 1);
  return lines.flatMap((line, index) => {
    if (isGood(line)) return JSON.parse(line.slice(9)) as LedgerEntry;
    if (isLast && index === lines.length - 1 && rest === '') return [];
    throw damaged(path, index + 1);
  });
};

/**
 * The journals of processes that have ended.
 *
 * @throws {StoreError} one is damaged
 */
export const leftJournals = (dataDir: string): LeftJournal[] => {
  const all = folderOf(dataDir);
  const names = existsSync(all) ? readdirSync(all).filter((name) => /^\d+$/.test(name)) : [];
  return names.flatMap((name) => {
    const folder = join(all, name);
    let hold: StoreHold;
    try {
      hold = StoreHold.seize(folder, 0);
    } catch (error) {
      // Its process still runs.
      if (error instanceof StoreError && error.fault === 'held') return [];
      throw error;
    }
    try {
      const numbers = readdirSync(folder)
        .flatMap((file) => /^(\d+)\.log$/.exec(file)?.[1] ?? [])
        .map(Number)
        .sort((a, b) => a - b);
      const entries = numbers.flatMap((number) =>
        readFile(fileIn(folder, number), number === numbers.at(-1)),
      );
      return {
        folder,
        writer: Number(name),
        storeId: existsSync(storeIdIn(folder)) ? readRegular(storeIdIn(folder)).toString() : '',
        entries,
        remove: () => remove(folder, hold),
        keepRefused: () => keepRefused(folder, hold),
        release: () => hold.release(),
      };
    } catch (error) {
      hold.release();
      throw error;
    }
  });
};
