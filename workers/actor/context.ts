/**
 * The actor of one context: puts chunks into the order of the announcements and has frames made of them.
 *
 * Announcements (segment n begins, flush f, close) come from the front thread in order. Chunks come from any synthesis
 * thread, in any order of segments. The first announcement decides: chunks of its segment are released as they come,
 * those of later segments wait. An encoder is costly: it is made for the first segment, or for the end of a response without
 * speech. Some are created in the background: until the encoder is there, everything waits.
 *
 * Mail is only taken in. The work is done in parts of a frame at most, when the thread's run queue asks for one.
 *
 *   open --segment*--> speaking --flush--> speaking --close--> closed
 *   any --dispose (cancel, fault)--> gone, without a frame
 *   any --(no encoder could be created)--> failed
 */
import { faultPlace, InvariantError } from '../../src/fault.js';
import type { Encoding } from '../../src/api/formats.js';
import { monotonicMs } from '../../src/monotonic.js';
import {
  isSocketFraming,
  isWholeFraming,
  type ActorCommand,
  type ChunkMail,
  type Frame,
} from '../../src/threads/messages.js';
import type { PlaybackClock } from '../../src/threads/playback-clock.js';
import type { Encoder } from '../audio/encoder.js';
import { createEncoder, loadCodec, opensSlowly } from '../audio/encoders.js';
import { BEFORE_FILES_MS } from '../step-queue.js';
import { FrameMaker } from './frame-maker.js';

type OpenCommand = Extract<ActorCommand, { type: 'open' }>;
type SegmentCommand = Extract<ActorCommand, { type: 'segment' }>;

/** What is announced to it, in order. */
type Announcement = Extract<ActorCommand, { type: 'segment' | 'flush' | 'close' }>;

/** What has come of one segment and was not released. */
interface Inbox {
  readonly chunks: Extract<ChunkMail, { type: 'chunk' }>[];
  receivedSamples: number;
  isDone: boolean;
}

/**
 * Takes a chunk or the end of a segment.
 *
 * A segment that runs again after its thread died sends the same chunks from the first sample on, and maybe its end
 * again. The chunks of both runs may arrive interleaved. Those that came before are dropped.
 *
 * @throws {InvariantError} samples are missing, or overlap those that came
 */
const receive = (inbox: Inbox, mail: ChunkMail): void => {
  const { receivedSamples } = inbox;
  if (mail.type === 'segment-done') {
    if (mail.samples !== receivedSamples)
      throw new InvariantError(
        `segment ${mail.segment} ended with ${mail.samples} samples, ${receivedSamples} came`,
      );
    inbox.isDone = true;
    return;
  }
  const end = mail.startSample + mail.pcm.length;
  if (end <= receivedSamples) return;
  if (mail.startSample !== receivedSamples || inbox.isDone)
    throw new InvariantError(
      `segment ${mail.segment}: samples ${mail.startSample} to ${end} came after the first ${receivedSamples}`,
    );
  inbox.receivedSamples = end;
  inbox.chunks.push(mail);
};

export class ContextActor {
  readonly #open: OpenCommand;
  readonly #clock: PlaybackClock;
  readonly #emit: (frame: Frame) => void;
  readonly #wake: (context: ContextActor) => void;
  readonly #announcements: Announcement[] = [];
  readonly #inboxes = new Map<number, Inbox>();
  #frames: FrameMaker | undefined;
  #isBeginning = false;
  /** The segment of the first announcement, once its first frame is about to be made. */
  #begun: SegmentCommand | undefined;
  /** Segments of which everything was released. */
  #released = 0;
  #disposed = false;
  /** Audio that went into its frames. */
  #encodedMs = 0;

  /** @param wake is called whenever `work` may find something to do */
  constructor(
    open: OpenCommand,
    clock: PlaybackClock,
    emit: (frame: Frame) => void,
    wake: (context: ContextActor) => void,
  ) {
    this.#open = open;
    this.#clock = clock;
    this.#emit = emit;
    this.#wake = wake;
  }

  get id(): number {
    return this.#open.contextId;
  }

