/** The service that is tortured: a process of its own on a free port, whose log is watched for faults. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { Administration } from '../../src/admission/administration.js';

/** The production entry. */
export const mainEntry = new URL('../../src/main.js', import.meta.url);

export interface TortureServiceOptions {
  /** One that stays when the service is stopped; by default, one of its own that goes. */
  readonly dataDir?: string;
  /** On top of this process's own. */
  readonly env?: Readonly<Record<string, string>>;
  /** By default the production entry. */
  readonly entry?: URL;
  /** A command that runs the service, such as `['prlimit', '--nofile=64']`: what it starts keeps its process id. */
  readonly launcher?: readonly string[];
  /** Called with each line of the log, as it was written. */
  readonly onLine?: (line: string) => void;
}

export interface LogLine {
  readonly level: number;
  readonly msg: string;
  readonly [field: string]: unknown;
}

/** As it answers SIGUSR2. */
export interface Status {
  readonly requestsInFlight: number;
  readonly openContexts: number;
  readonly runningSegments: number;
  readonly threadsWhole: boolean;
  readonly rssMiB: number;
}

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

const keptLinesMax = 200;
/** As pino numbers them: 40 is a warning, above are error and fatal. */
const levelOf = (line: string): number => Number(/^\{"level":(\d+)/.exec(line)?.[1] ?? 0);
const warning = 40;

export class TortureService {
  readonly exited: Promise<Exit>;
  readonly dataDir: string;
  /** Lines of level error and fatal, the first of them. */
  readonly faults: string[] = [];
  /** All of those. */
  faultCount = 0;
  readonly #child: ChildProcess;
  readonly #ownsDataDir: boolean;
  readonly #onLine: ((line: string) => void) | undefined;
  readonly #listening = Promise.withResolvers<number>();
  #statusWanted: ((status: Status) => void)[] = [];
  #exit: Exit | null = null;
  #stderr = '';
  #port = 0;

  private constructor(options: TortureServiceOptions) {
    const { dataDir, entry = mainEntry, env, launcher = [], onLine } = options;
    this.#ownsDataDir = dataDir === undefined;
    this.dataDir = dataDir ?? mkdtempSync(join(tmpdir(), 'syrinx-torture-'));
    this.#onLine = onLine;
    const node = [process.execPath, '--disable-warning=ExperimentalWarning', fileURLToPath(entry)];
    const [program = '', ...parameters] = [...launcher, ...node];
    this.#child = spawn(program, parameters, {
      env: {
        ...process.env,
        HOST: '127.0.0.1',
        PORT: '0',
        OPS_PORT: '0',
        DATA_DIR: this.dataDir,
        LOG_LEVEL: 'info',
        ...env,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    // It does not outlive who tortures it.
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
    createInterface({ input: this.#child.stdout! }).on('line', (line) => this.#onLogLine(line));
    this.#child.stderr?.on('data', (bytes: Buffer) => {
      this.#stderr = (this.#stderr + bytes.toString()).slice(-4_000);
    });
  }

  /** It may not listen yet, nor ever. */
  static spawn(options: TortureServiceOptions = {}): TortureService {
    return new TortureService(options);
  }

  /** @throws what it said when it ended instead of listening */
  static async start(options: TortureServiceOptions = {}): Promise<TortureService> {
    const service = new TortureService(options);
    try {
      await service.listening();
      return service;
    } catch (error) {
      await service.kill();
      throw error;
    }
  }

  /** @returns the port, once it listens */
  async listening(): Promise<number> {
    this.#port = await this.#listening.promise;
    return this.#port;
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  get port(): number {
    return this.#port;
  }

  /** `null` while it runs. */
  get exit(): Exit | null {
    return this.#exit;
  }

  /** What it last wrote to standard error. */
  get stderr(): string {
    return this.#stderr;
  }

  /** Files and sockets that it has open; -1 where the system does not tell. */
  get openFiles(): number {
    try {
      return readdirSync(`/proc/${String(this.pid)}/fd`).length;
    } catch {
      return -1;
    }
  }

  /** @param credits of the key's account; `null` for one that is never out of them */
  makeKeys(count: number, credits: number | null = null): string[] {
    const administration = new Administration(this.dataDir);
    try {
      return Array.from({ length: count }, () => administration.createKey(null, credits).key);
    } finally {
      administration.close();
    }
  }

  /** What is going on in it, as it tells in its log. @throws when it does not tell within five seconds */
  status(): Promise<Status> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error('no status within five seconds')), 5_000);
      this.#statusWanted.push((status) => {
        clearTimeout(timer);
        resolve(status);
      });
      this.signal('SIGUSR2');
    });
  }

  signal(name: NodeJS.Signals): void {
    this.#child.kill(name);
  }

  /** Ends it as an operator does. Idempotent. */
  async stop(): Promise<Exit> {
    this.signal('SIGTERM');
    return this.#gone();
  }

  /** Idempotent. */
  async kill(): Promise<Exit> {
    this.signal('SIGKILL');
    return this.#gone();
  }

  async #gone(): Promise<Exit> {
    const exit = await this.exited;
    if (this.#ownsDataDir) rmSync(this.dataDir, { recursive: true, force: true });
    return exit;
  }

  #onLogLine(line: string): void {
    this.#onLine?.(line);
    const level = levelOf(line);
    if (level > warning) {
      this.faultCount++;
      if (this.faults.length < keptLinesMax) this.faults.push(line);
    } else if (line.endsWith('"msg":"listening"}')) {
      this.#listening.resolve((JSON.parse(line) as LogLine & { port: number }).port);
    } else if (line.endsWith('"msg":"status"}')) {
      const status = JSON.parse(line) as LogLine & Status;
      for (const resolve of this.#statusWanted.splice(0)) resolve(status);
    }
  }
}
