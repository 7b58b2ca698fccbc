/**
 * What is plausible: how long words and silences are in every voice of the service, so that a lost or doubled chunk shows
 * in formats that do not number theirs (measured, with room on both sides); and which gap in playback is an underrun.
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

/** Kinds of moments without audio. `early`: the text was not sent yet, or only just, so that there could be no audio. */
export type DryKind = 'none' | 'early' | 'unjudged' | 'underrun';

export interface DryMoment {
  /** When audio ran out, and when more came. */
  readonly sinceMs: number;
  readonly untilMs: number;
  /** When the text of the reply was complete; `null`: not yet. */
  readonly textCompleteMs: number | null;
  /** Lateness of the client itself in that time. */
  readonly clientLateMs: number;
}

const dryBounds = {
  /** A player's own buffer covers a shorter gap. */
  toleranceMs: 20,
  /** From the end of the text to its audio. */
  firstAudioMs: 200,
} as const;

export interface DryVerdict {
  readonly kind: DryKind;
  /** Milliseconds by which audio came too late. */
  readonly lateMs: number;
}

export const judgeDry = ({ sinceMs, untilMs, textCompleteMs, clientLateMs }: DryMoment): DryVerdict => {
  const { toleranceMs, firstAudioMs } = dryBounds;
  if (untilMs - sinceMs <= toleranceMs) return { kind: 'none', lateMs: 0 };
  if (textCompleteMs === null) return { kind: 'early', lateMs: 0 };
  const lateMs = untilMs - Math.max(sinceMs, textCompleteMs + firstAudioMs);
  if (lateMs <= toleranceMs) return { kind: 'early', lateMs: 0 };
  return { kind: clientLateMs >= lateMs - toleranceMs ? 'unjudged' : 'underrun', lateMs };
};