  /** When its listener would run out of what is encoded. */
  get dueMs(): number {
    const dueMs = this.#clock.at(this.#encodedMs);
    // Nobody plays a whole file while it is made. And an encoder that opens slowly must not delay the audio of others.
    const yields =
      isWholeFraming(this.#open.framing) || (this.#frames === undefined && opensSlowly(this.#open.format));
    return yields ? Math.max(dueMs, monotonicMs() + BEFORE_FILES_MS) : dueMs;
  }

  get encoding(): Encoding {
    return this.#open.format.encoding;
  }

  announce(announcement: Announcement): void {
    if (this.#disposed) return;
    this.#announcements.push(announcement);
    this.#wake(this);
  }

  /** @throws {InvariantError} as `receive`: the context cannot go on */
  chunk(mail: ChunkMail): void {
    // A segment that ran again although it was complete: its thread died before it could say so.
    if (this.#disposed || mail.segment < this.#released) return;
    let inbox = this.#inboxes.get(mail.segment);
    if (inbox === undefined) {
      inbox = { chunks: [], receivedSamples: 0, isDone: false };
      this.#inboxes.set(mail.segment, inbox);
    }
    receive(inbox, mail);
    this.#wake(this);
  }

  /**
   * Works on the first announcement, as far as what has come allows, by a frame at most.
   *
   * @returns milliseconds of speech that went into it; `null` when there is nothing to do until something comes
   */
  work(): number | null {
    const frames = this.#frames;
    const first = this.#announcements[0];
    if (first === undefined || this.#disposed) return null;
    if (frames === undefined && this.#needsFrames(first)) return this.#begin();
    switch (first.type) {
      case 'segment':
        return frames === undefined ? null : this.#speak(frames, first);
      case 'flush':
        if (frames === undefined) this.#emit({ type: 'flushed', contextId: this.id, flushId: first.flushId });
        else frames.flush(first.flushId, first.blank);
        this.#announcements.shift();
        return 0;
      case 'close':
        frames?.finish(first.blank);
        this.dispose();
        this.#emit({ type: 'closed', contextId: this.id });
        return null;
    }
  }

  /** Frees what the context holds. No frame follows. Idempotent. */
  dispose(): void {
    if (this.#disposed) return;
    this.#disposed = true;
    this.#announcements.length = 0;
    this.#inboxes.clear();
    this.#frames?.dispose();
  }

  /** A response is valid even without speech. On a socket there is nothing to say before the first text. */
  #needsFrames(first: Announcement): boolean {
    if (first.type === 'segment' || first.blank !== undefined) return true;
    return first.type === 'close' && !isSocketFraming(this.#open.framing);
  }

  /** @returns as `work` */
  #begin(): number | null {
    if (this.#isBeginning) return null;
    this.#isBeginning = true;
    const { engineSampleRateHz, format } = this.#open;
    const encoder = loadCodec(format) ?? createEncoder(format, engineSampleRateHz);
    if (encoder instanceof Promise) {
      void this.#beginWith(encoder);
      return null;
    }
    this.#frames = new FrameMaker(this.#open, encoder, this.#emit);
    return 0;
  }

  /** @param encoder nothing once its codec is loaded: then `#begin` runs again */
  async #beginWith(encoder: Promise<Encoder> | Promise<void>): Promise<void> {
    try {
      const made = await encoder;
      this.#isBeginning = false;
      if (this.#disposed) made?.dispose();
      else if (made !== undefined) this.#frames = new FrameMaker(this.#open, made, this.#emit);
      if (!this.#disposed) this.#wake(this);
    } catch (error) {
      if (this.#disposed) return;
      this.dispose();
      this.#emit({ type: 'failed', contextId: this.id, reason: faultPlace(error) });
    }
  }

  #speak(frames: FrameMaker, command: SegmentCommand): number | null {
    const inbox = this.#inboxes.get(command.segment);
    if (inbox === undefined) return null;
    if (this.#begun !== command) frames.beginSegment(command);
    this.#begun = command;
    const [chunk] = inbox.chunks;
    if (chunk !== undefined) {
      const { durationMs, isLast } = frames.speak(chunk);
      if (isLast) inbox.chunks.shift();
      this.#encodedMs += durationMs;
      return durationMs;
    }
    if (!inbox.isDone) return null;
    frames.endSegment(inbox.receivedSamples);
    this.#inboxes.delete(command.segment);
    this.#released = command.segment + 1;
    this.#announcements.shift();
    return 0;
  }
}
