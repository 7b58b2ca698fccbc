/** Speaks one segment: from phones to samples, chunk by chunk. */
import type { SegmentRequest } from '../../../src/threads/messages.js';
import type { EngineChunk, SegmentSynthesis } from '../engine.js';
import { fadeIn, fadeOut, silenceBefore, toInt16 } from '../pcm.js';
import { type Stretch, WordTimes } from '../word-times.js';
import type { DecoderState, Graphs, Rows } from './graphs.js';
import type { Speaker } from './manifest.js';
import type { Prosody } from './prosody.js';
import type { PhoneSpan, Timeline } from './timeline.js';

/** An `EngineChunk` before quantisation; full scale is 1. */
export type FloatChunk = Omit<EngineChunk, 'pcm'> & { readonly pcm: Float32Array };

/**
 * Frames of each chunk. The grid is fixed, so that a segment's samples do not depend on scheduling. Five that begin at once
 * wait for each other's first chunks. mp3 and aac begin with the second size: a decoder plays nothing of the first, and the
 * step costs 8 ms instead of 7. In a crowd a segment begins with the third size: it costs 10 ms, but two further chunks come
 * later. Whole files, and in a crowd listeners with seconds in hand, have chunks of the last size, for which a second of
 * speech costs a sixth less. For others that step would be too long: first audio waits for its end.
 */
export const chunkGrid: readonly number[] = [10, 25, 50, 100, 200];
/** Places in the grid: of the first chunk, and of the size that repeats. */
const firstPlaces = { short: 0, medium: 1, long: 2, longest: 4 } as const;
const lastPlaces = { short: 3, medium: 3, long: 3, longest: 4 } as const;

const sampleRateHz = 24_000;
const samplesPerFrame = 240;
export const rowsPerFrame = 2;
const samplesOf = (milliseconds: number) => (milliseconds * sampleRateHz) / 1_000;

/** Milliseconds of silence after the last sound, by how the segment ends. */
const trailing = { sentence: 250, clause: 120 } as const;
/** Share by which that silence varies, in steps of a sample: two readings should not have the same length. */
const trailingSpread = 0.12;
/** Milliseconds of silence for a text without a sound. */
const blankMs = 300;
const fadeInSamples = 24;
/** Samples before the first sound if a listener waits for it: those of the fade. The rest of a soft beginning is below -52 dB. */
const awaitedLeadSamples = fadeInSamples;
const fadeOutSamples = 180;
/** Frames that are decoded before a cut in a clause, and dropped: until the decoder has settled. */
const framesBefore = 4;
/** Samples of the fades at a cut, from one excitation to the next: the shortest that make no click. */
const seamFadeSamples = 96;

/**
 * The frame net's envelopes change more slowly than a person's: stops open too softly. So each band's distance from its
 * mean over 45 ms grows. Rows at either side that the mean is taken over:
 */
export const sharpenRows = 4;
const sharpenShare = 0.4;
/** A band does not rise above this: the start of a loud vowel would have a peak, and the voice would have to be softer. */
const bandMax = -0.5;
const sharpenSpan = 2 * sharpenRows + 1;

/** Rows that are needed at either side of a chunk. */
const marginRowsOf = (margins: Graphs['margins']): number => margins.rows + sharpenRows;

/** Frames that the frame net needs at either side of a chunk. */
export const reachOf = (margins: Graphs['margins']): number =>
  margins.frames + Math.ceil(marginRowsOf(margins) / rowsPerFrame);

/**
 * Sharpens bands in time. In a voiced row, what differs from both neighbours is jitter of the analysis, which the net has learnt:
 * the row becomes a mean with them. It also gets the fine structure that the net's envelopes lack, as a mean over nine rows.
 *
 * @param rows each has `width` bands, and `width` values of what its bands lack
 * @param fine share of both
 * @returns the bands but of `sharpenRows` at either side
 */
