/**
 * How speech and its words lie to each other, in every voice of the service: so a lost or doubled chunk shows in formats
 * that do not number theirs. Found by measuring, with room on both sides.
 */
import type { AudioFormat } from '../../src/api/formats.js';
import type { Range } from '../rig-old/context-check.js';

/** Milliseconds of audio after the last word of a sentence with a full stop, at a flush. */
export const trailMs: Range = { min: 150, max: 380 };

/** After the last word of all, where encoders are finished and files have what fills their last frame. */
export const endTrailMs: Range = { min: 150, max: 400 };

export const msPerCharacter: Range = { min: 25, max: 200 };

/** Of texts over HTTP, which may be of many short sentences. */
export const httpMsPerCharacter: Range = { min: 25, max: 250 };

/** Of audio behind a word when it is told: a chunk at most, less what an encoder keeps back. */
export const wordMarginMs = ({ encoding }: AudioFormat): Range => {
  switch (encoding) {
    case 'mp3':
      return { min: -190, max: 190 };
    case 'opus':
      return { min: -30, max: 210 };
    case 'pcm':
    case 'wav':
    case 'linear16':
    case 'mulaw':
    case 'alaw':
      return { min: -15, max: 205 };
  }
};
