/** A program that is no script of ours, with its children: it does not outlive this process. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';

const running = new Set<Program>();
process.once('exit', () => {
  for (const program of running) program.signal('SIGKILL');
});

const keptErrorsMax = 16_000;

export interface ProgramOptions {
  readonly cwd: string;
  readonly uid?: number;
  readonly gid?: number;
  readonly env?: NodeJS.ProcessEnv;
}

export class Program {
  readonly #child: ChildProcess;
  readonly #closed: Promise<unknown>;
  #stderr = '';

  constructor(name: string, args: readonly string[], options: ProgramOptions) {
    // In a process group of its own, which gets the signals.
    this.#child = spawn(name, args, { ...options, detached: true, stdio: ['ignore', 'ignore', 'pipe'] });
    this.#child.stderr!.on('data', (bytes: Buffer) => {
      this.#stderr = (this.#stderr + bytes.toString()).slice(-keptErrorsMax);
    });
    running.add(this);
    this.#closed = once(this.#child, 'exit').then(
      () => running.delete(this),
      () => running.delete(this),
    );
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  get isRunning(): boolean {
    return running.has(this);
  }

  /** The last part of its standard error. */
  get stderr(): string {
    return this.#stderr;
  }

  /** To the program and its children. */
  signal(name: NodeJS.Signals): void {
    if (!this.isRunning || this.pid === 0) return;
    try {
      process.kill(-this.pid, name);
    } catch {
      // It has ended.
    }
  }

  /** To the program alone, which ends its children. Idempotent. */
  async end(name: NodeJS.Signals): Promise<void> {
    if (this.isRunning) this.#child.kill(name);
    await this.#closed;
  }

  /** With all its children. Idempotent. */
  async kill(): Promise<void> {
    this.signal('SIGKILL');
    await this.#closed;
  }
}
