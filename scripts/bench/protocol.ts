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
      readonly listeners: number;
      /** Over which their first requests are spread. */
      readonly spreadMs: number;
      readonly durationMs: number;
    };

export type LoadResult =
  /** Milliseconds from the written request to its first audio, by text. */
  | { readonly type: 'first-audio'; readonly firstAudioMs: readonly (readonly number[])[] }
  | { readonly type: 'throughput'; readonly audioMs: number; readonly durationMs: number }
  | {
      readonly type: 'listeners';
      readonly firstAudioMs: readonly number[];
      /** Listeners that ever had heard all they got while there was more to come. */
      readonly dry: number;
      /** The longest that one had to wait in the middle of its speech. */
      readonly dryMsMax: number;
      readonly audioMs: number;
    }
  | { readonly type: 'failed'; readonly message: string };
