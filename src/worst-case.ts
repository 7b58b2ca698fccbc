/**
 * The worst case: the memory and files that the process needs when every pool is full at once. Each part is a global
 * bound times the cost of one unit. No part assumes anything about how the service is used.
 */
import type { Bounds } from './limits.js';

const KiB = 1024;
const MiB = 1024 * KiB;

export interface Threads {
  readonly synthesisThreads: number;
  readonly actorThreads: number;
  /** Bytes of the model files of all voice packs. */
  readonly modelBytes: number;
  /** The same for the voices that a reload loads beside them; by default, as much again. */
  readonly nextModelBytes?: number;
  /** Size of the files that all threads map. */
  readonly sharedBytes: number;
  /** What the segments of a thread keep in memory beyond `job`: see `VoicePack.stateBytes`. */
  readonly stateBytes: number;
  /** Files of voice packs: each generation keeps its own open. */
  readonly packFiles: number;
  /** Connections use TLS. */
  readonly tls: boolean;
  /** The console is on. */
  readonly console: boolean;
  /** There are lexicons. */
  readonly lexicons: boolean;
  /** The most segments of a run on the GPU; 0: the CPU runs the models. */
  readonly gpuBatch: number;
  /** What a run needs there for each of them, in all voice packs: see `VoicePack.gpuItemBytes`. */
  readonly gpuItemBytes: number;
  /** The port for clients of OpenAI is on: only they can ask for AAC. */
  readonly aac: boolean;
}

/** Bytes of one unit: measured, or the most that its type allows. */
export const unitBytes = {
  /** The process with its front thread, ledger and one actor thread, after a load test; includes code. */
  process: 160 * MiB,
  /** A further actor thread: its heap, the encoders' code, and idle encoders. */
  actorThread: 64 * MiB,
  /** A synthesis thread without models: its heap, espeak-ng, and onnxruntime's arenas. */
  synthesisThread: 72 * MiB,
  /** The memory of the GPU: of a thread without models, and of a byte of a model file. */
  gpuThread: 64 * MiB,
  gpuModelByte: 2,
  /** The inner values of a run, and what is kept from runs of other sizes: each is half as large as the next. */
  gpuItemByte: 2,
  /** A byte of a model file, loaded: the weights, and the copy that onnxruntime packs from them. */
  modelByte: 3,
  /** Model state of a running segment. */
  job: 320 * KiB,
  /** An mp3 encoder (the largest but for AAC), a resampler, and the two ends of a context on both threads. */
  context: 832 * KiB,
  /** The same, and an encoder of AAC: its memory may stay while the context has another encoding (`libavcodec.ts`). */
  aacContext: 2_048 * KiB,
  /** An idle connection, its session and a head that is not complete; with TLS, also a record of 16 KiB each way. */
  connection: 12 * KiB,
  tlsConnection: 44 * KiB,
  /** The largest frame, 200 ms of 48 kHz PCM in base64 and a long id: an empty buffer takes one even if the pool is full. */
  socketFrame: 32 * KiB,
  /** Answers that a socket may queue when the pool is full, at two bytes per unit. */
  socketAnswers: 8 * KiB,
  /** The piece of a spooled result that is read for sending. */
  spooledResult: 64 * KiB,
  /** A waiting code point: two UTF-16 units; or, in a whole result, its times in JSON. */
  requestCharacter: 24,
  /** Two UTF-16 units, in memory twice while a text is cut. */
  socketCharacter: 8,
  answerUnit: 2,
  /** A unit of a flush id, held by the session, the context and the actor. */
  flushIdUnit: 6,
  ledgerEntry: 256,
  /** An entry of a lexicon without its text, and a unit of its text: the word, its key and its spoken form. */
  lexiconEntry: 320,
  lexiconUnit: 6,
  /** The console: its thread, the hash of a password, the page, and samples of voices. */
  console: 48 * MiB,
  /** The thread of a message to a webhook. */
  webhookThread: 14 * MiB,
  /** A request that the console lists. */
  keptRequest: 512,
} as const;

/** Files: standard streams, the store and its log, models while they load, ports, pipes of the threads. */
const FILES_OF_PROCESS = 48;
const FILES_A_THREAD = 4;

/** The synthesis threads of one generation of voices, without their jobs. */
export const generationBytes = ({
  synthesisThreads,
  modelBytes,
  stateBytes,
}: Pick<Threads, 'synthesisThreads' | 'modelBytes' | 'stateBytes'>): number =>
  synthesisThreads * (unitBytes.synthesisThread + unitBytes.modelByte * modelBytes + stateBytes);

