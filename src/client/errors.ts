/** Everything that goes wrong reaches the caller as a `SyrinxError`: a code to branch on, and whether to try again. */

/** Whether trying again in a moment, unchanged, can help by itself. */
const retryableByCode = {
  /** The key is missing, malformed, unknown or revoked. */
  invalid_api_key: false,
  /** The account is out of credit: it works again as soon as some is added. */
  insufficient_credits: false,
  /** The key has as many requests in flight as it may have. */
  rate_limited: true,
  /** The message names the voices there are. */
  unknown_voice: false,
  /** The service refused a frame: a format, a temperature, a context id in use. The message says why. */
  invalid_frame: false,
  /** A fault of the service. */
  server_error: true,
  /** The service is draining, full, or behind a proxy that cannot reach it. */
  unavailable: true,
  /** The handshake was answered by something that is not this service. */
  handshake_refused: false,
  /** No connection came about. */
  unreachable: true,
  /** The connection was lost, and what was being spoken on it. */
  connection_lost: true,
  /** The other side sent what is no frame of this protocol. */
  protocol_error: true,
  /** Nobody read a context's audio for so long that it held up the others. */
  slow_consumer: false,
  /** More was sent than the connection, or the service, holds: wait for `drained()`, for flushes, for speech. */
  buffer_full: true,
  /** As many contexts are open as one connection carries. */
  too_many_contexts: true,
  /** The context was cancelled by its own caller. */
  cancelled: false,
  /** An `AbortSignal` of the caller's fired; `cause` is its reason. */
  aborted: false,
  /** The context or the client was closed before. */
  closed: false,
} as const satisfies Record<string, boolean>;

export type SyrinxErrorCode = keyof typeof retryableByCode;

export class SyrinxError extends Error {
  override readonly name = 'SyrinxError';
  readonly code: SyrinxErrorCode;
  /** Whether trying again in a moment, unchanged (in a new context), can help by itself. */
  readonly retryable: boolean;

  constructor(code: SyrinxErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
    this.retryable = retryableByCode[code];
  }
}

/** What an `error` frame's text means. @param isStarted whether its context had been started */
export const errorOfFrame = (text: string, isStarted: boolean): SyrinxError => {
  if (text === 'INVALID_API_KEY')
    return new SyrinxError('invalid_api_key', 'The service does not know this API key');
  if (text === 'INSUFFICIENT_CREDITS')
    return new SyrinxError('insufficient_credits', 'The account of this API key is out of credit');
  if (text === 'Rate limit exceeded')
    return new SyrinxError('rate_limited', 'This API key has all its requests in flight already');
  if (text === 'Too many contexts are open') return new SyrinxError('too_many_contexts', text);
  if (/^Too (?:many|much) /.test(text)) return new SyrinxError('buffer_full', text);
  if (text === 'Service unavailable') return new SyrinxError('unavailable', text);
  if (text.startsWith('invalid frame: ') || text.startsWith('unknown context_id: '))
    return new SyrinxError('invalid_frame', text);
  // Its text is not fixed, but names the voice and every other one; nothing else is refused before the start.
  if (!isStarted && /\bvoices?\b/i.test(text)) return new SyrinxError('unknown_voice', text);
  return new SyrinxError('server_error', text);
};

/** What an HTTP answer in the place of a handshake means. @param body its beginning */
export const errorOfHandshake = (status: number, body: string): SyrinxError => {
  const told = body.trim().slice(0, 200);
  const message = `The handshake was answered with ${String(status)}${told === '' ? '' : `: ${told}`}`;
  if (status === 401) return new SyrinxError('invalid_api_key', message);
  if (status === 402) return new SyrinxError('insufficient_credits', message);
  if (status === 429) return new SyrinxError('rate_limited', message);
  return new SyrinxError(status >= 500 ? 'unavailable' : 'handshake_refused', message);
};
