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
}

/** The port, once the log says that it listens. */
const listening = async (child: ChildProcess): Promise<number> => {
  for await (const line of createInterface({ input: child.stdout! })) {
    const { msg, port } = JSON.parse(line) as { msg?: string; port?: number };
    if (msg === 'listening' && port !== undefined) return port;
  }
  throw new Error('the service did not start');
};

export class Service {
  readonly port: number;
  readonly keys: readonly string[];
  readonly #child: ChildProcess;
  readonly #dataDir: string;

  private constructor(child: ChildProcess, port: number, keys: readonly string[], dataDir: string) {
    this.#child = child;
    this.port = port;
    this.keys = keys;
    this.#dataDir = dataDir;
  }

  /** Ready to speak when it resolves. */
  static async start({ modelsDir, synthesisThreads, actorThreads, keys }: ServiceOptions): Promise<Service> {
    const dataDir = mkdtempSync(join(tmpdir(), 'syrinx-bench-'));
    const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', mainPath], {
      env: {
        ...process.env,
        HOST: '127.0.0.1',
        PORT: '0',
        OPS_PORT: '0',
        DATA_DIR: dataDir,
        MODELS_DIR: modelsDir,
        SYNTHESIS_THREADS: String(synthesisThreads),
        ACTOR_THREADS: String(actorThreads),
        LOG_LEVEL: 'info',
      },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    try {
      const port = await listening(child);
      // Nobody reads the log from here on; a full pipe would stop the service.
      child.stdout.resume();
      const administration = new Administration(dataDir);
      const made = Array.from({ length: keys }, () => administration.createKey(null, null).key);
      administration.close();
      return new Service(child, port, made, dataDir);
    } catch (error) {
      child.kill('SIGKILL');
      rmSync(dataDir, { recursive: true, force: true });
      throw error;
    }
  }

  get pid(): number {
    return this.#child.pid!;
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

  /** @throws if it did not end well */
  async stop(): Promise<void> {
    const exited = once(this.#child, 'exit') as Promise<[number | null, string | null]>;
    this.#child.kill('SIGTERM');
    const [code, signal] = await exited;
    rmSync(this.#dataDir, { recursive: true, force: true });
    if (code !== 0) throw new Error(`the service ended with ${String(code ?? signal)}`);
  }
}
