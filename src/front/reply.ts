/** Responses that are known whole. */
import type { Authentication } from '../accounts/admission.js';
import type { ErrorAnswer } from '../api/error-shape.js';
import type { ErrorCode } from '../errors.js';
import { refusalOf, type RefusalReason } from '../metrics.js';
import type { ActiveKey } from '../store/store.js';
import type { Header } from './cors.js';
import type { Exchange, Reply } from './exchange.js';
import { HEAD_BYTES_MAX, piecesSource, ResponseSender } from './response-sender.js';

export type { Reply } from './exchange.js';

/** Seconds in every 503. Its cause may end that soon; the service cannot know when it ends. */
const RETRY_AFTER: Header = ['retry-after', '1'];

/**
 * Counts an answer that is made for this client, until the socket has taken it.
 *
 * @returns false if it is refused: too many such answers wait for clients that read slowly
 */
export const holdsAnswer = (exchange: Exchange, bytes: number): boolean => {
  const { member, services } = exchange;
  const refusal = services.answerBudget.take(member, bytes);
  if (refusal === null) exchange.onOver(() => services.answerBudget.giveBack(member, bytes));
  else replyUnavailable(exchange, refusal === 'pool' ? 'answerPoolExhausted' : 'answersOfAccountExhausted');
  return refusal === null;
};

const send = (exchange: Exchange, answer: Reply): void => {
  const { status, contentType, body } = answer;
  const headers = status === 503 ? [...(answer.headers ?? []), RETRY_AFTER] : answer.headers;
  const bytes = typeof body === 'string' ? Buffer.from(body) : body;
  // In one piece, the library would lose a larger body when the socket is full.
  if (exchange.method !== 'head' && bytes.length > exchange.services.bounds.writeBytesMax - HEAD_BYTES_MAX) {
    // A body of bytes is kept for all clients: only text is made for this one.
    if (body === bytes || holdsAnswer(exchange, bytes.length))
      new ResponseSender(exchange, { status, contentType, headers }, piecesSource([bytes]));
    return;
  }
  const close = answer.close === true || exchange.isLastOfConnection;
  exchange.answer({ status, contentType, body: bytes, headers, close });
};

export const reply = (exchange: Exchange, answer: Reply): void =>
  exchange.inTurn(() => send(exchange, answer));

/**
 * Answers when a body in chunks has had time to come. The connection is not read meanwhile, but once before the answer, which
 * unread bytes would destroy. A listener would learn of the end of the body, but the library would call it for each chunk:
 * 87,000 times in one read.
 *
 * @param answer closes the connection
 */
export const afterChunks = (exchange: Exchange, answer: () => void): void => {
  exchange.pause();
  const timer = setTimeout(() => {
    exchange.resume();
    setImmediate(exchange.guarded(answer));
  }, exchange.services.bounds.chunkedBodyMs);
  exchange.onOver(() => clearTimeout(timer));
};

/** Answers with an error in the listener's words. */
export const replyRefused = (
  exchange: Exchange,
  reason: RefusalReason,
  answer: ErrorAnswer,
  options: Pick<Reply, 'headers' | 'close'> = {},
): void => {
  exchange.noteRefusal(reason);
  reply(exchange, { ...answer, ...options });
};

/** Answers with an error of the table. */
export const replyError = (
  exchange: Exchange,
  code: Exclude<ErrorCode, 'internal'>,
  options: Pick<Reply, 'headers' | 'close'> = {},
): void => replyRefused(exchange, refusalOf(code), exchange.services.errors.of(code), options);

/** Answers 503. @param reason for the operator: the caller learns only that it should come back */
export const replyUnavailable = (
  exchange: Exchange,
  reason: RefusalReason,
  options: Pick<Reply, 'close'> = {},
): void => replyRefused(exchange, reason, exchange.services.errors.of('unavailable'), options);

/**
 * The request shows its key.
 *
 * @returns the key; `null` if the request is answered: with the error, or because the connections of its account are too many.
 * The answer does not wait for a body, which would keep one connection more
 */
export const identify = (exchange: Exchange, caller: Authentication): ActiveKey | null => {
  if (!caller.ok) {
    replyError(exchange, caller.code);
    return null;
  }
  exchange.key = caller.key;
  if (exchange.services.connections.hasRoomFor(caller.key.accountId)) return caller.key;
  exchange.services.tick.add(
    exchange.guarded(() => replyUnavailable(exchange, 'connectionsOfAccountExhausted', { close: true })),
  );
  return null;
};
