/** Speaks one segment: a run of the model for each piece. */
import type { SegmentRequest, WordTime } from '../../../src/threads/messages.js';
import type { EngineChunk, SegmentSynthesis } from '../engine.js';
import { fadeIn, fadeOut, silenceAfter, silenceBefore, toInt16 } from '../pcm.js';
import { type Stretch, WordTimes } from '../word-times.js';
import type { Pause, Piece, PieceIds } from './pieces.js';

/** What a run of the model made: cut to its sound, with times of its words. */
export interface Sound {
  /** Full scale is 1. Begins and ends with sound, but for what a consonant and a fading vowel need. */
  readonly pcm: Float32Array;
  /** Where each token of the piece begins and ends, in samples of `pcm`; `null` for one without a sound. */
  readonly spans: readonly (Stretch | null)[];
}

const fadeInSamples = 24;
const fadeOutSamples = 240;

/** Ends of the first pad and of the ids, in samples: by their durations, or without these as if all ids were equally long. */
const endsOf = (count: number, durations: readonly number[] | null, from: number, to: number): number[] => {
  // Without durations the pads are the silence around the sound.
  const lengths = durations ?? Array.from({ length: count + 1 }, (_, i) => (i === 0 ? 0 : 1));
  const start = durations === null ? from : 0;
  const total = lengths.reduce((sum, length) => sum + length, 0);
  let passed = 0;
  return lengths.map((length) => start + ((passed += length) * (to - start)) / total);
};

/**
 * @param raw all samples that the model made
 * @param trimmed samples at the end that do not belong to the speech
 * @param durations of all ids with pads, in any unit; `null` if the model has none
 */
export const soundOf = (
  raw: Float32Array,
  trimmed: number,
  { tokenOf }: PieceIds,
  durations: readonly number[] | null,
): Sound => {
  const kept = raw.subarray(0, Math.max(0, raw.length - trimmed));
  const from = silenceBefore(kept);
  const to = Math.max(from, kept.length - silenceAfter(kept));
  const pcm = kept.slice(from, to);
  fadeIn(pcm, fadeInSamples);
  fadeOut(pcm, fadeOutSamples);
  const ends = endsOf(tokenOf.length, durations, from, durations === null ? to : raw.length);
  const place = (sample: number) => Math.min(Math.max(0, Math.round(sample) - from), pcm.length);
  const spans: (Stretch | null)[] = [];
  for (const [i, token] of tokenOf.entries()) {
    if (token < 0) continue;
    while (spans.length <= token) spans.push(null);
    // The first pad is before the first id.
    const end = place(ends[i + 1]!);
    spans[token] = { start: spans[token]?.start ?? place(ends[i]!), end };
  }
  return { pcm, spans };
};

export const sampleRateHz = 24_000;
const samplesOf = (milliseconds: number) => (milliseconds * sampleRateHz) / 1_000;

/** Milliseconds of silence that are added after a piece, by its last mark. */
const pausesMs: Readonly<Record<Pause, number>> = { sentence: 220, clause: 90 };
/** Milliseconds of silence for a text without a sound. */
const blankMs = 300;

/** What a segment needs of its engine. */
export interface SegmentMeans {
  /** Cheap: no model runs. */
  readonly cut: (request: SegmentRequest) => readonly Piece[];
  readonly run: (piece: Piece, request: SegmentRequest) => Promise<Sound>;
}

export class Segment implements SegmentSynthesis {
  readonly sampleRateHz = sampleRateHz;
  readonly #means: SegmentMeans;
  readonly #request: SegmentRequest;
  readonly #wordTimes: WordTimes;
  /** The samples of each word so far. */
  readonly #stretches: (Stretch | undefined)[] = [];
  #pieces: readonly Piece[] | undefined;
  #made = 0;
  #samples = 0;

  constructor(means: SegmentMeans, request: SegmentRequest) {
    this.#means = means;
    this.#request = request;
    this.#wordTimes = new WordTimes(request);
  }

  async step(): Promise<EngineChunk | null> {
    const pieces = (this.#pieces ??= this.#means.cut(this.#request));
    const piece = pieces[this.#made++];
    if (piece === undefined) return this.#made === 1 ? this.#blank() : null;
    const next = pieces[this.#made];
    const { pcm, spans } = await this.#means.run(piece, this.#request);
    for (const [place, { word }] of piece.tokens.entries()) {
      const span = spans[place];
      if (word === null || span === null || span === undefined) continue;
      const start = this.#stretches[word]?.start ?? this.#samples + span.start;
      this.#stretches[word] = { start, end: this.#samples + span.end };
    }
    const silence = samplesOf(this.#pauseMsAfter(piece, next));
    const all = new Float32Array(Math.max(1, pcm.length + silence));
    all.set(pcm);
    this.#samples += all.length;
    return { pcm: toInt16(all), words: this.#wordsDone(), last: next === undefined };
  }

  /** The words before those of the pieces that are to come. */
  #wordsDone(): WordTime[] {
    const coming = this.#pieces!.slice(this.#made).flatMap(({ tokens }) => tokens);
    const end = coming.find(({ word }) => word !== null)?.word ?? Infinity;
    return this.#wordTimes.until(Infinity, (word) => (word >= end ? null : this.#stretches[word]));
  }

  /** A text without a mark at its end is a sentence, unless another segment continues it. */
  #pauseMsAfter({ pause }: Piece, next: Piece | undefined): number {
    if (pause !== null) return pausesMs[pause];
    return next === undefined && this.#request.after === '' ? pausesMs.sentence : 0;
  }

  #blank(): EngineChunk {
    return {
      pcm: new Int16Array(samplesOf(blankMs)),
      words: this.#wordsDone(),
      last: true,
    };
  }
}
