/**
 * Reads the voices again and loads them, while the current ones speak.
 *
 *   idle --request--> waiting --(no older voices in use)--> reading --> loading --> idle
 *
 * Requests before the reading begins are one with it; requests after that cause one more reload.
 */
import { faultPlace } from '../fault.js';
import type { Log } from '../log.js';
import type { Generations } from './generations.js';
import { VoicePackError, type PackFinding, type Voices } from './voices.js';

export interface VoiceReloadParts {
  readonly generations: Pick<Generations, 'settled' | 'load' | 'status' | 'current'>;
  /** Reads and verifies the voices without blocking the thread. Rejects with one line that names the file. */
  readonly read: () => Promise<Voices>;
  /** Called at once for each request, to reload what need not wait for the voices. */
  readonly onRequest?: () => void;
  readonly log: Log;
}

/** How the last reload went. */
export interface ReloadResult {
  readonly atMs: number;
  /** Why the voices were not reloaded; `null` if they were. */
  readonly fault: string | null;
  /** The packs that made the reload fail. */
  readonly findings: readonly PackFinding[];
}

/** Logs each pack that cannot be used. The others are in use. */
export const logFindings = (findings: readonly PackFinding[], log: Log): void => {
  for (const { pack, fault } of findings) log.warn({ pack, reason: fault }, 'a voice pack cannot be used');
};

export class VoiceReload {
  readonly #parts: VoiceReloadParts;
  #running = false;
  #again = false;
  #isClosed = false;
  #last: ReloadResult | null = null;

  constructor(parts: VoiceReloadParts) {
    this.#parts = parts;
  }

  get isRunning(): boolean {
    return this.#running;
  }

  /** `null` before the first. */
  get last(): ReloadResult | null {
    return this.#last;
  }

  request(): void {
    if (this.#isClosed) return;
    this.#parts.onRequest?.();
    if (this.#running) {
      this.#again = true;
      this.#parts.log.info('the voices are being reloaded: they will be read once more after that');
    } else void this.#run();
  }

  /** Begins no further reload. One that is loading ends with its threads. Idempotent. */
  close(): void {
    this.#isClosed = true;
  }

  async #run(): Promise<void> {
    this.#running = true;
    do await this.#reload();
    while (this.#isWantedAgain());
    this.#running = false;
  }

  #isWantedAgain(): boolean {
    return this.#again && !this.#isClosed;
  }

  /** Never rejects. */
  async #reload(): Promise<void> {
    const { generations, read, log } = this.#parts;
    const { contextsOfOlderVoices } = generations.status();
    if (contextsOfOlderVoices > 0)
      log.info(
        { contextsOfOlderVoices },
        'the voices will be read when no context uses the older ones any more',
      );
    try {
      await generations.settled();
      // This reading misses the files of later requests.
      this.#again = false;
      const startedMs = performance.now();
      const voices = await read();
      const before = generations.current.voices.speakerIds;
      if (!(await generations.load(voices))) return;
      this.#last = { atMs: Date.now(), fault: null, findings: [] };
      const now = generations.current.voices.speakerIds;
      const { generation, executionProviders } = generations.status();
      logFindings(voices.findings, log);
      log.info(
        {
          generation,
          voices: now.length,
          added: now.filter((id) => !before.includes(id)),
          removed: before.filter((id) => !now.includes(id)),
          refusedPacks: voices.findings.length,
          executionProviders,
          reloadMs: Math.round(performance.now() - startedMs),
        },
        'voices reloaded',
      );
    } catch (error) {
      // The message of a pack's fault names the file; it cannot quote a text.
      const reason = error instanceof Error ? error.message : faultPlace(error);
      const findings = error instanceof VoicePackError ? error.findings : [];
      this.#last = { atMs: Date.now(), fault: reason, findings };
      log.error(
        { reason },
        'the voices were not reloaded, the current ones go on: fix the fault, then SIGHUP again',
      );
    }
  }
}
