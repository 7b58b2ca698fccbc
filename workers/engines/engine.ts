/**
 * What every voice format implements. An engine belongs to one thread: a model session cannot cross threads.
 */
import type { Replacement, Span, WordTime } from '../../src/dispatch/messages.js';

export interface SegmentRequest {
  /** The original text of one segment; any Unicode, any script. */
  readonly text: string;
  /** Its tokens; every one of them is given a time, in order, without overlap. */
  readonly words: readonly Span[];
  /** Words that are spoken otherwise than written; several that are spoken as one share its time. */
  readonly spoken?: readonly Replacement[];
  /**
   * What other segments have of the clauses that this one begins and ends in the middle of, '' if it does not: not to be
   * spoken, but to be joined.
   */
  readonly before: string;
  readonly after: string;
  readonly voiceId: string;
  /** 0.5 to 3: widens pitch range and duration variety. 1 is the voice as trained. */
  readonly temperature: number;
  /** Same request, same seeds: the same samples, however the steps are scheduled. */
  readonly seed: number;
  /** Of all segments that shall sound like one reading. */
  readonly utteranceSeed: number;
}

/** What one step made. */
export interface EngineChunk {
  /** Mono, at the engine's sample rate. Its buffer is the receiver's to transfer. Never empty. */
  readonly pcm: Int16Array;
  /** Words that end within this chunk (their times are final), in order. */
  readonly words: readonly WordTime[];
  /** No chunk follows: who listens is told at once, not after another step. */
  readonly last: boolean;
}

/** One segment being spoken, a step at a time. */
export interface SegmentSynthesis {
  /**
   * Runs one step of at most about `limits.stepComputeMsTarget` of compute: a small first chunk, then growing ones.
   * Not to be called again before it resolved. `null` after the last chunk.
   */
  step(): Promise<EngineChunk | null>;
}

export interface Engine {
  readonly sampleRateHz: number;
  /** The default voice first. */
  readonly voiceIds: readonly string[];
  /** Cheap: no model runs before the first step. Throws if the voice is unknown. */
  open(request: SegmentRequest): SegmentSynthesis;
}
