/**
 * Every error that leaves the service, with the status and texts of the specification. Threads pass codes, never Error
 * objects, because structured clone drops custom fields. A listener of another dialect words the codes in its own
 * `ErrorShape` (src/api/error-shape.ts).
 */

export interface ErrorRow {
  /** HTTP status if the response has not begun. */
  readonly status: number;
  readonly contentType: string;
  /** The fixed body. Errors whose body depends on the request (422) are not in the table. */
  readonly body: string;
  /** Text of the `error` frame, if the error can occur on a WebSocket. */
  readonly socketText?: string;
}

const json = (value: unknown): Pick<ErrorRow, 'contentType' | 'body'> => ({
  contentType: 'application/json',
  body: JSON.stringify(value),
});

/** The same words in a body and on a WebSocket. */
const worded = <Text extends string>(status: number, text: Text) => ({
  status,
  ...json({ error: text }),
  socketText: text,
});

export const errors = {
  keyMissing: { status: 401, ...json({ error: 'Invalid or missing API key' }) },
  /** Not in the shape of a key. */
  keyMalformed: { status: 401, ...json({ error: 'Invalid or missing API key' }) },
  keyUnknown: worded(401, 'INVALID_API_KEY'),
  creditExhausted: worded(402, 'INSUFFICIENT_CREDITS'),
  methodNotAllowed: { status: 405, ...json({ detail: 'Method Not Allowed' }) },
  bodyUnreadable: {
    status: 400,
    ...json({ detail: 'There was an error parsing the body' }),
  },
  badRequest: { status: 400, ...json({ detail: 'Bad Request' }) },
  lengthRequired: {
    status: 411,
    ...json({
      detail: 'A Content-Length header is needed: the service takes no Transfer-Encoding (chunked body)',
    }),
  },
  bodyTooLarge: {
    status: 413,
    ...json({ detail: 'Request body is larger than 1048576 bytes' }),
  },
  /** A WebSocket handshake of another version than 13. */
  upgradeRequired: { status: 426, ...json({ detail: 'Use version 13 of the WebSocket protocol' }) },
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
  /** The process drains, a budget is exhausted, or the store fails: come back later. */
  unavailable: worded(503, 'Service unavailable'),
  /** The machine is at its capacity: speech for one more listener would come late. */
  overloaded: worded(503, 'Service unavailable'),
  /** Too much unspoken text on this WebSocket, or on all of them: send more when some of it is spoken. */
  textExhausted: worded(503, 'Too much text is waiting'),
  flushesExhausted: worded(503, 'Too many flushes are waiting'),
  contextsExhausted: worded(503, 'Too many contexts are open'),
  /** A context was idle with a voice of an older generation, or kept a reload waiting. */
  voiceRetired: {
    status: 503,
    ...json({ error: 'The voice was replaced' }),
    socketText: 'The voice was replaced: start another context',
  },
} as const satisfies Record<string, ErrorRow>;

export type ErrorCode = keyof typeof errors;

/** Errors that a WebSocket reports in a frame. */
export type SocketErrorCode = {
  [Code in ErrorCode]: (typeof errors)[Code] extends { socketText: string } ? Code : never;
}[ErrorCode];
