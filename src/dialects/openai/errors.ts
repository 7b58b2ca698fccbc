/** Errors as the OpenAI API words them: `{"error": {"message", "type", "param", "code"}}`. */
import { unknownVoiceMessage, type ErrorAnswer, type ErrorShape } from '../../api/error-shape.js';
import { quoted } from '../../api/quoted.js';
import { errors, type ErrorCode } from '../../errors.js';
import type { Bounds } from '../../limits.js';

interface Fault {
  readonly message: string;
  /** By default `invalid_request_error`: the caller's fault. */
  readonly type?: string;
  /** The field at fault. */
  readonly param?: string;
  /** Clients choose their exceptions by it. */
  readonly code?: string;
}

const answer = (status: number, fault: Fault): ErrorAnswer => {
  const { message, type = 'invalid_request_error', param = null, code = null } = fault;
  return {
    status,
    contentType: 'application/json',
    body: JSON.stringify({ error: { message, type, param, code } }),
  };
};

/** A body that is not valid. */
export const invalidRequest = (message: string, param?: string, code?: string): ErrorAnswer =>
  answer(400, { message, ...(param !== undefined && { param }), ...(code !== undefined && { code }) });

export const unreadableBody = invalidRequest('The body is not JSON in UTF-8, or nests too deeply.');

/** @param id as a client sent it */
export const modelUnknown = (id: string, bounds: Bounds): ErrorAnswer =>
  answer(404, {
    message: `The model '${quoted(id, bounds)}' does not exist. GET /v1/models lists those that do.`,
    param: 'model',
    code: 'model_not_found',
  });

/** Its clients try every 429 again, unless this header tells them not to. */
const NO_RETRY = [['x-should-retry', 'false']] as const;

const incorrectKey = (message: string): ErrorAnswer => answer(401, { message, code: 'invalid_api_key' });

/** Errors without a row are temporary. */
const answers: Readonly<Partial<Record<ErrorCode, ErrorAnswer>>> = {
  keyMissing: incorrectKey(
    'You did not send an API key. Send one in the header: Authorization: Bearer svc_sk_...',
  ),
  keyMalformed: incorrectKey('Incorrect API key: a key of this service begins with svc_sk_.'),
  keyUnknown: incorrectKey(
    'Incorrect API key: it does not exist, was revoked or has expired, or its account is suspended.',
  ),
  creditExhausted: {
    ...answer(429, {
      message: 'This request exceeds the credit that is left to this API key or its account.',
      type: 'insufficient_quota',
      code: 'insufficient_quota',
    }),
    headers: NO_RETRY,
  },
  slotsExhausted: answer(429, {
    message: 'This API key speaks as many texts at once as it may. Try again when one of them has ended.',
    type: 'requests',
    code: 'rate_limit_exceeded',
  }),
  methodNotAllowed: answer(405, {
    message: 'There is no such method at this address.',
    code: 'method_not_supported',
  }),
  bodyUnreadable: unreadableBody,
  badRequest: invalidRequest('Bad Request'),
  lengthRequired: answer(411, { message: 'Send the body with a Content-Length header, not chunked.' }),
  internal: answer(500, { message: 'Internal Server Error', type: 'server_error' }),
};

const busy = answer(errors.unavailable.status, {
  message: 'The service cannot take this request now. Try again in a moment.',
  type: 'server_error',
});

export const openAiErrors = (bounds: Bounds): ErrorShape => ({
  of: (code) =>
    code === 'bodyTooLarge'
      ? answer(413, { message: `The body is larger than ${bounds.bodyBytesMax} bytes.` })
      : (answers[code] ?? busy),
  unknownVoice: (voice, speakerIds) =>
    invalidRequest(unknownVoiceMessage(voice, speakerIds, bounds), 'voice', 'invalid_value'),
  notFound: answer(404, { message: 'There is nothing at this address.', code: 'unknown_url' }),
});
