/**
 * Writes log lines to standard output. No caller waits for it: lines wait in memory up to a bound, and further lines are
 * lost and counted.
 *
 * A pipe, a socket or a terminal blocks its writer when the reader stops reading. So the caller writes to it without
 * blocking, which costs no more than a blocking write. A file never refuses a write, but its disk can be slow: a thread of
 * the runtime writes it.
 */
import { constants, fstatSync, openSync, write, writeSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Bounds } from './limits.js';

const STANDARD_OUTPUT = 1;

/** Milliseconds for which lines are gathered: a busy service writes several at once. */
const GATHER_MS = 20;
/** Linux writes up to this number of bytes to a pipe as a whole, so lines of several threads do not mix. */
const PIPE_BYTES = 4096;
/** Milliseconds after a write that failed, or that a full pipe did not take, until the next one. */
const RETRY_MS = 50;
/** About the number of bytes that one turn writes. */
const CHUNK_BYTES = 64 * 1024;
/** Milliseconds between two checks of what `end` waits for. */
const END_CHECK_MS = 5;

/** @returns a descriptor of standard output whose writes never block; `null` if it must be written from a thread */
const openNonBlocking = (): number | null => {
  const output = fstatSync(STANDARD_OUTPUT);
  if (output.isFile()) return null;
  const { O_WRONLY, O_NONBLOCK, O_NOCTTY } = constants;
  try {
    // Other processes may write to the same pipe or terminal: only a new descriptor has its own flags.
    return openSync(`/proc/self/fd/${STANDARD_OUTPUT}`, O_WRONLY | O_NONBLOCK | O_NOCTTY);
  } catch {
    // Not on Linux, a socket, a pipe or terminal of another user, or a pipe without a reader.
  }
  // The runtime makes a pipe or socket non-blocking when it makes the stream.
  const isStream = output.isFIFO() || output.isSocket();
  return isStream && process.stdout.writable ? STANDARD_OUTPUT : null;
};

export type LogBounds = Pick<Bounds, 'logBytesWaitingMax' | 'logEndMsMax'>;

export class LogWriter {
  readonly #bounds: LogBounds;
  readonly #onRoom: (lines: number) => void;
  readonly #nonBlocking = openNonBlocking();
  #waiting: Buffer[] = [];
  #bytes = 0;
  /** A thread writes, or the next try is due later. */
  #isBusy = false;
  #isInThread = false;
  /** The last write failed; a reader that is only slow is not a failure. */
  #isFailing = false;
  #lost = 0;
  #reported = 0;

  /** @param onRoom called when lines were lost since the last call and the log can be written again */
  constructor(bounds: LogBounds, onRoom: (lines: number) => void) {
    this.#bounds = bounds;
    this.#onRoom = onRoom;
  }

  /** Lines that did not fit. */
  get linesLost(): number {
    return this.#lost;
  }

  /** @param readable makes the written text from the line; not called for a line that is too long already */
  write(line: string, readable = (text: string) => text): void {
    const bytes = this.#fits(line.length) ? Buffer.from(readable(line)) : null;
    if (bytes === null || !this.#fits(bytes.length)) {
      this.#lost++;
      return;
    }
    this.#waiting.push(bytes);
    this.#bytes += bytes.length;
    if (!this.#isBusy) this.#later(GATHER_MS);
  }

  /**
   * Resolves when everything is written, when it cannot be written, or after `logEndMsMax`.
   *
   * @returns whether the process may exit: an exit waits for a thread that is inside a write
   */
  async end(): Promise<boolean> {
    const endMs = performance.now() + this.#bounds.logEndMsMax;
    while (this.#bytes > 0 && !this.#isFailing && performance.now() < endMs) await sleep(END_CHECK_MS);
    return !this.#isInThread;
  }

  #fits(bytes: number): boolean {
    return this.#bytes + bytes <= this.#bounds.logBytesWaitingMax;
  }

  #pump(): void {
    if (this.#isBusy || this.#bytes === 0) return;
    if (this.#nonBlocking === null) this.#writeFromThread();
    else this.#writeNow(this.#nonBlocking);
  }

  #writeNow(file: number): void {
    try {
      for (let bytes = 0; this.#bytes > 0;) {
        const written = writeSync(file, this.#joined(PIPE_BYTES));
        this.#written(written);
        bytes += written;
        if (bytes < CHUNK_BYTES) continue;
        this.#later(0);
        return;
      }
    } catch (error) {
      this.#failed(error as NodeJS.ErrnoException);
    }
  }

  #writeFromThread(): void {
    this.#isBusy = true;
    this.#isInThread = true;
    write(STANDARD_OUTPUT, this.#joined(CHUNK_BYTES), (error, written) => {
      this.#isBusy = false;
      this.#isInThread = false;
      if (error !== null) this.#failed(error);
      else {
        this.#written(written);
        this.#pump();
      }
    });
  }

  /** @returns the first lines, joined: at least one, further ones while the sum is at most `bytesMax` */
  #joined(bytesMax: number): Buffer {
    let count = 1;
    let bytes = this.#waiting[0]!.length;
    while (count < this.#waiting.length && bytes + this.#waiting[count]!.length <= bytesMax)
      bytes += this.#waiting[count++]!.length;
    if (count > 1) this.#waiting.unshift(Buffer.concat(this.#waiting.splice(0, count), bytes));
    return this.#waiting[0]!;
  }

  #written(bytes: number): void {
    this.#isFailing = false;
    this.#bytes -= bytes;
    const [first] = this.#waiting;
    if (first !== undefined && bytes < first.length) this.#waiting[0] = first.subarray(bytes);
    else this.#waiting.shift();
    if (this.#reported === this.#lost || this.#bytes > this.#bounds.logBytesWaitingMax / 2) return;
    const lines = this.#lost - this.#reported;
    this.#reported = this.#lost;
    // After the current write.
    queueMicrotask(() => this.#onRoom(lines));
  }

  #failed({ code }: NodeJS.ErrnoException): void {
    this.#isFailing = code !== 'EAGAIN';
    this.#later(RETRY_MS);
  }

  #later(ms: number): void {
    this.#isBusy = true;
    setTimeout(() => {
      this.#isBusy = false;
      this.#pump();
    }, ms).unref();
  }
}
