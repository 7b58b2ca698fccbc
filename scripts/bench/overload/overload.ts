/**
 * What the machine carries, and more: listeners who begin at once, shares and multiples of its capacity, bursts, and greedy
 * keys. Two services run, one that refuses and one that admits everyone; only one is loaded at a time.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { searchCapacity } from '../../rig/capacity-search.js';
import { LoadProcess } from '../../rig/load-process.js';
import { Program } from '../../rig/program.js';
import { mean } from '../../rig/statistics.js';
import { sentence } from '../../rig/texts.js';
import type { BareLoop } from '../bare.js';
import type { Load } from '../load.js';
import type { Row } from '../report.js';
import type { CrowdFigures, CrowdOrder } from './crowd.js';
import { greedyFiles, type GreedyOutcome } from './greedy.js';
import {
  capacityParts,
  overloads,
  timingOf,
  togetherCount,
  troubleOf,
  type OverloadPart,
  type Timing,
} from './phases.js';
import {
  burstRow,
  calmFirstAudio,
  calmRows,
  capacityRow,
  carriedRow,
  describeCrowd,
  greedyRow,
  halfRows,
  idleFirstAudio,
  otherProgramsRow,
  overloadRows,
  type Capacity,
} from './rows.js';
import { arrivalsAtOnce, drawArrivals, drawUtterances, type Arrival } from './schedule.js';
import {
  awaitIdle,
  describeLooks,
  otherCores,
  watched,
  type Look,
  type Subject,
  type Subjects,
} from './watch.js';

export interface OverloadOptions {
  readonly parts: readonly OverloadPart[];
  readonly isQuick: boolean;
  /** Of each overload. */
  readonly seconds: number;
  /** Listeners; `null`: searched for. */
  readonly capacity: number | null;
}

/** Ten times 300 listeners need 340 keys of nine slots at once, if none is refused. */
export const keysNeeded = 400;
const textCount = 32;
const steadyShare = 0.9;
const sharedShare = 0.4;
const calmShare = 0.8;
/** What else runs beside those who begin at once, and how many programs. */
const besides = [
  ['quiet', 0],
  ['beside two busy programs', 2],
] as const;
const warmUpListeners = 48;
/** Calm first audio: single requests, one after the other. */
const calmProbes = { afterMs: 0, everyMs: 100, count: 40 };
const probesAfter = { afterMs: 1_000, everyMs: 100, count: 9 };
const wholesPerSecond = 0.5;
const burstMsMax = 60_000;
const seed = 18;

/** How long the engine alone runs to show how fast the machine is. */
const speedMs = 2_000;
/** A phase during which the speed changed by more than this factor is measured again, up to so many times in all. */
const speedFactorMax = 1.1;
const attemptsMax = 3;

/** The service needs this long to notice that programs are busy. The bench asks for nothing before. */
const besideMs = 4_000;
/** They end by themselves if this process is killed. */
const spin = 'const end = Date.now() + 180000; while (Date.now() < end);';

/** Runs `work` beside programs that take as much of a core as they get. */
const besideBusyPrograms = async <T>(count: number, work: () => Promise<T>): Promise<T> => {
  const programs = Array.from(
    { length: count },
    () => new Program(process.execPath, ['-e', spin], { cwd: process.cwd() }),
  );
  try {
    return await work();
  } finally {
    await Promise.all(programs.map((program) => program.kill()));
  }
};

type Times = Pick<CrowdOrder, 'warmUpMs' | 'durationMs' | 'drainMsMax'>;

interface Phase {
  readonly name: string;
  readonly listeners: number;
  readonly figures: CrowdFigures;
  readonly looks: readonly Look[];
}

const say = (text: string): void => void process.stderr.write(`  ${text}\n`);

