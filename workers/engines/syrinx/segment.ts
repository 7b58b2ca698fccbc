/** Speaks one segment: from phones to samples, chunk by chunk. */
import { strict as assert } from 'node:assert';
import type { WordTime } from '../../../src/threads/messages.js';
import type { EngineChunk, SegmentSynthesis } from '../engine.js';
import { fadeIn, fadeOut, silenceBefore, toInt16 } from '../pcm.js';
import {
  type DecoderState,
  type FrameParameters,
  type Graphs,
  decoderDelaySamples,
  joinRows,
  rowsOf,
} from './graphs.js';
import { type Prosody, driftEndFrames } from './prosody.js';
import type { Timeline } from './timeline.js';

/** An `EngineChunk` before quantisation; full scale is 1. */
export interface FloatChunk {
  readonly pcm: Float32Array;
  readonly words: readonly WordTime[];
  readonly last: boolean;
}

/**
 * Frames of each chunk; the last size repeats. The grid is fixed, so that a segment's samples do not depend on
 * scheduling.
 */
const chunkGrid: readonly number[] = [12, 25, 50, 100];

const sampleRateHz = 24_000;
const samplesPerFrame = 240;
const subFrames = 2;
const samplesOf = (milliseconds: number) => (milliseconds * sampleRateHz) / 1_000;

/** Milliseconds of silence after the last sound, by how the segment ends. */
const trailing = { sentence: 250, clause: 120 } as const;
/** Share by which that silence varies, in steps of a sample: two readings should not have the same length. */
const trailingSpread = 0.12;
/** Milliseconds of silence for a text without a sound. */
const blankMs = 300;
const fadeInSamples = 24;
const fadeOutSamples = 180;
/**
 * Frames that are decoded beyond a cut in a clause, and dropped: before, until the decoder has settled; after, for its
 * delay.
 */
const framesBefore = 4;
const framesAfter = Math.ceil(decoderDelaySamples / samplesPerFrame);
/** Samples of the fades at a cut, from one excitation to the next: the shortest that make no click. */
const seamFadeSamples = 96;

/** What all segments of a voice share, and what belongs to one. */
export interface SegmentParts {
  readonly graphs: Graphs;
  readonly timeline: Timeline;
  readonly prosody: Prosody;
  readonly words: number;
  /** Shape [1]. */
  readonly warp: Float32Array;
  readonly gain: number;
  readonly pitchMeanHz: number;
  readonly marginFrames: number;
  /** Decodes all frames at once, for measurements: the same samples, except for rounding. */
  readonly whole: boolean;
  readonly engine: SegmentSynthesis['engine'];
  readonly stepLock: StepLock;
}

/** Gives one step at a time the buffers that all steps of an engine share: a second one would overwrite them. */
export class StepLock {
  #isHeld = false;

  async hold<T>(step: () => Promise<T>): Promise<T> {
    assert(!this.#isHeld, 'two steps of one engine at once');
    this.#isHeld = true;
    try {
      return await step();
    } finally {
      this.#isHeld = false;
    }
  }
}

export class Segment implements SegmentSynthesis {
  readonly engine: SegmentSynthesis['engine'];
  readonly sampleRateHz = sampleRateHz;
  readonly #parts: SegmentParts;
  #state: DecoderState;
  #chunk = 0;
  /** The segment's first frame, and the next one to make. */
  #origin = 0;
  #frame = 0;
  /** Samples returned so far, and samples left out before the first. */
  #samples = 0;
  #trimmed = 0;
  #word = 0;
  #wordEnd = 0;
  #done = false;

  constructor(parts: SegmentParts) {
    this.#parts = parts;
    this.engine = parts.engine;
    const { prosody, graphs, pitchMeanHz } = parts;
    this.#state = graphs.initialState(pitchMeanHz, prosody.noiseIndex, prosody.startPhase);
  }

  async step(): Promise<EngineChunk | null> {
    const chunk = await this.stepFloat();
    return chunk === null ? null : { ...chunk, pcm: toInt16(chunk.pcm) };
  }

  stepFloat(): Promise<FloatChunk | null> {
    return this.#done ? Promise.resolve(null) : this.#parts.stepLock.hold(() => this.#step());
  }