export const worstCaseOf = (bounds: Bounds, threads: Threads) => {
  const { synthesisThreads, actorThreads, modelBytes, nextModelBytes = modelBytes, packFiles, tls } = threads;
  const consoleConnections = threads.console ? bounds.consoleConnectionsMax : 0;
  const connection = tls ? unitBytes.tlsConnection : unitBytes.connection;
  const unit = unitBytes;
  const gpuThreadOf = (bytes: number) => unit.gpuThread + unit.gpuModelByte * (bytes + threads.sharedBytes);
  const generationOf = (count: number, bytes: number) =>
    generationBytes({ synthesisThreads: count, modelBytes: bytes, stateBytes: threads.stateBytes });
  const parts = {
    process: unit.process + (actorThreads - 1) * unit.actorThread,
    // A reload loads the next voices beside the current ones, and reads them before that (`readingBounds`). At a start
    // the reading is over before anything else takes memory. Hung threads cannot be ended.
    synthesis:
      generationOf(synthesisThreads, modelBytes) +
      generationOf(synthesisThreads, nextModelBytes) +
      generationOf(bounds.hungThreadsReplacedMax, Math.max(modelBytes, nextModelBytes)) +
      synthesisThreads * bounds.jobsPerThreadMax * unit.job,
    sharedModels: threads.sharedBytes,
    contexts: bounds.contextsMax * (threads.aac ? unit.aacContext : unit.context),
    unsentAudio: bounds.unsentAudioBytesMax,
    results: bounds.resultMemoryInFlightBytesMax + bounds.resultSpoolFilesMax * unit.spooledResult,
    requestText: bounds.bodyBytesInFlightMax + bounds.requestCharactersInFlightMax * unit.requestCharacter,
    socketText: bounds.socketCharactersInFlightMax * unit.socketCharacter + bounds.waitingMessageBytesMax,
    // Of each WebSocket: those without a key have smaller ones.
    arrivingMessages: bounds.arrivingMessageBytesMax + bounds.socketsMax * bounds.socketShortMessageBytesMax,
    connections: bounds.connectionsMax * connection,
    socketBuffers: bounds.socketBufferedBytesInFlightMax + bounds.socketsMax * unit.socketFrame,
    answers:
      bounds.answerBytesInFlightMax +
      bounds.socketAnswerBytesInFlightMax * unit.answerUnit +
      bounds.socketsMax * unit.socketAnswers +
      bounds.flushIdUnitsInFlightMax * unit.flushIdUnit,
    ledger: bounds.ledgerQueueMax * unit.ledgerEntry,
    // A reload reads the next ones beside the current ones.
    lexicons: threads.lexicons
      ? 2 * (bounds.lexiconEntriesMax * unit.lexiconEntry + bounds.lexiconUnitsMax * unit.lexiconUnit)
      : 0,
    console: threads.console
      ? unit.console +
        consoleConnections * connection +
        bounds.requestsKeptMax * unit.keptRequest +
        bounds.webhooksAtOnceMax * unit.webhookThread
      : 0,
  };
  return {
    /** Bytes by part, in the order of the message. */
    parts,
    memoryBytes: Object.values(parts).reduce((sum, bytes) => sum + bytes, 0),
    // Each thread has all graphs there, and so has each thread of the next voices. One of them runs at a time.
    gpuBytes:
      threads.gpuBatch === 0
        ? 0
        : synthesisThreads * (gpuThreadOf(modelBytes) + gpuThreadOf(nextModelBytes)) +
          threads.gpuBatch * unit.gpuItemByte * threads.gpuItemBytes,
    files:
      FILES_OF_PROCESS +
      FILES_A_THREAD * (2 * synthesisThreads + bounds.hungThreadsReplacedMax + actorThreads) +
      2 * packFiles +
      bounds.connectionsMax +
      bounds.resultSpoolFilesMax +
      bounds.opsConnectionsMax +
      consoleConnections,
  };
};

export type WorstCase = ReturnType<typeof worstCaseOf>;

/** In MiB, for messages: the parts and their total, and the memory of the GPU, which is no part of it. */
export const inMiB = ({ parts, memoryBytes, gpuBytes }: WorstCase): Readonly<Record<string, number>> =>
  Object.fromEntries(
    Object.entries({ total: memoryBytes, ...parts, ...(gpuBytes > 0 && { gpu: gpuBytes }) }).map(
      ([name, bytes]) => [name, Math.round(bytes / MiB)],
    ),
  );
