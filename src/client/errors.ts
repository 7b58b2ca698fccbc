/** Every fault reaches the caller as a `SyrinxError`: a code to branch on, and whether trying again can help. */

/** Whether trying again in a moment, unchanged, can help. */
const retryableByCode = {
  /** The key is missing, malformed, unknown, revoked or expired, or its account is suspended. */
  invalid_api_key: false,
  /** The account is out of credit. It works again as soon as it has some. */
  insufficient_credits: false,
  /** All slots of the key are in use. */
  rate_limited: true,
  /** The message names the valid voices. */
  unknown_voice: false,
  /** The service refused a frame: a format, a temperature, a context id in use. The message says why. */
  invalid_frame: false,
  /** A fault of the service. */
  server_error: true,
  /** The service is draining, full, or behind a proxy that cannot reach it. */
  unavailable: true,
  /** Something that is not this service answered the handshake. */
  handshake_refused: false,
  /** No connection could be opened. */
  unreachable: true,
  /** The connection was lost, and with it the speech on it. */
  connection_lost: true,
  /** The other side sent something that is not a frame of this protocol. */
  protocol_error: true,
  /** A context's audio stayed unread for so long that it held up the others. */
  slow_consumer: false,
  /** The connection or the service holds no more: wait for `drained()`, for flushes, for speech. */
  buffer_full: true,
  /** The connection has as many open contexts as it may. */
  too_many_contexts: true,
  /** The caller cancelled the context. */
  cancelled: false,
  /** The caller's `AbortSignal` fired; `cause` is its reason. */
  aborted: false,
  /** The context or the client is closed. */
  closed: false,
} as const satisfies Record<string, boolean>;

export type SyrinxErrorCode = keyof typeof retryableByCode;

export class SyrinxError extends Error {
  override readonly name = 'SyrinxError';
  readonly code: SyrinxErrorCode;
  /** Whether trying again in a moment, unchanged but in a new context, can help. */
  readonly retryable: boolean;

  constructor(code: SyrinxErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
    this.retryable = retryableByCode[code];
  }
}

/** The error of an `error` frame. @param isStarted its context had been started */
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
  // The text is not fixed, but names the voice; nothing else is refused before the start.
  if (!isStarted && /\bvoices?\b/i.test(text)) return new SyrinxError('unknown_voice', text);
  return new SyrinxError('server_error', text);
};

/** The error of an HTTP answer in place of a handshake. @param body its beginning */
export const errorOfHandshake = (status: number, body: string): SyrinxError => {
  const shown = body.trim().slice(0, 200);
  const message = `The handshake was answered with ${String(status)}${shown === '' ? '' : `: ${shown}`}`;
  if (status === 401) return new SyrinxError('invalid_api_key', message);
  if (status === 402) return new SyrinxError('insufficient_credits', message);
  if (status === 429) return new SyrinxError('rate_limited', message);
  return new SyrinxError(status >= 500 ? 'unavailable' : 'handshake_refused', message);
};
