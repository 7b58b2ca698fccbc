/** The service that is tortured: its log is watched for faults. */
import { readdirSync } from 'node:fs';
import { ServiceProcess, type Exit, type ServiceProcessOptions } from '../rig-old/service-process.js';

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

const keptLinesMax = 200;
/** As pino numbers them: 40 is a warning, above are error and fatal. */
const levelOf = (line: string): number => Number(/^\{"level":(\d+)/.exec(line)?.[1] ?? 0);
const warning = 40;

class WatchedLog {
  readonly faults: string[] = [];
  faultCount = 0;
  statusWanted: ((status: Status) => void)[] = [];

  onLine(line: string): void {
    if (levelOf(line) > warning) {
      this.faultCount++;
      if (this.faults.length < keptLinesMax) this.faults.push(line);
    } else if (line.endsWith('"msg":"status"}')) {
      const status = JSON.parse(line) as LogLine & Status;
      for (const resolve of this.statusWanted.splice(0)) resolve(status);
    }
  }
}

export class TortureService extends ServiceProcess {
  readonly #log: WatchedLog;
  #port = 0;

  /** It may not listen yet, nor ever. */
  constructor(options: ServiceProcessOptions = {}) {
    const log = new WatchedLog();
    super({
      ...options,
      onLine: (line) => {
        options.onLine?.(line);
        log.onLine(line);
      },
    });
    this.#log = log;
    this.listening().then(
      ({ port }) => (this.#port = port),
      () => undefined,
    );
  }

  /** @throws what it said when it ended instead of listening */
  static async start(options: ServiceProcessOptions = {}): Promise<TortureService> {
    const service = new TortureService(options);
    await service.listening();
    return service;
  }

  /** 0 until it listens. */
  get port(): number {
    return this.#port;
  }

  /** Lines of level error and fatal, the first of them. */
  get faults(): readonly string[] {
    return this.#log.faults;
  }

  /** All of those. */
  get faultCount(): number {
    return this.#log.faultCount;
  }

  /** Files and sockets that it has open; -1 where the system does not tell. */
  get openFiles(): number {
    try {
      return readdirSync(`/proc/${String(this.pid)}/fd`).length;
    } catch {
      return -1;
    }
  }

  /** What is going on in it, as it tells in its log. @throws when it does not tell within five seconds */
  status(): Promise<Status> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error('no status within five seconds')), 5_000);
      this.#log.statusWanted.push((status) => {
        clearTimeout(timer);
        resolve(status);
      });
      this.signal('SIGUSR2');
    });
  }

  /** Ends it as an operator does. Idempotent. */
  stop(): Promise<Exit> {
    return this.end('SIGTERM');
  }

  /** Idempotent. */
  kill(): Promise<Exit> {
    return this.end('SIGKILL');
  }
}
