/** The audio that no socket has yet: how much one context has of it, and the bound that all contexts share. */
import { encodedBytesPerMs, type AudioFormat } from '../api/formats.js';
import { KeyedBudget } from '../byte-budget.js';

/** Refused contexts are notified whenever each may have this fraction of the budget more. */
const STEPS = 4_096;
const BYTES_PER_SAMPLE = 2;
const BASE64 = 4 / 3;

/**
 * Memory that a millisecond of speech takes from when it is made until its socket has it.
 *
 * @param engineSampleRateHz rate of the samples that wait in the actor
 * @returns bytes of the samples, or of the base64 that is made of them, whichever is more
 */
export const heldBytesPerMs = (format: AudioFormat, engineSampleRateHz: number): number =>
  Math.max((BYTES_PER_SAMPLE * engineSampleRateHz) / 1000, BASE64 * encodedBytesPerMs(format));

/**
 * The bytes of all contexts, by account. An account that has none may always begin a segment, whatever others hold. It calls
 * back when contexts that it refused may have room.
 */
export class AudioBudget {
  readonly #budget: KeyedBudget;
  readonly #stepBytes: number;
  readonly #onRoom: () => void;
  /** The least that a context of each account was allowed when it was refused, since the last call of `onRoom`. */
  readonly #refused = new Map<string, number>();

  constructor(bytesMax: number, onRoom: () => void) {
    this.#budget = new KeyedBudget(bytesMax, 0);
    this.#stepBytes = bytesMax / STEPS;
    this.#onRoom = onRoom;
  }

  /** Bytes of all contexts. */
  get bytes(): number {
    return this.#budget.taken;
  }

  /** @returns false if a context of the account that has so many bytes may not add to them now */
  hasRoomFor(account: string, heldBytes: number): boolean {
    const allowed = this.#allowed(account);
    if (allowed > 0 && heldBytes <= allowed) return true;
    // Polling must not postpone the notification.
    this.#refused.set(account, Math.min(this.#refused.get(account) ?? allowed, allowed));
    return false;
  }

  /** The account would have its part without so many of its bytes. */
  isFull(account: string, withoutBytes: number): boolean {
    return this.#budget.takenBy(account) > withoutBytes && this.#budget.left(account) + withoutBytes <= 0;
  }

  /** A context of the account has so many bytes more, or fewer. */
  change(account: string, bytes: number): void {
    this.#budget.change(account, bytes);
    if (bytes >= 0) return;
    for (const [refused, least] of this.#refused) {
      const allowed = this.#allowed(refused);
      if (allowed === 0 || (least > 0 && allowed - least < this.#stepBytes)) continue;
      this.#refused.clear();
      this.#onRoom();
      return;
    }
  }

  #allowed(account: string): number {
    return this.#budget.takenBy(account) === 0 ? Infinity : this.#budget.allowance(account, Infinity);
  }
}

/**
 * The audio of one context: where each segment begins in it, and what its socket does not have yet.
 *
 * Audio is handed over in the order of its segments, and often before its segment is finished and the duration known.
 * A running segment counts with its estimate, or with what was handed over of it if that is more; then with its duration.
 */
export class ContextAudio {
  /** Started segments with audio that is not handed over, in the order of their audio. */
  readonly #segments: { readonly index: number; ms: number; isFinished: boolean }[] = [];
  /** Of the segments before them. */
  #settledMs = 0;
  /** Handed over of the first of them. */
  #handedMs = 0;
  /** Of finished segments. */
  madeMs = 0;

  /** Unsent. Never negative, but for rounding, unless more was handed over than was made. */
  get ms(): number {
    const [first] = this.#segments;
    const moreMs = first === undefined || first.isFinished ? 0 : Math.max(0, this.#handedMs - first.ms);
    return this.#segments.reduce((sum, { ms }) => sum + ms, moreMs - this.#handedMs);
  }

  /** Position of the first sample of the segment with this index. */
  startOf(index: number): number {
    let startMs = this.#settledMs;
    for (const segment of this.#segments) if (segment.index < index) startMs += segment.ms;
    return startMs;
  }

  started(index: number, estimatedMs: number): void {
    const again = this.#segments.find((segment) => segment.index === index);
    if (again === undefined) this.#segments.push({ index, ms: estimatedMs, isFinished: false });
    else again.ms = estimatedMs;
  }

  finished(index: number, durationMs: number): void {
    const segment = this.#segments.find((candidate) => candidate.index === index);
    if (segment === undefined) return;
    segment.ms = durationMs;
    segment.isFinished = true;
    this.madeMs += durationMs;
    this.#settle();
  }

  handed(durationMs: number): void {
    this.#handedMs += durationMs;
    this.#settle();
  }

  #settle(): void {
    for (let [first] = this.#segments; first !== undefined; [first] = this.#segments) {
      if (!first.isFinished || this.#handedMs < first.ms) return;
      this.#handedMs -= first.ms;
      this.#settledMs += first.ms;
      this.#segments.shift();
    }
  }
}
