/** Where the speech goes: a file, standard output, or a player's standard input. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { accessSync, constants } from 'node:fs';
import { type FileHandle, open, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { SayError } from './service.js';

export interface Sink {
  write(bytes: Buffer): Promise<void>;
  /** Everything is written: makes the file final, or waits until the player has finished. @throws {SayError} */
  finish(): Promise<void>;
  /** The speech broke off: leaves no incomplete file behind. */
  discard(): Promise<void>;
}

const wavHeaderBytes = 44;

const isWavHeader = (bytes: Buffer): boolean =>
  bytes.length >= wavHeaderBytes &&
  bytes.toString('latin1', 0, 4) === 'RIFF' &&
  bytes.toString('latin1', 36, 40) === 'data';

/**
 * A sound file that gets its name only when it is complete. A streamed WAV does not know its sizes, and linear16 repeats its
 * header on every chunk; the file has one header with the true sizes.
 */
export class FileSink implements Sink {
  readonly #path: string;
  readonly #handle: FileHandle;
  #bytes = 0;
  #isWav = false;

  private constructor(path: string, handle: FileHandle) {
    this.#path = path;
    this.#handle = handle;
  }

  /** @throws {SayError} */
  static async open(path: string): Promise<FileSink> {
    try {
      return new FileSink(path, await open(`${path}.part`, 'w'));
    } catch (error) {
      throw new SayError(
        `${path} cannot be written: ${(error as NodeJS.ErrnoException).code ?? String(error)}`,
      );
    }
  }

  async write(bytes: Buffer): Promise<void> {
    const hasHeader = isWavHeader(bytes);
    if (this.#bytes === 0) this.#isWav = hasHeader;
    const body = hasHeader && this.#bytes > 0 ? bytes.subarray(wavHeaderBytes) : bytes;
    await this.#handle.write(body, 0, body.length, this.#bytes);
    this.#bytes += body.length;
  }

  async finish(): Promise<void> {
    if (this.#isWav) {
      const size = Buffer.alloc(4);
      size.writeUInt32LE(this.#bytes - 8);
      await this.#handle.write(size, 0, 4, 4);
      size.writeUInt32LE(this.#bytes - wavHeaderBytes);
      await this.#handle.write(size, 0, 4, 40);
    }
    await this.#handle.close();
    await rename(`${this.#path}.part`, this.#path);
  }

  async discard(): Promise<void> {
    await this.#handle.close();
    await rm(`${this.#path}.part`, { force: true });
  }
}

export class StdoutSink implements Sink {
  async write(bytes: Buffer): Promise<void> {
    if (!process.stdout.write(bytes)) await once(process.stdout, 'drain');
  }

  async finish(): Promise<void> {
    // Node flushes standard output before the process ends.
  }

  async discard(): Promise<void> {
    // A pipe cannot take anything back.
  }
}

/** Raw samples that every player below accepts. */
export const playbackFormat = { encoding: 'pcm', sampleRateHz: 32_000 } as const;

const rate = String(playbackFormat.sampleRateHz);
/** The first installed one plays. */
const players: readonly (readonly [string, ...string[]])[] = [
  ['ffplay', '-nodisp', '-autoexit', '-loglevel', 'error', '-f', 's16le', '-ar', rate, '-i', '-'],
  ['aplay', '-q', '-t', 'raw', '-f', 'S16_LE', '-c', '1', '-r', rate, '-'],
  ['paplay', '--raw', '--format=s16le', '--channels=1', `--rate=${rate}`],
  ['play', '-q', '-t', 'raw', '-e', 'signed', '-b', '16', '-c', '1', '-r', rate, '-'],
];

/** Whether a program is in PATH. */
export const isInstalled = (program: string): boolean =>
  (process.env['PATH'] ?? '').split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, program), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });

class PlayerSink implements Sink {
  readonly #name: string;
  readonly #child: ChildProcess;
  readonly #ended: Promise<number | null>;
  #complaint = '';

  constructor([name, ...args]: readonly [string, ...string[]]) {
    this.#name = name;
    this.#child = spawn(name, args, { stdio: ['pipe', 'ignore', 'pipe'] });
    this.#ended = new Promise((resolve) => {
      this.#child.once('close', resolve).once('error', () => {
        resolve(null);
      });
    });
    this.#child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#complaint = (this.#complaint + text).slice(-500);
    });
    // The exit code reports a player that ended early.
    this.#child.stdin?.on('error', () => undefined);
  }

  async write(bytes: Buffer): Promise<void> {
    const stdin = this.#child.stdin;
    if (stdin === null || stdin.destroyed) return;
    if (!stdin.write(bytes)) await Promise.race([once(stdin, 'drain').catch(() => undefined), this.#ended]);
  }

  async finish(): Promise<void> {
    this.#child.stdin?.end();
    const code = await this.#ended;
    if (code !== 0) {
      throw new SayError(
        `${this.#name} could not play: ${this.#complaint.trim()}\nWrite a file with -o FILE.`,
      );
    }
  }

  async discard(): Promise<void> {
    this.#child.kill();
    await this.#ended;
  }
}

/** macOS's own player does not read standard input: it gets a file at the end. */
class AfplaySink implements Sink {
  readonly #path: string;
  readonly #file: FileSink;

  private constructor(path: string, file: FileSink) {
    this.#path = path;
    this.#file = file;
  }

  static async open(): Promise<AfplaySink> {
    const path = join(tmpdir(), `syrinx-${String(process.pid)}.wav`);
    return new AfplaySink(path, await FileSink.open(path));
  }

  write(bytes: Buffer): Promise<void> {
    return this.#file.write(bytes);
  }

  async finish(): Promise<void> {
    await this.#file.finish();
    await once(spawn('afplay', [this.#path], { stdio: 'ignore' }), 'close');
    await rm(this.#path, { force: true });
  }

  discard(): Promise<void> {
    return this.#file.discard();
  }
}

/** A player and its encoding. @throws {SayError} none is installed */
export const openPlayer = async (): Promise<{ sink: Sink; encoding: string }> => {
  const player = players.find(([name]) => isInstalled(name));
  if (player !== undefined) return { sink: new PlayerSink(player), encoding: playbackFormat.encoding };
  if (isInstalled('afplay')) return { sink: await AfplaySink.open(), encoding: 'wav' };
  const names = [...players.map(([name]) => name), 'afplay'].join(', ');
  throw new SayError(`No player is installed (${names}). Write a file with -o FILE.`);
};
