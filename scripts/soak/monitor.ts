/** Watches the service of a soak from outside: facts of its process, its metrics, its answers. */
import { setTimeout as sleep } from 'node:timers/promises';
import { limits } from '../../src/limits.js';
import { parseSamples, sumOf } from '../rig/exposition.js';
import { exchange } from '../rig/http.js';
import { machineBusyMs } from '../rig/machine.js';
import { readCpuMsWithEnded, readMemory } from '../rig/process-facts.js';
import type { Service, Status } from '../rig/service.js';
import { Collector } from './collector.js';
import type { AtRest, LoadTick, Phase, ServiceSample, Step } from './measures.js';
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

/** Milliseconds so far; a step is the difference of two. */
interface Reading {
  readonly atMs: number;
  readonly audioMs: number;
  readonly loadMs: number;
  /** Of all cores of the machine. */
  readonly busyMs: number;
  readonly serviceMs: number | null;
}

export class Monitor {
  readonly #parts: MonitorParts;
  readonly #collector: Collector | null;
  readonly #probes = new Durations();
  readonly #timers: NodeJS.Timeout[];
  readonly #faults: string[] = [];
  readonly #startedMs = performance.now();
  #asked = 0;
  #missed = 0;
  #reading: Reading;

  private constructor(parts: MonitorParts, collector: Collector | null) {
    this.#parts = parts;
    this.#collector = collector;
    this.#reading = this.#read(0, 0);
    this.#timers = [
      setInterval(() => void this.#probe(), probeMs),
      setInterval(() => void this.status(), statusEveryMs),
    ];
  }

  static async start(parts: MonitorParts): Promise<Monitor> {
    const url = parts.service?.inspectorUrl ?? null;
    return new Monitor(parts, url === null ? null : await Collector.connect(url));
  }

  /** At rest: where the process is ours and the system reports its memory. Otherwise a metric may report it. */
  get memoryAccess(): MemoryAccess {
    const { service, opsUrl } = this.#parts;
    if (service !== null && this.#collector !== null && readMemory(service.pid) !== null) return 'at rest';
    return opsUrl === null ? 'nowhere' : 'under load';
  }

  /** Idempotent. */
  stop(): void {
    for (const timer of this.#timers) clearInterval(timer);
    this.#collector?.close();
  }

  /** Questions, and those without a good answer in time; and how long the probes took. */
  get answers() {
    const { count, max, p50, p99 } = this.#probes.quantiles();
    return {
      ...{ asked: this.#asked, missed: this.#missed, faults: this.#faults },
      probes: { count, max, p50, p99 },
    };
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
    const { opsUrl, service } = this.#parts;
    const text = opsUrl === null ? null : await this.#get(`${opsUrl}/metrics`);
    const samples = text === null ? [] : parseSamples(text);
    const metric = (name: string, labels?: Readonly<Record<string, string>>) => sumOf(samples, name, labels);
    const memory = service === null ? null : readMemory(service.pid);
    const delay = metric('syrinx_event_loop_delay_seconds', { percentile: '99' });
    return {
      pssBytes: memory?.pssBytes ?? metric('syrinx_pss_bytes'),
      frontHeapBytes: metric('nodejs_heap_size_used_bytes'),
      loopDelayP99Ms: delay === null ? null : delay * 1000,
      serviceStreams: metric('syrinx_streams'),
      serviceContexts: metric('syrinx_contexts'),
      serviceUnderruns: metric('syrinx_underruns_total'),
      serviceChunks: metric('syrinx_playback_lag_seconds_count'),
      threadRestarts: metric('syrinx_thread_restarts_total'),
    };
  }

  /** A row of the time series: what the service is like now, and what was used since the last row. */
  async step(tick: LoadTick, phase: Phase): Promise<Step> {
    const sample = await this.sample();
    const before = this.#reading;
    const after = this.#read(tick.audioMs, tick.cpuMs);
    this.#reading = after;
    const ms = Math.max(1, after.atMs - before.atMs);
    // After a reset between the two, the count began at zero.
    const audioMs = after.audioMs - (after.audioMs >= before.audioMs ? before.audioMs : 0);
    const serviceMs =
      before.serviceMs === null || after.serviceMs === null ? null : after.serviceMs - before.serviceMs;
    const loadMs = after.loadMs - before.loadMs;
    const othersMs = after.busyMs - before.busyMs - loadMs - (serviceMs ?? 0);
    return {
      ...{ atMs: Math.round(after.atMs - this.#startedMs), phase, ...sample },
      ...{ streams: tick.streams, speechPerSecond: audioMs / ms, loadCpu: loadMs / ms },
      serviceCpu: serviceMs === null ? null : serviceMs / ms,
      othersCpu: serviceMs === null ? null : Math.max(0, othersMs / ms),
    };
  }

  /**
   * What the service keeps while no client speaks, after garbage collection and a trim of its heaps. Under load, listeners
   * would have underruns: a full collection stops a thread for 100 ms and more. The least of a few readings, because pings
   * and probes make some megabytes of garbage in between.
   *
   * @returns `null` where the memory cannot be read
   */
  async memoryAtRest(): Promise<AtRest | null> {
    const { service } = this.#parts;
    if (service === null || this.#collector === null) return null;
    this.#asked++;
    let least: AtRest | null = null;
    try {
      await this.#collector.collect();
      for (let look = 0; look < looksAtRest; look++) {
        await sleep(betweenLooksMs);
        const kept = await this.#collector.collect();
        const pssBytes = readMemory(service.pid)?.pssBytes ?? Infinity;
        const atMs = Math.round(performance.now() - this.#startedMs);
        if (pssBytes < (least?.pssBytes ?? Infinity)) least = { atMs, pssBytes, kept };
      }
    } catch (error) {
      this.#miss(`the inspector: ${error instanceof Error ? error.message : String(error)}`);
      return null;
    }
    return least;
  }

  #read(audioMs: number, loadMs: number): Reading {
    const { service } = this.#parts;
    const serviceMs = service === null ? null : readCpuMsWithEnded(service.pid);
    return { atMs: performance.now(), audioMs, loadMs, busyMs: machineBusyMs(), serviceMs };
  }

  async #probe(): Promise<void> {
    const startedMs = performance.now();
    if ((await this.#get(`${this.#parts.baseUrl}/healthz`)) === null) return;
    this.#probes.record(performance.now() - startedMs);
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
