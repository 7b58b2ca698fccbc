/** Starts a service as a child process on free ports with a data folder of its own, watches its log, and ends it. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface, type Interface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { createKeys } from '../operator.js';
import { parseSamples, type Sample } from './exposition.js';
import { exchange, jsonOf } from './http.js';
import { countHandles } from './process-facts.js';

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** The exit code, or the signal that ended the process. */
export const describeExit = ({ code, signal }: Exit): string => String(code ?? signal);

export interface ProcessOptions {
  /** The compiled script. */
  readonly entry: URL;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Whether this process's own environment comes below `env`; by default it does. */
  readonly inheritsEnv?: boolean;
  readonly cwd?: string;
  /** Options of Node, such as `['--inspect=127.0.0.1:0']`. */
  readonly nodeOptions?: readonly string[];
  /** A command that execs Node, such as `['prlimit', '--nofile=64']`: the process id stays the same. */
  readonly launcher?: readonly string[];
  /** Called with each line of standard output. */
  readonly onLine?: (line: string) => void;
  /** Keeps the lines of standard output in `lines`. */
  readonly keepsLines?: boolean;
  /** Copies standard error to ours. */
  readonly showsErrors?: boolean;
  /** In a process group of its own, which a terminal's Ctrl-C does not reach. */
  readonly ownGroup?: boolean;
}

const keptErrorsMax = 16_000;
/** What Node writes when an inspector client comes or goes. */
const inspectorTalk = /^(?:Debugger |For help, see: )/;

const running = new Set<NodeProcess>();
process.once('exit', () => {
  for (const child of running) child.signal('SIGKILL');
});

/** A compiled script as a child process, which does not outlive this one. */
export class NodeProcess {
  readonly exited: Promise<Exit>;
  /** Lines of standard output so far, with `keepsLines`. */
  readonly lines: string[] = [];
  readonly #child: ChildProcess;
  readonly #output: Interface;
  #exit: Exit | null = null;
  #stderr = '';

  constructor(options: ProcessOptions) {
    const { args = [], cwd, entry, env, inheritsEnv = true, launcher = [], nodeOptions = [] } = options;
    const node = [process.execPath, '--disable-warning=ExperimentalWarning', ...nodeOptions];
    const [program = '', ...parameters] = [...launcher, ...node, fileURLToPath(entry), ...args];
    this.#child = spawn(program, parameters, {
      cwd,
      env: { ...(inheritsEnv ? process.env : { PATH: process.env['PATH'] }), ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: options.ownGroup === true,
    });
    running.add(this);
    this.exited = new Promise((resolve, reject) => {
      this.#child.once('error', reject);
      this.#child.once('close', (code, signal) => {
        running.delete(this);
        this.#exit = { code, signal };
        resolve(this.#exit);
      });
    });
    this.#output = createInterface({ input: this.#child.stdout! }).on('line', (line) => {
      if (options.keepsLines === true) this.lines.push(line);
      options.onLine?.(line);
      this.onLine(line);
    });
    this.#child.stderr!.on('data', (bytes: Buffer) => {
      const text = bytes.toString();
      this.#stderr = (this.#stderr + text).slice(-keptErrorsMax);
      if (options.showsErrors === true && !inspectorTalk.test(text)) process.stderr.write(text);
    });
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** `null` while the process runs. */
  get exit(): Exit | null {
    return this.#exit;
  }

  /** The last part of its standard error. */
  get stderr(): string {
    return this.#stderr;
  }

  signal(name: NodeJS.Signals): void {
    this.#child.kill(name);
  }

  /** Reads no standard output until `goOnReading`: the process finds its pipe full. Idempotent. */
  stopReading(): void {
    this.#output.pause();
  }

  /** Idempotent. */
  goOnReading(): void {
    this.#output.resume();
  }

  protected onLine(_line: string): void {
    // For subclasses.
  }
}

/** The service's answer to SIGUSR2, as far as the rig reads it. */
export interface Status {
  readonly requestsInFlight: number;
  readonly openContexts: number;
  readonly runningSegments: number;
  /** Of audio and frames that wait for their clients. */
  readonly bufferedBytes: number;
  readonly threadsWhole: boolean;
  /** Threads that took the place of one that ended or hung. */
  readonly threadRestarts: { readonly synthesis: number; readonly actor: number };
  readonly rssMiB: number;
}

