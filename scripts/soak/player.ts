/**
 * A listener's player, turn after turn: plays what came, one second a second, and tells when it had nothing left to
 * play in the midst of a turn.
 *
 *   silent --audio--> playing --(all heard)--> dry --audio--> playing;  any --begin--> silent
 */

/** What a dry moment was. `early`: the text was not sent yet, or just so, and nothing could be played. */
export type DryKind = 'none' | 'early' | 'unjudged' | 'underrun';

export interface DryMoment {
  /** Since when there was nothing to play, and when audio came. */
  readonly sinceMs: number;
  readonly untilMs: number;
  /** When the text of the turn was complete; `null`: it is not yet. */
  readonly textCompleteMs: number | null;
  /** By how much the client itself was late meanwhile. */
  readonly clientLateMs: number;
}

export const dryBounds = {
  /** Shorter than this is nothing that a player's own buffer does not cover. */
  toleranceMs: 20,
  /** From the end of the text to its audio. */
  firstAudioMs: 200,
} as const;

export interface DryVerdict {
  readonly kind: DryKind;
  /** Milliseconds by which audio came later than it had to. */
  readonly lateMs: number;
}

export const judgeDry = ({ sinceMs, untilMs, textCompleteMs, clientLateMs }: DryMoment): DryVerdict => {
  const { toleranceMs, firstAudioMs } = dryBounds;
  if (untilMs - sinceMs <= toleranceMs) return { kind: 'none', lateMs: 0 };
  if (textCompleteMs === null) return { kind: 'early', lateMs: 0 };
  const lateMs = untilMs - Math.max(sinceMs, textCompleteMs + firstAudioMs);
  if (lateMs <= toleranceMs) return { kind: 'early', lateMs: 0 };
  return { kind: clientLateMs >= lateMs - toleranceMs ? 'unjudged' : 'underrun', lateMs };
};

export class Player {
  #receivedMs = 0;
  #playingSinceMs: number | null = null;

  /** A new turn: what is received from now on is counted from zero. */
  begin(): void {
    this.#receivedMs = 0;
    this.#playingSinceMs = null;
  }

  /** Milliseconds that are received and not heard yet. */
  aheadMs(nowMs: number): number {
    if (this.#playingSinceMs === null) return 0;
    return Math.max(0, this.#receivedMs - (nowMs - this.#playingSinceMs));
  }

  /** @param receivedMs of the turn so far. @returns since when it was dry; `null` when it was not */
  onAudio(receivedMs: number, nowMs: number): number | null {
    const endMs = this.#playingSinceMs === null ? null : this.#playingSinceMs + this.#receivedMs;
    const isMore = receivedMs > this.#receivedMs;
    this.#receivedMs = receivedMs;
    this.#playingSinceMs ??= nowMs;
    if (endMs === null || endMs >= nowMs || !isMore) return null;
    // What comes now is played now.
    this.#playingSinceMs += nowMs - endMs;
    return endMs;
  }
}
