/** Responses that are known whole. */
import { errors, type ErrorCode } from '../errors.js';
import { limits } from '../limits.js';
import { refusalOf, type RefusalReason } from '../metrics.js';
import type { Exchange } from './exchange.js';
import { LengthSender, piecesSource } from './length-sender.js';

export interface Reply {
  readonly status: number;
  /** `null` of an empty body. */
  readonly contentType: string | null;
  readonly body: string;
  readonly headers?: readonly (readonly [string, string])[];
  /** Close the connection after it: at once, so only when no more of the body is on its way. */
  readonly close?: boolean;
}

/** What is larger is sent as its reader takes it: in one piece, the library loses it when the socket is full. */
const AT_ONCE_BYTES_MAX = limits.writeBytesMax - 1024;

export const reply = (exchange: Exchange, { status, contentType, body, headers, close }: Reply): void => {
  const bytes = Buffer.from(body);
  if (exchange.method !== 'head' && bytes.length > AT_ONCE_BYTES_MAX) {
    new LengthSender(exchange, { status, contentType, headers }, piecesSource([bytes])).start();
    return;
  }
  exchange.corked((res) => {
    exchange.writeHead(status, contentType, headers);
    exchange.endWhole(res, bytes, close);
  });
  exchange.finish();
};

/** Answers from the table of errors. */
export const replyError = (
  exchange: Exchange,
  code: Exclude<ErrorCode, 'internal'>,
  options: Pick<Reply, 'headers' | 'close'> = {},
): void => {
  exchange.noteRefusal(refusalOf(code));
  reply(exchange, { ...errors[code], ...options });
};

/** Answers 503. @param reason for the operator: the caller is told no more than to come back */
export const replyUnavailable = (
  exchange: Exchange,
  reason: RefusalReason,
  options: Pick<Reply, 'close'> = {},
): void => {
  exchange.noteRefusal(reason);
  reply(exchange, { ...errors.unavailable, ...options });
};
