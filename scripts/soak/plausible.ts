/**
 * What is plausible: how long words and silences are in every voice of the service, so that a lost or doubled chunk shows
 * in formats that do not number theirs (measured, with room on both sides).
 */
import type { AudioFormat } from '../../src/api/formats.js';
import type { Range } from '../rig/context-check.js';
import type { Target, VoiceSet } from './measures.js';

/** What is plausible for the voices of a soak. */
export interface Plausible {
  /** Milliseconds of audio after the last word of a sentence with a full stop, at a flush. */
  readonly trailMs: Range;
  /** The same after the last word of a response, where encoders finish and fill their last frame. */
  readonly endTrailMs: Range;
  readonly msPerCharacter: Range;
  /** For texts over HTTP, which may have many short sentences. */
  readonly httpMsPerCharacter: Range;
  readonly wordMarginMs: (format: AudioFormat) => Range | null;
}

/** Audio after a word when its times arrive: at most a chunk, less what the encoder holds back. */
const wordMarginMs = ({ encoding }: AudioFormat): Range => {
  switch (encoding) {
    case 'mp3':
    case 'aac':
      return { min: -190, max: 190 };
    case 'opus':
      return { min: -30, max: 210 };
    case 'pcm':
    case 'wav':
    case 'linear16':
    case 'mulaw':
    case 'alaw':
    case 'flac':
      return { min: -15, max: 205 };
  }
};

/** The graphs of example packs speak at a pace of their own. */
const plausibleOf: Readonly<Record<VoiceSet, Plausible>> = {
  shipped: {
    trailMs: { min: 150, max: 380 },
    endTrailMs: { min: 150, max: 400 },
    msPerCharacter: { min: 25, max: 200 },
    httpMsPerCharacter: { min: 25, max: 250 },
    wordMarginMs,
  },
  mixed: {
    trailMs: { min: 0, max: 1_000 },
    endTrailMs: { min: 0, max: 1_000 },
    msPerCharacter: { min: 10, max: 300 },
    httpMsPerCharacter: { min: 10, max: 400 },
    // Kokoro reports the words of a clause with its first sample, Pocket TTS estimates them.
    wordMarginMs: () => null,
  },
};

export const plausible = ({ voiceSet = 'shipped' }: Pick<Target, 'voiceSet'> = {}): Plausible =>
  plausibleOf[voiceSet];
