/**
 * One soak: the service and the load as processes of their own, calibrated, warmed up, measured, ended, judged.
 *
 *   starting --> (calibration) --> warm-up --> measured --(time, or Ctrl-C)--> ending --> over
 *                                    (rests)
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { readConfig } from '../../src/config.js';
import { countHandles } from '../rig-old/process-facts.js';
import { Service } from '../rig-old/service.js';
import { calibrate, settle, type Calibrated } from './calibrate.js';
import { judge, type Findings, type Handles, type Invariant } from './invariants.js';
import { clientsPerKey, httpKeysNeeded, keysNeeded } from './keys.js';
import { awaitLeftovers } from './leftovers.js';
import { Load } from './load.js';
import { describeRest, type AtRest } from './memory.js';
import { Monitor } from './monitor.js';
import type { SoakOptions } from './options.js';
import { phasesOf, type Phases } from './phases.js';
import type { Progress } from './progress.js';
import type { Fault, KeyRing, LoadTick, Target } from './protocol.js';
import { machineBusyMs, stepOf, type Reading, type Step } from './series.js';
import { ServiceLog } from './service-log.js';
import { checkFiles, fetchVoices, SoakError, warm } from './service-access.js';
import { readStore, type StoreFindings } from './store-findings.js';

export interface SoakResult {
  readonly contexts: number;
  readonly calibrated: Calibrated | null;
  readonly endedEarly: boolean;
  readonly measuredMs: number;
  readonly warmUpMs: number;
  readonly invariants: readonly Invariant[];
  readonly faults: readonly Fault[];
  readonly findings: Findings;
  readonly steps: readonly Step[];
  readonly last: LoadTick | null;
}

const asPercent = (share: number): string => `${(share * 100).toFixed(0)} % of them`;

export class Soak {
  readonly #options: SoakOptions;
  readonly #progress: Progress;
  readonly #load: Load;
  readonly #log = new ServiceLog();
  readonly #faults: Fault[] = [];
  readonly #steps: Step[] = [];
  readonly #rests: AtRest[] = [];
  readonly #interrupted: Promise<void>;
  #interrupt: () => void = () => undefined;
  #isInterrupted = false;
  #failure: Error | null = null;
  #service: Service | null = null;
  #monitor: Monitor | null = null;
  #phase: Step['phase'] | 'ending' = 'calibration';
  #phaseStartMs = 0;
  #restStartMs = 0;
  #phaseMs: number | null = null;
  #startedMs = 0;
  #reading: Reading | null = null;
  #last: LoadTick | null = null;
  #looked: LoadTick[] = [];

  constructor(options: SoakOptions, progress: Progress) {
    this.#options = options;
    this.#progress = progress;
    this.#interrupted = new Promise((resolve) => (this.#interrupt = resolve));
    this.#load = new Load({
      onTick: (tick) => void this.#onTick(tick),
      onFault: (fault) => this.#onFault(fault),
    });
  }

  /** Ends it now, with a report of what was until then. Idempotent. */
  interrupt(): void {
    this.#isInterrupted = true;
    this.#interrupt();
  }

  /**
   * @throws {SoakError} what is in the way, before it begins
   */
  async run(): Promise<SoakResult> {
    checkFiles(this.#options);
    try {
      return await this.#run();
    } finally {
      this.#monitor?.stop();
      this.#load.close();
      // Only after a fault of the soak itself is it still there.
      await this.#service?.stop().catch(() => undefined);
    }
  }

  async #run(): Promise<SoakResult> {
    const { minutes, seed, sockets, streams } = this.#options;
    const { baseUrl, opsUrl, keys } = await this.#start();
    const voices = await fetchVoices(baseUrl, keys.idle);
    await warm(baseUrl, keys.idle, voices[0] ?? '');
    const monitor = new Monitor({ service: this.#service, log: this.#log, baseUrl, opsUrl });
    this.#monitor = monitor;
    await monitor.status();
    const atStart = this.#handles();
    const restartsBefore = (await monitor.sample()).threadRestarts;
    monitor.start();
    const { hostname, port } = new URL(baseUrl);
    const target: Target = { host: hostname, port: Number(port || 80), voices };
    this.#startedMs = performance.now();
    await this.#load.begin({
      type: 'begin',
      target,
      settings: { seed, idleSockets: sockets, httpClients: streams },
    });
    const phases = phasesOf(this.#options, monitor.memoryAccess);
    const calibrated = await this.#populate(keys, phases.surge);
    const contexts = calibrated?.contexts ?? this.#options.contexts ?? 0;
    this.#load.reset();
    this.#enter('warm-up', phases.warmUpMs);
    await this.#wait(phases.warmUpMs);
    const warmUpMs = this.#elapsedMs();
    // Counts go on: what breaks in the warm-up is broken.
    const measuredForMs = minutes * 60_000;
    this.#enter('measured', measuredForMs);
    await this.#measure(measuredForMs, phases.rests);
    const measuredMs = this.#elapsedMs();
    const endedEarly = this.#isInterrupted;
    return await this.#end({
      atStart,
      restartsBefore,
      isMemoryJudged: phases.isMemoryJudged,
      calibrated,
      contexts,
      endedEarly,
      measuredMs,
      warmUpMs,
    });
  }

  async #start(): Promise<{ baseUrl: string; opsUrl: string | null; keys: KeyRing }> {
    const { remote, streams } = this.#options;
    if (remote !== null) {
      const { url, keys, opsUrl } = remote;
      return {
        baseUrl: url.origin,
        opsUrl,
        keys: { sockets: keys, http: keys, idle: keys[0]!, isShared: true },
      };
    }
    const { modelsDir, synthesisThreads, actorThreads } = readConfig(process.env);
    const httpKeys = httpKeysNeeded(streams);
    const service = await Service.start({
      modelsDir,
      synthesisThreads,
      actorThreads,
      keys: 1 + httpKeys,
      onLogLine: (line) => this.#log.onLine(line),
      ownGroup: true,
      inspected: true,
    });
    this.#service = service;
    void service.exited.then((end) => this.#onServiceEnd(end));
    return {
      baseUrl: `http://127.0.0.1:${String(service.port)}`,
      opsUrl: service.opsPort === null ? null : `http://127.0.0.1:${String(service.opsPort)}`,
      keys: {
        sockets: [],
        http: service.keys.slice(1, 1 + httpKeys),
        idle: service.keys[0]!,
        isShared: false,
      },
    };
  }

  /** A service that ends amid the soak ends the soak: nothing more is to be learnt. */
  #onServiceEnd(end: string): void {
    if (this.#phase === 'ending') return;
    this.#failure = new Error(`the service ended with ${end}`);
    this.#progress.say(this.#failure.message);
    this.interrupt();
  }

  /** With as many clients as were asked for, or as many as the machine holds. */
  async #populate(keys: KeyRing, surge: Phases['surge']): Promise<Calibrated | null> {
    const populate = async (contexts: number): Promise<void> => {
      await this.#load.populate({ type: 'population', contexts, keys: this.#withKeys(keys, contexts) });
    };
    this.#enter('calibration', null);
    const { contexts, remote, share, streams } = this.#options;
    if (contexts !== null) {
      if (surge !== null) {
        await populate(Math.ceil(contexts * surge.factor));
        await this.#look(surge.ms);
      }
      await populate(contexts);
      if (surge !== null) await this.#settle();
      return null;
    }
    const max = remote === null ? 4_000 : remote.keys.length * clientsPerKey - streams;
    const calibrated = await calibrate({
      max,
      share,
      populate,
      look: (ms) => this.#look(ms),
      onStep: (tried) => this.#progress.say(`trying ${String(tried)} streaming clients`),
    });
    const { held, trouble } = calibrated;
    if (held === 0) this.#progress.say('not even the first held: is the machine busy with something else?');
    this.#progress.say(
      `${String(held)} streaming clients held${trouble === null ? '' : `, more did not (${trouble})`}; soaking with ${String(calibrated.contexts)} (${asPercent(share)})`,
    );
    await populate(calibrated.contexts);
    await this.#settle();
    return calibrated;
  }

  async #settle(): Promise<void> {
    const left = await settle((ms) => this.#look(ms));
    if (left !== null) this.#progress.say(`what came before has not come to rest (${left})`);
  }

  #withKeys(keys: KeyRing, contexts: number): KeyRing {
    const service = this.#service;
    if (service === null) return keys;
    const first = 1 + keys.http.length;
    const missing = first + keysNeeded(contexts) - service.keys.length;
    if (missing > 0) service.addKeys(missing);
    return { ...keys, sockets: service.keys.slice(first) };
  }

  async #look(ms: number): Promise<readonly LoadTick[]> {
    this.#load.reset();
    this.#looked = [];
    await this.#wait(ms);
    return this.#looked;
  }

  async #wait(ms: number): Promise<void> {
    if (this.#isInterrupted) return;
    const timer = new AbortController();
    const slept = sleep(ms, undefined, { signal: timer.signal }).catch(() => undefined);
    await Promise.race([slept, this.#interrupted]);
    timer.abort();
  }

  async #measure(ms: number, rests: number): Promise<void> {
    for (let i = 1; i < rests && !this.#isInterrupted; i++) {
      await this.#rest();
      await this.#resume();
      await this.#wait(ms / (rests - 1));
    }
    if (rests < 2) await this.#wait(ms);
    if (rests > 0) await this.#rest();
  }

  /** Nobody speaks, and the clock of what is measured stands still, until it is resumed. */
  async #rest(): Promise<void> {
    if (this.#isInterrupted) return;
    this.#phase = 'rest';
    this.#restStartMs = performance.now();
    await this.#load.rest();
    const memory = (await this.#monitor?.memoryAtRest()) ?? null;
    if (memory === null) return;
    this.#rests.push({ atMs: Math.round(performance.now() - this.#startedMs), ...memory });
    this.#progress.say(describeRest(memory));
  }

  async #resume(): Promise<void> {
    if (this.#isInterrupted) return;
    await this.#load.resume();
    this.#phaseStartMs += performance.now() - this.#restStartMs;
    this.#phase = 'measured';
  }

  /** Of the phase; rests are no part of it. */
  #elapsedMs(): number {
    return (this.#phase === 'rest' ? this.#restStartMs : performance.now()) - this.#phaseStartMs;
  }

  #enter(phase: Step['phase'], ms: number | null): void {
    this.#phase = phase;
    this.#phaseStartMs = performance.now();
    this.#phaseMs = ms;
  }

  #onFault(fault: Fault): void {
    // Where the limit is looked for, it is found by underruns.
    if (this.#phase === 'calibration' && fault.kind === 'underruns') return;
    this.#faults.push(fault);
    const at = `${(fault.atMs / 1000).toFixed(1)} s, ${fault.where}, seed ${String(this.#options.seed)}`;
    this.#progress.say(`  ${fault.kind}: ${fault.what} (${at})`);
  }

  async #onTick(tick: LoadTick): Promise<void> {
    this.#last = tick;
    this.#looked.push(tick);
    const nowMs = performance.now();
    const elapsedMs = this.#elapsedMs();
    this.#progress.show({
      phase: this.#phase,
      elapsedMs,
      leftMs: this.#phaseMs === null ? null : this.#phaseMs - elapsedMs,
      tick,
      step: this.#steps.at(-1) ?? null,
    });
    const monitor = this.#monitor;
    const phase = this.#phase;
    // The first is what the first step is told from.
    const isDue = tick.endsStep || this.#reading === null;
    if (!isDue || monitor === null || phase === 'ending') return;
    const reading = {
      atMs: nowMs - this.#startedMs,
      tick,
      sample: await monitor.sample(),
      busyMs: machineBusyMs(),
    };
    if (this.#reading !== null) this.#steps.push(stepOf(this.#reading, reading, phase));
    this.#reading = reading;
  }

  #logFindings(): Findings['log'] {
    const { drops, errors, told } = this.#log;
    return { drops, errors, told };
  }

  #handles(): Handles {
    const service = this.#service;
    return (service === null ? null : countHandles(service.pid)) ?? { files: null, threads: null };
  }

  async #end(
    so: Pick<SoakResult, 'calibrated' | 'contexts' | 'endedEarly' | 'measuredMs' | 'warmUpMs'> & {
      readonly atStart: Handles;
      /** Of a service that runs elsewhere there may have been some. */
      readonly restartsBefore: number | null;
      readonly isMemoryJudged: boolean;
    },
  ): Promise<SoakResult> {
    const { atStart, restartsBefore, isMemoryJudged, ...result } = so;
    const monitor = this.#monitor!;
    const beforeEnd = this.#last;
    this.#phase = 'ending';
    this.#phaseStartMs = performance.now();
    this.#phaseMs = null;
    const { firstAudioMs, charges } = await this.#load.stop();
    const leftovers = this.#failure === null ? await awaitLeftovers(monitor) : null;
    const { threadRestarts } = await monitor.sample();
    monitor.stop();
    const atEnd = this.#handles();
    const { end, store } = await this.#stopService(Object.keys(charges));
    const last = this.#last ?? beforeEnd;
    if (last === null) throw new SoakError('the load never reported');
    const findings: Findings = {
      faultCounts: last.faults,
      faults: this.#faults,
      underruns: last.underruns,
      unjudged: last.unjudged,
      firstAudioMs,
      steps: this.#steps.filter(({ phase }) => phase === 'measured'),
      rests: this.#rests,
      isMemoryJudged,
      probes: monitor.probes,
      answers: monitor.answers,
      end,
      log: this.#options.remote === null ? this.#logFindings() : null,
      threadRestarts: threadRestarts === null ? null : threadRestarts - (restartsBefore ?? 0),
      atStart,
      atEnd,
      leftovers,
      charges,
      store,
    };
    return {
      ...result,
      invariants: judge(findings),
      faults: this.#faults,
      findings,
      steps: this.#steps,
      last,
    };
  }

  async #stopService(keys: readonly string[]): Promise<{ end: string | null; store: StoreFindings | null }> {
    const service = this.#service;
    if (service === null) return { end: null, store: null };
    let store: StoreFindings | null = null;
    this.#service = null;
    // A bad end is an invariant that broke, not a fault of the soak; the store is read before that is told.
    await service
      .stop((dataDir) => (store = readStore(dataDir, keys)))
      .catch((error: unknown) => {
        if (store === null) throw error;
      });
    const end = await service.exited;
    return { end: this.#failure === null ? end : `${end}, amid the soak`, store };
  }
}
