/**
 * Metrics for Prometheus, in a registry of their own: no global state, so a test can have several.
 *
 * The stages push counters and histograms; a scrape reads the gauges from the stages. Every label has few values, and
 * no value comes from a client.
 */
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { History } from './history.js';
import { heapBytes, openFiles, openFilesMax, pssBytes, residentBytes } from './process.js';
import type { EndedRequest, RecentRequests } from './recent-requests.js';
import { type RefusalReason, refusalReasons } from './refusals.js';
import { version } from './version.js';

export { refusalOf, type RefusalReason } from './refusals.js';

/** First audio is measured three ways: see `FirstAudio`. */
export type FirstAudioFigure = 'byte' | 'decoded' | 'audible';

/** Of the event loop's delay; 1 is the worst. */
export const delayQuantiles = [0.5, 0.99, 1] as const;

export interface PackFigures {
  /** Packs that are loaded now, summed over the threads. */
  readonly loaded: number;
  /** Loads because a job needed a pack, so far, and the time that they took. */
  readonly loads: number;
  readonly loadMs: number;
}

/** The state of the stages at one moment. */
export interface Figures {
  /** Why the service is not ready; empty when it is. */
  readonly reasons: readonly string[];
  /** Requests and sockets with speech in progress, by route. */
  readonly streams: ReadonlyMap<string, number>;
  readonly sockets: number;
  readonly contexts: number;
  /** Contexts that keep the voices from before a reload. */
  readonly olderVoiceContexts: number;
  /** Synthesis threads that hang inside native code, where they cannot be ended. */
  readonly hungThreads: number;
  /** The GPU failed, and the CPU runs its graphs. */
  readonly gpuIsLost: boolean;
  /** Voice packs that were found and cannot be used. */
  readonly voicePacksRefused: number;
  readonly voicePacks: PackFigures;
  readonly bufferedBytes: number;
  readonly bufferedAudioMs: number;
  /** What is in use of the speech that the machine can make in time. */
  readonly capacityRatio: number;
  readonly freeCores: number;
  /** CPU time of a second of speech, in seconds, by voice. */
  readonly speechCpu: ReadonlyMap<string, number>;
  readonly ledgerEntriesQueued: number;
  readonly ledgerEntriesRefused: number;
  readonly logLinesLost: number;
  /** Seconds that the event loop was late. */
  readonly eventLoopDelay: (quantile: (typeof delayQuantiles)[number]) => number;
  readonly restarts: Readonly<Record<'synthesis' | 'actor' | 'ledger' | 'administration', number>>;
}

const nothing: Figures = {
  reasons: ['voices are loading'],
  streams: new Map(),
  sockets: 0,
  contexts: 0,
  olderVoiceContexts: 0,
  hungThreads: 0,
  gpuIsLost: false,
  voicePacksRefused: 0,
  voicePacks: { loaded: 0, loads: 0, loadMs: 0 },
  bufferedBytes: 0,
  bufferedAudioMs: 0,
  capacityRatio: 0,
  freeCores: 0,
  speechCpu: new Map(),
  ledgerEntriesQueued: 0,
  ledgerEntriesRefused: 0,
  logLinesLost: 0,
  eventLoopDelay: () => 0,
  restarts: { synthesis: 0, actor: 0, ledger: 0, administration: 0 },
};

const latencyBuckets = [
  0.001, 0.0025, 0.005, 0.0075, 0.01, 0.015, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
];
/** From much faster than real time to slower than it. */
const rateBuckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 0.75, 1, 1.5, 2.5, 5, 10];
/** A player's own buffer hides a shorter delay. A bucket of the lag ends here. */
const UNDERRUN_MS_MIN = 5;
const lagBuckets = [0, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];

const startedSeconds = Date.now() / 1000 - process.uptime();

/** One value, or one per series with its labels. `null`: the system does not say, and the metric is left out. */
type Value = number | null | readonly (readonly [labels: Readonly<Record<string, string>>, value: number])[];

/** A metric whose values a scrape reads. */
interface ReadMetric {
  readonly help: string;
  readonly labelNames?: readonly string[];
  /** The value only grows. */
  readonly isCounter?: boolean;
  readonly read: (figures: Figures) => Value | Promise<Value>;
}

