/** A client of the service's WebSocket: contexts as async iterables of audio and words. See README.md beside it. */
export { type SyrinxClient, connect } from './client.js';
export type { SpeechContext } from './context.js';
export { SyrinxError, type SyrinxErrorCode } from './errors.js';
export type { StartedContext, Word } from './frames.js';
export type { SpeechEvent } from './inbox.js';
export {
  type AudioFormat,
  type Backoff,
  type Clock,
  type ConnectOptions,
  type ConnectionEvent,
  type ContextOptions,
  type Encoding,
  advisedBackoff,
  backoffMs,
} from './options.js';
