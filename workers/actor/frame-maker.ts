/**
 * Makes the frames of one context from chunks that are in order: resamples and encodes them, and adds the times of words.
 * One resampler and one encoder live as long as the context, so no seam clicks and no header repeats.
 */
import {
  isSocketFraming,
  isWholeFraming,
  timesCharacters,
  type ActorCommand,
  type ChunkMail,
  type Frame,
  type WordTime,
  type WordTimings,
} from '../../src/threads/messages.js';
import { AudioPath } from '../audio/audio-path.js';
import type { Encoder } from '../audio/encoder.js';
import { CharacterClock } from './character-clock.js';
import { createFramer, type Framer } from './framing.js';
import { OnsetFinder } from './onset.js';
import { WordClock } from './word-clock.js';

type OpenCommand = Extract<ActorCommand, { type: 'open' }>;
type SegmentCommand = Extract<ActorCommand, { type: 'segment' }>;
type Chunk = Extract<ChunkMail, { type: 'chunk' }>;

const clockOf = ({ engineSampleRateHz, framing }: OpenCommand): WordClock | CharacterClock =>
  timesCharacters(framing)
    ? new CharacterClock(engineSampleRateHz, isSocketFraming(framing))
    : new WordClock(engineSampleRateHz);

/** The most audio of one frame: words stay close to their audio, and records small. */
export const FRAME_MS_MAX = 200;

export class FrameMaker {
  readonly #contextId: number;
  readonly #emit: (frame: Frame) => void;
  readonly #path: AudioPath;
  readonly #framer: Framer;
  readonly #words: WordClock | CharacterClock | undefined;
  readonly #onset: OnsetFinder;
  readonly #engineSampleRateHz: number;
  readonly #frameSamplesMax: number;
  readonly #isSocket: boolean;
  #segment = 0;
  #spoke = false;
  /** Samples of the current chunk that are in frames. */
  #framedSamples = 0;
  /** Words of the segment that are not reported: they end after the audio so far. */
  #unreported: WordTime[] = [];

  /** @param encoder the maker owns it, and disposes of it */
  constructor(open: OpenCommand, encoder: Encoder, emit: (frame: Frame) => void) {
    this.#contextId = open.contextId;
    this.#emit = emit;
    this.#path = new AudioPath(open.engineSampleRateHz, encoder);
    this.#isSocket = isSocketFraming(open.framing);
    this.#framer = createFramer(open.framing, encoder, open.clientContextId);
    this.#words = open.timestamps ? clockOf(open) : undefined;
    // The header of a whole file makes players skip the delay.
    const delaySamples = isWholeFraming(open.framing) ? 0 : this.#path.streamDelaySamples;
    this.#words?.silence(delaySamples);
    const skippedMs = ((this.#path.streamDelaySamples - delaySamples) * 1000) / open.engineSampleRateHz;
    this.#onset = new OnsetFinder(open.engineSampleRateHz, delaySamples, skippedMs);
    this.#engineSampleRateHz = open.engineSampleRateHz;
    this.#frameSamplesMax = Math.max(1, Math.round((open.engineSampleRateHz * FRAME_MS_MAX) / 1000));
  }

  beginSegment(command: SegmentCommand): void {
    this.#segment = command.segment;
    this.#words?.beginSegment(command);
    this.#onset.beginSegment();
  }

  /**
   * Makes the next frame of a chunk. The caller passes the chunk again until its last frame is made.
   *
   * @returns milliseconds of speech that went into the frame
   */
  speak(chunk: Chunk): { readonly durationMs: number; readonly isLast: boolean } {
    this.#spoke = true;
    const start = this.#framedSamples;
    const end = Math.min(chunk.pcm.length, start + this.#frameSamplesMax);
    const samples = chunk.pcm.subarray(start, end);
    if (start === 0) this.#unreported.push(...chunk.words);
    this.#onset.speech(samples);
    const { payload, durationMs } = this.#path.encode(samples);
    this.#addWords(chunk.startSample + end - this.#path.resamplerSamples);
    this.#emitAudio(payload, durationMs);
    this.#emitTimings();
    const isLast = end === chunk.pcm.length;
    this.#framedSamples = isLast ? 0 : end;
    return { durationMs: ((end - start) * 1000) / this.#engineSampleRateHz, isLast };
  }

  /** @param samples of the whole segment */
  endSegment(samples: number): void {
    this.#addWords(Infinity);
    this.#words?.endSegment(samples);
    this.#emitTimings();
    if (this.#isSocket) this.#emit({ type: 'spoken', contextId: this.#contextId, segment: this.#segment });
  }

  /** @param blank white space after the last segment */
  flush(flushId: string, blank?: string): void {
    const { payload, durationMs, silenceSamples } = this.#path.flush();
    this.#onset.silence(silenceSamples);
    // A token that should go on ends here: the rest of its text was refused.
    this.#words?.finish(blank);
    this.#emitAudio(payload, durationMs);
    this.#emitTimings();
    this.#words?.silence(silenceSamples);
    this.#emit({ type: 'flushed', contextId: this.#contextId, flushId });
  }

  /** Emits what is left. Nothing may follow. */
  finish(blank?: string): void {
    this.#words?.finish(blank);
    if (!this.#framer.carriesTimes) this.#emitTimings();
    // A file must be valid even without audio. On a socket, a context that never spoke sends none.
    if (this.#isSocket && !this.#spoke) return;
    const { payload, durationMs } = this.#path.finish();
    const { head, tail } = this.#framer.end(payload, this.#carried());
    if (tail.length > 0) this.#emitBytes(tail, durationMs);
    if (head.length > 0) this.#emit({ type: 'head', contextId: this.#contextId, bytes: head });
  }

  /** Idempotent. */
  dispose(): void {
    this.#path.dispose();
  }

  /** The words that end by `untilSample` of their segment are final. */
  #addWords(untilSample: number): void {
    const later = this.#unreported.findIndex(({ endSample }) => endSample > untilSample);
    for (const word of this.#unreported.splice(0, later < 0 ? Infinity : later)) this.#words?.add(word);
  }

  /** The times that the next frame of audio has. */
  #carried(): WordTimings | undefined {
    return this.#framer.carriesTimes ? this.#words?.take() : undefined;
  }

  #emitAudio(payload: Uint8Array, durationMs: number): void {
    if (payload.length > 0) this.#emitBytes(this.#framer.audio(payload, this.#carried()), durationMs);
  }

  #emitBytes(bytes: Uint8Array, durationMs: number): void {
    const onset = this.#onset.decodable(this.#path.decodableMs);
    this.#emit({
      type: 'audio',
      contextId: this.#contextId,
      segment: this.#segment,
      durationMs,
      ...(onset !== undefined && { onset }),
      bytes,
    });
  }

  #emitTimings(): void {
    const timings = this.#words?.take();
    if (timings === undefined) return;
    const bytes = this.#framer.timestamps(timings);
    this.#emit({ type: 'timestamps', contextId: this.#contextId, timings, bytes });
  }
}
