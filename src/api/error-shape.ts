/**
 * How a listener words its errors. The specification's listeners share one shape; a dialect with other bodies brings its
 * own `ErrorShape` and hands it to its listener.
 */
import { errors, type ErrorCode } from '../errors.js';
import type { Refusal } from './body.js';
import { quoted, type QuoteBound } from './quoted.js';
import type { UnknownVoice } from './responses.js';

export interface ErrorAnswer {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
  readonly headers?: readonly (readonly [name: string, value: string])[];
}

/** Faults of a request body have no entry here: the route's parser words them. */
export interface ErrorShape {
  /** An error of the table in errors.ts. */
  of(code: ErrorCode): ErrorAnswer;
  /** @param speakerIds the live catalogue, in any order */
  unknownVoice(voice: string, speakerIds: readonly string[]): ErrorAnswer;
  /** The answer at a path without a route. */
  readonly notFound: ErrorAnswer;
}

/** By code units, not by locale: the order is the same on every machine. */
const byCodeUnit = (one: string, other: string): number => (one < other ? -1 : one > other ? 1 : 0);

const sorted = (speakerIds: readonly string[]): string[] => [...speakerIds].sort(byCodeUnit);

/** Names the voice and every valid one. */
export const unknownVoiceMessage = (
  voice: string,
  speakerIds: readonly string[],
  bounds: QuoteBound,
): string => `Unknown voice '${quoted(voice, bounds)}'. Valid voices: ${sorted(speakerIds).join(', ')}`;

/** The only 422 that is not a list of items: a client branches on which key is present. */
export const unknownVoice = (voice: string, speakerIds: readonly string[], bounds: QuoteBound): Refusal => {
  const body: UnknownVoice = {
    error: 'unknown_voice',
    message: unknownVoiceMessage(voice, speakerIds, bounds),
    voice: quoted(voice, bounds),
    valid_voices: sorted(speakerIds),
  };
  return { ok: false, status: 422, body: JSON.stringify(body) };
};

const NOT_FOUND_PAGE = `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>404 Not Found</title></head>
<body><h1>Not Found</h1><p>There is nothing at this address.</p></body>
</html>
`;

/** The shape of the specification. */
export const specificationErrors = (bounds: QuoteBound): ErrorShape => ({
  of: (code) => errors[code],
  unknownVoice: (voice, speakerIds) => ({
    ...unknownVoice(voice, speakerIds, bounds),
    contentType: 'application/json',
  }),
  notFound: { status: 404, contentType: 'text/html; charset=utf-8', body: NOT_FOUND_PAGE },
});
