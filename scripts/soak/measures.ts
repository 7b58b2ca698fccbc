/** What a soak measures: shared by the load, the soak and its report. */
import type { FrameFault } from '../rig/context-check.js';
import type { CpuTimes } from '../rig/process-facts.js';

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

/** `statuses` of HTTP; `sockets` that the service closed; `answers` that never came. */
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

/** The load's report of a second. Counts are since the beginning or the last reset; faults are never reset. */
export interface LoadTick {
  /** Open WebSockets, idle ones included. */
  readonly sockets: number;
  /** Contexts and requests that are being spoken or heard. */
  readonly streams: number;
  readonly replies: number;
  readonly contexts: number;
  readonly lives: number;
  readonly requests: number;
  readonly frames: number;
  readonly audioMs: number;
  readonly underruns: number;
  readonly unjudged: number;
  /** Utterances and requests that the service refused because it was full. */
  readonly refusals: number;
  /** Replies that listeners began to hear. */
  readonly heard: number;
  /** Those with first audio or a gap beyond what an overload allows. */
  readonly spoilt: number;
  /** Replies that began while something else on the machine delayed audio: their first audio is not judged. */
  readonly disturbed: number;
  /** WebSockets that the stop of a service closed, and those of them that still spoke when its time was over. */
  readonly moved: number;
  readonly cut: number;
  readonly faults: Readonly<Record<FaultKind, number>>;
  /** Milliseconds, since the last step ended. */
  readonly firstAudioMs: Quantiles;
  /** Lateness of the load's own event loop, likewise. */
  readonly loopLateMs: Quantiles;
  /** A step ends with this tick. */
  readonly endsStep: boolean;
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
  /** Milliseconds so far. */
  readonly cpu: CpuTimes | null;
  /** Lateness of the front thread's event loop (p99), as the service measures it. */
  readonly loopDelayP99Ms: number | null;
  readonly streams: number | null;
  readonly contexts: number | null;
  /** By the service's own count since its start: late chunks of audio, and all with a listener. */
  readonly serviceUnderruns: number | null;
  readonly serviceChunks: number | null;
  readonly threadRestarts: number | null;
}

/** A row of the time series. */
export interface Step extends Pick<
  ServiceSample,
  'pssBytes' | 'frontHeapBytes' | 'loopDelayP99Ms' | 'serviceUnderruns' | 'serviceChunks'
> {
  /** Since the load began. */
  readonly atMs: number;
  readonly phase: 'calibration' | 'warm-up' | 'measured' | 'rest';
  readonly streams: number;
  readonly speechPerSecond: number;
  /** In cores, over the step. */
  readonly cpu: CpuTimes | null;
  readonly loadCpu: number;
  /** Cores that all other programs of the machine used. */
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
