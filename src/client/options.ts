import { type Backoff, advisedBackoff } from './backoff.js';
import { type Clock, systemClock } from './clock.js';
import type { SyrinxError } from './errors.js';

const KiB = 1024;
const MiB = 1024 * KiB;

/** What happens to a connection, for a log. */
export type ConnectionEvent =
  | { readonly type: 'open' }
  /** It was lost, or did not come about; the next try is in `retryInMs`. */
  | { readonly type: 'lost'; readonly error: SyrinxError; readonly retryInMs: number }
  /** The service told of an error that belongs to no context. */
  | { readonly type: 'error'; readonly error: SyrinxError }
  /** There will be no further try. `error` is absent when the client was closed by its own caller. */
  | { readonly type: 'closed'; readonly error?: SyrinxError };

export interface ConnectOptions {
  /** The service: `http://host:8080`, `wss://host/prefix` or the whole `ws://host/v1/tts/ws`. */
  readonly url: string | URL;
  /** Goes into the handshake's `x-api-key` header. */
  readonly apiKey: string;
  /** More headers of the handshake, for a proxy. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Ends the attempt to connect, and later the client: its contexts fail with `aborted`. */
  readonly signal?: AbortSignal;
  /**
   * How a lost connection comes back, and the first one comes about: `false` for one try only. `attemptsMax` failures
   * in a row (8) close the client.
   */
  readonly reconnect?: false | (Partial<Backoff> & { readonly attemptsMax?: number });
  /** Milliseconds for one handshake (10,000). */
  readonly connectTimeoutMs?: number;
  /** Milliseconds between pings (15,000). A connection that is silent for one more counts as lost. */
  readonly pingIntervalMs?: number;
  /** Milliseconds that a clean close waits for the other side (2,000). */
  readonly closeTimeoutMs?: number;
  /** Bytes of one context that arrived and were not read, above which the connection stops reading (4 MiB). */
  readonly receiveBufferBytesMax?: number;
  /** Milliseconds that one context may hold up its connection that way before it fails (20,000). */
  readonly consumerStallMsMax?: number;
  /** Bytes waiting to be sent above which `send` throws `buffer_full` (4 MiB). */
  readonly sendBufferBytesMax?: number;
  /** Contexts of one connection that are open at once (64: as many as the service takes). */
  readonly contextsMax?: number;
  readonly onEvent?: (event: ConnectionEvent) => void;
  /** Timers; for tests. */
  readonly clock?: Clock;
  /** Jitter, from 0 to below 1; for tests. */
  readonly random?: () => number;
}

export interface Settings {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly backoff: Backoff;
  readonly attemptsMax: number;
  readonly connectTimeoutMs: number;
  readonly pingIntervalMs: number;
  readonly closeTimeoutMs: number;
  readonly receiveBufferBytesMax: number;
  readonly consumerStallMsMax: number;
  readonly sendBufferBytesMax: number;
  readonly contextsMax: number;
  readonly onEvent: (event: ConnectionEvent) => void;
  readonly clock: Clock;
  readonly random: () => number;
}

const path = '/v1/tts/ws';

const socketUrl = (given: string | URL): string => {
  if (!URL.canParse(String(given))) throw new TypeError(`url: ${String(given)} is no URL`);
  const url = new URL(given);
  const protocol = { 'http:': 'ws:', 'https:': 'wss:', 'ws:': 'ws:', 'wss:': 'wss:' }[url.protocol];
  if (protocol === undefined) throw new TypeError(`url: ${url.protocol} is not http, https, ws or wss`);
  url.protocol = protocol;
  url.hash = '';
  if (!url.pathname.endsWith(path)) url.pathname = url.pathname.replace(/\/*$/, path);
  return url.href;
};

/** Options with their defaults. @throws {TypeError} where an option cannot be right */
export const settingsOf = (options: ConnectOptions): Settings => {
  // Checked here, because a header that Node refuses would be reported without saying what is wrong.
  if (!/^[\x21-\x7e]+$/.test(options.apiKey))
    throw new TypeError('apiKey: not a key that a header can carry');
  const reconnect: Partial<Backoff> & { attemptsMax?: number } =
    options.reconnect === false ? { attemptsMax: 1 } : { ...options.reconnect };
  return {
    url: socketUrl(options.url),
    headers: { ...options.headers, 'x-api-key': options.apiKey },
    backoff: {
      firstMs: reconnect.firstMs ?? advisedBackoff.firstMs,
      capMs: reconnect.capMs ?? advisedBackoff.capMs,
    },
    attemptsMax: reconnect.attemptsMax ?? 8,
    connectTimeoutMs: options.connectTimeoutMs ?? 10_000,
    pingIntervalMs: options.pingIntervalMs ?? 15_000,
    closeTimeoutMs: options.closeTimeoutMs ?? 2_000,
    receiveBufferBytesMax: options.receiveBufferBytesMax ?? 4 * MiB,
    consumerStallMsMax: options.consumerStallMsMax ?? 20_000,
    sendBufferBytesMax: options.sendBufferBytesMax ?? 4 * MiB,
    contextsMax: options.contextsMax ?? 64,
    onEvent: options.onEvent ?? (() => undefined),
    clock: options.clock ?? systemClock,
    random: options.random ?? Math.random,
  };
};

export type Encoding = 'pcm' | 'wav' | 'linear16' | 'mp3' | 'opus' | 'mulaw' | 'alaw';

export interface AudioFormat {
  readonly encoding: Encoding;
  /** By default 32,000; 48,000 for opus, 8,000 for mulaw and alaw. */
  readonly sampleRateHz?: number;
  /** Only for mp3 (by default 128) and opus (64). */
  readonly bitrateKbps?: number;
}

export interface ContextOptions {
  readonly voiceId: string;
  /** By default `pcm`: signed 16-bit little-endian mono at 32,000 Hz. */
  readonly format?: Encoding | AudioFormat;
  /** Whether the times of words are wanted too. By default not. */
  readonly timestamps?: boolean;
  /** From 0.5 (even) to 3 (lively). */
  readonly temperature?: number;
  /** By default a new one. It must be no live context's of this client. */
  readonly contextId?: string;
  /** Cancels the context; what reads it gets `aborted`. */
  readonly signal?: AbortSignal;
}
