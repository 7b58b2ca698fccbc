/**
 * The actor of one context: puts chunks into the order of the marks and has frames made of them.
 *
 * Marks (segment n begins, flush f, close) come from the front thread in order; chunks come from any synthesis thread
 * in any order of segments. The head mark decides: chunks of its segment are released as they come, those of later
 * segments wait. Some codecs' encoders are made at leisure: until there is one, everything waits.
 *
 *   open --segment*--> speaking --flush--> speaking --close--> closed
 *   any --dispose (cancel, fault)--> gone, without a frame
 *   open --(no encoder could be made)--> failed
 */
import { faultPlace } from '../src/fault.js';
import type { ActorCommand, ChunkMail, Frame } from '../src/dispatch/messages.js';
import type { Encoder } from './audio/encoder.js';
import { createEncoder } from './audio/encoders.js';
import { FrameMaker } from './frame-maker.js';

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

export class ContextActor {
  readonly #open: OpenCommand;
  readonly #emit: (frame: Frame) => void;
  readonly #marks: Mark[] = [];
  readonly #inboxes = new Map<number, Inbox>();
  #frames: FrameMaker | undefined;
  /** The segment that the head mark began, once it did. */
  #begun: SegmentCommand | undefined;
  #disposed = false;

  constructor(open: OpenCommand, emit: (frame: Frame) => void) {
    this.#open = open;
    this.#emit = emit;
    const encoder = createEncoder(open.format);
    if (encoder instanceof Promise) void this.#beginWith(encoder);
    else this.#begin(encoder);
  }

  segment(command: SegmentCommand): void {
    this.#marks.push({ type: 'segment', command });
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
    this.#frames?.dispose();
  }

  #begin(encoder: Encoder): void {
    if (this.#disposed) encoder.dispose();
    else this.#frames = new FrameMaker(this.#open, encoder, this.#emit);
  }

  async #beginWith(encoder: Promise<Encoder>): Promise<void> {
    try {
      this.#begin(await encoder);
      this.#release();
    } catch (error) {
      if (this.#disposed) return;
      this.dispose();
      const reason = faultPlace(error);
      this.#emit({ type: 'failed', contextId: this.#open.contextId, reason });
    }
  }

  /** Works off the marks as far as what has come allows. */
  #release(): void {
    const frames = this.#frames;
    if (frames === undefined || this.#disposed) return;
    for (let mark = this.#marks[0]; mark !== undefined; mark = this.#marks[0]) {
      switch (mark.type) {
        case 'segment':
          if (!this.#releaseSegment(frames, mark.command)) return;
          break;
        case 'flush':
          frames.flush(mark.flushId);
          break;
        case 'close':
          frames.finish();
          this.dispose();
          this.#emit({ type: 'closed', contextId: this.#open.contextId });
          return;
      }
      this.#marks.shift();
    }
  }

  /** @returns whether the segment is complete */
  #releaseSegment(frames: FrameMaker, command: SegmentCommand): boolean {
    const inbox = this.#inboxes.get(command.segment);
    if (inbox === undefined) return false;
    if (this.#begun !== command) frames.beginSegment(command);
    this.#begun = command;
    for (const chunk of inbox.chunks) frames.speak(chunk);
    inbox.chunks.length = 0;
    if (!inbox.done) return false;
    frames.endSegment(inbox.receivedSamples);
    this.#inboxes.delete(command.segment);
    return true;
  }
}
