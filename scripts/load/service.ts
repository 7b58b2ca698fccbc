/** The service under test: the real one, as a child process, on a free port and with a store of its own. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { Administration } from '../../src/admission/administration.js';
import { readMemory } from './process-facts.js';
import { type CpuTimes, readCpuTimes } from './threads.js';

const mainPath = fileURLToPath(new URL('../../src/main.js', import.meta.url));

export interface ServiceOptions {
  readonly modelsDir: string;
  readonly synthesisThreads: number;
  readonly actorThreads: number;
  /** Keys to make; nine requests in flight each. */
  readonly keys: number;
  /** Gets every line of its log, from the first on. */
  readonly onLogLine?: (line: string) => void;
  /** Out of reach of a terminal's Ctrl-C, which then ends it only by way of `stop`. */
  readonly ownGroup?: boolean;
}

interface Listening {
  readonly port: number;
  /** `null` from a service that has no ops listener. */
  readonly opsPort: number | null;
}

/** The ports, once the log says that it listens; the log is read on. */
const listening = (child: ChildProcess, onLogLine: (line: string) => void): Promise<Listening> =>
  new Promise((resolve, reject) => {
    let isListening = false;
    const onLine = (line: string): void => {
      onLogLine(line);
      if (isListening || !line.includes('"listening"')) return;
      const { port, opsPort = null } = JSON.parse(line) as { port: number; opsPort?: number };
      isListening = true;
      resolve({ port, opsPort });
    };
    createInterface({ input: child.stdout! })
      .on('line', onLine)
      .on('close', () => reject(new Error('the service did not start')));
  });

export class Service {
  readonly port: number;
  readonly opsPort: number | null;
  readonly dataDir: string;
  readonly keys: string[] = [];
  /** Of the process. Its end is not an error of this promise. */
  readonly exited: Promise<string>;
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess, { port, opsPort }: Listening, dataDir: string) {
    this.#child = child;
    this.port = port;
    this.opsPort = opsPort;
    this.dataDir = dataDir;
    this.exited = once(child, 'exit').then(([code, signal]) => String(code ?? signal));
  }

  /** Ready to speak when it resolves. */
  static async start(options: ServiceOptions): Promise<Service> {
    const dataDir = mkdtempSync(join(tmpdir(), 'syrinx-load-'));
    const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', mainPath], {
      env: {
        ...process.env,
        HOST: '127.0.0.1',
        PORT: '0',
        OPS_HOST: '127.0.0.1',
        OPS_PORT: '0',
        DATA_DIR: dataDir,
        MODELS_DIR: options.modelsDir,
        SYNTHESIS_THREADS: String(options.synthesisThreads),
        ACTOR_THREADS: String(options.actorThreads),
        LOG_LEVEL: 'info',
      },
      stdio: ['ignore', 'pipe', 'inherit'],
      detached: options.ownGroup === true,
    });
    try {
      const ports = await listening(child, options.onLogLine ?? (() => undefined));
      const service = new Service(child, ports, dataDir);
      service.addKeys(options.keys);
      return service;
    } catch (error) {
      child.kill('SIGKILL');
      rmSync(dataDir, { recursive: true, force: true });
      throw error;
    }
  }

  get pid(): number {
    return this.#child.pid!;
  }

  /** Makes more keys, each of an account of its own that is not metered. */
  addKeys(count: number): void {
    const administration = new Administration(this.dataDir);
    try {
      for (let i = 0; i < count; i++) this.keys.push(administration.createKey(null, null).key);
    } finally {
      administration.close();
    }
  }

  /** Proportional set size in MiB: pages that several threads map count once. `null` where the system has none. */
  pssMiB(): number | null {
    const memory = readMemory(this.pid);
    return memory === null ? null : memory.pssBytes / 2 ** 20;
  }

  /** CPU time of its threads so far. `null` where the system does not tell. */
  cpuTimes(): CpuTimes | null {
    return readCpuTimes(this.pid);
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /**
   * @param onStopped called before its store is removed
   * @throws if it did not end well
   */
  async stop(onStopped: (dataDir: string) => void = () => undefined): Promise<void> {
    this.signal('SIGTERM');
    const end = await this.exited;
    try {
      onStopped(this.dataDir);
    } finally {
      rmSync(this.dataDir, { recursive: true, force: true });
    }
    if (end !== '0') throw new Error(`the service ended with ${end}`);
  }
}