export const sharpened = (
  { voicing, bands }: Omit<Rows, 'f0'>,
  width: number,
  fine: number,
): Float32Array => {
  const count = voicing.length - 2 * sharpenRows;
  const result = new Float32Array(count * width);
  const step = 2 * width;
  const sums = new Float64Array(step);
  for (let at = 0; at < (sharpenSpan - 1) * step; at++) sums[at % step]! += bands[at]!;
  for (let row = 0, at = 0; row < count; row++) {
    const voiced = fine * voicing[row + sharpenRows]!;
    for (let first = row * step; first < row * step + width; first++, at++) {
      const band = first - row * step;
      const last = first + (sharpenSpan - 1) * step;
      const sum = sums[band]! + bands[last]!;
      const lack = sums[width + band]! + bands[last + width]!;
      const place = first + sharpenRows * step;
      const own = bands[place]!;
      const steady = own + voiced * ((bands[place - step]! + bands[place + step]! - 2 * own) / 4);
      const value = steady + (voiced * lack) / sharpenSpan;
      result[at] = Math.min(value + sharpenShare * (steady - sum / sharpenSpan), Math.max(value, bandMax));
      sums[band] = sum - bands[first]!;
      sums[width + band] = lack - bands[first + width]!;
    }
  }
  return result;
};

/** A speaker, with values that are inputs of the graphs. */
export interface SpeakerMeans {
  readonly speaker: Speaker;
  /** Weights of the trained speakers. */
  readonly mix: Float32Array;
  /** Shape [1]. */
  readonly warp: Float32Array;
}

/** What all segments of a voice share, and what belongs to one. */
export interface SegmentParts extends SpeakerMeans {
  readonly graphs: Graphs;
  readonly timeline: Timeline;
  readonly prosody: Prosody;
  readonly request: SegmentRequest;
}

export class Segment implements SegmentSynthesis {
  readonly sampleRateHz = sampleRateHz;
  readonly #parts: SegmentParts;
  readonly #begins: keyof typeof firstPlaces;
  readonly #wordTimes: WordTimes;
  #state: DecoderState;
  /** Place of the next chunk in the grid. */
  #chunk: number;
  #isBegun = false;
  /** The segment's first frame, and the next one to make. */
  #origin = 0;
  #frame = 0;
  #chunkSamples = 0;
  /** Samples returned so far, and samples left out before the first. */
  #samples = 0;
  #trimmed = 0;
  #done = false;

  constructor(parts: SegmentParts) {
    this.#parts = parts;
    const { prosody, graphs, request } = parts;
    this.#begins = request.begins ?? 'short';
    this.#chunk = firstPlaces[this.#begins];
    this.#wordTimes = new WordTimes(request);
    this.#state = graphs.initialState(prosody.noiseIndex, prosody.startPhase);
  }

