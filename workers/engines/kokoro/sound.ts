/** What a run of the model made: cut to its sound, with times of its words. */
import { fadeIn, fadeOut, silenceAfter, silenceBefore } from '../pcm.js';
import type { PieceIds } from './pieces.js';

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
