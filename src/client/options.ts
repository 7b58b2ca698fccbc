/** Options of connections and contexts, with their defaults. */
import typia from 'typia';
import type { SyrinxError } from './errors.js';

/** Those of the specification. Written out, so that the types of the package need no file of the service. */
export type Encoding = 'mp3' | 'wav' | 'pcm' | 'linear16' | 'opus' | 'mulaw' | 'alaw';

const MiB = 1024 * 1024;

/** The wait before the next try: it doubles up to a cap, with jitter so that clients do not all come at once. */
export interface Backoff {
  /** Milliseconds before the second try at most. */
  readonly firstMs: number;
  /** Milliseconds of the longest wait. */
  readonly capMs: number;
}

/** The schedule that the service recommends after a 429 or a lost connection. */
export const advisedBackoff: Backoff = { firstMs: 200, capMs: 5_000 };

/**
 * @param failures failed tries in a row, from 1
 * @param random from 0 to below 1
 * @returns milliseconds: from half of the doubled wait to all of it
 */
export const backoffMs = (
  failures: number,
  { firstMs, capMs }: Backoff = advisedBackoff,
  random: () => number = Math.random,
): number => {
  const fullMs = Math.min(capMs, firstMs * 2 ** (failures - 1));
  return fullMs / 2 + (fullMs / 2) * random();
};

/** The client's timers: real ones, or those of a test. */
export interface Clock {
  /** Calls `action` once, `ms` from now. @returns a function that cancels it */
  after(ms: number, action: () => void): () => void;
}

const systemClock: Clock = {
  after(ms, action) {
    const timer = setTimeout(action, ms);
    return () => {
      clearTimeout(timer);
    };
  },
};

/** What happens to a connection, for a log. */
export type ConnectionEvent =
  | { readonly type: 'open' }
  /** It was lost or failed; the next try is in `retryInMs`. */
  | { readonly type: 'lost'; readonly error: SyrinxError; readonly retryInMs: number }
  /** The service reported an error that belongs to no context. */
  | { readonly type: 'error'; readonly error: SyrinxError }
  /** There is no further try. `error` is absent if the caller closed the client. */
  | { readonly type: 'closed'; readonly error?: SyrinxError };

export interface ConnectOptions {
  /** The service: `http://host:8080`, `wss://host/prefix` or the whole `ws://host/v1/tts/ws`. */
  readonly url: string | URL;
  /** The handshake's `x-api-key` header. */
  readonly apiKey: string;
  /** Further headers of the handshake, for a proxy. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Ends the attempt to connect, and later the client: its contexts fail with `aborted`. */
  readonly signal?: AbortSignal;
  /**
   * How the client opens its first connection and replaces a lost one; `false` for one try only. `attemptsMax` failures in
   * a row (8) close the client.
   */
  readonly reconnect?: false | (Partial<Backoff> & { readonly attemptsMax?: number });
  /** Milliseconds for one handshake (10,000). */
  readonly connectTimeoutMs?: number;
  /** Milliseconds between pings (15,000). A connection that answers none within as long counts as lost. */
  readonly pingIntervalMs?: number;
  /** Milliseconds that a clean close waits for the service (2,000). */
  readonly closeTimeoutMs?: number;
  /** Unread bytes of one context above which the connection stops reading (4 MiB). */
  readonly receiveBufferBytesMax?: number;
  /** Milliseconds that one context may hold up its connection in this way before it fails (20,000). */
  readonly consumerStallMsMax?: number;
  /** Unsent bytes above which `send` throws `buffer_full` (4 MiB). */
  readonly sendBufferBytesMax?: number;
  /** Open contexts of one connection (64, the service's own bound). */
  readonly contextsMax?: number;
  readonly onEvent?: (event: ConnectionEvent) => void;
  /** Timers; for tests. */
  readonly clock?: Clock;
  /** Jitter, from 0 to below 1; for tests. */
  readonly random?: () => number;
}

const path = '/v1/tts/ws';

const socketUrl = (given: string | URL): string => {
  if (!URL.canParse(String(given))) throw new TypeError(`url: ${String(given)} is no URL`);
  const url = new URL(given);
  const protocol = { 'http:': 'ws:', 'https:': 'wss:', 'ws:': 'ws:', 'wss:': 'wss:' }[url.protocol];
  if (protocol === undefined) throw new TypeError(`url: ${url.protocol} is not http, https, ws or wss`);
  url.protocol = protocol;
  url.hash = '';
  if (!url.pathname.endsWith(path)) url.pathname = url.pathname.replace(/(?<!\/)\/*$/, path);
  return url.href;
};

/** A misspelt option would have no effect, and JavaScript has no types. @throws {TypeError} */
const refuseUnknown = (where: string, options: object, names: readonly string[]): void => {
  const unknown = Object.keys(options).filter((name) => !names.includes(name));
  if (unknown.length > 0)
    throw new TypeError(
      `${where}: unknown option ${unknown.join(', ')}; the options are ${names.toSorted().join(', ')}`,
    );
};

/** @throws {TypeError} an option is unknown */
export const checkContextOptions = (options: ContextOptions): void => {
  refuseUnknown('context', options, typia.misc.literals<keyof ContextOptions>());
  if (typeof options.format === 'object')
    refuseUnknown('format', options.format, typia.misc.literals<keyof AudioFormat>());
};

/** Options with their defaults. @throws {TypeError} an option is invalid */
export const settingsOf = (options: ConnectOptions) => {
  refuseUnknown('connect', options, typia.misc.literals<keyof ConnectOptions>());
  if (typeof options.reconnect === 'object')
    refuseUnknown('reconnect', options.reconnect, typia.misc.literals<keyof Backoff | 'attemptsMax'>());
  // Callers in JavaScript pass an environment variable that is not set.
  if (typeof options.apiKey !== 'string' || options.apiKey === '')
    throw new TypeError('apiKey: set a key (svc_sk_...); there is none');
  // Checked here, because Node does not say what is wrong with a header that it refuses.
  if (!/^[\x21-\x7e]+$/.test(options.apiKey))
    throw new TypeError('apiKey: not a key that a header can carry');
  const reconnect: Partial<Backoff> & { attemptsMax?: number } =
    options.reconnect === false ? { attemptsMax: 1 } : { ...options.reconnect };
  return {
    url: socketUrl(options.url),
    headers: { ...options.headers, 'x-api-key': options.apiKey } as Readonly<Record<string, string>>,
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

export type Settings = Readonly<ReturnType<typeof settingsOf>>;

export interface AudioFormat {
  readonly encoding: Encoding;
  /** 32,000 by default; 48,000 for opus, 8,000 for mulaw and alaw. */
  readonly sampleRateHz?: number;
  /** Only for mp3 (by default 128) and opus (64). */
  readonly bitrateKbps?: number;
}

export interface ContextOptions {
  readonly voiceId: string;
  /** `pcm` by default: signed 16-bit little-endian mono at 32,000 Hz. */
  readonly format?: Encoding | AudioFormat;
  /** Whether to report the times of words; false by default. */
  readonly timestamps?: boolean;
  /** From 0.5 (even) to 3 (lively). */
  readonly temperature?: number;
  /** A new id by default. No live context of this client may have it. */
  readonly contextId?: string;
  /** Cancels the context; its readers get `aborted`. */
  readonly signal?: AbortSignal;
}
