/**
 * Every bound of the service, in one place. A queue, buffer or pool that is not listed here is a defect.
 *
 * Bounds are per process unless their name says otherwise. `worstCaseBytes` adds up what the global pools can hold.
 */

const KiB = 1024;
const MiB = 1024 * KiB;

export const limits = {
  /** Bytes of a request body; one more is answered 413. */
  bodyBytesMax: 1 * MiB,
  /** Nesting levels of a JSON body; deeper is answered 400 before anything walks it. */
  bodyDepthMax: 400,
  /** Milliseconds a client may take to send its whole body before its connection is dropped. */
  bodyReceiveMsMax: 30_000,
  /** Bytes of all bodies that are still arriving, over all connections; above it new bodies are answered 503. */
  bodyBytesInFlightMax: 64 * MiB,

  /** Requests and generating sockets in flight for one key; one more is answered 429. */
  slotsPerKey: 9,
  /** Contexts open at once over all keys; it sizes the shared control arrays. */
  contextsMax: 4_096,

  /** Code points after which a segment is cut at the last white space, when no sentence or clause ends before. */
  segmentCharactersMax: 200,
  /** The same bound for the first segment of an utterance, so that first audio does not depend on text length. */
  firstSegmentCharactersMax: 100,

  /** Jobs (segments) that one synthesis thread holds and turns between; each costs about 0.3 MiB of model state. */
  jobsPerThreadMax: 128,
  /** Target compute of one synthesis step: the longest that a new utterance waits for a busy thread. */
  stepComputeMsTarget: 25,
  /** Milliseconds of audio, made but not yet handed to its socket, above which a context gets no further segment. */
  unsentAudioMsMax: 10_000,
  /** Times that a segment is run again after a thread died in another utterance's step. */
  segmentRetriesMax: 3,

  /** Milliseconds a reader may take nothing before it is dropped and its slot freed. */
  readerStallMsMax: 60_000,
  /** Milliseconds between the single writes that keep a stalled response alive (the library drops it after ~11 s). */
  stallRearmMs: 4_000,
  /** Bytes of one write: several, or larger ones, in one cork can lose data under backpressure. */
  writeBytesMax: 15_999,

  /** Bytes of a whole synchronous result kept in memory; what is longer is spooled to an unlinked file. */
  resultMemoryBytesMax: 8 * MiB,

  /** Milliseconds that work in flight may take after SIGTERM. */
  drainMsMax: 30_000,
  /** Milliseconds after which an idle connection is closed. */
  idleConnectionMsMax: 60_000,

  /** Ledger entries waiting for the writer; above it nothing is admitted. */
  ledgerQueueMax: 65_536,
  /** Heap of a synthesis thread, in MiB: exhausting it ends that thread, not the process. */
  synthesisHeapMiBMax: 512,
  /** Heap of an actor thread, in MiB. */
  actorHeapMiBMax: 1_024,
} as const;

export type Limits = typeof limits;
