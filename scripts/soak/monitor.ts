/** Looks at the service under a soak from outside: the system's figures of its process, its metrics, its answers. */
import { setTimeout as sleep } from 'node:timers/promises';
import { limits } from '../../src/limits.js';
import { countHandles, readMemory } from '../rig-old/process-facts.js';
import type { Service } from '../rig-old/service.js';
import type { CpuTimes } from '../rig-old/threads.js';
import { Collector } from './collector.js';
import type { AtRest } from './memory.js';
import type { MemoryAccess } from './phases.js';
import { parseSamples, sumOf, type Sample } from './prometheus.js';
import type { ServiceLog, Status } from './service-log.js';
import { Durations } from './tally.js';

const probeMs = 1_000;
const statusEveryMs = 30_000;
/** Within which every question of an operator is answered. */
const answerMsMax = 5_000;
/** How often the memory of a rest is read: its heaps are trimmed at least once in between. */
const looksAtRest = 3;
const betweenLooksMs = 0.6 * limits.heapTrimMs;
const faultsToldMax = 20;

export interface ServiceSample {
  readonly pssBytes: number | null;
  readonly rssBytes: number | null;
  readonly frontHeapBytes: number | null;
  /** Clock ticks so far. */
  readonly cpu: CpuTimes | null;
  readonly files: number | null;
  readonly threads: number | null;
  /** How late the front thread's event loop turned, by its own account. */
  readonly loopDelayMs: { readonly p50: number; readonly p99: number; readonly max: number } | null;
  readonly streams: number | null;
  readonly contexts: number | null;
  readonly underruns: number | null;
  /** Chunks of audio that somebody listened to. */
  readonly chunks: number | null;
  readonly threadRestarts: number | null;
  readonly bufferedBytes: number | null;
  /** Of `GET /healthz` since the last sample. */
  readonly probeP99Ms: number;
}

export interface MonitorParts {
  /** `null`: it runs elsewhere. */
  readonly service: Service | null;
  readonly log: ServiceLog;
  readonly baseUrl: string;
  /** `null`: it has no metrics. */
  readonly opsUrl: string | null;
}

export class Monitor {
  readonly #parts: MonitorParts;
  readonly #probes = new Durations();
  readonly #stepProbes = new Durations();
  readonly #timers: NodeJS.Timeout[] = [];
  readonly #faults: string[] = [];
  #asked = 0;
  #missed = 0;
  readonly #collector: Collector | null;

  constructor(parts: MonitorParts) {
    this.#parts = parts;
    const url = parts.service?.inspectorUrl ?? null;
    this.#collector = url === null ? null : new Collector(url);
  }

