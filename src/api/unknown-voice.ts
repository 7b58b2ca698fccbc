/** The one 422 that is no list of items: a client branches on which key is present. */
import { limits } from '../limits.js';
import type { Refusal } from './body.js';
import type { UnknownVoice } from './responses.js';

/** Code units, not locales: the same order on every machine. */
const byCodeUnit = (one: string, other: string): number => (one < other ? -1 : one > other ? 1 : 0);

const sorted = (speakerIds: readonly string[]): string[] => [...speakerIds].sort(byCodeUnit);

/** Names the voice and every valid one. @param speakerIds the live catalogue, in any order */
export const unknownVoiceMessage = (voice: string, speakerIds: readonly string[]): string => {
  const named =
    voice.length > limits.validationNameMax ? `${voice.slice(0, limits.validationNameMax)}…` : voice;
  return `Unknown voice '${named}'. Valid voices: ${sorted(speakerIds).join(', ')}`;
};

/**
 * @param voice as the client sent it
 * @param speakerIds the live catalogue, in any order
 */
export const unknownVoice = (voice: string, speakerIds: readonly string[]): Refusal => {
  const body: UnknownVoice = {
    error: 'unknown_voice',
    message: unknownVoiceMessage(voice, speakerIds),
    voice,
    valid_voices: sorted(speakerIds),
  };
  return {
    ok: false,
    status: 422,
    body: JSON.stringify(body),
  };
};
