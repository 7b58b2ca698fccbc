/** How the console answers: JSON, and refusals that a person at the page can act on. */
import type { ErrorAnswer, ErrorShape } from '../api/error-shape.js';
import type { ErrorCode } from '../errors.js';
import type { Exchange } from '../front/exchange.js';
import { reply, type Reply } from '../front/reply.js';
import type { Refusal } from './contract.js';
import { ConsoleRefusal } from './refusal.js';

const statuses: Readonly<Record<Refusal['code'], number>> = {
  badRequest: 400,
  signedOut: 401,
  forbidden: 403,
  notFound: 404,
  conflict: 409,
  tooManyAttempts: 429,
  unavailable: 503,
  uncertain: 503,
  failed: 500,
};

const JSON_TYPE = 'application/json';

export const jsonReply = (value: unknown): Reply => ({
  status: 200,
  contentType: JSON_TYPE,
  body: JSON.stringify(value),
});

const refusalReply = (
  { code, message, field, retryAfterMs }: Refusal,
  status = statuses[code],
): Reply & ErrorAnswer => ({
  status,
  contentType: JSON_TYPE,
  body: JSON.stringify({ code, message, field, retryAfterMs } satisfies Record<keyof Refusal, unknown>),
  ...(retryAfterMs !== undefined && {
    headers: [['retry-after', String(Math.ceil(retryAfterMs / 1_000))] as const],
  }),
});

export const replyRefusal = (exchange: Exchange, refusal: Refusal): void =>
  reply(exchange, refusalReply(refusal));

export const badRequest = (message: string, field?: string): ConsoleRefusal =>
  new ConsoleRefusal('badRequest', message, field === undefined ? {} : { field });

export const signedOut = (isProgram: boolean): ConsoleRefusal =>
  new ConsoleRefusal(
    'signedOut',
    isProgram
      ? 'This token is not valid: it was revoked, has expired, or its user has a new password. Make another one in the console.'
      : 'You are not signed in, or your session has ended.',
  );

export const forPeople = (): ConsoleRefusal =>
  new ConsoleRefusal('forbidden', 'A token cannot do this: sign in to the console.');

export const forOperators = (): ConsoleRefusal =>
  new ConsoleRefusal('forbidden', 'This is for operators of the service.');

/** Answers when the work is done. A refusal is answered as such, anything else that is thrown with 500. */
export const replyWhenDone = (exchange: Exchange, work: Promise<Reply>): void => {
  work.then(
    (answer) => exchange.guard(() => reply(exchange, answer)),
    (error: unknown) => exchange.guard(() => replyFault(exchange, error)),
  );
};

/** @param error what work of the console threw */
export const replyFault = (exchange: Exchange, error: unknown): void => {
  if (error instanceof ConsoleRefusal) replyRefusal(exchange, error);
  else exchange.fail(error);
};

const refusals: Partial<Readonly<Record<ErrorCode, Refusal & { readonly status?: number }>>> = {
  methodNotAllowed: { code: 'badRequest', message: 'This address takes another method.', status: 405 },
  bodyTooLarge: { code: 'badRequest', message: 'The request is too large.', status: 413 },
  badRequest: { code: 'badRequest', message: 'The request cannot be read.' },
  lengthRequired: { code: 'badRequest', message: 'The request needs a Content-Length.', status: 411 },
  bodyUnreadable: { code: 'badRequest', message: 'The request cannot be read.' },
  internal: {
    code: 'failed',
    message: 'The service failed, and changed nothing. Its log has the reason.',
  },
};

const unavailable: Refusal = {
  code: 'unavailable',
  message: 'The service cannot do this now. Try again in a moment.',
};

const shown = ({ status, ...refusal }: Refusal & { readonly status?: number }) =>
  refusalReply(refusal, status);

/** The console's messages for refusals of the layers below. */
export const consoleErrors: ErrorShape = {
  of: (code) => shown(refusals[code] ?? unavailable),
  // For speech, which is answered as on the public port.
  unknownVoice: () => refusalReply({ code: 'notFound', message: 'There is no such voice.' }),
  notFound: refusalReply({ code: 'notFound', message: 'There is nothing at this address.' }),
};