  /** The phones made so far, in samples of the segment, for measurements. */
  get phones(): PhoneSpan[] {
    return this.#parts.timeline.spoken.map(({ id, start, end }) => ({
      id,
      start: this.#sampleAt(start),
      end: this.#sampleAt(end),
    }));
  }

  async step(): Promise<EngineChunk | null> {
    const chunk = await this.stepFloat();
    return chunk === null ? null : { ...chunk, pcm: toInt16(chunk.pcm) };
  }

  /** The place of the next chunk in the grid. */
  get window(): number {
    return Math.min(this.#chunk, lastPlaces[this.#begins]);
  }

  stepFloat(): Promise<FloatChunk | null> {
    return this.#done ? Promise.resolve(null) : this.#step();
  }

  async #step(): Promise<FloatChunk> {
    const isFirst = !this.#isBegun;
    const rows = await this.#nextRows();
    if (rows === null) return this.#blank();
    let pcm = await this.#decode(rows);
    if (isFirst) pcm = this.#trimStart(pcm);
    if (this.#done) pcm = this.#finish(pcm);
    this.#samples += pcm.length;
    return { pcm, words: this.#wordTimes.until(this.#samples, this.#stretchOf), last: this.#done };
  }

  /**
   * The rows of the next chunk, with the decoder's context at either side; `null` if the segment has no sound. Sets
   * `#done` at the segment's end.
   */
  async #nextRows(): Promise<Rows | null> {
    const { timeline, graphs, prosody, mix, speaker } = this.#parts;
    const { margins, delaySamples } = graphs;
    if (!this.#isBegun && !(await this.#begin())) return null;
    this.#isBegun = true;
    const from = this.#frame;
    const wholeTo = from + chunkGrid[this.window]!;
    let to = wholeTo;
    this.#chunk++;
    const reach = reachOf(margins);
    await timeline.extend(to + reach);
    const { end } = timeline;
    // A cut has no pause in which the decoder's delay could pass.
    const flush =
      end === Infinity || timeline.ending !== null ? 0 : Math.ceil(delaySamples / samplesPerFrame);
    const limit = Math.min(end + flush, timeline.frames);
    if (to >= limit) {
      to = limit;
      this.#done = true;
    }
    this.#frame = to;
    const first = Math.max(0, from - reach);
    const last = Math.min(timeline.frames, to + reach);
    const firstMade = first === 0 ? 0 : first + margins.frames;
    const marginRows = marginRowsOf(margins);
    const fromRow = (from - firstMade) * rowsPerFrame - marginRows;
    const rowsTo = (frame: number) => (frame - firstMade) * rowsPerFrame + marginRows;
    const needed = Math.min(rowsTo(to), (timeline.frames - firstMade) * rowsPerFrame);
    const made = await graphs.frames(timeline.feeds(first, last), mix, needed);
    const toRow = rowsTo(graphs.hasWindows ? wholeTo : to);
    this.#chunkSamples = (to - from) * samplesPerFrame;
    const wide = graphs.rowsBetween(made, fromRow, toRow);
    const rows = {
      f0: wide.f0.subarray(sharpenRows, wide.f0.length - sharpenRows),
      voicing: wide.voicing.subarray(sharpenRows, wide.voicing.length - sharpenRows),
      bands: sharpened(wide, graphs.sizes.bands, speaker.fine),
    };
    prosody.shapePitch(rows.f0);
    return rows;
  }

  /** Finds the first frame. @returns false if the segment has no sound */
  async #begin(): Promise<boolean> {
    const origin = await this.#parts.timeline.begin();
    if (origin === null) return false;
    this.#origin = origin;
    this.#frame = Math.max(0, origin - framesBefore);
    return true;
  }

  async #decode(rows: Rows): Promise<Float32Array> {
    const { graphs, warp, speaker } = this.#parts;
    const { pcm, state } = await graphs.decode(rows, this.#state, warp);
    this.#state = state;
    const own = pcm.subarray(0, this.#chunkSamples);
    if (speaker.gain !== 1) for (let i = 0; i < own.length; i++) own[i]! *= speaker.gain;
    return own;
  }

  #trimStart(pcm: Float32Array): Float32Array {
    const { delaySamples } = this.#parts.graphs;
    if (this.#origin > 0) {
      const before = Math.min(framesBefore, this.#origin) * samplesPerFrame;
      const rest = pcm.subarray(delaySamples + before);
      fadeIn(rest, seamFadeSamples);
      return rest;
    }
    // Only so much is searched as the shortest first chunk has, so that longer ones start at the same sample.
    const searched = pcm.subarray(delaySamples, chunkGrid[0]! * samplesPerFrame);
    this.#trimmed = silenceBefore(
      searched,
      this.#parts.request.isFirst === true ? awaitedLeadSamples : undefined,
    );
    const rest = pcm.subarray(delaySamples + this.#trimmed);
    fadeIn(rest, fadeInSamples);
    return rest;
  }

  /** Fades the decoded part of the last pause, and appends plain silence. A cut clause ends with its last sound. */
  #finish(pcm: Float32Array): Float32Array {
    const { timeline, prosody, graphs } = this.#parts;
    if (timeline.ending === null) {
      const rest = new Float32Array(Math.max(1, this.#sampleAt(timeline.end) - this.#samples));
      const sound = pcm.subarray(0, rest.length);
      fadeOut(sound, seamFadeSamples);
      rest.set(sound);
      return rest;
    }
    fadeOut(pcm, fadeOutSamples);
    const decoded = timeline.endingFrames * samplesPerFrame - graphs.delaySamples;
    const wanted = prosody.silence(samplesOf(trailing[timeline.ending]), trailingSpread);
    const result = new Float32Array(pcm.length + Math.max(0, Math.round(wanted) - decoded));
    result.set(pcm);
    return result;
  }

  #blank(): FloatChunk {
    this.#done = true;
    const silence = this.#parts.prosody.silence(samplesOf(blankMs), trailingSpread);
    return {
      pcm: new Float32Array(Math.round(silence)),
      words: this.#wordTimes.until(0, () => undefined),
      last: true,
    };
  }

  readonly #stretchOf = (word: number): Stretch | null | undefined => {
    const frames = this.#parts.timeline.wordFrames(word);
    return frames && { start: this.#sampleAt(frames.start), end: this.#sampleAt(frames.end) };
  };

  #sampleAt(frame: number): number {
    return Math.max(0, (frame - this.#origin) * samplesPerFrame - this.#trimmed);
  }
}
