/**
 * Every bound of the service, in one place. A queue, buffer or pool that is not listed here is a defect.
 *
 * Bounds are per process unless their name says otherwise.
 */

const KiB = 1024;
const MiB = 1024 * KiB;

export const limits = {
  /** Bytes of a request body; one more is answered 413. */
  bodyBytesMax: 1 * MiB,
  /** Bytes of a body too large that are read and thrown away, so that its client gets to read the 413. */
  bodyDiscardBytesMax: 16 * MiB,
  /** Nesting levels of a JSON body; deeper is answered 400 before anything walks it. */
  bodyDepthMax: 400,
  /** Items of one 422 body; what is wrong beyond them is not listed. */
  validationItemsMax: 100,
  /** Bytes of values echoed (`input`) in one 422 body; an item whose value goes beyond is sent without it. */
  validationEchoBytesMax: 256 * KiB,
  /** UTF-16 units of a key, an encoding or a voice that an error message or `loc` names; the rest is cut. */
  validationNameMax: 200,
  /** Milliseconds a client may take to send its whole body before its connection is dropped. */
  bodyReceiveMsMax: 30_000,
  /** Bytes of all bodies that are still arriving, over all connections; above it new bodies are answered 503. */
  bodyBytesInFlightMax: 64 * MiB,

  /** Requests and generating sockets in flight for one key; one more is answered 429. */
  slotsPerKey: 9,
  /** Code points of all texts that HTTP requests are having spoken; above it new requests are answered 503. */
  requestCharactersInFlightMax: 16 * MiB,

  /** Contexts open at once over all keys; one more request is answered 503. */
  contextsMax: 4_096,

  /** Code points after which a segment is cut at the last white space, when no sentence or clause ends before. */
  segmentCharactersMax: 200,
  /** The same bound for the first segment of an utterance, so that first audio does not depend on text length. */
  firstSegmentCharactersMax: 100,

  /** UTF-16 units of a token that `normalize_text` looks into; a longer one, digits or not, is spoken as it is. */
  normalisedTokenMax: 256,

  /** UTF-16 units of text in one call of espeak-ng: its cost grows with them, and a step must stay short. */
  phonemeTextMax: 160,
  /** The same for the first call of a segment: all that first audio has to wait for. */
  firstPhonemeTextMax: 72,
  /** Pronunciations of single words that a synthesis thread remembers, to align words with phonemes. */
  pronunciationsCachedMax: 4_096,
  /** Milliseconds without anything to pronounce after which it forgets them: they are words of texts. */
  pronunciationsKeptMs: 1_000,
  /** Jobs (segments) that one synthesis thread holds and turns between; each costs about 0.3 MiB of model state. */
  jobsPerThreadMax: 128,
  /** Milliseconds that a thread may take for a step, or not turn its event loop, before it counts as hung. */
  threadHangMsMax: 10_000,
  /** Milliseconds between looks at that. */
  watchdogBeatMs: 1_000,
  /** Milliseconds that a synthesis thread may take to load its voices before it counts as hung. */
  voicesLoadMsMax: 60_000,
  /** Milliseconds after a reload from which on contexts that keep the voices before, and do not speak, are ended. */
  olderVoicesMsMax: 600_000,
  /** Synthesis threads that hang inside native code, where they cannot be ended, and are replaced all the same. */
  hungThreadsReplacedMax: 2,
  /** Target compute of one synthesis step: the longest that a new utterance waits for a busy thread. */
  stepComputeMsTarget: 25,
  /** Milliseconds of audio, made but not yet handed to its socket, above which a context gets no further segment. */
  unsentAudioMsMax: 20_000,
  /** The same over all contexts of one lease: they share a socket, and a slow one is slow for all of them. */
  unsentAudioMsPerLeaseMax: 40_000,
  /** Bytes of it over all contexts. What one may have shrinks as they fill: see byte-budget.ts. */
  unsentAudioBytesMax: 1_024 * MiB,
  /** Times that a segment is run again after a thread died in another utterance's step. */
  segmentRetriesMax: 3,

  /** mp3 encoders that an actor thread makes before the first listener comes: 0.7 MiB and some milliseconds each. */
  mp3EncodersWarm: 4,
  /** Idle mp3 encoders that an actor thread keeps. In use are at most as many as there are contexts. */
  mp3EncodersIdleMax: 32,
  /** Milliseconds in which nobody took one after which it goes, down to as many as are made beforehand. */
  mp3EncodersIdleMs: 10_000,

  /** Milliseconds a reader may take nothing before it is dropped and its slot freed. */
  readerStallMsMax: 60_000,
  /** Milliseconds between the single writes that keep a stalled response alive (the library drops it after ~11 s). */
  stallRearmMs: 4_000,
  /** Bytes of one write: several, or larger ones, in one cork can lose data under backpressure. */
  writeBytesMax: 15_999,

  /** Bytes that wait in one stream's sender. The gate keeps it far below: going over ends that stream. */
  senderQueueBytesMax: 16 * MiB,

  /** Certificates whose connections are served: a renewal beyond closes those that were made with the oldest. */
  certificatesInUseMax: 8,
  /** Connections open at once, WebSockets and what has sent nothing yet included; one more is closed unheard. */
  connectionsMax: 20_480,
  /** WebSockets open at once; one more is answered 503. */
  socketsMax: 16_384,
  /** Contexts of one WebSocket. */
  contextsPerSocketMax: 64,
  /** The same over all WebSockets of one key: no key takes all that there are. */
  contextsPerKeyMax: 1_024,
  /** Bytes of one message from a WebSocket; the library drops a socket that sends more. */
  socketMessageBytesMax: 4 * MiB,
  /** Bytes in UTF-8 of the text in one message: escaped as JSON may be, three times these still fit a message. */
  socketTextBytesMax: 1 * MiB,
  /** UTF-16 units of a `context_id` or `flush_id`: the former is in every frame of audio. */
  socketIdMax: 1_024,
  /** Flushes of one context that are not completed. */
  flushesPendingMax: 256,
  /** UTF-16 units of the ids of such flushes, over all WebSockets. */
  flushIdUnitsInFlightMax: 8 * MiB,
  /** Characters of one WebSocket that are not spoken yet. */
  socketCharactersMax: 4 * MiB,
  /** The same over all WebSockets. */
  socketCharactersInFlightMax: 16 * MiB,
  /** Bytes in the library's buffer of one WebSocket above which nothing more is handed to it. */
  socketBufferedBytesMax: 512 * KiB,
  /** Bytes in such buffers over all WebSockets. What one may have shrinks as they fill. */
  socketBufferedBytesInFlightMax: 256 * MiB,
  /** Bytes of answers (not of speech) that wait for one WebSocket: who asks on and reads none is dropped. */
  socketAnswerBytesMax: 1 * MiB,
  /** UTF-16 units of them over all WebSockets. What one may have shrinks as they fill, to 4 KiB. */
  socketAnswerBytesInFlightMax: 64 * MiB,
  /** Milliseconds without a sign of life after which a WebSocket is dropped. */
  socketSilenceMsMax: 60_000,
  /** Milliseconds that a WebSocket may be busy with the audio that it has been sent, before silence counts. */
  socketHearingMsMax: 600_000,
  /** Milliseconds of it after which a ping goes out, and then between pings. */
  socketPingMs: 20_000,
  /** Milliseconds in which nothing is generated after which a WebSocket gives its slot back. */
  slotIdleMsMax: 2_000,
  /** Milliseconds within which a revoked key closes its WebSockets. */
  keyRecheckMsMax: 800,

  /** Bytes of a whole synchronous result kept in memory; what is longer is spooled to an unlinked file. */
  resultMemoryBytesMax: 8 * MiB,
  /** The same over all results: while it is used up, a result goes to its file from its first byte on. */
  resultMemoryInFlightBytesMax: 512 * MiB,
  /** Bytes of all results in such files; a request that would go over it fails. */
  resultSpoolBytesMax: 16 * 1024 * MiB,
  /** Such files open at once; a request that would want one more fails. */
  resultSpoolFilesMax: 512,

  /** Connections to the ops listener; one more is closed at once. */
  opsConnectionsMax: 64,
  /** Bytes of the head of a request to it. */
  opsHeadBytesMax: 8 * KiB,
  /** Milliseconds that such a request may take to arrive, and its answer to be read. */
  opsRequestMsMax: 10_000,

  /** Milliseconds after SIGTERM in which requests of connections that are there are still taken on. */
  drainLingerMs: 500,
  /** Milliseconds that work in flight may take after SIGTERM, unless `DRAIN_SECONDS` says otherwise. */
  drainMsMax: 25_000,
  /** Milliseconds for running steps to end once they are cancelled; one takes about 25. */
  stepEndMsMax: 5_000,

  /** Characters that a request is charged for before it gets an entry in the ledger: what a kill can lose of it. */
  leaseStepCharacters: 1_000,
  /** Milliseconds after which fewer of them get one, when more is charged. */
  leaseStepMs: 60_000,

  /** Milliseconds between two times that the C library gives back to the system what is free in its heaps. */
  heapTrimMs: 10_000,

  /** Bytes of log lines that wait while the log cannot be written; what comes on top is dropped. */
  logBytesWaitingMax: 1 * MiB,

  /** Ledger entries waiting for the writer; above it nothing is admitted. */
  ledgerQueueMax: 65_536,
  /** Ledger entries of one commit. */
  ledgerBatchMax: 1_024,
  /** Milliseconds after which a failed commit is tried again and a dead writer is replaced. */
  ledgerRetryMs: 250,
  /** Milliseconds after which an idle writer is asked whether it could write, so that a fault shows before a request. */
  ledgerProbeMs: 1_000,
  /** Milliseconds after which a commit that has not come back counts as failing: a disk can hang. */
  ledgerStallMsMax: 5_000,
  /** Milliseconds that closing waits for a store which takes no writes, before what is queued is given up. */
  ledgerCloseMsMax: 5_000,
  /** Milliseconds that a statement waits for another process's write to the store before it fails. */
  storeBusyMsMax: 2_000,
  /** The same for the front thread, which asks only what never waits for a write. */
  storeReadBusyMsMax: 20,
  /** Bytes free on the store's disk below which it counts as full. */
  storeFreeBytesMin: 64 * KiB,
  /** Bytes of a store that a start reads whole, at about 10 MiB in 0.1 s; of a larger one, all but the ledger. */
  storeCheckBytesMax: 8 * MiB,
  /** Bytes of the store's pages that a connection remembers; the others are read again, from the system's cache. */
  storeCacheBytesMax: 256 * KiB,
  /** Heap of a synthesis thread, in MiB: exhausting it ends that thread, not the process. */
  synthesisHeapMiBMax: 512,
  /** Heap of an actor thread, in MiB. */
  actorHeapMiBMax: 1_024,
} as const;

/**
 * The bounds in force: those above, or smaller ones on a smaller machine (`plan.ts`). Constructors and functions take
 * the ones that they need; only the plan, the configuration, the start and command lines import `limits` itself.
 */
export type Bounds = Readonly<Record<keyof typeof limits, number>>;
