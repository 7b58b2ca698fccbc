/** Errors as the ElevenLabs API words them: `{"detail": {"status", "message"}}`. */
import { unknownVoiceMessage, type ErrorAnswer, type ErrorShape } from '../../api/error-shape.js';
import { errors } from '../../errors.js';
import type { SocketErrorReason } from '../../front/ws/protocol.js';
import type { Bounds } from '../../limits.js';

interface Words {
  /** Clients choose their exceptions by it, or by the HTTP status. */
  readonly status: string;
  readonly message: string;
}

const busy: Words = {
  status: 'system_busy',
  message: 'The service cannot take this request now. Try again in a moment.',
};

/** Reasons without a row are temporary. */
const words: Readonly<Partial<Record<SocketErrorReason, Words>>> = {
  keyMissing: { status: 'needs_authorization', message: 'Send an API key in the header xi-api-key.' },
  keyMalformed: {
    status: 'invalid_api_key',
    message: 'Invalid API key: a key of this service begins with svc_sk_.',
  },
  keyUnknown: { status: 'invalid_api_key', message: 'Invalid API key' },
  creditExhausted: {
    status: 'quota_exceeded',
    message: 'This request exceeds the credit that is left to this API key or its account.',
  },
  slotsExhausted: {
    status: 'too_many_concurrent_requests',
    message: 'This API key speaks as many texts at once as it may. Try again when one of them has ended.',
  },
  methodNotAllowed: { status: 'method_not_allowed', message: 'Method Not Allowed' },
  bodyUnreadable: { status: 'invalid_body', message: 'The body is not JSON in UTF-8, or nests too deeply.' },
  badRequest: { status: 'bad_request', message: 'Bad Request' },
  lengthRequired: {
    status: 'length_required',
    message: 'Send the body with a Content-Length header, not chunked.',
  },
  upgradeRequired: { status: 'bad_request', message: 'Use version 13 of the WebSocket protocol.' },
  bodyTooLarge: { status: 'max_character_limit_exceeded', message: 'The body is too large.' },
  textExhausted: { status: 'max_character_limit_exceeded', message: errors.textExhausted.socketText },
  voiceUnknown: { status: 'voice_not_found', message: 'There is no such voice for this API key.' },
  voiceRetired: { status: 'voice_not_found', message: errors.voiceRetired.socketText },
  frameInvalid: { status: 'invalid_message', message: 'The message is not valid.' },
  contextUnknown: {
    status: 'invalid_message',
    message: 'This context is closing. Send its text in another context.',
  },
  internal: { status: 'internal_server_error', message: 'Internal Server Error' },
};

export const wordsOf = (reason: SocketErrorReason): Words => words[reason] ?? busy;

const answer = (status: number, detail: Words): ErrorAnswer => ({
  status,
  contentType: 'application/json',
  body: JSON.stringify({ detail }),
});

export const elevenLabsErrors = (bounds: Bounds): ErrorShape => ({
  of(code) {
    const detail = wordsOf(code);
    const message =
      code === 'bodyTooLarge' ? `The body is larger than ${bounds.bodyBytesMax} bytes.` : detail.message;
    return answer(errors[code].status, { ...detail, message });
  },
  unknownVoice: (voice, speakerIds) =>
    answer(404, { ...wordsOf('voiceUnknown'), message: unknownVoiceMessage(voice, speakerIds, bounds) }),
  notFound: answer(404, { status: 'not_found', message: 'There is nothing at this address.' }),
});
