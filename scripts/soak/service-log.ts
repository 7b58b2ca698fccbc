/** The log of the service under a soak: its lines of trouble are counted, and its status lines waited for. */

/** Pino's number for errors; worse is more. */
const errorLevel = 50;
const linesToldMax = 20;

/** What SIGUSR2 has it say, as far as a soak looks at it. */
export interface Status {
  readonly requestsInFlight: number;
  readonly openContexts: number;
  readonly threadsWhole: boolean;
}

interface Line {
  readonly level: number;
  readonly msg?: string;
}

export class ServiceLog {
  readonly #told: string[] = [];
  #errors = 0;
  #onStatus: (status: Status) => void = () => undefined;

  /** Lines that tell of an error. */
  get errors(): number {
    return this.#errors;
  }

  /** The first of them. */
  get told(): readonly string[] {
    return this.#told;
  }

  onLine(text: string): void {
    const level = Number(/"level":(\d+)/.exec(text)?.[1] ?? errorLevel);
    if (level >= errorLevel) {
      this.#errors++;
      if (this.#told.length < linesToldMax) this.#told.push(text.slice(0, 500));
    } else if (text.includes('"msg":"status"')) this.#onStatus(JSON.parse(text) as Line & Status);
  }

  /** @param ask has the service write its status. @returns `null` when it does not within the time */
  status(ask: () => void, withinMs: number): Promise<Status | null> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve(null), withinMs);
      this.#onStatus = (status) => {
        clearTimeout(timer);
        resolve(status);
      };
      ask();
    });
  }
}
