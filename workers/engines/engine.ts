/** What every voice format implements. */
import type { InferenceSession } from 'onnxruntime-node';
import type { GpuGraphs, Provider } from '../../src/config.js';
import type { Bounds } from '../../src/limits.js';
import type { Log } from '../../src/log.js';
import type { GpuState } from '../../src/threads/gpu.js';
import type { GraphPlaces, SegmentRequest, WordTime, WrittenSegment } from '../../src/threads/messages.js';
import type { NativeGuard } from '../../src/threads/vitals.js';
import type { Voice, VoiceCost, VoicePack } from '../../src/threads/voices.js';
import type { DerivedFiles } from './graph/derived.js';
import type { PhonemicWord } from './g2p/speech.js';
import type { PackContent, PackFolder } from './pack.js';

/** What one step made. */
export interface EngineChunk {
  /**
   * Mono, at the voice's sample rate. The receiver may transfer its buffer. Empty for a short step that only prepares the
   * next sound.
   */
  readonly pcm: Int16Array;
  /** Words that end within this chunk (their times are final), in order. */
  readonly words: readonly WordTime[];
  /** No chunk follows: the listener learns it at once, not after another step. */
  readonly last: boolean;
}

/** A segment that an engine speaks, step by step. */
export interface SegmentSynthesis {
  readonly sampleRateHz: number;
  /** Steps with the same window run together, if the engine makes batches. Before the first step: 0. */
  readonly window?: number;
  /**
   * Runs the next step, about `bounds.stepComputeMsTarget` of compute: a small first chunk, then larger ones. Do not call it
   * again before it resolves.
   *
   * @returns `null` at its end
   * @throws if it cannot go on
   */
  step(): Promise<EngineChunk | null>;
}

/** Steps of several segments as one. */
export interface Batches {
  /** The most steps that are worth running together now; 1: none. */
  readonly batchMax: number;
  /** Runs steps side by side. Each one waits for nothing but runs. */
  together<T>(steps: readonly (() => Promise<T>)[]): Promise<PromiseSettledResult<T>[]>;
}

/** Speaks the voices of one pack, for one thread: a model session cannot cross threads. */
export interface Engine {
  readonly voices: readonly Voice[];
  /** `cpu`, unless all models run elsewhere; `webgpu` if some may. */
  readonly executionProvider: Provider;
  /** The most segments that may be open at the same time, because each keeps a large state; absent: any number. */
  readonly segmentsMax?: number;
  /** Runs steps of several segments as one, on a GPU. Absent: steps run one at a time. */
  readonly batches?: Batches | undefined;
  /**
   * What the load measured by speaking. A later load of the pack in the same thread gets it, and does not speak. Absent: the
   * engine measures nothing.
   */
  readonly measured?: unknown;
  /** Cheap: no model runs before the first step. @throws {RangeError} if the voice is unknown */
  open(request: SegmentRequest): SegmentSynthesis;
  /** Frees the models. Call it when no segment is open. */
  readonly release: () => Promise<void>;
}

/** A job that needs a pack. */
export interface PackUse {
  readonly voiceId: string;
  /** When the job's first sample is due. Of the waiting jobs, the most urgent comes first. */
  readonly dueMs: () => number;
  readonly isCancelled: () => boolean;
  /** Runs a part of a load when the thread has time for it. @param expectedMs how long such a part took before */
  readonly asStep: <T>(expectedMs: number, run: () => Promise<T>) => Promise<T>;
}

/** Keeps a pack loaded until it is released. */
export interface PackHold {
  /** The load that it took, from the moment when there was room for it; `null`: the pack was loaded already. */
  readonly load: { readonly pack: string; readonly ms: number } | null;
  /** Call it once. */
  readonly release: () => void;
}

