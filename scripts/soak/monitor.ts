/** Watches the service of a soak from outside: facts of its process, its metrics, its answers. */
import { setTimeout as sleep } from 'node:timers/promises';
import { limits } from '../../src/limits.js';
import { exchange } from '../rig/http.js';
import { parseSamples, sumOf, type Sample } from '../rig/exposition.js';
import { readCpuTimes, readMemory } from '../rig/process-facts.js';
import type { Service, Status } from '../rig/service.js';
import { Collector } from './collector.js';
import type { AtRest, ServiceSample } from './measures.js';
import { Durations } from './meter.js';
import type { MemoryAccess } from './phases.js';

const probeMs = 1_000;
const statusEveryMs = 30_000;
/** For every answer to an operator. */
const answerMsMax = 5_000;
/** Readings of memory in a rest: heaps are trimmed at least once in between. */
const looksAtRest = 3;
const betweenLooksMs = 0.6 * limits.heapTrimMs;
const faultsKeptMax = 20;

export interface MonitorParts {
  /** `null`: the service runs elsewhere. */
  readonly service: Service | null;
  readonly baseUrl: string;
  /** `null`: no metrics. */
  readonly opsUrl: string | null;
}

export class Monitor {
  readonly #parts: MonitorParts;
  readonly #probes = new Durations();
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

  /** At rest: where the process is ours and the system reports its memory. Otherwise a metric may report it. */
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

  /** Questions, and those without a good answer in time. */
  get answers(): { readonly asked: number; readonly missed: number; readonly faults: readonly string[] } {
    return { asked: this.#asked, missed: this.#missed, faults: this.#faults };
  }

  /** Of all probes. */
  get probes() {
    return this.#probes.quantiles();
  }

  /** By SIGUSR2. @returns `null` without an answer, or where the service runs elsewhere */
  async status(): Promise<Status | null> {
    const { service } = this.#parts;
    if (service === null) return null;
    this.#asked++;
    const status = await service.status().catch(() => null);
    if (status === null) this.#miss('no answer to SIGUSR2');
    else if (!status.threadsWhole) this.#miss('a thread is missing');
    return status;
  }

  async sample(): Promise<ServiceSample> {
    const { service } = this.#parts;
    const samples = await this.#scrape();
    const metric = (name: string, labels?: Readonly<Record<string, string>>) => sumOf(samples, name, labels);
    const memory = service === null ? null : readMemory(service.pid);
    const delay = metric('syrinx_event_loop_delay_seconds', { percentile: '99' });
    return {
      pssBytes: memory?.pssBytes ?? metric('syrinx_pss_bytes'),
      frontHeapBytes: metric('nodejs_heap_size_used_bytes'),
      cpu: service === null ? null : readCpuTimes(service.pid),
      loopDelayP99Ms: delay === null ? null : delay * 1000,
      streams: metric('syrinx_streams'),
      contexts: metric('syrinx_contexts'),
      serviceUnderruns: metric('syrinx_underruns_total'),
      serviceChunks: metric('syrinx_playback_lag_seconds_count'),
      threadRestarts: metric('syrinx_thread_restarts_total'),
    };
  }

  /**
   * What the service keeps while no client speaks, after garbage collection and a trim of its heaps. Under load, listeners
   * would have underruns: a full collection stops a thread for 100 ms and more. The least of a few readings, because pings
   * and probes make some megabytes of garbage in between.
   *
   * @returns `null` where the memory cannot be read
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
    this.#probes.record(performance.now() - startedMs);
  }

  async #scrape(): Promise<readonly Sample[]> {
    const { opsUrl } = this.#parts;
    if (opsUrl === null) return [];
    const text = await this.#get(`${opsUrl}/metrics`);
    return text === null ? [] : parseSamples(text);
  }

  async #get(url: string): Promise<string | null> {
    this.#asked++;
    const { hostname, pathname, port } = new URL(url);
    const signal = AbortSignal.timeout(answerMsMax);
    const answer = await exchange(Number(port || 80), { path: pathname }, { host: hostname, signal });
    if (answer.isWhole && answer.status === 200) return answer.body.toString();
    this.#miss(`${url}: ${answer.error?.message ?? `status ${answer.status}`}`);
    return null;
  }

  #miss(what: string): void {
    this.#missed++;
    if (this.#faults.length < faultsKeptMax) this.#faults.push(what);
  }
}
