/** A voice pack on disk: a folder of MODELS_DIR. What every format needs to read its files and to verify them. */
import { createHash } from 'node:crypto';
import { fstat, open, read } from 'node:fs';
import { readFile, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type VoicePack, VoicePackError } from '../../src/threads/voices.js';

const fstatFile = promisify(fstat);
const openFile = promisify(open);
const readPiece = promisify(read);

/** A larger manifest is not read into memory: ours has 4 KiB. */
const manifestBytesMax = 1024 * 1024;
/** Bytes hashed at a time: a model of hundreds of megabytes is never held in memory. */
const hashedBytes = 256 * 1024;

/** What a format finds in a folder. */
export type PackContent = Pick<VoicePack, 'voices' | 'licence' | 'modelBytes' | 'data'>;

/** A file that was opened, and is kept open until the pack is loaded. */
export interface HeldFile {
  /** Path to show in messages. */
  readonly path: string;
  /** Path to open. On Linux it leads to the file that was verified, even if another has its name by now. */
  readonly openPath: string;
  readonly bytes: number;
}

export const faultOf = (error: unknown, what = 'the file'): string => {
  const code = (error as NodeJS.ErrnoException).code;
  if (code === 'ENOENT') return `${what} is missing`;
  return code === undefined ? String(error) : `${what} cannot be read (${code})`;
};

const hashOf = async (file: number): Promise<string> => {
  const hash = createHash('sha256');
  const piece = Buffer.allocUnsafe(hashedBytes);
  for (let at = 0; ;) {
    const { bytesRead } = await readPiece(file, piece, 0, hashedBytes, at);
    if (bytesRead === 0) return hash.digest('hex');
    hash.update(piece.subarray(0, bytesRead));
    at += bytesRead;
  }
};

export class PackFolder {
  readonly path: string;
  /** Names of what is in it. */
  readonly files: readonly string[];
  /**
   * Descriptors of the files that were opened. They are not `FileHandle`s: those end with the thread that reads the
   * packs.
   */
  readonly #held: number[];

  private constructor(path: string, files: readonly string[], held: number[]) {
    this.path = path;
    this.files = files;
    this.#held = held;
  }

  /** @param held gets the descriptors of all files that are opened, for the caller to close */
  static async open(path: string, held: number[]): Promise<PackFolder> {
    try {
      return new PackFolder(path, await readdir(path), held);
    } catch (error) {
      throw new VoicePackError(`${path}: ${faultOf(error, 'the folder')}`);
    }
  }

  pathOf(name: string): string {
    return join(this.path, name);
  }

  /** Reads a manifest. */
  async json(name: string): Promise<unknown> {
    const path = this.pathOf(name);
    let text: string;
    try {
      const { size } = await stat(path);
      if (size > manifestBytesMax)
        throw new VoicePackError(`${path}: the file has ${size} bytes, too many for a manifest`);
      text = await readFile(path, 'utf8');
    } catch (error) {
      throw error instanceof VoicePackError ? error : new VoicePackError(`${path}: ${faultOf(error)}`);
    }
    try {
      return JSON.parse(text) as unknown;
    } catch {
      throw new VoicePackError(`${path}: not valid JSON`);
    }
  }

  /** Opens a file, verifies it if its manifest says what it is, and keeps it open. */
  async hold(
    name: string,
    expected?: { readonly bytes: number; readonly sha256: string },
  ): Promise<HeldFile> {
    const path = this.pathOf(name);
    try {
      const file = await openFile(path, 'r');
      this.#held.push(file);
      const { size: bytes } = await fstatFile(file);
      if (expected !== undefined && bytes !== expected.bytes)
        throw new VoicePackError(`${path}: the file has ${bytes} bytes, its manifest says ${expected.bytes}`);
      if (expected !== undefined && (await hashOf(file)) !== expected.sha256)
        throw new VoicePackError(`${path}: the file is not the one of its manifest (sha256 differs)`);
      return { path, openPath: process.platform === 'linux' ? `/proc/self/fd/${file}` : path, bytes };
    } catch (error) {
      throw error instanceof VoicePackError ? error : new VoicePackError(`${path}: ${faultOf(error)}`);
    }
  }
}
