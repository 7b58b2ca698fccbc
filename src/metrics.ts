/**
 * What the service counts, for Prometheus. A registry of its own, no global state: a test can have several.
 *
 * Counters and histograms are pushed by the stages; gauges are read from the stages when somebody asks. Every label
 * has few values, all of them ours: none is, or is made of, what a client sent.
 */
import { readFileSync } from 'node:fs';
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { errors, type ErrorCode } from './errors.js';
import { openFiles, openFilesMax, pssBytes } from './process-facts.js';

/** What lies behind a 503 that only says that the service is unavailable. Pools are those of all callers together. */
const unavailableReasons = [
  'draining',
  'storeUnavailable',
  'bodyPoolExhausted',
  'connectionPoolExhausted',
  'contextPoolExhausted',
  'socketPoolExhausted',
  'textPoolExhausted',
] as const;

/** Why something was refused: the errors of the contract, and what is refused in words of its own. */
export type RefusalReason =
  | Exclude<ErrorCode, 'internal' | 'unavailable'>
  | (typeof unavailableReasons)[number]
  /** A body or a query that does not validate: 422. */
  | 'requestInvalid'
  | 'voiceUnknown'
  /** A frame of a WebSocket that does not validate, or about a context that is not there. */
  | 'frameInvalid'
  | 'contextUnknown';

/** Of a code that the stages below answer with: nothing but the store makes them unavailable. */
export const refusalOf = (code: Exclude<ErrorCode, 'internal'>): RefusalReason =>
  code === 'unavailable' ? 'storeUnavailable' : code;

const reasons: readonly RefusalReason[] = [
  ...(Object.keys(errors) as ErrorCode[]).filter((code) => code !== 'internal' && code !== 'unavailable'),
  ...unavailableReasons,
  'requestInvalid',
  'voiceUnknown',
  'frameInvalid',
  'contextUnknown',
];

/** Of the event loop's delay; 1 is the worst. */
export const delayQuantiles = [0.5, 0.99, 1] as const;
const threadKinds = ['synthesis', 'actor', 'ledger'] as const;

/** The state of the stages at one moment. */
export interface Figures {
  /** Why no speech should be sent here; empty when it may. */
  readonly reasons: readonly string[];
  /** Requests and sockets that are being spoken for, by route. */
  readonly streams: ReadonlyMap<string, number>;
  readonly sockets: number;
  readonly contexts: number;
  /** Contexts that keep the voices from before a reload. */
  readonly olderVoiceContexts: number;
  /** Synthesis threads that hang where they cannot be ended. */
  readonly hungThreads: number;
  readonly bufferedBytes: number;
  readonly bufferedAudioMs: number;
  readonly ledgerEntriesQueued: number;
  /** Seconds that the event loop was late. */
  readonly eventLoopDelay: (quantile: (typeof delayQuantiles)[number]) => number;
  readonly restarts: Readonly<Record<(typeof threadKinds)[number], number>>;
}

const nothing: Figures = {
  reasons: ['voices are loading'],
  streams: new Map(),
  sockets: 0,
  contexts: 0,
  olderVoiceContexts: 0,
  hungThreads: 0,
  bufferedBytes: 0,
  bufferedAudioMs: 0,
  ledgerEntriesQueued: 0,
  eventLoopDelay: () => 0,
  restarts: { synthesis: 0, actor: 0, ledger: 0 },
};

const latencyBuckets = [
  0.001, 0.0025, 0.005, 0.0075, 0.01, 0.015, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
];
/** From twenty times quicker than it plays to slower than that. */
const rateBuckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 0.75, 1, 1.5, 2.5, 5, 10];
/** A player's own buffer hides what is not later; a bucket of the lag ends there. */
const UNDERRUN_MS_MIN = 5;
const lagBuckets = [0, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  version: string;
};
const startedSeconds = Date.now() / 1000 - process.uptime();

export class Metrics {
  readonly #registry = new Registry();
  readonly #registers = { registers: [this.#registry] };
  #read: () => Figures = () => nothing;
  /** Of the scrape that goes on. */
  #figures: Figures = nothing;