export interface CatalogueEntry {
  readonly name: string;
  readonly help: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly labelNames: readonly string[];
}

const readMetrics: Readonly<Record<string, ReadMetric>> = {
  syrinx_streams: {
    help: 'Requests and WebSockets with speech in progress.',
    labelNames: ['route'],
    read: ({ streams }) => [...streams].map(([route, count]) => [{ route }, count]),
  },
  syrinx_thread_restarts_total: {
    help: 'Threads that died and were replaced.',
    labelNames: ['kind'],
    isCounter: true,
    read: ({ restarts }) => Object.entries(restarts).map(([kind, count]) => [{ kind }, count]),
  },
  syrinx_ready: {
    help: '1 while the service is ready for speech, as /readyz says.',
    read: (figures) => (figures.reasons.length === 0 ? 1 : 0),
  },
  syrinx_sockets: { help: 'Open WebSockets.', read: ({ sockets }) => sockets },
  syrinx_contexts: {
    help: 'Open contexts, of requests and of WebSockets.',
    read: ({ contexts }) => contexts,
  },
  syrinx_older_voice_contexts: {
    help: 'Contexts that keep the voices from before a reload.',
    read: ({ olderVoiceContexts }) => olderVoiceContexts,
  },
  syrinx_hung_threads: {
    help: 'Synthesis threads that hang inside native code, where they cannot be ended.',
    read: ({ hungThreads }) => hungThreads,
  },
  syrinx_gpu_lost: {
    help: '1 while the CPU runs the models because the GPU failed.',
    read: ({ gpuIsLost }) => Number(gpuIsLost),
  },
  syrinx_voice_packs_refused: {
    help: 'Voice packs, or parts of them, that were found and cannot be used: /readyz names them.',
    read: ({ voicePacksRefused }) => voicePacksRefused,
  },
  syrinx_voice_packs_loaded: {
    help: 'Voice packs that are loaded, summed over the synthesis threads.',
    read: ({ voicePacks }) => voicePacks.loaded,
  },
  syrinx_voice_pack_loads_total: {
    help: 'Loads of voice packs that were not loaded when a request needed them.',
    isCounter: true,
    read: ({ voicePacks }) => voicePacks.loads,
  },
  syrinx_voice_pack_load_seconds_total: {
    help: 'Time that these loads took.',
    isCounter: true,
    read: ({ voicePacks }) => voicePacks.loadMs / 1_000,
  },
  syrinx_buffered_bytes: {
    help: 'Bytes that wait for sockets to take them.',
    read: ({ bufferedBytes }) => bufferedBytes,
  },
  syrinx_buffered_audio_seconds: {
    help: 'Audio that was made and is not yet handed to its socket.',
    read: ({ bufferedAudioMs }) => bufferedAudioMs / 1000,
  },
  syrinx_capacity_ratio: {
    help: 'Work that admitted listeners need in time, as a part of what the machine promises; above 1 new utterances of most accounts are refused.',
    read: ({ capacityRatio }) => capacityRatio,
  },
  syrinx_free_cores: {
    help: 'Cores that other programs and the front thread leave to speech.',
    read: ({ freeCores }) => freeCores,
  },
  syrinx_speech_cpu_ratio: {
    help: 'CPU time that a second of speech takes on a synthesis thread, in seconds, as admission counts it.',
    labelNames: ['voice'],
    read: ({ speechCpu }) => [...speechCpu].map(([voice, cpu]) => [{ voice }, cpu]),
  },
  syrinx_ledger_entries_queued: {
    help: 'Ledger entries that are not durable yet.',
    read: ({ ledgerEntriesQueued }) => ledgerEntriesQueued,
  },
  syrinx_ledger_entries_refused_total: {
    help: 'Ledger entries that the database refused, because their process had been declared dead.',
    isCounter: true,
    read: ({ ledgerEntriesRefused }) => ledgerEntriesRefused,
  },
  syrinx_log_lines_lost_total: {
    help: 'Log lines that could not be written and did not fit into memory.',
    isCounter: true,
    read: ({ logLinesLost }) => logLinesLost,
  },
  syrinx_event_loop_delay_seconds: {
    help: 'Delay of the event loop of the front thread over the last 30 to 60 seconds; percentile 100 is the worst.',
    // Prometheus keeps the label "quantile" for summaries.
    labelNames: ['percentile'],
    read: ({ eventLoopDelay }) =>
      delayQuantiles.map((quantile) => [{ percentile: String(quantile * 100) }, eventLoopDelay(quantile)]),
  },
  // These replace the library's own, which visit every handle and reset values that other readers need.
  syrinx_build_info: {
    help: 'Always 1; the labels hold the versions.',
    labelNames: ['version', 'node'],
    read: () => [[{ version, node: process.version }, 1]],
  },
  process_cpu_seconds_total: {
    help: 'CPU time of all threads, user and system.',
    isCounter: true,
    read: () => {
      const { user, system } = process.cpuUsage();
      return (user + system) / 1e6;
    },
  },
  syrinx_pss_bytes: {
    help: 'Memory in use; pages shared with other processes count in part.',
    read: pssBytes,
  },
  process_resident_memory_bytes: { help: 'Resident memory.', read: residentBytes },
  process_start_time_seconds: {
    help: 'Start of the process, in seconds since 1970.',
    read: () => startedSeconds,
  },
  process_open_fds: { help: 'Open file descriptors.', read: openFiles },
  process_max_fds: { help: 'Limit of open file descriptors.', read: openFilesMax },
  nodejs_heap_size_used_bytes: {
    help: 'Heap in use by the front thread.',
    read: heapBytes,
  },
};

