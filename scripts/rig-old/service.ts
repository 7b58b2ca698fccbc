/** The service under load: the real one, with a store of its own, and what is measured of its process. */
import { readMemory } from './process-facts.js';
import { ServiceProcess, type Exit, type Ports } from './service-process.js';
import { type CpuTimes, readCpuTimes } from './threads.js';

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
  /** With Node's inspector on a free port. */
  readonly inspected?: boolean;
}

const describeExit = ({ code, signal }: Exit): string => String(code ?? signal);

export class Service {
  readonly port: number;
  readonly opsPort: number | null;
  readonly keys: string[] = [];
  /** `null`: it has none. */
  readonly inspectorUrl: string | null;
  /** Of the process. Its end is not an error of this promise. */
  readonly exited: Promise<string>;
  readonly #process: ServiceProcess;

  private constructor(process: ServiceProcess, { port, opsPort }: Ports) {
    this.#process = process;
    this.port = port;
    this.opsPort = opsPort;
    this.inspectorUrl = /ws:\/\/\S+/.exec(process.stderr)?.[0] ?? null;
    this.exited = process.exited.then(describeExit);
  }

  /** Ready to speak when it resolves. */
  static async start(options: ServiceOptions): Promise<Service> {
    const { modelsDir, synthesisThreads, actorThreads, onLogLine } = options;
    const { ownGroup = false, inspected = false } = options;
    const process = new ServiceProcess({
      env: {
        MODELS_DIR: modelsDir,
        SYNTHESIS_THREADS: String(synthesisThreads),
        ACTOR_THREADS: String(actorThreads),
      },
      ...(onLogLine !== undefined && { onLine: onLogLine }),
      nodeOptions: inspected ? ['--inspect=127.0.0.1:0'] : [],
      ownGroup,
      showsErrors: true,
    });
    const service = new Service(process, await process.listening());
    try {
      if (inspected && service.inspectorUrl === null)
        throw new Error('the service started without its inspector');
      await service.addKeys(options.keys);
      return service;
    } catch (error) {
      await process.end('SIGKILL');
      throw error;
    }
  }

  get pid(): number {
    return this.#process.pid;
  }

  /** Makes more keys, each of an account of its own that is not metered. */
  async addKeys(count: number): Promise<void> {
    this.keys.push(...(await this.#process.makeKeys(count)));
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
    this.#process.signal(signal);
  }

  /**
   * @param onStopped called before its store is removed
   * @throws if it did not end well
   */
  async stop(onStopped?: (dataDir: string) => void): Promise<void> {
    const end = describeExit(await this.#process.end('SIGTERM', onStopped));
    if (end !== '0') throw new Error(`the service ended with ${end}`);
  }
}
