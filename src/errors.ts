/**
 * One table of every error that leaves the service: its HTTP status and body. Threads pass codes, never Error
 * objects, because structured clone drops custom fields.
 */

export interface ErrorRow {
  /** HTTP status of a response that has not begun. */
  readonly status: number;
  readonly contentType: string;
  /** The body, fixed. Errors whose body depends on the request (422) have none here. */
  readonly body: string;
  /** Text of the `error` frame, where a WebSocket can meet it. */
  readonly socketText?: string;
}

const json = (value: unknown): Pick<ErrorRow, 'contentType' | 'body'> => ({
  contentType: 'application/json',
  body: JSON.stringify(value),
});

export const errors = {
  keyMissing: { status: 401, ...json({ error: 'Invalid or missing API key' }) },
  keyUnknown: {
    status: 401,
    ...json({ error: 'INVALID_API_KEY' }),
    socketText: 'INVALID_API_KEY',
  },
  creditExhausted: {
    status: 402,
    ...json({ error: 'INSUFFICIENT_CREDITS' }),
    socketText: 'INSUFFICIENT_CREDITS',
  },
  methodNotAllowed: { status: 405, ...json({ detail: 'Method Not Allowed' }) },
  bodyUnreadable: {
    status: 400,
    ...json({ detail: 'There was an error parsing the body' }),
  },
  badRequest: { status: 400, ...json({ detail: 'Bad Request' }) },
  bodyTooLarge: {
    status: 413,
    ...json({ detail: 'Request body is larger than 1048576 bytes' }),
  },
  slotsExhausted: {
    status: 429,
    ...json({ error: 'Rate limit exceeded', reason: 'concurrency' }),
    socketText: 'Rate limit exceeded',
  },
  internal: {
    status: 500,
    contentType: 'text/plain; charset=utf-8',
    body: 'Internal Server Error',
    socketText: 'Internal Server Error',
  },
  /** The process is draining, its pools are full or its store fails: come back later. */
  unavailable: {
    status: 503,
    ...json({ error: 'Service unavailable' }),
    socketText: 'Service unavailable',
  },
  /** More text waits on a WebSocket, or on all of them, than is held: send on when some of it is spoken. */
  textExhausted: {
    status: 503,
    ...json({ error: 'Too much text is waiting' }),
    socketText: 'Too much text is waiting',
  },
  flushesExhausted: {
    status: 503,
    ...json({ error: 'Too many flushes are waiting' }),
    socketText: 'Too many flushes are waiting',
  },
  contextsExhausted: {
    status: 503,
    ...json({ error: 'Too many contexts are open' }),
    socketText: 'Too many contexts are open',
  },
  /** A context idled with a voice that a reload took away. */
  voiceRetired: {
    status: 503,
    ...json({ error: 'The voice was replaced' }),
    socketText: 'The voice was replaced: start another context',
  },
} as const satisfies Record<string, ErrorRow>;

export type ErrorCode = keyof typeof errors;

/** Errors that a WebSocket is told of in a frame. */
export type SocketErrorCode = {
  [Code in ErrorCode]: (typeof errors)[Code] extends { socketText: string } ? Code : never;
}[ErrorCode];
