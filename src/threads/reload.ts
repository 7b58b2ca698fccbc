/**
 * Has the voices read again, beside those that speak.
 *
 *   idle --request--> waiting --(no older voices in use)--> reading --> loading --> idle
 *                any of these --request--> one more follows; a third request is the second
 */
import { faultPlace } from '../fault.js';
import type { Log } from '../log.js';
import type { Dispatcher } from '../speech/dispatcher.js';
import type { Voices } from './voices.js';

export interface VoiceReloadParts {
  readonly dispatcher: Pick<Dispatcher, 'voicesSettled' | 'loadVoices' | 'voiceStatus' | 'voices'>;
  /** Reads and verifies them, without holding up the caller's thread. Rejects with one line that names the file. */
  readonly read: () => Promise<Voices>;
  readonly log: Log;
}

export class VoiceReload {
  readonly #parts: VoiceReloadParts;
  #running = false;
  #again = false;
  #isClosed = false;

  constructor(parts: VoiceReloadParts) {
    this.#parts = parts;
  }

  request(): void {
    if (this.#isClosed) return;
    if (this.#running) {
      this.#again = true;
      this.#parts.log.info('the voices are being reloaded: they will be read once more after that');
    } else void this.#run();
  }

  /** No other begins; one that is loading ends with its threads. Idempotent. */
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
    const { dispatcher, read, log } = this.#parts;
    const { contextsOfOlderVoices } = dispatcher.voiceStatus();
    if (contextsOfOlderVoices > 0)
      log.info({ contextsOfOlderVoices }, 'the voices will be read when those before are no longer in use');
    try {
      await dispatcher.voicesSettled();
      // What is asked for from here on was not seen by this reading.
      this.#again = false;
      const startedMs = performance.now();
      const voices = await read();
      const before = dispatcher.voices.speakerIds;
      if (!(await dispatcher.loadVoices(voices))) return;
      const now = dispatcher.voices.speakerIds;
      const { generation, executionProviders } = dispatcher.voiceStatus();
      log.info(
        {
          generation,
          voices: now.length,
          added: now.filter((id) => !before.includes(id)),
          removed: before.filter((id) => !now.includes(id)),
          executionProviders,
          reloadMs: Math.round(performance.now() - startedMs),
        },
        'voices reloaded',
      );
    } catch (error) {
      // A pack's fault names the file, and no text was there to be quoted.
      const reason = error instanceof Error ? error.message : faultPlace(error);
      log.error(
        { reason },
        'the voices were not reloaded, those from before go on: mend it, then SIGHUP again',
      );
    }
  }
}