  /** At rest: of a process here, on a system that tells of its memory. Else there may be a metric of it. */
  get memoryAccess(): MemoryAccess {
    const { service, opsUrl } = this.#parts;
    if (service !== null && this.#collector !== null && readMemory(service.pid) !== null) return 'at rest';
    return opsUrl === null ? 'nowhere' : 'under load';
  }

  start(): void {
    this.#timers.push(setInterval(() => void this.#probe(), probeMs));
    this.#timers.push(setInterval(() => void this.status(), statusEveryMs));
  }

  /** Idempotent. */
  stop(): void {
    for (const timer of this.#timers) clearInterval(timer);
    this.#collector?.close();
  }

  /** Questions that were asked, and those that were not answered in time or not well. */
  get answers(): { readonly asked: number; readonly missed: number; readonly faults: readonly string[] } {
    return { asked: this.#asked, missed: this.#missed, faults: this.#faults };
  }

  /** Of all probes. */
  get probes() {
    return this.#probes.quantiles();
  }

  /** By SIGUSR2. @returns `null` when it does not answer, or runs elsewhere */
  async status(): Promise<Status | null> {
    const { log, service } = this.#parts;
    if (service === null) return null;
    this.#asked++;
    const status = await log.status(() => service.signal('SIGUSR2'), answerMsMax);
    if (status === null) this.#miss('SIGUSR2 is not answered');
    else if (!status.threadsWhole) this.#miss('a thread is missing');
    return status;
  }

  async sample(): Promise<ServiceSample> {
    const { service } = this.#parts;
    const samples = await this.#scrape();
    const metric = (name: string, labels?: Readonly<Record<string, string>>) => sumOf(samples, name, labels);
    const memory = service === null ? null : readMemory(service.pid);
    const handles = service === null ? null : countHandles(service.pid);
    const delayMs = (quantile: string) =>
      (metric('syrinx_event_loop_delay_seconds', { quantile }) ?? 0) * 1000;
    const probes = this.#stepProbes.quantiles();
    this.#stepProbes.reset();
    return {
      pssBytes: memory?.pssBytes ?? metric('syrinx_pss_bytes'),
      rssBytes: memory?.rssBytes ?? metric('process_resident_memory_bytes'),
      frontHeapBytes: metric('nodejs_heap_size_used_bytes'),
      cpu: service?.cpuTimes() ?? null,
      files: handles?.files ?? metric('process_open_fds'),
      threads: handles?.threads ?? null,
      loopDelayMs:
        metric('syrinx_event_loop_delay_seconds') === null
          ? null
          : { p50: delayMs('0.5'), p99: delayMs('0.99'), max: delayMs('1') },
      streams: metric('syrinx_streams'),
      contexts: metric('syrinx_contexts'),
      underruns: metric('syrinx_underruns_total'),
      chunks: metric('syrinx_playback_lag_seconds_count'),
      threadRestarts: metric('syrinx_thread_restarts_total'),
      bufferedBytes: metric('syrinx_buffered_bytes'),
      probeP99Ms: probes.p99,
    };
  }

  /**
   * What the service keeps now that nobody speaks: garbage is collected, and what it leaves free given back. Under load
   * listeners would run dry: a collection of all that can be stops a thread for a tenth of a second and more. The least
   * of a few looks, as pings and probes make some megabytes of garbage between them, whose holes stay for a while.
   *
   * @returns `null` where that cannot be looked at
   */
  async memoryAtRest(): Promise<Omit<AtRest, 'atMs'> | null> {
    const { service } = this.#parts;
    if (service === null || this.#collector === null) return null;
    this.#asked++;
    let least: Omit<AtRest, 'atMs'> | null = null;
    try {
      await this.#collector.collect();
      for (let look = 0; look < looksAtRest; look++) {
        await sleep(betweenLooksMs);
        const kept = await this.#collector.collect();
        const memory = readMemory(service.pid);
        if (memory === null) return null;
        if (memory.pssBytes < (least?.pssBytes ?? Infinity)) least = { pssBytes: memory.pssBytes, kept };
      }
    } catch (error) {
      this.#miss(`the inspector: ${error instanceof Error ? error.message : String(error)}`);
      return null;
    }
    return least;
  }

  async #probe(): Promise<void> {
    const startedMs = performance.now();
    if ((await this.#get(`${this.#parts.baseUrl}/healthz`)) === null) return;
    const ms = performance.now() - startedMs;
    this.#probes.record(ms);
    this.#stepProbes.record(ms);
  }

  async #scrape(): Promise<readonly Sample[]> {
    const { opsUrl } = this.#parts;
    if (opsUrl === null) return [];
    const text = await this.#get(`${opsUrl}/metrics`);
    return text === null ? [] : parseSamples(text);
  }

  async #get(url: string): Promise<string | null> {
    this.#asked++;
    try {
      const response = await fetch(url, { signal: AbortSignal.timeout(answerMsMax) });
      const body = await response.text();
      if (response.status === 200) return body;
      this.#miss(`${url} answers ${String(response.status)}`);
    } catch (error) {
      this.#miss(`${url}: ${error instanceof Error ? error.message : String(error)}`);
    }
    return null;
  }

  #miss(what: string): void {
    this.#missed++;
    if (this.#faults.length < faultsToldMax) this.#faults.push(what);
  }
}
