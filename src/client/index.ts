/** A client of the service's WebSocket: contexts as async iterables of audio and words. See README.md beside it. */
export { type Backoff, advisedBackoff, backoffMs } from './backoff.js';
export { type SyrinxClient, connect } from './client.js';
export type { Clock } from './clock.js';
export type { SpeechContext } from './context.js';
export { SyrinxError, type SyrinxErrorCode } from './errors.js';
export type { StartedContext, Word } from './frames.js';
export type { SpeechEvent } from './inbox.js';
export type { AudioFormat, ConnectOptions, ConnectionEvent, ContextOptions, Encoding } from './options.js';
