/** The one 422 that is no list of items: a client branches on which key is present. */
import { limits } from '../limits.js';
import type { Refusal } from './body.js';
import type { UnknownVoice } from './responses.js';

/** Code units, not locales: the same order on every machine. */
const byCodeUnit = (one: string, other: string): number => (one < other ? -1 : one > other ? 1 : 0);

/**
 * @param voice as the client sent it
 * @param speakerIds the live catalogue, in any order
 */
export const unknownVoice = (voice: string, speakerIds: readonly string[]): Refusal => {
  const validVoices = [...speakerIds].sort(byCodeUnit);
  const named =
    voice.length > limits.validationNameMax ? `${voice.slice(0, limits.validationNameMax)}…` : voice;
  const body: UnknownVoice = {
    error: 'unknown_voice',
    message: `Unknown voice '${named}'. Valid voices: ${validVoices.join(', ')}`,
    voice,
    valid_voices: validVoices,
  };
  return {
    ok: false,
    status: 422,
    body: JSON.stringify(body),
  };
};
