/**
 * One soak, with the service and the load as processes of their own.
 *
 *   starting --> (calibration) --> warm-up --> measured --(time, or Ctrl-C)--> ending --> over
 *                                    (rests)
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { limits } from '../../src/limits.js';
import { LoadProcess } from '../rig/load-process.js';
import { machineBusyMs } from '../rig/machine.js';
import { voiceOfEachPack } from '../voices/fixtures/mixed.js';
import { judge, type Findings, type Handles, type Invariant, type ServiceEnd } from './invariants.js';
import type { SoakLoad } from './load.js';
import type { AtRest, Fault, LoadTick, Step, Target } from './measures.js';
import { describeRest } from './memory.js';
import { Monitor } from './monitor.js';
import type { SoakOptions } from './options.js';
import { calibrate, phasesOf, settle, type Calibrated, type Phases } from './phases.js';
import { clientsPerKey, keysNeeded } from './population.js';
import { describeStep, stepOf, type Reading } from './series.js';
import { checkFiles, fetchVoices, SoakError, warm } from './service-access.js';
import { startSubject, type Subject } from './subject.js';

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

export class Soak {
  readonly #options: SoakOptions;
  readonly #say: (line: string) => void;
  readonly #load: SoakLoad;
  readonly #faults: Fault[] = [];
  readonly #steps: Step[] = [];
  readonly #rests: AtRest[] = [];
  readonly #interrupted: Promise<void>;
  #interrupt: () => void = () => undefined;
  #isInterrupted = false;
  #failure: Error | null = null;
  #subject: Subject | null = null;
  #monitor: Monitor | null = null;
  #phase: Step['phase'] | 'ending' = 'calibration';
  #phaseStartMs = 0;
  #restStartMs = 0;
  #phaseMs: number | null = null;
  #startedMs = 0;
  #reading: Reading | null = null;
  #last: LoadTick | null = null;
  #looked: LoadTick[] = [];

  /** @param say writes a line about the course of the soak */
  constructor(options: SoakOptions, say: (line: string) => void) {
    this.#options = options;
    this.#say = say;
    this.#interrupted = new Promise((resolve) => (this.#interrupt = resolve));
    this.#load = new LoadProcess(new URL('./load.js', import.meta.url), (event) => {
      if (event.type === 'tick') void this.#onTick(event);
      else this.#onFault(event);
    });
  }

  /** Ends the soak now, with a report. Idempotent. */
  interrupt(): void {
    this.#isInterrupted = true;
    this.#interrupt();
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
    const { hosts, load, minutes, seed, sockets: idleSockets, streams: httpClients } = this.#options;
    const subject = await startSubject(this.#options);
    this.#subject = subject;
    void subject.failed.then((how) => this.#onFailure(how));
    const { baseUrl, dialectPorts, keys, opsUrl, service } = subject;
    const { voiceSet } = this.#options;
    const all = await fetchVoices(baseUrl, keys.idle);
    const voices = voiceSet === 'mixed' ? voiceOfEachPack(all) : all;
    await warm(baseUrl, keys.idle, voices[0] ?? '');
    const monitor = new Monitor({ service, baseUrl, opsUrl });
    this.#monitor = monitor;
    await monitor.status();
    const atStart = subject.handles();
    const restartsBefore = (await monitor.sample()).threadRestarts;
    monitor.start();
    const { hostname, port } = new URL(baseUrl);
    const target: Target = { host: hostname, port: Number(port || 80), voices, voiceSet, dialectPorts };
    this.#startedMs = performance.now();
    const mayRefuse = load !== null;
    const drainMs = hosts ? limits.drainMsMax : null;
    await this.#load.call('begin', { target, seed, idleSockets, httpClients, mayRefuse, drainMs });
    const phases = phasesOf(this.#options, monitor.memoryAccess);
    const calibrated = await this.#populate(subject, phases.surge);
    const contexts = calibrated?.contexts ?? this.#options.contexts ?? 0;
    await this.#load.call('reset');
    subject.begin?.((isDisturbed) => this.#load.call('disturb', isDisturbed));
    this.#enter('warm-up', phases.warmUpMs);
    await this.#wait(phases.warmUpMs);
    const warmUpMs = this.#elapsedMs();
    // Counts go on: a fault in the warm-up breaks an invariant too.
    const measuredForMs = minutes * 60_000;
    this.#enter('measured', measuredForMs);
    await this.#measure(measuredForMs, phases.rests);
    const measuredMs = this.#elapsedMs();
    const endedEarly = this.#isInterrupted;
    return await this.#end(subject, {
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

  /** A service that ends early ends the soak. */
  #onFailure(how: string): void {
    if (this.#phase === 'ending') return;
    this.#failure = new Error(how);
    this.#say(how);
    this.interrupt();
  }

  /** With the number of clients that was asked for, or that calibration finds. */
  async #populate(subject: Subject, surge: Phases['surge']): Promise<Calibrated | null> {
    const populate = async (contexts: number): Promise<void> => {
      await this.#load.call('populate', { contexts, keys: await subject.withKeys(keysNeeded(contexts)) });
    };
    this.#enter('calibration', null);
    const { contexts, load, remote, share, streams } = this.#options;
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
      share: load ?? share,
      populate,
      look: (ms) => this.#look(ms),
      onStep: (tried, found) =>
        this.#say(`${tried} streaming clients ${found === null ? 'held' : `did not hold: ${found}`}`),
    });
    if (calibrated.held === 0)
      this.#say('not a single client held: is the machine busy with something else?');
    await populate(calibrated.contexts);
    if (load === null || load < 1) await this.#settle();
    return calibrated;
  }

  async #settle(): Promise<void> {
    const left = await settle((ms) => this.#look(ms));
    if (left !== null) this.#say(`the load of the calibration has not settled (${left})`);
  }

  async #look(ms: number): Promise<readonly LoadTick[]> {
    await this.#load.call('reset');
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

  /** No client speaks, and the time of the phase stands still, until `#resume`. */
  async #rest(): Promise<void> {
    if (this.#isInterrupted) return;
    this.#phase = 'rest';
    this.#restStartMs = performance.now();
    await this.#load.call('rest');
    const memory = (await this.#monitor?.memoryAtRest()) ?? null;
    if (memory === null) return;
    this.#rests.push({ atMs: Math.round(performance.now() - this.#startedMs), ...memory });
    this.#say(describeRest(memory));
  }

  async #resume(): Promise<void> {
    if (this.#isInterrupted) return;
    await this.#load.call('resume');
    this.#phaseStartMs += performance.now() - this.#restStartMs;
    this.#phase = 'measured';
  }

  /** Of the phase, without rests. */
  #elapsedMs(): number {
    return (this.#phase === 'rest' ? this.#restStartMs : performance.now()) - this.#phaseStartMs;
  }

  #enter(phase: Step['phase'], ms: number | null): void {
    this.#phase = phase;
    this.#phaseStartMs = performance.now();
    this.#phaseMs = ms;
  }

  #onFault(fault: Fault): void {
    // Calibration finds its limit by underruns.
    if (this.#phase === 'calibration' && fault.kind === 'underruns') return;
    this.#faults.push(fault);
    const at = `${(fault.atMs / 1000).toFixed(1)} s, ${fault.where}, seed ${this.#options.seed}`;
    this.#say(`  ${fault.kind}: ${fault.what} (${at})`);
  }

  async #onTick(tick: LoadTick): Promise<void> {
    this.#last = tick;
    this.#looked.push(tick);
    const nowMs = performance.now();
    const elapsedMs = this.#elapsedMs();
    const monitor = this.#monitor;
    const phase = this.#phase;
    // The first step needs a reading before it.
    const isDue = tick.endsStep || this.#reading === null;
    if (!isDue || monitor === null || phase === 'ending') return;
    const reading = {
      atMs: nowMs - this.#startedMs,
      tick,
      sample: await monitor.sample(),
      busyMs: machineBusyMs(),
    };
    if (this.#reading !== null) {
      const step = stepOf(this.#reading, reading, phase);
      this.#steps.push(step);
      this.#say(describeStep(step, tick, this.#phaseMs === null ? null : this.#phaseMs - elapsedMs));
    }
    this.#reading = reading;
  }

  async #end(
    subject: Subject,
    so: Pick<SoakResult, 'calibrated' | 'contexts' | 'endedEarly' | 'measuredMs' | 'warmUpMs'> & {
      readonly atStart: Handles;
      /** A service that runs elsewhere may have had some. */
      readonly restartsBefore: number | null;
      readonly isMemoryJudged: boolean;
    },
  ): Promise<SoakResult> {
    const { atStart, restartsBefore, isMemoryJudged, ...result } = so;
    const monitor = this.#monitor!;
    const { hosts } = this.#options;
    const beforeEnd = this.#last;
    this.#phase = 'ending';
    this.#phaseStartMs = performance.now();
    this.#phaseMs = null;
    const { firstAudioMs, charges } = await this.#load.call('stop');
    const leftovers = this.#failure === null ? await subject.leftovers(monitor) : null;
    const { threadRestarts } = await monitor.sample();
    monitor.stop();
    const atEnd = subject.handles();
    const log = subject.log();
    const { end, store } = await this.#endOf(subject, Object.keys(charges));
    const last = this.#last ?? beforeEnd;
    if (last === null) throw new SoakError('the load never reported');
    const findings: Findings = {
      faultCounts: last.faults,
      faults: this.#faults,
      ...{ underruns: last.underruns, unjudged: last.unjudged },
      load: this.#options.load,
      ...{ refusals: last.refusals, heard: last.heard, spoilt: last.spoilt, disturbed: last.disturbed },
      moves: hosts ? { moved: last.moved, cut: last.cut } : null,
      firstAudioMs,
      steps: this.#steps.filter(({ phase }) => phase === 'measured'),
      rests: this.#rests,
      isMemoryJudged,
      probes: monitor.probes,
      answers: monitor.answers,
      end,
      log,
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

  async #endOf(subject: Subject, keys: readonly string[]): Promise<ServiceEnd> {
    this.#subject = null;
    const { end, store } = await subject.end(keys);
    const failure = this.#failure;
    return {
      end: failure === null ? end : `${end ?? ''}, in the middle of the soak: ${failure.message}`,
      store,
    };
  }
}
