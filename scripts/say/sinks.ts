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

/** Of a stream in wav that names none. */
const RATE_HZ = '32000';
/** The first installed one plays. They read bare samples from standard input; macOS's own player reads a file. */
const players: readonly (readonly [string, ...string[]])[] = [
  ['ffplay', '-nodisp', '-autoexit', '-loglevel', 'error', '-f', 's16le', '-ar', RATE_HZ, '-i', '-'],
  ['aplay', '-q', '-t', 'raw', '-f', 'S16_LE', '-c', '1', '-r', RATE_HZ, '-'],
  ['paplay', '--raw', '--format=s16le', '--channels=1', `--rate=${RATE_HZ}`],
  ['play', '-q', '-t', 'raw', '-e', 'signed', '-b', '16', '-c', '1', '-r', RATE_HZ, '-'],
  ['afplay'],
];
/** ffplay without a sound device says this, and ends with 0. */
const silentFailure = /^.*audio open failed.*$/m;

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

/** A player at work. */
class Player {
  readonly #name: string;
  readonly #child: ChildProcess;
  readonly #ended: Promise<number | null>;
  #complaint = '';

  constructor(name: string, args: readonly string[]) {
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

  async write(samples: Buffer): Promise<void> {
    const stdin = this.#child.stdin;
    if (stdin === null || stdin.destroyed) return;
    if (!stdin.write(samples)) await Promise.race([once(stdin, 'drain').catch(() => undefined), this.#ended]);
  }

  /** @returns why nothing was heard; `null`: it was played */
  async finish(): Promise<string | null> {
    this.#child.stdin?.end();
    const code = await this.#ended;
    const silent = silentFailure.exec(this.#complaint);
    if (code === 0 && silent === null) return null;
    const reason = silent?.[0] ?? this.#complaint.trim().split('\n').at(-1) ?? '';
    return `${this.#name} could not play: ${reason === '' ? `exit code ${String(code)}` : reason}`;
  }

  async kill(): Promise<void> {
    this.#child.kill();
    await this.#ended;
  }
}

/** Plays the speech as it comes. Its file stays where nothing can play. */
export class PlayerSink implements Sink {
  readonly #path: string;
  readonly #file: FileSink;
  readonly #command: readonly [string, ...string[]] | undefined;
  readonly #player: Player | undefined;

  private constructor(path: string, file: FileSink) {
    this.#path = path;
    this.#file = file;
    this.#command = players.find(([name]) => isInstalled(name));
    const [name = '', ...args] = this.#command ?? [];
    if (args.length > 0) this.#player = new Player(name, args);
  }

  static async open(): Promise<PlayerSink> {
    const path = join(tmpdir(), `syrinx-${String(process.pid)}.wav`);
    return new PlayerSink(path, await FileSink.open(path));
  }

  async write(bytes: Buffer): Promise<void> {
    await this.#file.write(bytes);
    await this.#player?.write(isWavHeader(bytes) ? bytes.subarray(wavHeaderBytes) : bytes);
  }

  async finish(): Promise<void> {
    await this.#file.finish();
    const fault =
      this.#command === undefined
        ? `no player is installed (${players.map(([name]) => name).join(', ')})`
        : await (this.#player ?? new Player(this.#command[0], [this.#path])).finish();
    if (fault !== null) throw new SayError(`Nothing was heard: ${fault}. The speech is in ${this.#path}`);
    await rm(this.#path);
  }

  async discard(): Promise<void> {
    await this.#player?.kill();
    await this.#file.discard();
  }
}
