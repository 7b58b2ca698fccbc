/**
 * The actor of one context: puts chunks into the order of the marks, resamples, encodes, and builds frames.
 *
 * Marks (segment n begins, flush f, close) come from the front thread in order; chunks come from any synthesis thread
 * in any order of segments. The head mark decides: chunks of its segment are released as they come, those of later
 * segments wait. One resampler and one encoder live as long as the context, so no seam clicks and no header repeats.
 *
 *   open --segment*--> speaking --flush--> speaking --close--> closed
 *   any --dispose (cancel, fault)--> gone, without a frame
 */
import type { ActorCommand, ChunkMail, Frame } from '../src/dispatch/messages.js';
import { createEncoder, type Encoder } from './audio/encoder.js';
import { Resampler } from './audio/resampler.js';
import { createFramer, type Framer } from './framing.js';
import { WordClock } from './word-clock.js';

type OpenCommand = Extract<ActorCommand, { type: 'open' }>;
type SegmentCommand = Extract<ActorCommand, { type: 'segment' }>;

type Mark =
  | { readonly type: 'segment'; readonly command: SegmentCommand }
  | { readonly type: 'flush'; readonly flushId: string }
  | { readonly type: 'close' };

/** What has come of one segment and was not released. */
interface Inbox {
  readonly chunks: Extract<ChunkMail, { type: 'chunk' }>[];
  receivedSamples: number;
  done: boolean;
}

/** Playing time of one audio frame at most: words stay close to their sound, records small. */
const FRAME_MS_MAX = 200;

export class ContextActor {
  readonly #contextId: number;
  readonly #emit: (frame: Frame) => void;
  readonly #resampler: Resampler;
  readonly #encoder: Encoder;
  readonly #framer: Framer;
  readonly #words: WordClock | undefined;
  readonly #engineSampleRateHz: number;
  readonly #sampleRateHz: number;
  readonly #marks: Mark[] = [];
  readonly #inboxes = new Map<number, Inbox>();
  #lastSegment = 0;
  #disposed = false;

  constructor(open: OpenCommand, emit: (frame: Frame) => void) {
    this.#contextId = open.contextId;
    this.#emit = emit;
    this.#engineSampleRateHz = open.engineSampleRateHz;
    this.#sampleRateHz = open.format.sampleRateHz;
    this.#resampler = new Resampler(open.engineSampleRateHz, open.format.sampleRateHz);
    this.#encoder = createEncoder(open.format);
    this.#framer = createFramer(open.framing, this.#encoder);
    this.#words = open.timestamps ? new WordClock(open.engineSampleRateHz) : undefined;
  }

  segment(command: SegmentCommand): void {
    this.#marks.push({ type: 'segment', command });
    if (this.#marks.length === 1) this.#beginHead();
    this.#release();
  }

  flush(flushId: string): void {
    this.#marks.push({ type: 'flush', flushId });
    this.#release();
  }

  close(): void {
    this.#marks.push({ type: 'close' });
    this.#release();
  }

  chunk(mail: ChunkMail): void {
    let inbox = this.#inboxes.get(mail.segment);
    if (inbox === undefined) {
      inbox = { chunks: [], receivedSamples: 0, done: false };
      this.#inboxes.set(mail.segment, inbox);
    }
    if (mail.type === 'segment-done') inbox.done = true;
    // A segment that is run again after its thread died sends its chunks again, sample for sample the same.
    else if (mail.startSample >= inbox.receivedSamples) {
      inbox.receivedSamples = mail.startSample + mail.pcm.length;
      inbox.chunks.push(mail);
    }
    this.#release();
  }

  /** Frees what the context holds. No frame follows. Idempotent. */
  dispose(): void {
    if (this.#disposed) return;
    this.#disposed = true;
    this.#marks.length = 0;
    this.#inboxes.clear();
    this.#resampler.dispose();
    this.#encoder.dispose();
  }

  /** Works off the marks as far as what has come allows. */
  #release(): void {
    for (let mark = this.#marks[0]; mark !== undefined; mark = this.#marks[0]) {
      switch (mark.type) {
        case 'segment':
          if (!this.#releaseSegment(mark.command)) return;
          break;
        case 'flush':
          // What these encodings hold back is less than a frame: nothing to push out before `close`.
          this.#emit({ type: 'flushed', contextId: this.#contextId, flushId: mark.flushId });
          break;
        case 'close':
          this.#finish();
          return;
      }
      this.#marks.shift();
      this.#beginHead();
    }
  }

  #beginHead(): void {
    const head = this.#marks[0];
    if (head?.type === 'segment') this.#words?.beginSegment(head.command);
  }

  /** @returns whether the segment is complete */
  #releaseSegment(command: SegmentCommand): boolean {
    const inbox = this.#inboxes.get(command.segment);
    if (inbox === undefined) return false;
    for (const chunk of inbox.chunks) this.#speak(command.segment, chunk);
    inbox.chunks.length = 0;
    if (!inbox.done) return false;
    this.#words?.endSegment(inbox.receivedSamples);
    this.#lastSegment = command.segment;
    this.#inboxes.delete(command.segment);
    return true;
  }

  #speak(segment: number, chunk: Extract<ChunkMail, { type: 'chunk' }>): void {
    const samplesMax = Math.max(1, Math.round((this.#engineSampleRateHz * FRAME_MS_MAX) / 1000));
    let nextWord = 0;
    for (let start = 0; start < chunk.pcm.length; start += samplesMax) {
      const end = Math.min(chunk.pcm.length, start + samplesMax);
      this.#emitAudio(segment, this.#resampler.process(chunk.pcm.subarray(start, end)));
      if (this.#words === undefined) continue;
      for (; nextWord < chunk.words.length; nextWord++) {
        const word = chunk.words[nextWord];
        if (word === undefined || word.endSample > chunk.startSample + end) break;
        this.#words.add(word);
      }
      this.#emitTimings();
    }
  }

  #emitAudio(segment: number, samples: Int16Array): void {
    if (samples.length === 0) return;
    const bytes = this.#framer.audio(this.#encoder.encode(samples));
    this.#emit({
      type: 'audio',
      contextId: this.#contextId,
      segment,
      durationMs: (samples.length * 1000) / this.#sampleRateHz,
      bytes,
    });
  }

  #emitTimings(): void {
    const timings = this.#words?.take();
    if (timings === undefined) return;
    const bytes = this.#framer.timestamps(timings);
    this.#emit({ type: 'timestamps', contextId: this.#contextId, timings, bytes });
  }

  #finish(): void {
    const segment = this.#lastSegment;
    this.#emitAudio(segment, this.#resampler.finish());
    this.#words?.finish();
    this.#emitTimings();
    const { head, tail } = this.#framer.end(this.#encoder.finish());
    if (tail.length > 0)
      this.#emit({ type: 'audio', contextId: this.#contextId, segment, durationMs: 0, bytes: tail });
    if (head.length > 0) this.#emit({ type: 'head', contextId: this.#contextId, bytes: head });
    this.dispose();
    this.#emit({ type: 'closed', contextId: this.#contextId });
  }
}
