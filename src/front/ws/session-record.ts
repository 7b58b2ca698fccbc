/** What the log says of a WebSocket when it is closed. */
import type { Log } from '../../log.js';
import type { RefusalReason } from '../../metrics.js';
import type { FirstAudio } from '../../speech/first-audio.js';

/** Why a socket ended. `client`: the client closed it, or went away. */
export type SessionOutcome =
  | 'client'
  | 'revoked'
  | 'drained'
  | 'reader-stalled'
  | 'silent'
  | 'flooded'
  | 'failed';

export class SessionRecord {
  readonly #startMs: number;
  outcome: SessionOutcome | null = null;
  openedContexts = 0;
  characters = 0;
  frames = 0;
  #firstTextMs: number | undefined;
  /** Of the first reply with audio. */
  #firstAudio: FirstAudio | undefined;

  constructor(startMs: number) {
    this.#startMs = startMs;
  }

  text(nowMs: number): void {
    this.#firstTextMs ??= nowMs;
  }

  firstAudio(ofReply: FirstAudio): void {
    this.#firstAudio ??= ofReply;
  }

  write(
    log: Log,
    facts: {
      readonly requestId: string;
      readonly keyId: number;
      readonly route: string;
      readonly code: number;
      readonly cause: string | undefined;
      readonly spokenCharacters: number;
    },
    nowMs: number,
  ): void {
    log.info(
      {
        ...facts,
        status: 101,
        outcome: this.outcome ?? 'client',
        contexts: this.openedContexts,
        frames: this.frames,
        characters: this.characters,
        ...this.#firstAudio?.fields(this.#firstTextMs),
        totalMs: Math.round((nowMs - this.#startMs) * 10) / 10,
      },
      'socket',
    );
  }
}

/** The line of a socket that was refused after its handshake: it never had a session. */
export const logRefused = (
  log: Log,
  facts: {
    readonly requestId: string;
    readonly route: string;
    readonly refusal: RefusalReason;
    readonly code: number;
  },
): void => {
  const outcome = facts.refusal === 'keyUnknown' ? 'key-unknown' : 'refused';
  log.info({ ...facts, status: 101, outcome }, 'socket');
};
