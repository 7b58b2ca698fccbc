/** What a soak measures: shared by the load, the soak and its report. */
import type { FrameFault } from '../rig/context-check.js';

/** The voices that come with the service, or example packs of all formats beside them. */
export type VoiceSet = 'shipped' | 'mixed';

/** Where the service is. */
export interface Target {
  readonly host: string;
  readonly port: number;
  readonly voices: readonly string[];
  /** Absent: those that are shipped. */
  readonly voiceSet?: VoiceSet;
  /** Of the dialects that the service listens for, by name. */
  readonly dialectPorts: Readonly<Record<string, number>>;
}

/** Those of frames, and `statuses` of HTTP; `sockets` that the service closed; `answers` that never came. */
export const faultKinds = [
  ...(['frames', 'audio', 'words', 'flushes', 'errors'] as const satisfies readonly FrameFault[]),
  ...(['statuses', 'sockets', 'answers'] as const),
] as const;
export type FaultKind = (typeof faultKinds)[number];

export interface Fault {
  readonly kind: FaultKind | 'underruns';
  /** Since the load began. */
  readonly atMs: number;
  /** The client or socket, and its context or request: with the seed, it identifies what was sent. */
  readonly where: string;
  readonly what: string;
}

export interface Quantiles {
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
  readonly max: number;
  readonly count: number;
}

/** What the clients of a load count, since the beginning or the last reset. */
export class Counts {
  /** Open WebSockets, idle ones included. */
  sockets = 0;
  /** Contexts and requests that are being spoken or heard. */
  streams = 0;
  contexts = 0;
  requests = 0;
  frames = 0;
  audioMs = 0;
  underruns = 0;
  unjudged = 0;
  /** Utterances and requests that the service refused because it was full. */
  refusals = 0;
  /** Utterances that failed, where they may. */
  failures = 0;
  /** Replies that listeners began to hear. */
  heard = 0;
  /** The longest gap. */
  dryMsMax = 0;
  /** Those with first audio or a gap beyond what an overload allows. */
  spoilt = 0;
  /** Replies that began while something else on the machine delayed audio: their first audio is not judged. */
  disturbed = 0;
  /** WebSockets that the stop of a service closed, and those of them that still spoke when its time was over. */
  moved = 0;
  cut = 0;
}

/** The load's report. Faults are never reset. */
export interface LoadTick extends Readonly<Counts> {
  readonly faults: Readonly<Record<FaultKind, number>>;
  readonly firstAudioMs: Quantiles;
  /** Lateness of the load's own event loop. */
  readonly loopLateMs: Quantiles;
  /** User and system time so far. */
  readonly cpuMs: number;
}

/** By key: the least and the most characters that it must have been charged. */
export type Charges = Readonly<Record<string, { readonly min: number; readonly max: number }>>;

/** What the load reports on its own. */
export type LoadEvent = ({ readonly type: 'tick' } & LoadTick) | ({ readonly type: 'fault' } & Fault);

/** A look at the service from outside; `null`: not known. */
export interface ServiceSample {
  readonly pssBytes: number | null;
  readonly frontHeapBytes: number | null;
  /** Lateness of the front thread's event loop (p99), as the service measures it. */
  readonly loopDelayP99Ms: number | null;
  readonly serviceStreams: number | null;
  readonly serviceContexts: number | null;
  /** By the service's own count since its start: late chunks of audio, and all with a listener. */
  readonly serviceUnderruns: number | null;
  readonly serviceChunks: number | null;
  readonly threadRestarts: number | null;
}

export type Phase = 'calibration' | 'warm-up' | 'measured' | 'rest' | 'ending';

/** A row of the time series. */
export interface Step extends ServiceSample {
  /** Since the load began. */
  readonly atMs: number;
  readonly phase: Phase;
  readonly streams: number;
  readonly speechPerSecond: number;
  /** In cores, over the step; of others: what all other programs of the machine used. */
  readonly serviceCpu: number | null;
  readonly loadCpu: number;
  readonly othersCpu: number | null;
}

/** Memory of the service's scripts, of all threads. */
export interface KeptByScript {
  /** Objects in V8's heaps. */
  readonly heapBytes: number;
  /** Buffers, and the memory of WebAssembly by its address space. */
  readonly externalBytes: number;
}

/** What the service keeps while no client speaks. */
export interface AtRest {
  /** Since the load began. */
  readonly atMs: number;
  readonly pssBytes: number;
  /** The rest of `pssBytes` is the C library's heaps, native code and pages that are mostly empty. */
  readonly kept: KeptByScript;
}