  async #step(): Promise<FloatChunk> {
    const isFirst = this.#chunk === 0;
    let parameters = await this.#nextFrames();
    if (this.#parts.whole && parameters !== null) parameters = await this.#allFrames(parameters);
    if (parameters === null) return this.#blank();
    let pcm = await this.#decode(parameters);
    if (isFirst) pcm = this.#trimStart(pcm);
    if (this.#done) pcm = this.#finish(pcm);
    this.#samples += pcm.length;
    return { pcm, words: this.#wordsUntil(this.#samples), last: this.#done };
  }

  /** Parameters of the next chunk; `null` if the segment has no sound. Sets `#done` at the segment's end. */
  async #nextFrames(): Promise<FrameParameters | null> {
    const { timeline, graphs, prosody, marginFrames } = this.#parts;
    if (this.#chunk === 0 && !(await this.#begin())) return null;
    const from = this.#frame;
    let to = from + chunkGrid[Math.min(this.#chunk++, chunkGrid.length - 1)]!;
    await timeline.extend(to + Math.max(marginFrames, driftEndFrames));
    const { end } = timeline;
    const limit = end + (end === Infinity || timeline.ending !== null ? 0 : framesAfter);
    if (to >= Math.min(limit, timeline.frames)) {
      to = Math.min(limit, timeline.frames);
      this.#done = true;
    }
    this.#frame = to;
    const first = Math.max(0, from - marginFrames);
    const last = Math.min(timeline.frames, to + marginFrames);
    const all = await graphs.frames(timeline.feeds(first, last));
    const parameters = rowsOf(all, (from - first) * subFrames, (to - first) * subFrames);
    prosody.shapePitch(parameters.f0, from - this.#origin, Math.min(end, timeline.frames) - this.#origin);
    return parameters;
  }

  /** Finds the first frame. @returns false if the segment has no sound */
  async #begin(): Promise<boolean> {
    const origin = await this.#parts.timeline.begin();
    if (origin === null) return false;
    this.#origin = origin;
    this.#frame = Math.max(0, origin - framesBefore);
    return true;
  }

  async #allFrames(first: FrameParameters): Promise<FrameParameters> {
    const parts = [first];
    while (!this.#done) parts.push((await this.#nextFrames())!);
    return joinRows(parts);
  }

  async #decode(parameters: FrameParameters): Promise<Float32Array> {
    const { graphs, warp, gain } = this.#parts;
    const { pcm, state } = await graphs.decode(parameters, this.#state, warp);
    this.#state = state;
    if (gain !== 1) for (let i = 0; i < pcm.length; i++) pcm[i]! *= gain;
    return pcm;
  }

  #trimStart(pcm: Float32Array): Float32Array {
    if (this.#origin > 0) {
      const before = Math.min(framesBefore, this.#origin) * samplesPerFrame;
      const rest = pcm.subarray(decoderDelaySamples + before);
      fadeIn(rest, seamFadeSamples);
      return rest;
    }
    // Only the first chunk is searched, so that a segment that is decoded whole starts at the same sample.
    const searched = pcm.subarray(decoderDelaySamples, chunkGrid[0]! * samplesPerFrame);
    this.#trimmed = silenceBefore(searched);
    const rest = pcm.subarray(decoderDelaySamples + this.#trimmed);
    fadeIn(rest, fadeInSamples);
    return rest;
  }

  /** Fades the decoded part of the last pause, and appends plain silence. A cut clause ends with its last sound. */
  #finish(pcm: Float32Array): Float32Array {
    const { timeline, prosody } = this.#parts;
    if (timeline.ending === null) {
      const rest = new Float32Array(Math.max(1, this.#sampleAt(timeline.end) - this.#samples));
      const sound = pcm.subarray(0, rest.length);
      fadeOut(sound, seamFadeSamples);
      rest.set(sound);
      return rest;
    }
    fadeOut(pcm, fadeOutSamples);
    const decoded = timeline.endingFrames * samplesPerFrame - decoderDelaySamples;
    const wanted = prosody.vary(samplesOf(trailing[timeline.ending]), trailingSpread);
    const result = new Float32Array(pcm.length + Math.max(0, Math.round(wanted) - decoded));
    result.set(pcm);
    return result;
  }

  #blank(): FloatChunk {
    this.#done = true;
    const { prosody, words } = this.#parts;
    const pcm = new Float32Array(Math.round(prosody.vary(samplesOf(blankMs), trailingSpread)));
    const silent = (word: number): WordTime => ({ word, startSample: 0, endSample: 0 });
    return { pcm, words: Array.from({ length: words }, (_, word) => silent(word)), last: true };
  }

  /** Words that end before this sample and have not been reported. */
  #wordsUntil(sample: number): WordTime[] {
    const { timeline, words } = this.#parts;
    const found: WordTime[] = [];
    for (; this.#word < words; this.#word++) {
      const frames = timeline.wordFrames(this.#word, this.#wordEnd);
      if (frames === null) break;
      const startSample = this.#sampleAt(frames.start);
      const endSample = this.#sampleAt(frames.end);
      if (endSample > sample) break;
      this.#wordEnd = frames.end;
      found.push({ word: this.#word, startSample, endSample });
    }
    return found;
  }

  #sampleAt(frame: number): number {
    return Math.max(0, (frame - this.#origin) * samplesPerFrame - this.#trimmed);
  }
}
