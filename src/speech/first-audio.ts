/**
 * First audio as a listener has it: three figures of one reply (the speech of an HTTP request, or what a silent context of a WebSocket speaks next).
 *
 * - `byte`: the socket has the first bytes of audio.
 * - `decoded`: the socket has the bytes from which a decoder makes the first sample of the speech.
 * - `audible`: the listener hears the first sample over -50 dBFS, if it plays from the first sample that its decoder makes
 *   and has nothing else to play. So silence at the start counts in full, even if all bytes come at once.
 *
 * Times of the network and of the player are not in them. Silence has no audible sample, and then no third figure.
 */
import type { FirstAudioFigure } from '../metrics.js';
import type { Frame } from '../threads/messages.js';
import { PlaybackClock } from '../threads/playback-clock.js';

type AudioFrame = Extract<Frame, { type: 'audio' }>;

export class FirstAudio {
  readonly #sinceMs: number;
  readonly #fromSegment: number;
  readonly #onFigure: (figure: FirstAudioFigure, ms: number) => void;
  /** When each was reached. */
  readonly #atMs: Partial<Record<FirstAudioFigure, number>> = {};
  /** Of what a decoder makes of the bytes: it differs from the speech by the delay of a codec. */
  readonly #decoded = new PlaybackClock();

  /**
   * @param sinceMs when the reply was asked for
   * @param fromSegment its first segment
   * @param onFigure called once for each figure
   */
  constructor(
    sinceMs: number,
    fromSegment: number,
    onFigure: (figure: FirstAudioFigure, ms: number) => void = () => undefined,
  ) {
    this.#sinceMs = sinceMs;
    this.#fromSegment = fromSegment;
    this.#onFigure = onFigure;
  }

  /** Fields of a log line. @param sinceMs from when its times count */
  fields(sinceMs = this.#sinceMs) {
    const { audible, byte, decoded } = this.#atMs;
    const elapsedMs = (atMs: number | undefined) =>
      atMs === undefined ? undefined : Math.round((atMs - sinceMs) * 10) / 10;
    return {
      firstAudioMs: elapsedMs(byte),
      firstDecodedMs: elapsedMs(decoded),
      firstAudibleMs: elapsedMs(audible),
    };
  }

  /** The socket has a frame of the reply's context. A codec's rest of an earlier reply does not count. */
  handed(nowMs: number, { onset, segment }: Pick<AudioFrame, 'onset' | 'segment'>): void {
    if (segment < this.#fromSegment || this.#atMs.audible !== undefined) return;
    this.reached('byte', nowMs);
    if (onset === undefined) return;
    this.#decoded.reach(0, nowMs);
    const playMs = this.#decoded.at();
    this.#decoded.advance(onset.decodedMs);
    if (onset.firstMs !== undefined) this.reached('decoded', nowMs);
    if (onset.audibleMs !== undefined) this.reached('audible', playMs + onset.audibleMs);
  }

  /** All of the reply's audio came at once. @param collected the frames, handed over at 0 */
  handedWhole(nowMs: number, collected: FirstAudio): void {
    for (const figure of ['decoded', 'audible'] as const) {
      const afterMs = collected.#atMs[figure];
      if (afterMs !== undefined) this.reached(figure, nowMs + afterMs);
    }
  }

  /** A figure is known. Only the first time counts. */
  reached(figure: FirstAudioFigure, atMs: number): void {
    if (this.#atMs[figure] !== undefined) return;
    this.#atMs[figure] = atMs;
    this.#onFigure(figure, atMs - this.#sinceMs);
  }
}
