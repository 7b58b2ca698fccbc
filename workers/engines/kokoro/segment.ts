/** Speaks one segment: a run of the model for each piece. */
import type { SegmentRequest, WordTime } from '../../../src/threads/messages.js';
import type { EngineChunk, SegmentSynthesis } from '../engine.js';
import { fadeIn, fadeOut, silenceAfter, silenceBefore, toInt16 } from '../pcm.js';
import type { Pause, Piece, PieceIds } from './pieces.js';

/** What a run of the model made: cut to its sound, with times of its words. */
export interface Sound {
  /** Full scale is 1. Begins and ends with sound, but for what a consonant and a fading vowel need. */
  readonly pcm: Float32Array;
  /** Where each token of the piece begins and ends, in samples of `pcm`; `null` for one without a sound. */
  readonly spans: readonly ({ readonly start: number; readonly end: number } | null)[];
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
  const spans: ({ start: number; end: number } | null)[] = [];
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
  readonly engine: SegmentSynthesis['engine'];
  /** Cheap: no model runs. */
  readonly cut: (request: SegmentRequest) => readonly Piece[];
  readonly run: (piece: Piece, request: SegmentRequest) => Promise<Sound>;
}

/** The times of the words of a request, from those of the pieces. */
class WordTimer {
  readonly #request: Pick<SegmentRequest, 'words' | 'spoken'>;
  readonly #spans: ({ start: number; end: number } | undefined)[] = [];
  #next = 0;
  #end = 0;

  constructor(request: Pick<SegmentRequest, 'words' | 'spoken'>) {
    this.#request = request;
  }

  /** Adds the first and the last sample of a part of a word. */
  add(word: number, start: number, end: number): void {
    this.#spans[word] = { start: this.#spans[word]?.start ?? start, end };
  }

  /** The times of all words before this one that were not reported. */
  until(word: number): WordTime[] {
    const times: WordTime[] = [];
    for (; this.#next < word; this.#next++) {
      const { start, end } = this.#timeOf(this.#next);
      const startSample = Math.max(this.#end, start);
      this.#end = Math.max(startSample, end);
      times.push({ word: this.#next, startSample, endSample: this.#end });
    }
    return times;
  }

  /** Words that are spoken as one share its time. A word without a sound has no duration. */
  #timeOf(word: number): { start: number; end: number } {
    const joined = this.#request.spoken?.find(({ first, last }) => first <= word && word <= last);
    const first = joined?.first ?? word;
    const span = this.#spans[first];
    if (span === undefined) return { start: this.#end, end: this.#end };
    const share = (span.end - span.start) / ((joined?.last ?? word) - first + 1);
    const start = span.start + (word - first) * share;
    return { start: Math.round(start), end: Math.round(start + share) };
  }
}

export class Segment implements SegmentSynthesis {
  readonly engine: SegmentSynthesis['engine'];
  readonly sampleRateHz = sampleRateHz;
  readonly #means: SegmentMeans;
  readonly #request: SegmentRequest;
  readonly #timer: WordTimer;
  #pieces: readonly Piece[] | undefined;
  #made = 0;
  #samples = 0;

  constructor(means: SegmentMeans, request: SegmentRequest) {
    this.engine = means.engine;
    this.#means = means;
    this.#request = request;
    this.#timer = new WordTimer(request);
  }

  async step(): Promise<EngineChunk | null> {
    const pieces = (this.#pieces ??= this.#means.cut(this.#request));
    const piece = pieces[this.#made++];
    if (piece === undefined) return this.#made === 1 ? this.#blank() : null;
    const next = pieces[this.#made];
    const { pcm, spans } = await this.#means.run(piece, this.#request);
    for (const [place, { word }] of piece.tokens.entries()) {
      const span = spans[place];
      if (word !== null && span !== null && span !== undefined)
        this.#timer.add(word, this.#samples + span.start, this.#samples + span.end);
    }
    const silence = samplesOf(this.#pauseMsAfter(piece, next));
    const all = new Float32Array(Math.max(1, pcm.length + silence));
    all.set(pcm);
    this.#samples += all.length;
    const words = this.#timer.until(this.#firstWordFrom(this.#made));
    return { pcm: toInt16(all), words, last: next === undefined };
  }

  /** The first word of the pieces from this one on. */
  #firstWordFrom(place: number): number {
    for (const { tokens } of this.#pieces!.slice(place))
      for (const { word } of tokens) if (word !== null) return word;
    return this.#request.words.length;
  }

  /** A text without a mark at its end is a sentence, unless another segment continues it. */
  #pauseMsAfter({ pause }: Piece, next: Piece | undefined): number {
    if (pause !== null) return pausesMs[pause];
    return next === undefined && this.#request.after === '' ? pausesMs.sentence : 0;
  }

  #blank(): EngineChunk {
    return {
      pcm: new Int16Array(samplesOf(blankMs)),
      words: this.#timer.until(this.#request.words.length),
      last: true,
    };
  }
}
