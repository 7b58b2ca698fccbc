/**
 * The worst case: what memory and files the process needs when every pool is full at once. Each part is a global bound
 * times what a unit of it takes; nothing in it is a guess of how the service is used.
 */
import type { Bounds } from './limits.js';

const KiB = 1024;
const MiB = 1024 * KiB;

export interface Threads {
  readonly synthesisThreads: number;
  readonly actorThreads: number;
  /** Bytes of the graphs of all voice packs. */
  readonly modelBytes: number;
  /** The same of those that a reload would load beside them; without, as many again. */
  readonly nextModelBytes?: number;
  /** Voice packs: each generation holds the files of its own open. */
  readonly packs: number;
  /** Connections are encrypted. */
  readonly tls: boolean;
}

/** Bytes that a unit takes, measured, or the most that its type allows. */
export const unitBytes = {
  /** The process with its front thread, its ledger and one actor thread, after load, code included. */
  process: 160 * MiB,
  /** A further actor thread: its heap, the encoders' code, and encoders that wait. */
  actorThread: 64 * MiB,
  /** A synthesis thread without its graphs: its heap, espeak-ng, and onnxruntime's arenas. */
  synthesisThread: 72 * MiB,
  /** A byte of a graph, loaded: the weights, and what is packed anew from them. */
  modelByte: 3,
  /** Model state of a segment that is being spoken. */
  job: 320 * KiB,
  /** An mp3 encoder (the largest), a resampler, and the two ends of a context on both threads. */
  context: 832 * KiB,
  /** A connection as it idles, and a session; of TLS, with a record of 16 KiB each way. */
  connection: 8 * KiB,
  tlsConnection: 40 * KiB,
  /** The largest frame, 200 ms of 48 kHz PCM in base64 and a long id: goes into an empty buffer also when the pool is full. */
  socketFrame: 32 * KiB,
  /** Answers that a socket may have when the pool is full, two bytes a unit. */
  socketAnswers: 8 * KiB,
  /** The piece of a spooled result that is being sent. */
  spooledResult: 64 * KiB,
  /** A code point that waits: two UTF-16 units, and the times of its word in a whole result. */
  requestCharacter: 16,
  /** Two UTF-16 units, twice while a text is cut. */
  socketCharacter: 8,
  answerUnit: 2,
  /** The id of a flush, in the session, the context and the actor. */
  flushIdUnit: 6,
  ledgerEntry: 256,
} as const;

/** Files: the standard streams, the store and its log, graphs while they are loaded, ports, pipes of the threads. */
const FILES_OF_PROCESS = 48;
const FILES_A_THREAD = 4;
const GRAPHS_A_PACK = 3;

export interface WorstCase {
  /** Bytes by part, in the order in which they are told. */
  readonly parts: Readonly<Record<string, number>>;
  readonly memoryBytes: number;
  readonly files: number;
}

export const worstCaseOf = (bounds: Bounds, threads: Threads): WorstCase => {
  const { synthesisThreads, actorThreads, modelBytes, nextModelBytes = modelBytes, packs, tls } = threads;
  const unit = unitBytes;
  const threadOf = (graphBytes: number) => unit.synthesisThread + unit.modelByte * graphBytes;
  const parts = {
    process: unit.process + (actorThreads - 1) * unit.actorThread,
    // While voices are reloaded there are those of before too; and threads that hang, which cannot be ended.
    synthesis:
      synthesisThreads * (threadOf(modelBytes) + threadOf(nextModelBytes)) +
      bounds.hungThreadsReplacedMax * threadOf(Math.max(modelBytes, nextModelBytes)) +
      synthesisThreads * bounds.jobsPerThreadMax * unit.job,
    contexts: bounds.contextsMax * unit.context,
    unsentAudio: bounds.unsentAudioBytesMax,
    results: bounds.resultMemoryInFlightBytesMax + bounds.resultSpoolFilesMax * unit.spooledResult,
    requestText: bounds.bodyBytesInFlightMax + bounds.requestCharactersInFlightMax * unit.requestCharacter,
    socketText: bounds.socketCharactersInFlightMax * unit.socketCharacter,
    connections: bounds.connectionsMax * (tls ? unit.tlsConnection : unit.connection),
    socketBuffers: bounds.socketBufferedBytesInFlightMax + bounds.socketsMax * unit.socketFrame,
    answers:
      bounds.socketAnswerBytesInFlightMax * unit.answerUnit +
      bounds.socketsMax * unit.socketAnswers +
      bounds.flushIdUnitsInFlightMax * unit.flushIdUnit,
    ledger: bounds.ledgerQueueMax * unit.ledgerEntry,
  };
  return {
    parts,
    memoryBytes: Object.values(parts).reduce((sum, bytes) => sum + bytes, 0),
    files:
      FILES_OF_PROCESS +
      FILES_A_THREAD * (2 * synthesisThreads + bounds.hungThreadsReplacedMax + actorThreads) +
      2 * GRAPHS_A_PACK * packs +
      bounds.connectionsMax +
      bounds.resultSpoolFilesMax +
      bounds.opsConnectionsMax,
  };
};

/** In MiB, for people: the parts, and all of them. */
export const inMiB = ({ parts, memoryBytes }: WorstCase): Readonly<Record<string, number>> =>
  Object.fromEntries(
    Object.entries({ total: memoryBytes, ...parts }).map(([name, bytes]) => [name, Math.round(bytes / MiB)]),
  );
