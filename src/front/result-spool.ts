/** A temporary file that has no name: gone with the process, whatever ends it. */
import { randomUUID } from 'node:crypto';
import { open, unlink, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { unitBytes } from '../worst-case.js';

export class ResultSpool {
  readonly #file: FileHandle;
  #writtenBytes = 0;
  #readBytes = 0;
  #closed = false;
  /** Reused: the piece before was accepted by the socket when the next one is asked for. None until then. */
  #buffer: Buffer | null = null;

  private constructor(file: FileHandle) {
    this.#file = file;
  }

  static async create(folder: string): Promise<ResultSpool> {
    const path = join(folder, `.result-${randomUUID()}`);
    const file = await open(path, 'wx+', 0o600);
    try {
      await unlink(path);
    } catch (error) {
      await file.close();
      throw error;
    }
    return new ResultSpool(file);
  }

  get writtenBytes(): number {
    return this.#writtenBytes;
  }

  /** Writes one piece after the other: put together, they would take their memory twice. */
  async append(pieces: readonly Uint8Array[]): Promise<void> {
    for (const piece of pieces) await this.#write(piece);
  }

  async #write(bytes: Uint8Array): Promise<void> {
    let doneBytes = 0;
    while (doneBytes < bytes.length) {
      const { bytesWritten } = await this.#file.write(bytes, doneBytes, undefined, this.#writtenBytes);
      doneBytes += bytesWritten;
      this.#writtenBytes += bytesWritten;
    }
  }

  /** @returns the next bytes from the start on, valid until the next call */
  async read(): Promise<Uint8Array> {
    const buffer = (this.#buffer ??= Buffer.allocUnsafe(unitBytes.spooledResult));
    const { bytesRead } = await this.#file.read(buffer, 0, buffer.length, this.#readBytes);
    if (bytesRead === 0) throw new Error('a spooled result is shorter than what was written');
    this.#readBytes += bytesRead;
    return buffer.subarray(0, bytesRead);
  }

  /** Idempotent. A call in flight completes first. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#file.close().catch(() => {
      // Nothing was to be kept.
    });
  }
}
