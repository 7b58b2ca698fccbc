/**
 * Every bound of the service. A queue, buffer or pool that is not listed here is a defect.
 *
 * Bounds apply to the process unless their name says otherwise. `npm run limits` makes a page of the comments. If a caller can
 * fill a bound, its comment says what happens at it.
 */

const KiB = 1024;
const MiB = 1024 * KiB;

export const limits = {
  /** Bytes of a request body; a longer one is answered 413, and its connection ends. */
  bodyBytesMax: 1 * MiB,
  /** Bytes of a too large body that are read and discarded, so that its client can read the 413. */
  bodyDiscardBytesMax: 16 * MiB,
  /** Nesting levels of a JSON body; a deeper one is answered 400 before any code walks it. */
  bodyDepthMax: 400,
  /** Opening brackets, commas and colons of a JSON body (about its names and values); more are answered 400 unparsed. */
  bodyTokensMax: 8_192,
  /** Items of one 422; further faults are not listed. */
  validationItemsMax: 100,
  /**
   * Bytes of a name, voice or id that a message of an error quotes; the rest is cut. The same for all names and values
   * (`input`) of a 422 together; an item whose value exceeds it is sent without the value.
   */
  quotedBytesMax: 100,
  /** Milliseconds a client may take to send its whole body; then its connection is dropped. */
  bodyReceiveMsMax: 30_000,
  /** Milliseconds in which a body in chunks can come before its 411: a client that is still sending would not read the answer. */
  chunkedBodyMs: 1_000,
  /** Bytes of all arriving bodies over all connections; above it a new one is answered 503, and its connection ends. */
  bodyBytesInFlightMax: 64 * MiB,

  /** Requests and speaking WebSockets of one key; one more is answered 429, on a WebSocket by the error `Rate limit exceeded`. */
  slotsPerKey: 9,
  /** Code points of the texts of all HTTP requests in progress; above it new requests are answered 503. */
  requestCharactersInFlightMax: 16 * MiB,

  /**
   * Milliseconds in a second in which the front thread parses and handles the input of accounts that send much. Each of N such
   * accounts gets 1 / (N + 1) of it, at least a sixteenth; the connections of one that needs more are read later.
   */
  parseMsPerSecond: 300,
  /** The same as `parseMsPerSecond`, as a number of WebSocket messages, control frames and bodies. */
  framesPerSecond: 20_000,

  /** Open contexts, until their last audio has left; one more is answered 503, on a WebSocket by an error. */
  contextsMax: 4_096,

  /** Code points after which a segment is cut at the last white space, if no sentence or clause ends earlier. */
  segmentCharactersMax: 200,
  /** The same for the first segment of an utterance, so that first audio does not depend on the text length. */
  firstSegmentCharactersMax: 100,

  /**
   * Letters that take as long to say as a segment: of a longer one each part is a segment, within a word, too. A word whose
   * spoken form takes longer is spoken as it is written, and an entry of a lexicon with such a form is not used: the log names its line.
   */
  spokenLettersMax: 400,

  /** UTF-16 units of a token that `normalize_text` examines; a longer one is spoken as written. */
  normalisedTokenMax: 256,

  /** Entries of all pronunciation lexicons together. Further entries are not used, and the log names their files. */
  lexiconEntriesMax: 20_000,
  /** UTF-16 units of all words and spoken forms of lexicons. Further entries are not used, and the log names their files. */
  lexiconUnitsMax: 1_048_576,
  /** UTF-16 units of one word or phrase of a lexicon, or of its spoken form. A longer entry is not used, and the log names its line. */
  lexiconTextMax: 200,
  /** Files of lexicons. Further files are not read, and the log names them. A thread of its own reads each file whole. */
  lexiconFilesMax: 1_024,
  /** Bytes of one of these files. A larger file is not read, and the log names it. */
  lexiconFileBytesMax: 2_097_152,
  /** Faults in lexicons that one reading reports; the others are counted. */
  lexiconFindingsMax: 50,
  /** Milliseconds that the thread that reads lexicons may take for one file. The largest takes less than one second. */
  lexiconReadMsMax: 10_000,

  /** UTF-16 units of text in one call of espeak-ng: the cost grows with them, and a step must stay short. */
  phonemeTextMax: 160,
  /** The same for the first call of a segment: first audio waits for all of it. */
  firstPhonemeTextMax: 72,
  /** Pronunciations of short texts that a voice pack's engine keeps: to align words with phonemes, and to change the language seldom. */
  pronunciationsCachedMax: 4_096,
  /** Idle milliseconds after which a thread forgets them: they are words of user texts. */
  pronunciationsKeptMs: 1_000,
  /** Segments that one synthesis thread holds; others wait in the order of their deadlines. Each costs about 0.3 MiB. */
  jobsPerThreadMax: 128,
  /** Milliseconds that a thread may spend in a step, or not turn its event loop, before it counts as hung. */
  threadHangMsMax: 10_000,
  /** Milliseconds between two checks of that. */
  watchdogBeatMs: 1_000,
  /** Milliseconds that a synthesis thread may take to load its voices before it counts as hung; half as many for each further pack. */
  voicesLoadMsMax: 60_000,
  /** Milliseconds that the process may take that tries a GPU at a start. */
  deviceTrialMsMax: 60_000,
  /** Milliseconds that a voice pack may take to load and speak a sentence, in the process that tries it. */
  voiceTrialMsMax: 120_000,
  /** Seconds of processor time of the process that tries a voice pack; the pack is refused until its files change. */
  voiceTrialCpuSecondsMax: 30,
  /** MiB of memory that this process may write to; the pack is refused. A model with weights of 400 MB needs about 1,500. */
  voiceTrialMiBMax: 4_096,
  /** Milliseconds that the thread that reads voice packs may take for one of them, without its trial. */
  voiceReadMsMax: 120_000,
  /** Heap of the thread that reads voice packs, in MiB; the pack that it reads is refused. */
  voiceReadHeapMiBMax: 512,
  /** Bytes of a voice pack that `npm run voices -- add` copies; a larger one is not added. */
  voicePackBytesMax: 8 * 1_024 * MiB,
  /** Milliseconds after a reload until contexts that keep the previous voices are ended: silent ones, and all if a reload waits. */
  olderVoicesMsMax: 600_000,
  /** Replaced synthesis threads that still hang inside native code, where they cannot be ended. */
  hungThreadsReplacedMax: 2,
  /** Target compute time of one synthesis step: the longest that a new utterance waits for a busy thread. */
  stepComputeMsTarget: 25,
  /** Milliseconds of audio, made but not yet handed to its socket, above which a context gets no further segment. */
  unsentAudioMsMax: 20_000,
  /** The same over all contexts of one lease: they share a socket, and a slow socket is slow for all of them. */
  unsentAudioMsPerLeaseMax: 40_000,
  /** The same with what the running segments of the lease are expected to make; above it no further one runs beside them. */
  expectedAudioMsPerLeaseMax: 80_000,
  /** Bytes of unsent audio of all contexts; one that holds more than a sixteenth of what its account may still take gets no further segment. */
  unsentAudioBytesMax: 1_024 * MiB,
  /** Retries of a segment whose thread ended in no step, so that the segment may be the cause; other retries have no bound. */
  segmentRetriesMax: 3,

  /** mp3 encoders that an actor thread makes in advance: 0.7 MiB and some milliseconds each. */
  mp3EncodersWarm: 4,
  /** Idle mp3 encoders that an actor thread keeps. At most one per context is in use. */
  mp3EncodersIdleMax: 32,
  /** Milliseconds after which an unused idle encoder is released, down to the number made in advance. */
  mp3EncodersIdleMs: 10_000,

  /** Milliseconds a reader may take nothing; then it is dropped and its slot freed. */
  readerStallMsMax: 60_000,
  /** Milliseconds between the single writes that keep a stalled response alive (the library drops it after ~11 s). */
  stallRearmMs: 4_000,
  /** Bytes of one write: several or larger writes in one cork can lose data under backpressure. */
  writeBytesMax: 15_999,

  /** Bytes that wait in the sender of one stream. The gate keeps it far lower; exceeding it ends the stream. */
  senderQueueBytesMax: 16 * MiB,

  /** Certificates with open connections: a renewal beyond it closes the connections of the oldest. */
  certificatesInUseMax: 8,
  /** Open connections, idle ones and WebSockets included; one more is closed: `too many connections: new ones are closed`. */
  connectionsMax: 20_480,
  /** Open WebSockets; one more is answered 503. */
  socketsMax: 16_384,
  /** Open WebSockets of one key, if `SOCKETS_PER_KEY` sets it; one more is answered 503. */
  socketsPerKeyMax: 16_384,
  /** Contexts of one WebSocket; one more gets the error `Too many contexts are open`. */
  contextsPerSocketMax: 64,
  /** Open WebSockets whose key is not known yet: it comes in the first message, or the console looks it up; one more is answered 503. */
  keylessSocketsMax: 256,
  /** Bytes of one message of a WebSocket whose handshake had no key. The library cannot raise it when the key is known. */
  keylessMessageBytesMax: 4 * KiB,
  /** Messages, pings and pongs of a WebSocket that has not shown a key, or was refused; one that sends more is dropped. */
  keylessFramesMax: 64,
  /** Bytes of one message from a WebSocket; the library drops a socket that sends more. */
  socketMessageBytesMax: 1 * MiB,
  /** The same of a WebSocket that opened when those of its account with longer messages had its part of `arrivingMessageBytesMax`. */
  socketShortMessageBytesMax: 16 * KiB,
  /** Bytes of arriving messages: `socketMessageBytesMax` for each WebSocket that may send it; others may send short ones. */
  arrivingMessageBytesMax: 256 * MiB,
  /** Bytes in UTF-8 of the text in one message; more are refused. Three times as many, escaped as JSON, still fit a message. */
  socketTextBytesMax: 256 * KiB,
  /** Bytes of a message besides the text of `send_text`; a message with more is refused and not parsed. */
  socketFrameBytesMax: 64 * KiB,
  /** Nesting levels of the JSON of a message; a message with more is refused and not parsed. */
  socketFrameDepthMax: 16,
  /** Opening brackets, commas and colons of the JSON of a message; a message with more is refused and not parsed. */
  socketFrameTokensMax: 256,
  /** UTF-16 units of a `context_id` or `flush_id`; a longer one is refused. Every audio frame carries the former. */
  socketIdMax: 1_024,
  /** Uncompleted flushes of one context; one more gets the error `Too many flushes are waiting`. */
  flushesPendingMax: 256,
  /** UTF-16 units of the ids of uncompleted flushes of all WebSockets; beyond it, as beyond `flushesPendingMax`. */
  flushIdUnitsInFlightMax: 8 * MiB,
  /** Bytes of messages that wait for the turn of their account; a WebSocket that needs more is closed (`flooded`). */
  waitingMessageBytesMax: 32 * MiB,
  /** Unspoken characters of one WebSocket, where a mark such as a pause counts as 30 and more; beyond it a text gets the error `Too much text is waiting`. */
  socketCharactersMax: 4 * MiB,
  /** Unspoken characters of all WebSockets, where a mark such as a pause counts as 30 and more; beyond it a text gets the error `Too much text is waiting`. */
  socketCharactersInFlightMax: 16 * MiB,
  /** Bytes in the library's buffer of one WebSocket above which it gets no more. */
  socketBufferedBytesMax: 512 * KiB,
  /** Bytes in the buffers of all WebSockets; one that holds more than a sixteenth of what its account may still take gets no more. */
  socketBufferedBytesInFlightMax: 256 * MiB,
  /** Bytes of answers (not speech) that wait for one WebSocket; one that sends but never reads is closed (`flooded`). */
  socketAnswerBytesMax: 1 * MiB,
  /** Bytes of unread answers of all WebSockets; one that holds more than a sixteenth of what its account may still take, and 4 KiB, is closed. */
  socketAnswerBytesInFlightMax: 64 * MiB,
  /** Milliseconds until a WebSocket ends whose key is not known: its client sends none, or the console's store does not answer. */
  socketKeyMsMax: 10_000,
  /** Milliseconds until such a socket is closed when its key is refused: some clients reconnect at once, without end. */
  socketRefusedMs: 2_000,
  /** Milliseconds without a sign of life after which a WebSocket is dropped. */
  socketSilenceMsMax: 60_000,
  /** Milliseconds that a WebSocket may be busy with audio it was sent before silence counts. */
  socketHearingMsMax: 600_000,
  /** Milliseconds of silence before the first ping, and between pings. */
  socketPingMs: 20_000,
  /** Milliseconds without speech after which a WebSocket, or a text of Wyoming, gives its slot and credit back. */
  slotIdleMsMax: 2_000,
  /** Milliseconds until WebSockets and texts on HTTP of a key that was revoked, has expired or is suspended end. */
  keyRecheckMsMax: 800,

  /** Bytes of a whole synchronous result kept in memory; the rest is spooled to an unlinked file. */
  resultMemoryBytesMax: 8 * MiB,
  /** Bytes of all whole results in memory; while it is used up, a result goes to its file from the first byte. */
  resultMemoryInFlightBytesMax: 512 * MiB,
  /** Bytes of all results in files; a request that would exceed it gets 500: `no room for spooled results`. */
  resultSpoolBytesMax: 16 * 1024 * MiB,
  /** Files of results; a request that would need one more gets 500: `too many spooled results`. */
  resultSpoolFilesMax: 512,
  /** Bytes that these files leave free on the disk, for the store; of a disk below 5 GiB, a twentieth. A request that would need more gets 500: `no room for spooled results`. */
  resultSpoolFreeBytesMin: 256 * MiB,

  /** Milliseconds that TLS handshakes of an address without a key take at once, on all ports; a further connection is closed. */
  handshakeMsAtOnceMax: 256,
  /** The same in each second after that: a twentieth of a core. */
  handshakeMsPerSecond: 50,

  /** Connections to the ops listener; one more takes the place of an old one of its address, or of all. */
  opsConnectionsMax: 64,
  /** Bytes of the head of a request to the ops listener; a longer one is answered 431. */
  opsHeadBytesMax: 8 * KiB,
  /** Milliseconds that such a request may take to arrive, and that its client may take to read the answer. */
  opsRequestMsMax: 10_000,

  /** Bytes of answers that are made for one client and wait for it, such as lists of the console, from 15 KiB on; a further one is answered 503. */
  answerBytesInFlightMax: 64 * MiB,
  /** What a CSV file of the console counts there from its first byte to its last: it is read a page at a time. */
  fileAnswerBytes: 4 * MiB,

  /** Connections to the console, its WebSockets included; one more is closed at once. */
  consoleConnectionsMax: 256,
  /** Bytes of the body of a call of the console; a longer one is answered 413. */
  consoleBodyBytesMax: 64 * KiB,
  /** Speech, WebSockets and live views of one session of the console; one more is answered 429. */
  consoleStreamsPerSessionMax: 32,
  /** Milliseconds until these are closed when the session has ended, and until a session that ended on another host is refused. */
  consoleSessionRecheckMs: 1_000,
  /** Calls of one user of the console, in all sessions, or of one address without a session, at once; one more is answered 429. */
  consoleCallsAtOnceMax: 300,
  /** The same in each second after that. */
  consoleCallsPerSecond: 50,
  /** Calls of the members of one account that wait for the one being made; one more is answered 503. Look-ups of sessions and of the playground's keys have a line of their own, as long. */
  consoleCallsWaitingMax: 32,
  /** Attempts of one address to sign in, or with one-time links, at once; then one in `consoleAttemptMs`, else 429. */
  consoleAttemptsAtOnceMax: 10,
  consoleAttemptMs: 6_000,
  /** Attempts at the name of one user, from browsers in which this user has not signed in before; more get 429. */
  consoleAttemptsOfNameMax: 20,
  consoleAttemptOfNameMs: 3_000,
  /** Attempts of one address at once beyond those of a name; more get 429. */
  consoleSpareAttemptsMax: 3,
  consoleSpareAttemptMs: 600_000,
  /** Addresses, and names of users, for which the console counts attempts; the one without attempts for longest is forgotten. */
  consoleCountedMax: 4_096,
  /** Ended requests that the console keeps of one account, or without a key; the oldest goes. */
  requestsOfAccountMax: 1_000,
  /** The same of all accounts together, at about 400 bytes; the oldest goes. */
  requestsKeptMax: 10_000,
  /** Milliseconds between samples for the console's live page, each a point of its last hour. */
  historySampleMs: 10_000,
  /** Points that the page shows of the last hour, of a day by 5 minutes and of a week by hours, and days; the oldest goes. */
  historyHourPointsMax: 360,
  historyDayPointsMax: 288,
  historyWeekPointsMax: 168,
  historyDaysMax: 31,
  /** Samples of voices that the console keeps, at about 50 KiB; the oldest is made again. */
  consoleSamplesMax: 64,
  /** Samples of voices that are made at the same time; others wait. */
  consoleSamplesAtOnceMax: 2,

  /** Milliseconds that a context of ElevenLabs' API may be idle, unless its socket asks for another time. */
  elevenLabsIdleMs: 20_000,
  /** The longest such time that a socket can ask for. */
  elevenLabsIdleMsMax: 180_000,
  /** Connections to the Wyoming listener; one more is closed at once. */
  wyomingConnectionsMax: 128,
  /** Milliseconds without an event after which such a connection is closed, while it speaks nothing. */
  wyomingIdleMsMax: 600_000,
  /** Milliseconds for which such a connection may send more than the turns of its network handle. */
  wyomingHeldMsMax: 10_000,
  /** Bytes of an mDNS datagram that is read; a longer one is dropped. */
  discoveryBytesMax: 1_472,
  /** Milliseconds that reading mDNS datagrams takes at once; further ones are dropped, and the Wyoming port is found later. */
  discoveryMsAtOnceMax: 100,
  /** The same in each second after that. */
  discoveryMsPerSecond: 20,
  /** UTF-16 units of the text of a `ping` of Wyoming, which its answer repeats; a longer one ends the connection. */
  wyomingPingTextMax: 1_024,
  /** Milliseconds that a client of it may take to read an error before the connection ends. */
  wyomingEndMsMax: 2_000,

  /** Milliseconds after SIGTERM during which existing connections may still send requests. */
  drainLingerMs: 500,
  /** Milliseconds that work in flight may take after SIGTERM; `DRAIN_SECONDS` overrides it. */
  drainMsMax: 25_000,
  /** Milliseconds for running steps to end after a cancel; a step takes about 25. */
  stepEndMsMax: 5_000,
  /** The same for a long step, of a model that cannot be interrupted. */
  longStepEndMsMax: 15_000,

  /** Charged characters of a request per ledger entry: the most that a kill can lose of it. */
  leaseStepCharacters: 1_000,
  /** Milliseconds after which fewer charged characters get an entry, once more are charged. */
  leaseStepMs: 60_000,

  /** Milliseconds after which the front thread interrupts work over all sockets or contexts, to serve others. */
  sliceMsMax: 2,

  /** Milliseconds between two checks whether the C library should return free heap memory to the system. */
  heapTrimMs: 10_000,
  /** Milliseconds without speech after which it should. */
  heapTrimQuietMs: 2_000,
  /** Growth of resident memory since the last trim after which the next does not wait until no thread makes speech. */
  heapGrowthBytesMax: 24 * MiB,

  /** Bytes of log lines that wait while the log cannot be written; further lines are dropped. */
  logBytesWaitingMax: 1 * MiB,
  /** Milliseconds that the end of the process waits for a slow reader of the log. */
  logEndMsMax: 1_000,

  /** Ledger entries that wait for the writer; above it nothing is admitted: 503. */
  ledgerQueueMax: 65_536,
  /** Ledger entries of one commit. */
  ledgerBatchMax: 1_024,
  /** Milliseconds until a failed commit is retried and a dead writer is replaced. */
  ledgerRetryMs: 250,
  /** Milliseconds after which an idle writer is probed, so that a fault shows before a request meets it. */
  ledgerProbeMs: 1_000,
  /** Milliseconds after which an unfinished commit counts as failing: a disk can hang. */
  ledgerStallMsMax: 5_000,
  /** Milliseconds that closing waits for a store that accepts no writes; then queued entries are given up. */
  ledgerCloseMsMax: 5_000,
  /** Milliseconds that a statement waits for another process's write to the store before it fails. */
  storeBusyMsMax: 2_000,
  /** The same for a read, which never needs to wait for a write, and for one attempt of an act of administration to begin. */
  storeReadBusyMsMax: 20,
  /** Free bytes on the store's disk below which it counts as full. */
  storeFreeBytesMin: 64 * KiB,
  /** Bytes of a store that a start checks whole, at about 10 MiB in 0.1 s; of a larger store, all but the ledger. */
  storeCheckBytesMax: 8 * MiB,
  /** Bytes of store pages that a connection caches; other pages are read from the system's cache. */
  storeCacheBytesMax: 256 * KiB,
  /** PostgreSQL: milliseconds until a connection counts as failed. */
  storeConnectMsMax: 2_000,
  /** PostgreSQL: milliseconds that a statement may take. */
  storeAnswerMsMax: 5_000,
  /** PostgreSQL: milliseconds between two queries for changes of keys and accounts; a notification causes one sooner. */
  storePollMs: 250,
  /** PostgreSQL: milliseconds for which the copy of keys and accounts is valid without an answer; then nothing is admitted. */
  storeStaleMsMax: 1_000,
  /** Keys of one account, without revoked ones, and keys that it may get in 24 hours, with them; further ones are refused. */
  keysPerAccountMax: 100,
  /** PostgreSQL: keys of all accounts, which a service holds in memory; further ones are refused. */
  storeKeysMax: 50_000,
  /** PostgreSQL: characters whose credit a host reserves ahead of the text of WebSockets, where an account has plenty. */
  creditAheadCharacters: 256,
  /** PostgreSQL: milliseconds without a sign of life after which other hosts declare a host dead. */
  writerSilentMsMax: 15 * 60_000,
  /** PostgreSQL: milliseconds that an entry may be without an acknowledgement before the journal is synchronised for it. */
  journalSyncMs: 20,
  /** PostgreSQL: bytes of one file of the journal; a full one is removed when its entries are in the database. */
  journalFileBytes: 4 * MiB,
  /** Heap of the administration thread, in MiB. */
  administrationHeapMiBMax: 128,
  /** Words that the console adds to the lexicon of an account; further ones are refused. */
  consoleWordsMax: 500,
  /** UTF-16 units of the file of these words; beyond it further ones are refused. */
  consoleLexiconUnitsMax: 32_768,
  /** Milliseconds between two looks for alerts that an account's webhook must get. */
  alertCheckMs: 60_000,
  /** Attempts to deliver an alert to the webhook of an account; then it waits for the next day. */
  webhookAttemptsMax: 5,
  /** Milliseconds until the second attempt. Each further wait is four times as long. */
  webhookRetryMs: 60_000,
  /** Milliseconds that a webhook may take to answer. */
  webhookAnswerMsMax: 10_000,
  /** Webhooks that are called at once, half of them with alerts and half with tests. Each call has a thread of 14 MiB. */
  webhooksAtOnceMax: 4,
  /** Milliseconds between two tests of the webhook of one account. */
  webhookTestMs: 10_000,
  /** Changes of the webhook of one account at once; a further one is refused. */
  webhookChangesMax: 10,
  /** Milliseconds until such a change is allowed again. */
  webhookChangeMs: 360_000,
  /** Words of a lexicon that one answer of the console has; a search finds the others. */
  consoleWordsShownMax: 1_000,
  /** Calls of the console that wait for the administration thread; a further one is answered 503. */
  administrationCallsMax: 128,
  /** Milliseconds after which an administration thread that ended is started again. */
  administrationRestartMs: 1_000,
  /** Milliseconds that closing waits for the calls under way. */
  administrationCloseMsMax: 3_000,
  /**
   * Passwords that wait for the one being hashed; further sign-ins are refused. One takes about 30 ms. Half of the places are
   * for browsers in which the user has signed in before, for the machine itself, and for users with a link or a session.
   */
  passwordsWaitingMax: 32,
  /** Milliseconds without activity after which a session of the console ends. */
  sessionIdleMsMax: 12 * 3_600_000,
  /** Milliseconds after which a session ends in any case. */
  sessionMsMax: 30 * 86_400_000,
  /** Milliseconds between two notes of the activity of a session: each is a commit. */
  sessionSeenMs: 60_000,
  /** Sessions of one user; a further one ends the least recently used one. */
  sessionsPerUserMax: 20,
  /** Tokens that a user has made for programs; further ones are refused. */
  tokensPerUserMax: 20,
  /** Milliseconds in which a browser must connect with its token: it is then in a log of addresses at most. */
  browserTokenMsMax: 60_000,
  /** Milliseconds for which a link that claims the console is valid. */
  claimLinkMsMax: 30 * 60_000,
  /** Milliseconds for which an invitation is valid. */
  invitationMsMax: 72 * 3_600_000,
  /** Open invitations and links; further ones are refused. */
  linksMax: 1_000,
  /** Refused sign-ins of a minute that get rows of the audit table; the next row counts the others. */
  refusedSignInsPerMinuteMax: 10,
  /** Heap of a synthesis thread, in MiB: exhausting it ends that thread, not the process. */
  synthesisHeapMiBMax: 512,
  /** The part of it for new objects, in MiB. V8 would let it grow to 48, for objects that live for a step. */
  synthesisYoungHeapMiBMax: 6,
  /** Heap of an actor thread, in MiB. */
  actorHeapMiBMax: 1_024,
} as const;

/**
 * The bounds in force: those above, or smaller ones on a smaller machine (`plan.ts`). Constructors and functions take
 * the ones that they need; only the plan, the configuration, the start and command lines import `limits` itself.
 */
export type Bounds = Readonly<Record<keyof typeof limits, number>>;
