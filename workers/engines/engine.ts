/**
 * What every voice format implements. An engine belongs to one thread: a model session cannot cross threads.
 */
import type { ExecutionProvider } from '../../src/config.js';
import type { SegmentRequest, WordTime } from '../../src/threads/messages.js';

export type { SegmentRequest } from '../../src/threads/messages.js';

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
  /** What its models run on: the CPU, unless all of them are elsewhere. */
  readonly executionProvider: Exclude<ExecutionProvider, 'auto'>;
  /** Cheap: no model runs before the first step. Throws if the voice is unknown. */
  open(request: SegmentRequest): SegmentSynthesis;
}