  readonly #firstAudio = new Histogram({
    name: 'syrinx_first_audio_seconds',
    help:
      'From a request to its first audio with the socket; on a WebSocket, of each turn, from the text or flush that gave a ' +
      'silent context something to speak',
    labelNames: ['route'] as const,
    buckets: latencyBuckets,
    ...this.#registers,
  });
  readonly #queueWait = new Histogram({
    name: 'syrinx_queue_wait_seconds',
    help: 'How long a segment that could have been started waited for the first step of a synthesis thread',
    buckets: latencyBuckets,
    ...this.#registers,
  });
  readonly #speech = new Counter({
    name: 'syrinx_speech_seconds_total',
    help: 'Audio handed to sockets, or to the results that are collected for them',
    labelNames: ['encoding'] as const,
    ...this.#registers,
  });
  readonly #synthesis = new Counter({
    name: 'syrinx_synthesis_seconds_total',
    help: 'Time of the synthesis threads in steps of a segment',
    ...this.#registers,
  });
  readonly #realTimeFactor = new Histogram({
    name: 'syrinx_real_time_factor',
    help: 'Of each segment: the time in its steps by the duration of its audio',
    buckets: rateBuckets,
    ...this.#registers,
  });
  readonly #requests = new Counter({
    name: 'syrinx_requests_total',
    help: 'Requests that are over, by the status that they were answered; "none" of those left before',
    labelNames: ['route', 'status'] as const,
    ...this.#registers,
  });
  readonly #refusals = new Counter({
    name: 'syrinx_refusals_total',
    help: 'Requests, frames and texts that were refused, by a reason that stays',
    labelNames: ['reason'] as const,
    ...this.#registers,
  });
  readonly #failures = new Counter({
    name: 'syrinx_failures_total',
    help: 'Requests and contexts that failed by a fault of the service: answered 500, or cut short',
    labelNames: ['route'] as const,
    ...this.#registers,
  });
  readonly #lag = new Histogram({
    name: 'syrinx_playback_lag_seconds',
    help: 'Of each chunk of audio: how long its listener had nothing left to play when it came, 0 when it was in time',
    buckets: lagBuckets,
    ...this.#registers,
  });
  readonly #underruns = new Counter({
    name: 'syrinx_underruns_total',
    help:
      'Times that a listener who keeps reading had nothing left to play amid an utterance because audio was late, by ' +
      'more than the 5 ms that its player hides',
    ...this.#registers,
  });

  constructor() {
    for (const reason of reasons) this.#refusals.inc({ reason }, 0);
    this.#addStageGauges();
    this.#addProcessGauges();
  }

  /** Reads the gauges of the stages from here on. */
  watch(read: () => Figures): void {
    this.#read = read;
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  /** Everything, in the text format of Prometheus. */
  text(): Promise<string> {
    this.#figures = this.#read();
    return this.#registry.metrics();
  }

  /** Names and meanings of all that `text` tells of. */
  get catalogue(): readonly { readonly name: string; readonly help: string }[] {
    return this.#registry.getMetricsAsArray().map(({ name, help }) => ({ name, help }));
  }

  /** @param route as the table of routes has it */
  firstAudio(route: string, ms: number): void {
    this.#firstAudio.observe({ route }, ms / 1000);
  }

  /** A segment was made; or was cancelled, and then `audioMs` is `null`. */
  segment(waitMs: number, computeMs: number, audioMs: number | null): void {
    this.#queueWait.observe(Math.max(0, waitMs) / 1000);
    this.#synthesis.inc(computeMs / 1000);
    if (audioMs !== null && audioMs > 0) this.#realTimeFactor.observe(computeMs / audioMs);
  }

  /** @returns what counts seconds of speech, to be kept by who speaks */
  speechIn(encoding: string): { inc(seconds: number): void } {
    return this.#speech.labels({ encoding });
  }

  /** @param lateMs of one chunk of audio */
  playback(lateMs: number): void {
    this.#lag.observe(lateMs / 1000);
    if (lateMs > UNDERRUN_MS_MIN) this.#underruns.inc();
  }

  /** @param status `null` when no answer had begun */
  request(route: string, status: number | null): void {
    this.#requests.inc({ route, status: status === null ? 'none' : String(status) });
  }

  refused(reason: RefusalReason): void {
    this.#refusals.inc({ reason });
  }

  failed(route: string): void {
    this.#failures.inc({ route });
  }

  #gauge(name: string, help: string, read: () => number | null | Promise<number | null>): void {
    new Gauge({
      name,
      help,
      ...this.#registers,
      async collect() {
        const value = await read();
        if (value === null) this.remove();
        else this.set(value);
      },
    });
  }

  #addStageGauges(): void {
    const figures = () => this.#figures;
    new Gauge({
      name: 'syrinx_streams',
      help: 'Requests, and WebSockets, that are being spoken for',
      labelNames: ['route'] as const,
      ...this.#registers,
      collect() {
        for (const [route, streams] of figures().streams) this.set({ route }, streams);
      },
    });
    new Counter({
      name: 'syrinx_thread_restarts_total',
      help: 'Threads that died and were replaced',
      labelNames: ['kind'] as const,
      ...this.#registers,
      collect() {
        this.reset();
        for (const kind of threadKinds) this.inc({ kind }, figures().restarts[kind]);
      },
    });
    const gauges = {
      syrinx_ready: [
        '1 while speech may be sent here, as /readyz says',
        () => +(figures().reasons.length === 0),
      ],
      syrinx_sockets: ['WebSockets that are open', () => figures().sockets],
      syrinx_contexts: ['Contexts that are open, of requests and of WebSockets', () => figures().contexts],
      syrinx_older_voice_contexts: [
        'Contexts that keep the voices from before a reload',
        () => figures().olderVoiceContexts,
      ],
      syrinx_hung_threads: [
        'Synthesis threads that hang inside native code, where they cannot be ended',
        () => figures().hungThreads,
      ],
      syrinx_buffered_bytes: ['Bytes that wait for sockets to take them', () => figures().bufferedBytes],
      syrinx_buffered_audio_seconds: [
        'Audio that is made and not yet with its socket',
        () => figures().bufferedAudioMs / 1000,
      ],
      syrinx_ledger_entries_queued: [
        'Entries of the ledger that are not durable yet',
        () => figures().ledgerEntriesQueued,
      ],
    } as const;
    for (const [name, [help, read]] of Object.entries(gauges)) this.#gauge(name, help, read);
  }

  /** In the place of the library's own, which look at every handle and reset what others read. */
  #addProcessGauges(): void {
    const figures = () => this.#figures;
    new Gauge({
      name: 'syrinx_event_loop_delay_seconds',
      help: 'How late the event loop of the front thread turned, over the last 30 to 60 seconds; quantile 1 is the worst',
      labelNames: ['quantile'] as const,
      ...this.#registers,
      collect() {
        for (const quantile of delayQuantiles) this.set({ quantile }, figures().eventLoopDelay(quantile));
      },
    });
    new Gauge({
      name: 'syrinx_build_info',
      help: '1, with the versions in its labels',
      labelNames: ['version', 'node'] as const,
      ...this.#registers,
    }).set({ version: version, node: process.version }, 1);
    new Counter({
      name: 'process_cpu_seconds_total',
      help: 'CPU time of all threads, user and system',
      ...this.#registers,
      collect() {
        const { user, system } = process.cpuUsage();
        this.reset();
        this.inc((user + system) / 1e6);
      },
    });
    this.#gauge('syrinx_pss_bytes', 'Memory: pages that several processes share count in part', pssBytes);
    this.#gauge('process_resident_memory_bytes', 'Memory that is resident', () => process.memoryUsage.rss());
    this.#gauge('process_start_time_seconds', 'When the process started, since 1970', () => startedSeconds);
    this.#gauge('process_open_fds', 'File descriptors that are open', openFiles);
    this.#gauge('process_max_fds', 'File descriptors that may be open', openFilesMax);
    this.#gauge(
      'nodejs_heap_size_used_bytes',
      'Heap of the front thread that is in use',
      () => process.memoryUsage().heapUsed,
    );
  }
}