/** Pino's number for errors; a fatal line has a higher one. */
const errorLevel = 50;
const keptLinesMax = 200;
/** Outcomes of connections that the service dropped for a reason of its own. */
const dropped = /"outcome":"(?:reader-stalled|silent|flooded|failed)"/;

/** Reads the log of a service: counts its errors, and passes on its status lines. */
export class ServiceLog {
  /** The first of each. */
  readonly errorLines: string[] = [];
  readonly dropLines: string[] = [];
  #errors = 0;
  #drops = 0;
  readonly #waiting = new Set<(status: Status) => void>();

  /** Lines of level error or fatal, and lines that are no JSON. */
  get errors(): number {
    return this.#errors;
  }

  /** Connections that the service dropped. */
  get drops(): number {
    return this.#drops;
  }

  onLine(line: string): void {
    const isError = Number(/"level":(\d+)/.exec(line)?.[1] ?? errorLevel) >= errorLevel;
    const isDrop = !isError && dropped.test(line);
    if (isError && ++this.#errors <= keptLinesMax) this.errorLines.push(line);
    if (isDrop && ++this.#drops <= keptLinesMax) this.dropLines.push(line);
    if (!line.endsWith('"msg":"status"}')) return;
    const status = JSON.parse(line) as Status;
    // Signals that come together are answered by one line.
    for (const onStatus of this.#waiting) onStatus(status);
  }

  /** @param ask makes the service log its status. @throws when it does not within `msMax` */
  status(ask: () => void, msMax: number): Promise<Status> {
    return new Promise((resolve, reject) => {
      const end = (settle: () => void): void => {
        clearTimeout(timer);
        this.#waiting.delete(onStatus);
        settle();
      };
      const onStatus = (status: Status) => end(() => resolve(status));
      const timer = setTimeout(() => end(() => reject(new Error(`no status within ${msMax} ms`))), msMax);
      this.#waiting.add(onStatus);
      ask();
    });
  }
}

export interface ServiceOptions extends Omit<ProcessOptions, 'entry'> {
  /** By default the production entry. */
  readonly entry?: URL;
  /** A folder that stays; by default a temporary one, removed after the end. */
  readonly dataDir?: string;
  /** Threads by role; by default the service's own choice. */
  readonly synthesisThreads?: number;
  readonly actorThreads?: number;
}

const mainEntry = new URL('../../src/main.js', import.meta.url);
/** All dialects, each on a free port. */
export const freeDialectPorts = { ELEVENLABS_PORT: '0', OPENAI_PORT: '0', WYOMING_PORT: '0' } as const;
const statusMsMax = 5_000;

export class Service extends NodeProcess {
  readonly dataDir: string;
  /** `null`: SQLite in the data folder. */
  readonly storeUrl: string | null;
  readonly log = new ServiceLog();
  /** 0 until the service listens; the others stay 0 without that listener. */
  port = 0;
  opsPort = 0;
  consolePort = 0;
  /** Of the dialects that are on, by name. */
  dialectPorts: Readonly<Record<string, number>> = {};
  readonly #ownsDataDir: boolean;
  readonly #listening = Promise.withResolvers<undefined>();

  /** The service may not listen yet. */
  constructor(options: ServiceOptions = {}) {
    const { actorThreads, entry = mainEntry, synthesisThreads } = options;
    const dataDir = options.dataDir ?? mkdtempSync(join(tmpdir(), 'syrinx-service-'));
    super({
      ...options,
      entry,
      env: {
        // As in `npm start` and in the systemd unit.
        MALLOC_ARENA_MAX: '2',
        MALLOC_MMAP_THRESHOLD_: '131072',
        HOST: '127.0.0.1',
        PORT: '0',
        OPS_HOST: '127.0.0.1',
        OPS_PORT: '0',
        // Scenarios and tests of the console choose a port.
        CONSOLE_PORT: 'off',
        DATA_DIR: dataDir,
        LOG_LEVEL: 'info',
        // A scenario shares the machine with its load, and tests run beside each other. Those about overload say so.
        OVERLOAD: 'late',
        ...(synthesisThreads !== undefined && { SYNTHESIS_THREADS: String(synthesisThreads) }),
        ...(actorThreads !== undefined && { ACTOR_THREADS: String(actorThreads) }),
        ...options.env,
      },
    });
    this.dataDir = dataDir;
    this.storeUrl = options.env?.['STORE_URL'] ?? null;
    this.#ownsDataDir = options.dataDir === undefined;
    this.#listening.promise.catch(() => undefined);
    this.exited.then(
      ({ code, signal }) =>
        this.#listening.reject(
          new Error(`the service ended with ${describeExit({ code, signal })}: ${this.stderr}`),
        ),
      (error: unknown) => this.#listening.reject(error),
    );
  }

  /** Resolves when the service listens. @throws what `listening` throws */
  static async start(options: ServiceOptions = {}): Promise<Service> {
    const service = new Service(options);
    await service.listening();
    return service;
  }

  /** @throws with its standard error when the service ends instead */
  async listening(): Promise<void> {
    try {
      await this.#listening.promise;
    } catch (error) {
      await this.kill().catch(() => undefined);
      throw error;
    }
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  get opsUrl(): string {
    return `http://127.0.0.1:${this.opsPort}`;
  }

  /** `null` unless Node's inspector was asked for. */
  get inspectorUrl(): string | null {
    return /ws:\/\/\S+/.exec(this.stderr)?.[0] ?? null;
  }

  /** Open files and sockets; -1 where the system does not report them. */
  get openFiles(): number {
    return countHandles(this.pid)?.files ?? -1;
  }

  /** @param credits of each key's account; `null`: not metered */
  makeKeys(count: number, credits: number | null = null): Promise<string[]> {
    return createKeys(
      this.dataDir,
      Array.from({ length: count }, () => [null, credits]),
      this.storeUrl,
    );
  }

  /** The voices that the service offers. */
  async voices(): Promise<string[]> {
    const answer = await exchange(this.port, { path: '/v1/tts/speakers', key: (await this.makeKeys(1))[0]! });
    return (jsonOf(answer) as { speaker_ids: string[] }).speaker_ids;
  }

  /** Reasons of `/readyz`; empty when the service is ready. @throws when it does not answer */
  async unreadyReasons(): Promise<string> {
    const answer = await exchange(this.port, { path: '/readyz' });
    if (answer.status === 200) return '';
    return ((jsonOf(answer) as { reasons?: string[] }).reasons ?? []).join('; ');
  }

  /** The metrics now; none when the ops listener does not answer. */
  async metrics(): Promise<readonly Sample[]> {
    const { body, status } = await exchange(this.opsPort, { path: '/metrics' });
    return status === 200 ? parseSamples(body.toString()) : [];
  }

  /** What the service logs on SIGUSR2. @throws when it logs nothing */
  status(): Promise<Status> {
    return this.log.status(() => this.signal('SIGUSR2'), statusMsMax);
  }

  /** Ends the service as an operator does. Idempotent. @param onEnded called before a temporary folder is removed */
  stop(onEnded?: () => void | Promise<void>): Promise<Exit> {
    return this.#end('SIGTERM', onEnded);
  }

  /** Idempotent. */
  kill(): Promise<Exit> {
    return this.#end('SIGKILL');
  }

  protected override onLine(line: string): void {
    this.log.onLine(line);
    if (this.port > 0 || !line.endsWith('"msg":"listening"}')) return;
    const { port, opsPort, consolePort, dialectPorts } = JSON.parse(line) as {
      readonly port: number;
      readonly opsPort?: number;
      readonly consolePort?: number | null;
      readonly dialectPorts?: Readonly<Record<string, number>>;
    };
    this.port = port;
    this.opsPort = opsPort ?? 0;
    this.consolePort = consolePort ?? 0;
    this.dialectPorts = dialectPorts ?? {};
    this.#listening.resolve(undefined);
  }

  async #end(signal: NodeJS.Signals, onEnded: () => void | Promise<void> = () => undefined): Promise<Exit> {
    if (this.exit === null) this.signal(signal);
    const exit = await this.exited;
    try {
      await onEnded();
    } finally {
      if (this.#ownsDataDir) rmSync(this.dataDir, { recursive: true, force: true });
    }
    return exit;
  }
}

/** Runs `work` with a service that ends with it. @throws if the service does not end with exit code 0 */
export const withService = async <T>(
  options: ServiceOptions,
  work: (service: Service) => Promise<T>,
): Promise<T> => {
  const service = await Service.start(options);
  let result: T;
  try {
    result = await work(service);
  } catch (error) {
    await service.kill();
    throw error;
  }
  const exit = await service.stop();
  if (exit.code !== 0) throw new Error(`the service ended with ${describeExit(exit)}`);
  return result;
};
