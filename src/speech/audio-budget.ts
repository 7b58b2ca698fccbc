/** The audio that no socket has yet: how much one context has of it, and the bound that all contexts share. */
import { encodedBytesPerMs, type AudioFormat } from '../api/formats.js';
import { ByteBudget } from '../byte-budget.js';

/** Refused contexts are notified whenever this fraction of the budget was given back. */
const STEPS = 256;
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

/** The bytes of all contexts. It calls back when contexts that it refused may have room. */
export class AudioBudget {
  readonly #budget: ByteBudget;
  readonly #onRoom: () => void;
  /** The most bytes that were taken when a context was refused, since the last call of `onRoom`. */
  #crowdedBytes: number | null = null;

  constructor(bytesMax: number, onRoom: () => void) {
    this.#budget = new ByteBudget(bytesMax);
    this.#onRoom = onRoom;
  }

  /** Bytes of all contexts. */
  get bytes(): number {
    return this.#budget.taken;
  }

  /** @returns false if a context that has so many bytes may not add to them now */
  hasRoomFor(heldBytes: number): boolean {
    const hasRoom = !this.isTightFor(heldBytes);
    // Polling must not postpone the notification.
    if (!hasRoom) this.#crowdedBytes = Math.max(this.#crowdedBytes ?? 0, this.bytes);
    return hasRoom;
  }

  /** The opposite, without a notification later. */
  isTightFor(heldBytes: number): boolean {
    return this.#budget.isExhausted || heldBytes > this.#budget.allowance(Number.POSITIVE_INFINITY);
  }

  /** A context has so many bytes more, or fewer. */
  change(bytes: number): void {
    const wasExhausted = this.#budget.isExhausted;
    this.#budget.change(bytes);
    if (this.#crowdedBytes === null || bytes >= 0) return;
    const hasRoomAgain = wasExhausted && this.bytes < this.#budget.bytesMax;
    if (!hasRoomAgain && this.#crowdedBytes - this.bytes < this.#budget.bytesMax / STEPS) return;
    this.#crowdedBytes = null;
    this.#onRoom();
  }
}

/**
 * The audio of one context that its socket does not have yet.
 *
 * Audio is handed over in the order of its segments, and often before its segment is finished and the duration known.
 * A running segment counts with its estimate, or with what was handed over of it if that is more; then with its duration.
 */
export class UnsentAudio {
  /** Started segments with audio that is not handed over, in the order of their audio. */
  readonly #segments: { readonly index: number; ms: number; isFinished: boolean }[] = [];
  /** Handed over of the first of them. */
  #handedMs = 0;

  /** Never negative, but for rounding, unless more was handed over than was made. */
  get ms(): number {
    return this.#segments.reduce((sum, { ms }) => sum + ms, -this.#handedMs);
  }

  started(index: number, estimatedMs: number): void {
    const again = this.#segments.find((segment) => segment.index === index);
    if (again === undefined) this.#segments.push({ index, ms: estimatedMs, isFinished: false });
    else again.ms = estimatedMs;
    this.#settle();
  }

  /** It will be started again: until then it counts with what was handed over of it. */
  interrupted(index: number): void {
    this.started(index, 0);
  }

  finished(index: number, durationMs: number): void {
    const segment = this.#segments.find((candidate) => candidate.index === index);
    if (segment === undefined) return;
    segment.ms = durationMs;
    segment.isFinished = true;
    this.#settle();
  }

  handed(durationMs: number): void {
    this.#handedMs += durationMs;
    this.#settle();
  }

  #settle(): void {
    for (let [first] = this.#segments; first !== undefined; [first] = this.#segments) {
      if (!first.isFinished) {
        first.ms = Math.max(first.ms, this.#handedMs);
        return;
      }
      if (this.#handedMs < first.ms) return;
      this.#handedMs -= first.ms;
      this.#segments.shift();
    }
  }
}
