/**
 * Collects a synchronous response, JSON or a file of audio, from its frames: in memory up to a bound, then in a file.
 *
 *   collecting --seal--> sealed (the source to send from);  any --file fails--> onFault;  any --close--> closed
 */
import { randomUUID } from 'node:crypto';
import { open, statfs, unlink, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import type { Member, PartOfAccount } from '../byte-budget.js';
import { freeBytesOf } from '../store/disk.js';
import type { WordTimings } from '../threads/messages.js';
import { unitBytes } from '../worst-case.js';
import { piecesSource, type LengthSource } from './response-sender.js';
import type { Services } from './services.js';

export interface WholeResultOptions {
  /** Whose part of the budgets it takes. */
  readonly account: Member;
  /** The folder for the file: on a disk, because the file saves memory. */
  readonly spoolFolder: string;
  /** Makes the members with the times, after the audio; `null`: there are none. */
  readonly timestamps: ((timings: JoinedTimings) => Parts) | null;
  /** The name of the member with the audio; `null`: the result is the audio, without JSON around it. */
  readonly audioName: 'audio' | 'audio_base64' | null;
  /** The result cannot be completed. */
  readonly onFault: (error: unknown) => void;
}

/** Of a small disk the store gets this part, if that is less than its reserve. */
const PART_OF_DISK = 1 / 20;

interface Piece {
  readonly bytes: Uint8Array;
  readonly onKept: () => void;
}

/** JSON in UTF-8, part by part: to join those of a long text would stop the thread for a second. */
export type Parts = readonly Uint8Array[];

/** JSON with other JSON in it: jsonParts`{"words":${words}}`. */
export const jsonParts = (texts: TemplateStringsArray, ...inner: readonly Parts[]): Parts =>
  texts.flatMap((text, at) => [Buffer.from(text), ...(inner[at] ?? [])]);

/** JSON arrays of all words, or characters, and of their times. */
export interface JoinedTimings {
  readonly words: Parts;
  readonly starts: Parts;
  readonly ends: Parts;
}

/** UTF-16 units of a part: to encode one takes less than half a millisecond. */
const PART_UNITS = 32 * 1_024;

/** A JSON array that grows. */
class GrowingArray {
  readonly #parts: Uint8Array[] = [];
  #text = '[';
  #isEmpty = true;

  add(values: readonly unknown[]): void {
    this.#text += (this.#isEmpty ? '' : ',') + JSON.stringify(values).slice(1, -1);
    this.#isEmpty = false;
    if (this.#text.length < PART_UNITS) return;
    this.#parts.push(Buffer.from(this.#text));
    this.#text = '';
  }

  get ended(): Parts {
    return [...this.#parts, Buffer.from(`${this.#text}]`)];
  }
}

/** A temporary file without a name: it is gone with the process, however the process ends. */
const openUnnamed = async (folder: string): Promise<FileHandle> => {
  const path = join(folder, `.result-${randomUUID()}`);
  const file = await open(path, 'wx+', 0o600);
  try {
    await unlink(path);
  } catch (error) {
    await file.close();
    throw error;
  }
  return file;
};

export class WholeResult {
  readonly #resultBytesMax: number;
  readonly #diskFreeBytesMin: number;
  readonly #memory: PartOfAccount;
  readonly #spoolBytes: PartOfAccount;
  readonly #spoolFile: PartOfAccount;
  readonly #options: WholeResultOptions;
  #pieces: Uint8Array[] = [];
  #memoryBytes = 0;
  #head: Uint8Array = new Uint8Array(0);
  readonly #words = new GrowingArray();
  readonly #starts = new GrowingArray();
  readonly #ends = new GrowingArray();
  #file: FileHandle | null = null;
  #spooling = false;
  #waiting: Piece[] = [];
  #fileBytes = 0;
  #spoolFiles = 0;
  #onSealed: ((source: LengthSource) => void) | null = null;
  #closed = false;

  constructor(services: Services, options: WholeResultOptions) {
    const { account } = options;
    this.#resultBytesMax = services.bounds.resultMemoryBytesMax;
    this.#diskFreeBytesMin = services.bounds.resultSpoolFreeBytesMin;
    this.#memory = services.resultBudget.of(account);
    this.#spoolBytes = services.spoolBudget.of(account);
    this.#spoolFile = services.spoolFileBudget.of(account);
    this.#options = options;
  }

  /** What comes before all other audio, in the same form. */
  setHead(bytes: Uint8Array): void {
    this.#head = bytes;
  }

  /** @param onKept called when the bytes are stored: at once in memory, later in a file */
  add(bytes: Uint8Array, onKept: () => void): void {
    if (this.#closed) return;
    // A copy, because the frame is part of a mail whose other frames would stay in memory with it.
    const own = new Uint8Array(bytes);
    if (this.#keepInMemory(own)) {
      onKept();
      return;
    }
    this.#waiting.push({ bytes: own, onKept });
    if (this.#spooling) return;
    this.#spooling = true;
    this.#writeAll().catch((error: unknown) => this.#fault(error));
  }

  #keepInMemory(bytes: Uint8Array): boolean {
    if (this.#file !== null || this.#spooling) return false;
    if (this.#memoryBytes + bytes.length > this.#resultBytesMax) return false;
    if (!this.#memory.take(bytes.length)) return false;
    this.#pieces.push(bytes);
    this.#memoryBytes += bytes.length;
    return true;
  }

  #forgetPieces(): void {
    this.#pieces = [];
    this.#memory.giveBack(this.#memoryBytes);
    this.#memoryBytes = 0;
  }

  addTimings(timings: WordTimings): void {
    if (timings.words.length === 0) return;
    this.#words.add(timings.words);
    this.#starts.add(timings.start_seconds);
    this.#ends.add(timings.end_seconds);
  }

  /** Nothing follows. @param onSealed called with the source to send from: at once, or when the file has everything */
  seal(onSealed: (source: LengthSource) => void): void {
    this.#onSealed = onSealed;
    if (!this.#spooling) this.#handOver();
  }

  /** Gives back memory and file. Idempotent. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#forgetPieces();
    this.#waiting = [];
    // A read or write in flight completes first. The file is gone in any case.
    this.#file?.close().catch(() => undefined);
    this.#spoolBytes.giveBack(this.#fileBytes);
    this.#fileBytes = 0;
    this.#spoolFile.giveBack(this.#spoolFiles);
    this.#spoolFiles = 0;
  }

  /** Writes until no piece waits. One call runs at a time. */
  async #writeAll(): Promise<void> {
    if (this.#file === null) {
      if (!this.#spoolFile.take(1)) throw new Error('too many spooled results');
      this.#spoolFiles = 1;
      const file = await openUnnamed(this.#options.spoolFolder);
      if (this.#closed) return file.close();
      this.#file = file;
      await this.#write(file, this.#pieces);
      this.#forgetPieces();
    }
    while (this.#waiting.length > 0 && !this.#closed) {
      const batch = this.#waiting;
      this.#waiting = [];
      await this.#write(
        this.#file,
        batch.map((piece) => piece.bytes),
      );
      this.#reportKept(batch);
    }
    if (this.#closed) return;
    this.#spooling = false;
    if (this.#onSealed) this.#handOver();
  }

  #reportKept(batch: readonly Piece[]): void {
    for (const piece of batch) if (!this.#closed) piece.onKept();
  }

  /** Piece by piece: joined, they would take their memory twice. */
  async #write(file: FileHandle, pieces: readonly Uint8Array[]): Promise<void> {
    const bytes = pieces.reduce((sum, piece) => sum + piece.length, 0);
    const disk = await statfs(this.#options.spoolFolder);
    if (this.#closed) return;
    const leastBytes = Math.min(this.#diskFreeBytesMin, disk.blocks * disk.bsize * PART_OF_DISK);
    if (freeBytesOf(disk) - bytes < leastBytes || !this.#spoolBytes.take(bytes))
      throw new Error('no room for spooled results');
    this.#fileBytes += bytes;
    for (const piece of pieces) await file.appendFile(piece);
  }

  #handOver(): void {
    const { audioName } = this.#options;
    const before = [Buffer.from(audioName === null ? '' : `{"${audioName}":"`), this.#head];
    const after = audioName === null ? [] : jsonParts`"${this.#timestampsMember()}}`;
    const file = this.#file;
    this.#onSealed?.(
      file === null
        ? piecesSource([...before, ...this.#pieces, ...after])
        : fileSource(Buffer.concat(before), file, this.#fileBytes, after),
    );
  }

  #timestampsMember(): Parts {
    const { timestamps } = this.#options;
    if (timestamps === null) return [];
    const [words, starts, ends] = [this.#words.ended, this.#starts.ended, this.#ends.ended];
    return jsonParts`,${timestamps({ words, starts, ends })}`;
  }

  #fault(error: unknown): void {
    if (this.#closed) return;
    this.#options.onFault(error);
  }
}

const fileSource = (before: Uint8Array, file: FileHandle, fileBytes: number, after: Parts): LengthSource => {
  const rest = piecesSource(after);
  /** Reused: the socket has all of a piece before the next one is read. */
  const buffer = Buffer.allocUnsafe(unitBytes.spooledResult);
  let readBytes = 0;
  let begun = false;
  return {
    byteLength: before.length + fileBytes + rest.byteLength,
    next() {
      if (!begun) {
        begun = true;
        return before;
      }
      if (readBytes === fileBytes) return rest.next();
      return file.read(buffer, 0, buffer.length, readBytes).then(({ bytesRead }) => {
        if (bytesRead === 0) throw new Error('a spooled result is shorter than what was written');
        readBytes += bytesRead;
        return buffer.subarray(0, bytesRead);
      });
    },
  };
};