/** What the console shows of the past. Without a console there is none. */
export interface Past {
  readonly history: History;
  readonly requests: RecentRequests;
}

export class Metrics {
  readonly #registry = new Registry();
  #read: () => Figures = () => nothing;
  /** The figures of the current scrape. */
  #figures: Figures = nothing;
  #past: Past | null = null;
  #lateChunks = 0;

  readonly #firstAudio: Readonly<Record<FirstAudioFigure, Histogram<'route' | 'encoding'>>> = {
    byte: this.#firstAudioFigure(
      'syrinx_first_audio_seconds',
      'Time from a request to its first byte of audio at the socket; on a WebSocket, per utterance, from the text or ' +
        'flush that gave a silent context something to speak.',
    ),
    decoded: this.#firstAudioFigure(
      'syrinx_first_decoded_seconds',
      'The same until the socket has the bytes from which a decoder makes the first sample of the speech.',
    ),
    audible: this.#firstAudioFigure(
      'syrinx_first_audible_seconds',
      'The same until the first sample over -50 dBFS is heard, by a listener who plays from the first decoded sample on.',
    ),
  };
  readonly #queueWait = this.#histogram(
    'syrinx_queue_wait_seconds',
    'Time that a segment ready to start waited for its first step on a synthesis thread.',
    latencyBuckets,
  );
  readonly #realTimeFactor = this.#histogram(
    'syrinx_real_time_factor',
    'Compute time of a segment divided by the duration of its audio.',
    rateBuckets,
  );
  readonly #lag = this.#histogram(
    'syrinx_playback_lag_seconds',
    'Time that the listener had nothing left to play before a chunk of audio came; 0 when the chunk was in time.',
    lagBuckets,
  );
  readonly #underruns = this.#counter(
    'syrinx_underruns_total',
    'Times that a listener who keeps reading ran out of audio within an utterance because audio was late, by more than ' +
      'the 5 ms that a player hides.',
  );
  readonly #speech = this.#counter(
    'syrinx_speech_seconds_total',
    'Audio handed to sockets, or to results that are collected for them.',
    ['encoding'],
  );
  readonly #synthesis = this.#counter(
    'syrinx_synthesis_seconds_total',
    'Time that synthesis threads spent in steps.',
  );
  readonly #requests = this.#counter(
    'syrinx_requests_total',
    'Finished requests, by status; "none" if the client left before the answer.',
    ['route', 'status'],
  );
  readonly #readLater = this.#histogram(
    'syrinx_read_later_seconds',
    'Time that a WebSocket or a body waited to be read because its key was above its part of the front thread.',
    latencyBuckets,
    ['route'],
  );
  readonly #refusals = this.#counter(
    'syrinx_refusals_total',
    'Requests, frames and texts refused, by reason.',
    ['reason'],
  );
  readonly #failures = this.#counter(
    'syrinx_failures_total',
    'Requests and contexts that failed by a fault of the service: answered 500, or cut short.',
    ['route'],
  );

  constructor() {
    for (const reason of refusalReasons) this.#refusals.inc({ reason }, 0);
    for (const [name, metric] of Object.entries(readMetrics)) this.#add(name, metric);
  }

  /** From now on a scrape reads the figures of the stages. */
  watch(read: () => Figures): void {
    this.#read = read;
  }

  /** From now on the past is kept. */
  keep(past: Past): void {
    this.#past = past;
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  /** All metrics in the text format of Prometheus. */
  text(): Promise<string> {
    this.#figures = this.#read();
    return this.#registry.metrics();
  }

  get catalogue(): readonly CatalogueEntry[] {
    // The library's types lack the labels.
    const metrics = this.#registry.getMetricsAsArray() as unknown as readonly CatalogueEntry[];
    return metrics.map(({ name, help, type, labelNames }) => ({ name, help, type, labelNames }));
  }

  /** @param route as in the table of routes */
  firstAudio(figure: FirstAudioFigure, route: string, encoding: string, ms: number): void {
    this.#firstAudio[figure].observe({ route, encoding }, ms / 1000);
    if (figure === 'byte') this.#past?.history.firstAudio(ms);
  }

  /** A segment is over. @param audioMs `null` if it was cancelled */
  segment(waitMs: number, computeMs: number, audioMs: number | null): void {
    this.#queueWait.observe(Math.max(0, waitMs) / 1000);
    this.#synthesis.inc(computeMs / 1000);
    if (audioMs !== null && audioMs > 0) this.#realTimeFactor.observe(computeMs / audioMs);
  }

  /** @returns the counter of seconds of speech in an encoding, for a context to keep */
  speechIn(encoding: string): { inc(seconds: number): void } {
    return this.#speech.labels({ encoding });
  }

  /** @param lateMs of one chunk of audio */
  playback(lateMs: number): void {
    this.#lag.observe(lateMs / 1000);
    if (lateMs <= UNDERRUN_MS_MIN) return;
    this.#underruns.inc();
    this.#lateChunks++;
  }

  /** @param status `null` when no answer had begun */
  request(route: string, status: number | null): void {
    this.#requests.inc({ route, status: status === null ? 'none' : String(status) });
  }

  refused(reason: RefusalReason): void {
    this.#refusals.inc({ reason });
    this.#past?.history.refused(reason);
  }

  /** A request, or a context of a WebSocket, is over; or one of its frames or texts was refused. */
  ended(request: EndedRequest): void {
    this.#past?.requests.add(request);
    this.#past?.history.ended();
  }

  /** Since the start. */
  get lateChunks(): number {
    return this.#lateChunks;
  }

  /** A WebSocket or a body waited for the turn of its key. */
  readLater(route: string, ms: number): void {
    this.#readLater.observe({ route }, ms / 1000);
  }

  failed(route: string): void {
    this.#failures.inc({ route });
    this.#past?.history.failed();
  }

  #counter<T extends string>(name: string, help: string, labelNames: readonly T[] = []): Counter<T> {
    return new Counter({ name, help, labelNames, registers: [this.#registry] });
  }

  #histogram<T extends string>(
    name: string,
    help: string,
    buckets: number[],
    labelNames: readonly T[] = [],
  ): Histogram<T> {
    return new Histogram({ name, help, buckets, labelNames, registers: [this.#registry] });
  }

  #firstAudioFigure(name: string, help: string): Histogram<'route' | 'encoding'> {
    return this.#histogram(name, help, latencyBuckets, ['route', 'encoding']);
  }

  #add(name: string, { help, labelNames = [], isCounter = false, read }: ReadMetric): void {
    const collect = async (): Promise<void> => {
      const value = await read(this.#figures);
      metric.reset();
      if (value === null) metric.remove();
      else
        for (const [labels, count] of typeof value === 'number' ? [[{}, value] as const] : value)
          metric.inc(labels, count);
    };
    const options = { name, help, labelNames, registers: [this.#registry], collect };
    const metric = isCounter ? new Counter(options) : new Gauge(options);
  }
}