class OverloadRun {
  readonly #load: Load = new LoadProcess(new URL('../load.js', import.meta.url));
  readonly #engine: BareLoop;
  readonly #subjects: Subjects;
  readonly #options: OverloadOptions;
  readonly #timing: Timing;
  readonly #texts = [sentence, ...drawUtterances(seed, textCount - 1)];
  /** Of a text. */
  #meanMs = 0;
  readonly #phases: Phase[] = [];
  /** Cores that other programs used. */
  readonly #others: { readonly name: string; readonly cores: number }[] = [];

  constructor(subjects: Subjects, options: OverloadOptions, engine: BareLoop) {
    this.#subjects = subjects;
    this.#engine = engine;
    this.#options = options;
    this.#timing = timingOf(options.seconds, options.isQuick);
  }

  /** @returns the table, and all that was measured, for programs */
  async run(): Promise<{ readonly rows: readonly Row[]; readonly figures: object }> {
    const has = (part: OverloadPart) => this.#options.parts.includes(part);
    const { refusing } = this.#subjects;
    const rows: Row[] = [];
    const greedy: GreedyOutcome[] = [];
    let capacity: number | null = null;
    try {
      await this.#warm();
      if (has('cold')) rows.push(...(await this.#runAtOnce('cold')));
      await this.#crowd('warm-up', refusing, togetherCount, this.#warmUp);
      if (has('warm')) rows.push(...(await this.#runAtOnce('warm')));
      if (capacityParts.some(has)) {
        const found = await this.#findCapacity();
        capacity = found.listeners;
        if (capacity === 0) throw new Error('the machine does not carry a single listener');
        rows.push(capacityRow(found), ...(await this.#runShares(found, has)));
      }
      if (has('burst')) rows.push(burstRow(await this.#runBurst()));
      for (const part of ['flood', 'greedy'] as const)
        if (has(part))
          greedy.push(...(await greedyFiles(part, this.#load, refusing, this.#timing.wholes, say)));
      rows.push(...greedy.map(greedyRow), otherProgramsRow(this.#others));
      const [phases, meanMs] = [this.#phases, this.#meanMs];
      return { rows, figures: { capacity, meanMs, phases, greedy } };
    } finally {
      this.#load.close();
    }
  }

  /** Loads and compiles code in both services, and measures how long the texts are. */
  async #warm(): Promise<void> {
    for (const subject of [this.#subjects.late, this.#subjects.refusing]) {
      const durationsMs = await this.#load.call('durations', { target: subject.target, texts: this.#texts });
      this.#meanMs = mean(durationsMs);
      if (subject === this.#subjects.late)
        await this.#crowd('warm-up', subject, warmUpListeners, this.#warmUp);
    }
    say(`an utterance lasts ${(this.#meanMs / 1000).toFixed(2)} s (mean of ${textCount})`);
  }

  /** Listeners at once: to a service that has not spoken yet (`cold`), or after a silence. */
  async #runAtOnce(state: 'cold' | 'warm'): Promise<Row[]> {
    const rows: Row[] = [];
    for (const [beside, programs] of besides) {
      const order = this.#atOnce(togetherCount, state === 'cold' ? 1 : this.#timing.rounds);
      const ask = (subject: Subject) =>
        this.#crowd(`${state}, ${beside}`, subject, togetherCount, order, programs === 0);
      if (state === 'warm') await sleep(this.#timing.silenceMs);
      const figures = await besideBusyPrograms(programs, async () => {
        if (programs > 0) await sleep(besideMs);
        return state === 'cold' ? this.#subjects.withFresh(ask) : ask(this.#subjects.refusing);
      });
      rows.push(
        carriedRow(
          `${togetherCount} at once, ${state === 'cold' ? 'just started' : 'warm'}, ${beside}`,
          figures,
        ),
      );
    }
    return rows;
  }

  async #findCapacity(): Promise<Capacity> {
    const given = this.#options.capacity;
    let speed = await this.#speed();
    if (given !== null) return { listeners: given, failed: null, figures: null, speed };
    let best: CrowdFigures | null = null;
    const { held, failed } = await searchCapacity(this.#timing.search, async (listeners) => {
      const figures = await this.#crowd('trial', this.#subjects.late, listeners, this.#timing.trial);
      const trouble = troubleOf(figures, listeners);
      say(
        trouble === null ? `${listeners} listeners held` : `${listeners} listeners did not hold: ${trouble}`,
      );
      if (trouble !== null) return false;
      best = figures;
      speed = await this.#speed();
      return true;
    });
    return { listeners: held, failed, figures: best, speed };
  }

  /** Seconds of speech that the engine alone makes in a second. */
  async #speed(): Promise<number> {
    return (await this.#engine.measure(speedMs)).throughput;
  }

  /**
   * Measures a phase at a share of the capacity that the machine has now. The speed of a virtual machine drifts by half within
   * minutes with nothing else on it, and the capacity with it. Only the speed decides whether a phase is measured again.
   *
   * @returns also the capacity during the phase
   */
  async #atCapacity<T>(name: string, found: Capacity, measure: (capacity: number) => Promise<T>) {
    const capacityAt = (speed: number) => Math.max(1, Math.round((found.listeners * speed) / found.speed));
    for (let attempt = 1; ; attempt++) {
      const before = await this.#speed();
      const figures = await measure(capacityAt(before));
      const after = await this.#speed();
      say(
        `${name}: the engine alone makes ${before.toFixed(0)} s of speech a second before, ${after.toFixed(0)} after`,
      );
      const isSteady = Math.max(before / after, after / before) <= speedFactorMax;
      if (isSteady || attempt === attemptsMax) return { figures, capacity: capacityAt((before + after) / 2) };
      say(`${name}: measured again, because the speed of the machine changed`);
    }
  }

  /** What is a share of the capacity, or a multiple. */
  async #runShares(found: Capacity, has: (part: OverloadPart) => boolean): Promise<Row[]> {
    const { refusing } = this.#subjects;
    const { longWarmUpMs, neighbourAfterMs, neighbourMs, overload, rounds, shared, silenceMs, steady } =
      this.#timing;
    const rows: Row[] = [];
    const shareOf = (capacity: number, part: number) => Math.max(1, Math.floor(capacity * part));
    const warmUp = { ...this.#warmUp, durationMs: longWarmUpMs };
    await this.#crowd('warm-up', refusing, shareOf(found.listeners, 0.5), warmUp);
    if (has('half')) {
      const { figures, capacity } = await this.#atCapacity('half at once', found, async (now) => {
        await sleep(silenceMs);
        const listeners = shareOf(now, 0.5);
        return this.#crowd('half at once', refusing, listeners, this.#atOnce(listeners, rounds));
      });
      rows.push(...halfRows(shareOf(capacity, 0.5), figures));
    }
    if (has('steady')) {
      const { figures, capacity } = await this.#atCapacity('0.9 x', found, (now) =>
        this.#crowd('0.9 x', refusing, shareOf(now, steadyShare), steady),
      );
      const what = `${steadyShare} x capacity (${capacity} now) for ${steady.durationMs / 1_000} s`;
      rows.push(carriedRow(what, figures));
    }
    if (has('neighbour')) {
      const { figures, capacity } = await this.#atCapacity('0.4 x', found, async (now) => {
        const [crowd] = await Promise.all([
          this.#crowd('0.4 x, a neighbour', refusing, shareOf(now, sharedShare), shared, false),
          sleep(neighbourAfterMs).then(() => besideBusyPrograms(1, () => sleep(neighbourMs))),
        ]);
        return crowd;
      });
      const what = `a busy program takes a core for ${neighbourMs / 1_000} s`;
      rows.push(carriedRow(`${sharedShare} x capacity (${capacity} now), ${what}`, figures));
    }
    const idle = { warmUpMs: 0, durationMs: 1, drainMsMax: 5_000, probes: calmProbes };
    let normal = idleFirstAudio((await this.#crowd('calm', refusing, 0, idle)).probes);
    if (has('0.8')) {
      const { figures } = await this.#atCapacity('0.8 x', found, (now) =>
        this.#runCalm(shareOf(now, calmShare)),
      );
      rows.push(...calmRows(figures.refusing, figures.late));
      // A second after the load, the listeners that were admitted still listen.
      normal = calmFirstAudio(figures.refusing);
    }
    const order = { ...overload, wholesPerSecond, probes: probesAfter };
    for (const factor of overloads.filter(has)) {
      const { figures, capacity } = await this.#atCapacity(`${factor} x`, found, (now) =>
        this.#crowd(`${factor} x`, refusing, now * Number(factor), order),
      );
      rows.push(...overloadRows(factor, capacity, normal, figures));
    }
    return rows;
  }

  /** In turns, so that a slow minute of the machine affects both. */
  async #runCalm(listeners: number): Promise<Record<'late' | 'refusing', CrowdFigures[]>> {
    const runs: Record<'late' | 'refusing', CrowdFigures[]> = { late: [], refusing: [] };
    const { calm, calmRuns } = this.#timing;
    for (let run = 0; run < calmRuns; run++)
      for (const way of run % 2 === 0 ? (['late', 'refusing'] as const) : (['refusing', 'late'] as const)) {
        const arrivals = this.#draw(listeners, calm, seed + run);
        const order = { ...calm, arrivals, wholesPerSecond };
        runs[way].push(await this.#crowd(`0.8 x, ${way}`, this.#subjects[way], listeners, order));
      }
    return runs;
  }

  /** Connections that open and ask in the same moment: none may be lost. What the client takes is no other program's. */
  #runBurst(): Promise<CrowdFigures> {
    const count = this.#timing.burstConnections;
    const order = {
      mayRefuseHandshakes: true,
      arrivals: arrivalsAtOnce(count, 1, 0, textCount),
      ...{ warmUpMs: 0, durationMs: 1, drainMsMax: burstMsMax },
    };
    return this.#crowd('burst', this.#subjects.refusing, count, order, false);
  }

  get #warmUp(): Times {
    return { ...this.#timing.trial, durationMs: this.#timing.warmUpMs };
  }

  #atOnce(listeners: number, rounds: number): Times & { readonly arrivals: readonly Arrival[] } {
    const { calm, everyMs } = this.#timing;
    return {
      warmUpMs: 0,
      durationMs: (rounds - 1) * everyMs + 1_000,
      drainMsMax: calm.drainMsMax,
      arrivals: arrivalsAtOnce(listeners, rounds, everyMs, textCount),
    };
  }

  /** As often as so many listeners arrive who ask again when they have heard their utterance. */
  #draw(listeners: number, { durationMs, warmUpMs }: Times, drawSeed = seed): Arrival[] {
    return drawArrivals(drawSeed, (listeners * 1000) / this.#meanMs, warmUpMs + durationMs, textCount);
  }

  /** @param isAlone whether what else takes CPU time is other programs */
  async #crowd(
    name: string,
    { service, target }: Subject,
    listeners: number,
    order: Times & Partial<CrowdOrder>,
    isAlone = true,
  ): Promise<CrowdFigures> {
    const arrivals = order.arrivals ?? this.#draw(listeners, order);
    const { result, looks } = await watched(service, () =>
      this.#load.call('crowd', { ...order, target, texts: this.#texts, arrivals }),
    );
    this.#phases.push({ name, listeners, figures: result, looks });
    const cores = isAlone ? otherCores(looks, result.clientCores) : null;
    if (cores !== null) this.#others.push({ name, cores });
    if (listeners > 0)
      say(`${name}, ${listeners} listeners: ${describeCrowd(result)}${describeLooks(looks)}`);
    await awaitIdle(service);
    return result;
  }
}

/** @param engine of the kind that the services run: it shows how fast the machine is */
export const measureOverload = (subjects: Subjects, options: OverloadOptions, engine: BareLoop) =>
  new OverloadRun(subjects, options, engine).run();
