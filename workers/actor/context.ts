/**
 * The actor of one context: puts chunks into the order of the marks and has frames made of them.
 *
 * Marks (segment n begins, flush f, close) come from the front thread in order; chunks come from any synthesis thread
 * in any order of segments. The head mark decides: chunks of its segment are released as they come, those of later
 * segments wait. Some codecs' encoders are made at leisure: until there is one, everything waits.
 *
 * Mail is only taken in; the work is done by steps of a frame at most, when the thread's run queue calls for one.
 *
 *   open --segment*--> speaking --flush--> speaking --close--> closed
 *   any --dispose (cancel, fault)--> gone, without a frame
 *   open --(no encoder could be made)--> failed
 */
import { faultPlace } from '../../src/fault.js';
import type { ActorCommand, ChunkMail, Frame } from '../../src/threads/messages.js';
import type { Encoder } from '../audio/encoder.js';
import { createEncoder } from '../audio/encoders.js';
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
  readonly #wake: (context: ContextActor) => void;
  readonly #marks: Mark[] = [];
  readonly #inboxes = new Map<number, Inbox>();
  #frames: FrameMaker | undefined;
  /** The segment that the head mark began, once it did. */
  #begun: SegmentCommand | undefined;
  #disposed = false;

  /** @param wake called whenever a step may find something to do */
  constructor(open: OpenCommand, emit: (frame: Frame) => void, wake: (context: ContextActor) => void) {
    this.#open = open;
    this.#emit = emit;
    this.#wake = wake;
    const encoder = createEncoder(open.format);
    if (encoder instanceof Promise) void this.#beginWith(encoder);
    else this.#begin(encoder);
  }

  get id(): number {
    return this.#open.contextId;
  }

  segment(command: SegmentCommand): void {
    this.#mark({ type: 'segment', command });
  }

  flush(flushId: string): void {
    this.#mark({ type: 'flush', flushId });
  }

  close(): void {
    this.#mark({ type: 'close' });
  }

  chunk(mail: ChunkMail): void {
    if (this.#disposed) return;
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
    this.#wake(this);
  }

  /**
   * Works off the head mark, as far as what has come allows, by a frame at most.
   * @returns milliseconds of speech that went into it; `null` when there is nothing to do until something comes
   */
  step(): number | null {
    const frames = this.#frames;
    const mark = this.#marks[0];
    if (frames === undefined || mark === undefined || this.#disposed) return null;
    switch (mark.type) {
      case 'segment':
        return this.#stepSegment(frames, mark.command);
      case 'flush':
        frames.flush(mark.flushId);
        this.#marks.shift();
        return 0;
      case 'close':
        frames.finish();
        this.dispose();
        this.#emit({ type: 'closed', contextId: this.id });
        return null;
    }
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
      if (!this.#disposed) this.#wake(this);
    } catch (error) {
      if (this.#disposed) return;
      this.dispose();
      const reason = faultPlace(error);
      this.#emit({ type: 'failed', contextId: this.id, reason });
    }
  }

  #mark(mark: Mark): void {
    if (this.#disposed) return;
    this.#marks.push(mark);
    this.#wake(this);
  }

  #stepSegment(frames: FrameMaker, command: SegmentCommand): number | null {
    const inbox = this.#inboxes.get(command.segment);
    if (inbox === undefined) return null;
    if (this.#begun !== command) frames.beginSegment(command);
    this.#begun = command;
    const [chunk] = inbox.chunks;
    if (chunk !== undefined) {
      const { durationMs, isLast } = frames.speak(chunk);
      if (isLast) inbox.chunks.shift();
      return durationMs;
    }
    if (!inbox.done) return null;
    frames.endSegment(inbox.receivedSamples);
    this.#inboxes.delete(command.segment);
    this.#marks.shift();
    return 0;
  }
}