/** The voices of all packs, loaded in one thread. */
export type LoadedVoices = Pick<Engine, 'voices' | 'executionProvider' | 'open'> & {
  /** Why packs could not be loaded, by their names. */
  readonly faults?: ReadonlyMap<string, string>;
  /** The engines that bound their open segments. */
  readonly crowded?: readonly Pick<Engine, 'voices' | 'segmentsMax'>[];
  /** Where each graph runs, in words for the operator, by `PACK/GRAPH`. Absent unless the provider is WebGPU. */
  readonly graphs?: GraphPlaces;
  /** What the voices cost, as the load measured it, by voice id. Absent: it was not measured. */
  readonly costs?: ReadonlyMap<string, VoiceCost>;
  /** Packs that are loaded now. */
  readonly loadedPacks?: () => number;
  /** The batches of a voice's engine, if it makes them. */
  readonly batchesOf?: (voiceId: string) => Engine['batches'];
  /**
   * Keeps the pack of a voice loaded, and loads it first if it is not. Absent: all packs are loaded.
   * @returns `null` if the job was cancelled
   */
  readonly hold?: (use: PackUse) => Promise<PackHold | null>;
};

/** What a thread logs while it loads. */
export type EngineLog = Pick<Log, 'debug' | 'warn'>;

/** Where a graph runs, unless the GPU is lost. */
export interface Placement {
  readonly device: 'gpu' | 'cpu';
  /** Windows that the load ran on the GPU. */
  readonly windows: Set<string>;
  /** The results on the GPU are wrong by this much. */
  readonly difference?: number;
}

/** What a thread needs to use a GPU. */
export interface GpuMeans {
  readonly state: GpuState;
  readonly graphs: GpuGraphs;
  readonly batchMax: number;
  /** The number of the CUDA device; `null`: its first. */
  readonly cudaDevice: number | null;
  /** By `PACK/GRAPH`: what the thread's loads decided. */
  readonly placements: Map<string, Placement>;
  /** A test can set its own. */
  readonly createSession?: (
    source: string | Uint8Array,
    options: InferenceSession.SessionOptions,
  ) => Promise<Pick<InferenceSession, 'run' | 'release'>>;
}

/** What a pack is loaded with. */
export interface EngineMeans {
  readonly provider: Provider;
  /** If the provider is a GPU. */
  readonly gpu?: GpuMeans;
  /** Goes around every load, run and release of a model. */
  readonly native: NativeGuard;
  /** Goes around the load of each graph, outside `native`: such a load may be a step. */
  readonly loading?: NativeGuard;
  /** Of a trial: goes around the load of all graphs. It throws if they take far more memory than their files. */
  readonly weigh?: NativeGuard;
  readonly log: EngineLog;
  readonly bounds: Bounds;
  /** The load also measures what speech costs. */
  readonly measuresCosts?: boolean;
}

/** Pronounces a segment as a voice does. */
export type Pronounce = (segment: WrittenSegment, voice: Voice) => readonly PhonemicWord[];

/** A voice format: one folder beside this file. */
export interface VoiceFormat {
  /** Name of the folder. */
  readonly name: string;
  /** The files by which it recognises a pack, for messages. */
  readonly looksFor: string;
  /** Whether the folder is a pack of this format, by its files. `read` finds out whether the pack is complete. */
  recognises(folder: PackFolder): boolean | Promise<boolean>;
  /**
   * Verifies the pack, and opens the files that will be loaded. Loads no model.
   * @param derived files that are derived from those of packs
   * @throws {VoicePackError} in one line that names the file, and says what to do
   */
  read(folder: PackFolder, derived: DerivedFiles): Promise<PackContent>;
  /**
   * Loads a pack for the calling thread, and warms it up: the first request is as fast as the next.
   *
   * @param measured `Engine.measured` of an earlier load in this thread: then this one does not warm up
   * @throws {VoicePackError} in one line that names the file
   */
  load(pack: VoicePack, means: EngineMeans, measured?: unknown): Promise<Engine>;
  /** The pronunciation of a pack, without its models. Absent, or `null`: its voices read letters. */
  pronounce?(pack: VoicePack, bounds: Bounds): Promise<Pronounce | null>;
}
