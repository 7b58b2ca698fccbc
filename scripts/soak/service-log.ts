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

/** How the service says that it has dropped somebody for a reason of its own; none of the clients gives one. */
const dropped = /"outcome":"(?:reader-stalled|silent|flooded|failed)"/;

export class ServiceLog {
  readonly #told: string[] = [];
  #errors = 0;
  #drops = 0;
  /** Signals that come together are one: the line that answers it answers all who wait. */
  readonly #waiting = new Set<(status: Status) => void>();

  /** Lines that tell of an error. */
  get errors(): number {
    return this.#errors;
  }

  /** Connections that it dropped. */
  get drops(): number {
    return this.#drops;
  }

  /** The first of both. */
  get told(): readonly string[] {
    return this.#told;
  }

  onLine(text: string): void {
    const level = Number(/"level":(\d+)/.exec(text)?.[1] ?? errorLevel);
    const isError = level >= errorLevel;
    const isDrop = !isError && dropped.test(text);
    if (isError) this.#errors++;
    if (isDrop) this.#drops++;
    if ((isError || isDrop) && this.#told.length < linesToldMax) this.#told.push(text.slice(0, 500));
    if (!text.includes('"msg":"status"')) return;
    const status = JSON.parse(text) as Line & Status;
    for (const onStatus of this.#waiting) onStatus(status);
  }

  /** @param ask has the service write its status. @returns `null` when it does not within the time */
  status(ask: () => void, withinMs: number): Promise<Status | null> {
    return new Promise((resolve) => {
      const end = (status: Status | null): void => {
        clearTimeout(timer);
        this.#waiting.delete(end);
        resolve(status);
      };
      const timer = setTimeout(() => end(null), withinMs);
      this.#waiting.add(end);
      ask();
    });
  }
}
