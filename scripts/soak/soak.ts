/**
 * One soak, with the service and the load as processes of their own.
 *
 *   starting --> calibration --> warm-up --> measured --(time, or Ctrl-C)--> ending --> over
 *                                             (rests)
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { limits } from '../../src/limits.js';
import { LoadProcess } from '../rig/load-process.js';
import { countHandles } from '../rig/process-facts.js';
import { voiceOfEachPack } from '../voices/fixtures/mixed.js';
import { SoakHosts } from './hosts.js';
import type { SoakLoad } from './load.js';
import type { AtRest, Fault, LoadTick, Phase, Step } from './measures.js';
import { Monitor } from './monitor.js';
import type { SoakOptions } from './options.js';
import { calibrate, phasesOf, settle, type Phases } from './phases.js';
import { clientsPerKey, keysNeeded } from './population.js';
import type { SoakResult } from './report.js';
import { checkFiles, fetchVoices, waitForLeftovers, warm } from './service-access.js';
import { remoteSubject, startOwn, type Subject } from './subject.js';

/** Of the last number of clients that held, unless `--load` says otherwise. */
const usualShare = 0.4;

const mb = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`;

const startSubject = async (options: SoakOptions): Promise<Subject> => {
  if (options.remote !== null) return remoteSubject(options.remote);
  return options.hosts ? SoakHosts.start(options.streams) : startOwn(options);
};

export class Soak {
  readonly #options: SoakOptions;
  readonly #say: (line: string) => void;
  readonly #load: SoakLoad;
  readonly #faults: Fault[] = [];
  readonly #steps: Step[] = [];
  readonly #rests: AtRest[] = [];
  readonly #interrupted = new AbortController();
  #failure: string | null = null;
  #subject: Subject | null = null;
  #monitor: Monitor | null = null;
  #phase: Phase = 'calibration';

  /** @param say writes a line about the course of the soak */
  constructor(options: SoakOptions, say: (line: string) => void) {
    this.#options = options;
    this.#say = say;
    this.#load = new LoadProcess(new URL('./load.js', import.meta.url), (event) => {
      if (event.type === 'tick') void this.#onTick(event);
      else this.#onFault(event);
    });
  }

  /** Ends the soak now, with a report. Idempotent. */
  interrupt(): void {
    this.#interrupted.abort();
  }

  /** @throws {SoakError} before it begins, where it cannot run */
  async run(): Promise<SoakResult> {
    checkFiles(this.#options);
    try {
      return await this.#run();
    } finally {
      this.#monitor?.stop();
      this.#load.close();
      // It still runs only after an error of the soak itself.
      await this.#subject?.stop();
    }
  }

  async #run(): Promise<SoakResult> {
    const {
      hosts,
      load,
      minutes,
      seed,
      sockets: idleSockets,
      streams: httpClients,
      voiceSet,
    } = this.#options;
    const subject = await startSubject(this.#options);
    this.#subject = subject;
    void subject.failed.then((how) => this.#onFailure(how));
    const { baseUrl, dialectPorts, opsUrl, service } = subject;
    const { idle } = await subject.keysFor(0);
    const all = await fetchVoices(baseUrl, idle);
    const voices = voiceSet === 'mixed' ? voiceOfEachPack(all) : all;
    await warm(baseUrl, idle, voices[0] ?? '');
    const handles = () => (service === null ? null : countHandles(service.pid));
    const atStart = handles();
    const monitor = await Monitor.start({ service, baseUrl, opsUrl });
    this.#monitor = monitor;
    // A service that runs elsewhere may have had some.
    const restartsBefore = (await monitor.sample()).threadRestarts ?? 0;
    const { hostname, port } = new URL(baseUrl);
    const target = { host: hostname, port: Number(port || 80), voices, voiceSet, dialectPorts };
    const mayRefuse = load !== null;
    const drainMs = hosts ? limits.drainMsMax : null;
    const phases = phasesOf(this.#options, monitor.memoryAccess);
    const populate = async (contexts: number): Promise<void> => {
      const keys = await subject.keysFor(keysNeeded(contexts));
      const clients = { contexts, idleSockets, httpClients };
      await this.#load.call('populate', { target, seed, keys, ...clients, mayRefuse, drainMs });
    };
    const { contexts, held } = await this.#populate(populate, phases.surge);
    await this.#load.call('reset');
    subject.begin?.((isDisturbed) => this.#load.call('disturb', isDisturbed));
    this.#phase = 'warm-up';
    const warmUpMs = await this.#wait(phases.warmUpMs);
    // Counts go on: a fault in the warm-up breaks an invariant too.
    this.#phase = 'measured';
    const measuredMs = await this.#measure(minutes * 60_000, phases.rests);
    const endedEarly = this.#interrupted.signal.aborted;

    this.#phase = 'ending';
    const { charges, counts } = await this.#load.call('stop');
    const isAlive = this.#failure === null;
    const leftovers = isAlive ? await waitForLeftovers(() => subject.leftovers(monitor)) : null;
    const { threadRestarts } = await monitor.sample();
    monitor.stop();
    const atEnd = handles();
    this.#subject = null;
    const { end, store } = await subject.end(Object.keys(charges));
    const findings = {
      ...{ counts, faults: this.#faults },
      ...{ load, hosts },
      steps: this.#steps.filter(({ phase }) => phase === 'measured'),
      rests: this.#rests,
      isMemoryJudged: phases.isMemoryJudged,
      answers: monitor.answers,
      log: subject.log(),
      threadRestarts: threadRestarts === null ? null : threadRestarts - restartsBefore,
      ...{ atStart, atEnd, leftovers, charges, store },
      end: isAlive ? end : `${end ?? ''}, in the middle of the soak: ${this.#failure}`,
    };
    return { contexts, held, endedEarly, measuredMs, warmUpMs, findings, series: this.#steps };
  }

  /** A service that ends early ends the soak. */
  #onFailure(how: string): void {
    if (this.#phase === 'ending') return;
    this.#failure = how;
    this.#say(how);
    this.interrupt();
  }

  /** With the number of clients that was asked for, or that calibration finds. */
  async #populate(
    populate: (contexts: number) => Promise<void>,
    surge: Phases['surge'],
  ): Promise<{ readonly contexts: number; readonly held: number | null }> {
    const { contexts: asked, load, remote, streams } = this.#options;
    const look = async (ms: number): Promise<LoadTick> => {
      await this.#load.call('reset');
      await this.#wait(ms);
      return this.#load.call('look');
    };
    if (asked !== null) {
      if (surge !== null) {
        await populate(Math.ceil(asked * surge.factor));
        await this.#wait(surge.ms);
      }
      await populate(asked);
      if (surge !== null) await settle(look, this.#say);
      return { contexts: asked, held: null };
    }
    const max = remote === null ? 4_000 : remote.keys.length * clientsPerKey - streams;
    const held = await calibrate(max, populate, look, this.#say);
    if (held === 0) this.#say('not a single client held: is the machine busy with something else?');
    const contexts = Math.max(1, Math.floor(held * (load ?? usualShare)));
    await populate(contexts);
    if (load === null || load < 1) await settle(look, this.#say);
    return { contexts, held };
  }

  /** @returns how long it has waited */
  async #wait(ms: number): Promise<number> {
    const { signal } = this.#interrupted;
    const beganMs = performance.now();
    await sleep(ms, undefined, { signal }).catch(() => undefined);
    return performance.now() - beganMs;
  }

  /** @returns how long it has measured, without rests */
  async #measure(ms: number, rests: number): Promise<number> {
    const parts = Math.max(1, rests - 1);
    let measuredMs = 0;
    if (rests > 1) await this.#rest(true);
    for (let part = 1; part <= parts; part++) {
      measuredMs += await this.#wait(ms / parts);
      if (rests > 0) await this.#rest(part < parts);
    }
    return measuredMs;
  }

  /** No client speaks for a while. */
  async #rest(goesOn: boolean): Promise<void> {
    if (this.#interrupted.signal.aborted) return;
    this.#phase = 'rest';
    await this.#load.call('rest');
    const memory = (await this.#monitor?.memoryAtRest()) ?? null;
    if (memory !== null) {
      const { kept, pssBytes } = memory;
      this.#rests.push(memory);
      const scripts = `scripts keep ${mb(kept.heapBytes)} in heaps, ${mb(kept.externalBytes)} outside`;
      this.#say(`at rest: PSS ${mb(pssBytes)}; ${scripts}`);
    }
    if (!goesOn) return;
    await this.#load.call('resume');
    this.#phase = 'measured';
  }

  #onFault(fault: Fault): void {
    // Calibration finds its limit by underruns.
    if (this.#phase === 'calibration' && fault.kind === 'underruns') return;
    this.#faults.push(fault);
    const at = `${(fault.atMs / 1000).toFixed(1)} s, ${fault.where}, seed ${this.#options.seed}`;
    this.#say(`  ${fault.kind}: ${fault.what} (${at})`);
  }

  async #onTick(tick: LoadTick): Promise<void> {
    const phase = this.#phase;
    if (this.#monitor === null || phase === 'ending') return;
    const step = await this.#monitor.step(tick, phase);
    this.#steps.push(step);
    const { atMs, pssBytes, speechPerSecond, streams } = step;
    const memory = pssBytes === null ? '' : `, PSS ${(pssBytes / 2 ** 20).toFixed(0)} MiB`;
    const load = `${tick.sockets} sockets, ${streams} streams, ${speechPerSecond.toFixed(0)} s of speech a second`;
    this.#say(`${(atMs / 1_000).toFixed(0)} s, ${phase}: ${load}, ${tick.underruns} underruns${memory}`);
  }
}
