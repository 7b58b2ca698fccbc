/**
 * The JSON of a synchronous response, put together as its frames come: in memory up to a bound, then in a file.
 *
 *   collecting --seal--> sealed (the source to send from);  any --file fails--> onFault;  any --close--> closed
 */
import type { WordTimings } from '../threads/messages.js';
import { piecesSource, type LengthSource } from './length-sender.js';
import { ResultSpool } from './result-spool.js';
import type { Services } from './services.js';

export interface WholeResultOptions {
  /** Where the file goes: a disk, since it is there to spare memory. */
  readonly spoolFolder: string;
  /** Whether the response has a `timestamps` key. */
  readonly timestamps: boolean;
  /** The result cannot be completed. */
  readonly onFault: (error: unknown) => void;
}

interface Piece {
  readonly bytes: Uint8Array;
  readonly onKept: () => void;
}

const PREFIX = Buffer.from('{"audio":"');

/** The members of an array without its brackets, so that arrays can be joined. */
const members = (values: readonly unknown[]): string => JSON.stringify(values).slice(1, -1);

export class WholeResult {
  readonly #services: Services;
  readonly #options: WholeResultOptions;
  #pieces: Uint8Array[] = [];
  #memoryBytes = 0;
  #head: Uint8Array = new Uint8Array(0);
  readonly #words: string[] = [];
  readonly #starts: string[] = [];
  readonly #ends: string[] = [];
  #spool: ResultSpool | null = null;
  #spooling = false;
  #waiting: Piece[] = [];
  #reservedBytes = 0;
  #spoolFiles = 0;
  #onSealed: ((source: LengthSource) => void) | null = null;
  #closed = false;

  constructor(services: Services, options: WholeResultOptions) {
    this.#services = services;
    this.#options = options;
  }

  /** Base64 that goes before all audio. */
  setHead(bytes: Uint8Array): void {
    this.#head = bytes;
  }

  /** @param onKept called when the bytes are where they will be sent from: at once in memory, later in a file */
  add(bytes: Uint8Array, onKept: () => void): void {
    if (this.#closed) return;
    // A copy: what comes is a part of a mail with the frames of others, which would all stay in memory.
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
    const { bounds, resultBudget } = this.#services;
    if (this.#spool !== null || this.#spooling) return false;
    if (this.#memoryBytes + bytes.length > bounds.resultMemoryBytesMax) return false;
    if (!resultBudget.take(bytes.length)) return false;
    this.#pieces.push(bytes);
    this.#memoryBytes += bytes.length;
    return true;
  }

  #forgetPieces(): void {
    this.#pieces = [];
    this.#services.resultBudget.giveBack(this.#memoryBytes);
    this.#memoryBytes = 0;
  }

  addTimings(timings: WordTimings): void {
    if (timings.words.length === 0) return;
    this.#words.push(members(timings.words));
    this.#starts.push(members(timings.start_seconds));
    this.#ends.push(members(timings.end_seconds));
  }

  /** Nothing is added any more. @param onSealed called with what is to be sent, at once or when the file has it all */
  seal(onSealed: (source: LengthSource) => void): void {
    this.#onSealed = onSealed;
    if (!this.#spooling) this.#hand();
  }

  /** Gives memory and file back. Idempotent. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#forgetPieces();
    this.#waiting = [];
    this.#spool?.close();
    this.#services.spoolBudget.giveBack(this.#reservedBytes);
    this.#reservedBytes = 0;
    this.#services.spoolFileBudget.giveBack(this.#spoolFiles);
    this.#spoolFiles = 0;
  }

  /** Writes until nothing waits. Runs once at a time. */
  async #writeAll(): Promise<void> {
    if (this.#spool === null) {
      if (!this.#services.spoolFileBudget.take(1)) throw new Error('too many spooled results');
      this.#spoolFiles = 1;
      const spool = await ResultSpool.create(this.#options.spoolFolder);
      if (this.#closed) {
        spool.close();
        return;
      }
      this.#spool = spool;
      await this.#write(spool, this.#pieces);
      this.#forgetPieces();
    }
    while (this.#waiting.length > 0 && !this.#closed) {
      const batch = this.#waiting;
      this.#waiting = [];
      await this.#write(
        this.#spool,
        batch.map((piece) => piece.bytes),
      );
      this.#tellKept(batch);
    }
    if (this.#closed) return;
    this.#spooling = false;
    if (this.#onSealed) this.#hand();
  }

  async #write(spool: ResultSpool, pieces: readonly Uint8Array[]): Promise<void> {
    const bytes = pieces.reduce((sum, piece) => sum + piece.length, 0);
    if (this.#closed) return;
    if (!this.#services.spoolBudget.take(bytes)) throw new Error('no room for spooled results');
    this.#reservedBytes += bytes;
    await spool.append(pieces);
  }

  #tellKept(batch: readonly Piece[]): void {
    for (const piece of batch) if (!this.#closed) piece.onKept();
  }

  #hand(): void {
    const before = [PREFIX, this.#head];
    const after = Buffer.from(`"${this.#timestampsMember()}}`);
    const spool = this.#spool;
    this.#onSealed?.(
      spool === null
        ? piecesSource([...before, ...this.#pieces, after])
        : spoolSource(Buffer.concat(before), spool, after),
    );
  }

  #timestampsMember(): string {
    if (!this.#options.timestamps) return '';
    const array = (parts: readonly string[]): string => `[${parts.join(',')}]`;
    return (
      `,"timestamps":{"words":${array(this.#words)},"start_seconds":${array(this.#starts)}` +
      `,"end_seconds":${array(this.#ends)}}`
    );
  }

  #fault(error: unknown): void {
    if (this.#closed) return;
    this.#options.onFault(error);
  }
}

const spoolSource = (before: Uint8Array, spool: ResultSpool, after: Uint8Array): LengthSource => {
  let leftBytes = spool.writtenBytes;
  let begun = false;
  return {
    byteLength: before.length + spool.writtenBytes + after.length,
    next() {
      if (!begun) {
        begun = true;
        return before;
      }
      if (leftBytes === 0) return after;
      return spool.read().then((bytes) => {
        leftBytes -= bytes.length;
        return bytes;
      });
    },
  };
};
