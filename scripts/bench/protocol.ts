/** What the benchmark and its load client tell each other. The client is a process of its own, as listeners are. */
import type { AudioFormat } from '../../src/api/formats.js';

export interface Target {
  readonly port: number;
  readonly keys: readonly string[];
  readonly voice: string;
  /** What is asked for. */
  readonly format: AudioFormat;
}

export type LoadCommand =
  /** One listener at a time; each round asks for every text once. */
  | {
      readonly type: 'first-audio';
      readonly target: Target;
      readonly texts: readonly string[];
      readonly rounds: number;
    }
  /** Connections that ask again as soon as they are served, reading as fast as they can. */
  | {
      readonly type: 'throughput';
      readonly target: Target;
      readonly text: string;
      readonly connections: number;
      readonly durationMs: number;
    }
  /** Listeners that read at the speed of playback and ask again when they have heard it all. */
  | {
      readonly type: 'listeners';
      readonly target: Target;
      readonly text: string;
      readonly transport: 'http' | 'ws';
      readonly listeners: number;
      /** Over which their first requests are spread. */
      readonly spreadMs: number;
      readonly durationMs: number;
      /** Whose main thread's time to tell. */
      readonly watchedPid: number | null;
    }
  /** WebSockets on which nothing happens; they stay open. */
  | { readonly type: 'open-idle'; readonly target: Target; readonly sockets: number }
  | { readonly type: 'close-idle' }
  /** The frames of one turn, as they come. */
  | { readonly type: 'record'; readonly target: Target; readonly text: string }
  /** WebSockets to a server that sends on its own, read as fast as they can. */
  | {
      readonly type: 'receive';
      readonly port: number;
      readonly sockets: number;
      readonly warmUpMs: number;
      readonly durationMs: number;
      readonly watchedPid: number;
    }
  /** Sockets of several contexts each, played at real time, of which every frame is looked at. */
  | {
      readonly type: 'check';
      readonly target: Target;
      readonly sockets: number;
      readonly contextsPerSocket: number;
      readonly durationMs: number;
    };

/** What came over WebSockets in a while, and what it cost the one who sent it. */
export interface FrameCost {
  /** Messages of all kinds. */
  readonly frames: number;
  readonly gaugedMs: number;
  /** Time of the main thread of the process that was watched; `null` where the system does not tell. */
  readonly frontCpuMs: number | null;
}

export type LoadResult =
  /** Milliseconds from the written request to its first audio, by text. */
  | { readonly type: 'first-audio'; readonly firstAudioMs: readonly (readonly number[])[] }
  | { readonly type: 'throughput'; readonly audioMs: number; readonly durationMs: number }
  | ({
      readonly type: 'listeners';
      readonly firstAudioMs: readonly number[];
      /** Listeners that ever had heard all they got while there was more to come. */
      readonly dry: number;
      /** The longest that one had to wait in the middle of its speech. */
      readonly dryMsMax: number;
      readonly audioMs: number;
    } & FrameCost)
  | { readonly type: 'open-idle' }
  | { readonly type: 'close-idle' }
  | { readonly type: 'record'; readonly frames: readonly string[] }
  | ({ readonly type: 'receive' } & FrameCost)
  | {
      readonly type: 'check';
      readonly frames: number;
      readonly turns: number;
      readonly contexts: number;
      readonly audioMs: number;
      /** How many things were wrong, and the first of them in words. */
      readonly faultCount: number;
      readonly faults: readonly string[];
    }
  | { readonly type: 'failed'; readonly message: string };
