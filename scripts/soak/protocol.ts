/** What the soak and its load tell each other. The load is a process of its own, as clients are. */
import type { FrameFault } from '../rig-old/context-check.js';

/** Where the service is. */
export interface Target {
  readonly host: string;
  readonly port: number;
  readonly voices: readonly string[];
}

/** `statuses` of HTTP; `sockets` that were closed by the service; `answers` that never came. */
export type FaultKind = FrameFault | 'statuses' | 'sockets' | 'answers';
export const faultKinds = [
  'frames',
  'audio',
  'words',
  'flushes',
  'errors',
  'statuses',
  'sockets',
  'answers',
] as const satisfies readonly FaultKind[];

export interface Fault {
  readonly kind: FaultKind | 'underruns';
  /** Since the load began. */
  readonly atMs: number;
  /** The client or socket, and its context or request: with the seed, they say what was sent. */
  readonly where: string;
  readonly what: string;
}

export interface LoadSettings {
  readonly seed: number;
  /** WebSockets on which hardly anything happens. */
  readonly idleSockets: number;
  /** Clients over HTTP. */
  readonly httpClients: number;
}

export type LoadCommand =
  | { readonly type: 'begin'; readonly target: Target; readonly settings: LoadSettings }
  /** So many clients that stream over WebSockets, from now on, and the keys of all clients. */
  | { readonly type: 'population'; readonly contexts: number; readonly keys: KeyRing }
  /** Measures begin anew; faults do not. */
  | { readonly type: 'reset' }
  /** What is spoken is spoken to its end; then nobody speaks until it is resumed. */
  | { readonly type: 'rest' }
  | { readonly type: 'resume' }
  /** What is spoken is spoken to its end; then all clients leave. */
  | { readonly type: 'stop' };

export interface KeyRing {
  /** Of WebSocket clients: tidy and untidy by turns, see `keyOfClient`. */
  readonly sockets: readonly string[];
  readonly http: readonly string[];
  readonly idle: string;
  /** They are those of a service that runs already: clients of all kinds have the same, and what they use is not reckoned. */
  readonly isShared: boolean;
}

export interface Quantiles {
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
  readonly max: number;
  readonly count: number;
}

/** Once a second. Counts are since the beginning or the last reset; faults are never reset. */
export interface LoadTick {
  /** WebSockets that are open, idle ones included. */
  readonly sockets: number;
  /** Contexts that are being spoken or heard. */
  readonly streams: number;
  readonly turns: number;
  readonly contexts: number;
  readonly lives: number;
  readonly requests: number;
  readonly frames: number;
  readonly audioMs: number;
  readonly underruns: number;
  readonly unjudged: number;
  readonly faults: Readonly<Record<FaultKind, number>>;
  /** Milliseconds, since the last tick but four or fewer. */
  readonly firstAudioMs: Quantiles;
  /** The load's own event loop, likewise. */
  readonly loopLateMs: Quantiles;
  /** The quantiles begin anew after this tick. */
  readonly endsStep: boolean;
  /** User and system time so far. */
  readonly cpuMs: number;
  readonly rssBytes: number;
}

/** By key: the characters that it must have been charged at least, and at most. */
export type Charges = Readonly<Record<string, { readonly min: number; readonly max: number }>>;

export type LoadReport =
  | { readonly type: 'ready' }
  | ({ readonly type: 'fault' } & Fault)
  | ({ readonly type: 'tick' } & LoadTick)
  | { readonly type: 'done'; readonly firstAudioMs: Quantiles; readonly charges: Charges }
  | { readonly type: 'failed'; readonly message: string };
