/** The service as a process of its own, on free ports: for those who load it, measure it or break it. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { createKeys } from '../operator.js';

/** The production entry. */
export const mainEntry = new URL('../../src/main.js', import.meta.url);

export interface ServiceProcessOptions {
  /** One that stays when the service has ended; by default, one of its own that goes. */
  readonly dataDir?: string;
  /** On top of this process's own. */
  readonly env?: Readonly<Record<string, string>>;
  /** By default the production entry. */
  readonly entry?: URL;
  /** Node's own, such as `['--inspect=127.0.0.1:0']`. */
  readonly nodeOptions?: readonly string[];
  /** A command that runs the service, such as `['prlimit', '--nofile=64']`: what it starts keeps its process id. */
  readonly launcher?: readonly string[];
  /** Called with each line of the log, as it was written. */
  readonly onLine?: (line: string) => void;
  /** What it writes to standard error is written to ours. */
  readonly showsErrors?: boolean;
  /** Out of reach of a terminal's Ctrl-C. */
  readonly ownGroup?: boolean;
}

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface Ports {
  readonly port: number;
  /** `null` from a service that has no ops listener. */
  readonly opsPort: number | null;
}

const keptErrorsMax = 4_000;
/** What Node writes of who comes and goes. */
const inspectorTalk = /^(?:Debugger |For help, see: )/;

export class ServiceProcess {
  readonly exited: Promise<Exit>;
  readonly dataDir: string;
  readonly #child: ChildProcess;
  readonly #ownsDataDir: boolean;
  readonly #listening = Promise.withResolvers<Ports>();
  #exit: Exit | null = null;
  #stderr = '';

  /** It may not listen yet, nor ever. */
  constructor(options: ServiceProcessOptions) {
    const { dataDir, entry = mainEntry, env, launcher = [], nodeOptions = [], onLine } = options;
    this.#ownsDataDir = dataDir === undefined;
    this.dataDir = dataDir ?? mkdtempSync(join(tmpdir(), 'syrinx-child-'));
    const ownOptions = ['--disable-warning=ExperimentalWarning', ...nodeOptions];
    const node = [process.execPath, ...ownOptions, fileURLToPath(entry)];
    const [program = '', ...parameters] = [...launcher, ...node];
    this.#child = spawn(program, parameters, {
      env: {
        // As `npm start` and the systemd unit have it.
        MALLOC_ARENA_MAX: '2',
        MALLOC_MMAP_THRESHOLD_: '131072',
        ...process.env,
        HOST: '127.0.0.1',
        PORT: '0',
        OPS_HOST: '127.0.0.1',
        OPS_PORT: '0',
        DATA_DIR: this.dataDir,
        LOG_LEVEL: 'info',
        ...env,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: options.ownGroup === true,
    });
    // It does not outlive who started it.
    const endWithUs = (): void => void this.#child.kill('SIGKILL');
    process.once('exit', endWithUs);
    this.exited = new Promise((resolve, reject) => {
      this.#child.once('error', reject);
      this.#child.once('close', (code, signal) => {
        process.off('exit', endWithUs);
        this.#exit = { code, signal };
        resolve(this.#exit);
      });
    });
    this.exited.then(
      () => this.#listening.reject(new Error(`the service did not start: ${this.#stderr}`)),
      (error: unknown) => this.#listening.reject(error),
    );
    this.#listening.promise.catch(() => undefined);
    createInterface({ input: this.#child.stdout! }).on('line', (line) => {
      onLine?.(line);
      if (line.endsWith('"msg":"listening"}')) this.#onListening(line);
    });
    this.#child.stderr!.on('data', (bytes: Buffer) => {
      const text = bytes.toString();
      this.#stderr = (this.#stderr + text).slice(-keptErrorsMax);
      if (options.showsErrors === true && !inspectorTalk.test(text)) process.stderr.write(text);
    });
  }

  /** @throws what it said when it ended instead of listening; it is gone then */
  async listening(): Promise<Ports> {
    try {
      return await this.#listening.promise;
    } catch (error) {
      await this.end('SIGKILL').catch(() => undefined);
      throw error;
    }
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** `null` while it runs. */
  get exit(): Exit | null {
    return this.#exit;
  }

  /** What it last wrote to standard error. */
  get stderr(): string {
    return this.#stderr;
  }

  /** @param credits of the key's account; `null` for one that is never out of them */
  makeKeys(count: number, credits: number | null = null): Promise<string[]> {
    return createKeys(
      this.dataDir,
      Array.from({ length: count }, () => [null, credits]),
    );
  }

  signal(name: NodeJS.Signals): void {
    this.#child.kill(name);
  }

  /**
   * Idempotent.
   * @param onEnded called before its store is removed, if that goes
   */
  async end(signal: NodeJS.Signals, onEnded: (dataDir: string) => void = () => undefined): Promise<Exit> {
    this.signal(signal);
    const exit = await this.exited;
    try {
      onEnded(this.dataDir);
    } finally {
      if (this.#ownsDataDir) rmSync(this.dataDir, { recursive: true, force: true });
    }
    return exit;
  }

  #onListening(line: string): void {
    const { port, opsPort = null } = JSON.parse(line) as { port: number; opsPort?: number };
    this.#listening.resolve({ port, opsPort });
  }
}
