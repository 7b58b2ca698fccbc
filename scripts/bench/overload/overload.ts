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
import type { Row } from '../report.js';
import type { BurstFigures } from './burst.js';
import type { CrowdFigures, CrowdOrder } from './crowd.js';
import { GreedyRun } from './greedy.js';
import type { OverloadLoad } from './load.js';
import {
  bars,
  capacityParts,
  overloads,
  timingOf,
  togetherCount,
  troubleOf,
  type Overload,
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
  halfRows,
  idleFirstAudio,
  otherProgramsRow,
  overloadRows,
  type Capacity,
  type NormalFirstAudio,
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
const noProbes = { afterMs: 0, everyMs: 0, count: 0 };
const wholesPerSecond = 0.5;
const seed = 18;

/** The service needs this long to notice that they are busy. The bench asks for nothing before. */
const besideMs = 4_000;
/** They end by themselves if this process is killed. */
const lifeMs = 180_000;

const spin = `const end = Date.now() + ${lifeMs}; while (Date.now() < end);`;

/** @param count each takes as much of a core as it gets */
const startBusyPrograms = (count: number): { readonly end: () => Promise<void> } => {
  const programs = Array.from(
    { length: count },
    () => new Program(process.execPath, ['-e', spin], { cwd: process.cwd() }),
  );
  return {
    end: async () => {
      await Promise.all(programs.map((program) => program.kill()));
    },
  };
};

/** Runs `work` beside busy programs that began some seconds before. */
const besideBusyPrograms = async <T>(count: number, work: () => Promise<T>): Promise<T> => {
  const programs = startBusyPrograms(count);
  try {
    if (count > 0) await sleep(besideMs);
    return await work();
  } finally {
    await programs.end();
  }
};

interface Phase {
  readonly name: string;
  readonly listeners: number;
  readonly figures: CrowdFigures;
  readonly looks: readonly Look[];
}

export interface OverloadResult {
  readonly rows: readonly Row[];
  /** Everything that was measured, for programs. */
  readonly figures: object;
}

const say = (text: string): void => void process.stderr.write(`  ${text}\n`);

class OverloadRun {
  readonly #load: OverloadLoad = new LoadProcess(new URL('./load.js', import.meta.url));
  readonly #subjects: Subjects;
  readonly #options: OverloadOptions;
  readonly #timing: Timing;
  readonly #texts = [sentence, ...drawUtterances(seed, textCount - 1)];
  /** Of a text. */
  #meanMs = 0;
  readonly #phases: Phase[] = [];
  /** Cores that other programs used. */
  readonly #others: { readonly name: string; readonly cores: number }[] = [];

  constructor(subjects: Subjects, options: OverloadOptions) {
    this.#subjects = subjects;
    this.#options = options;
    this.#timing = timingOf(options.seconds, options.isQuick);
  }

  async run(): Promise<OverloadResult> {
    const { parts } = this.#options;
    const has = (part: OverloadPart) => parts.includes(part);
    const { refusing } = this.#subjects;
    const rows: Row[] = [];
    const greedy = new GreedyRun(this.#load, refusing, this.#timing.wholes, say);
    try {
      await this.#warm();
      if (has('cold')) rows.push(...(await this.#runCold()));
      await this.#crowd('warm-up', refusing, togetherCount, this.#warmUp());
      if (has('warm')) rows.push(...(await this.#runWarm()));
      let capacity: number | null = null;
      if (capacityParts.some(has)) {
        const found = await this.#findCapacity();
        capacity = found.listeners;
        rows.push(capacityRow(found), ...(await this.#runShares(capacity, has)));
      }
      let burst: BurstFigures | undefined;
      if (has('burst')) {
        burst = await this.#runBurst();
        rows.push(burstRow(this.#timing.burstConnections, burst));
      }
      for (const part of ['flood', 'greedy'] as const) if (has(part)) rows.push(...(await greedy.rows(part)));
      rows.push(otherProgramsRow(this.#others));
      const [phases, meanMs] = [this.#phases, this.#meanMs];
      return { rows, figures: { capacity, meanMs, phases, burst, greedy: greedy.figures } };
    } finally {
      this.#load.close();
    }
  }

  /** Listeners at once, to a service that has not spoken yet. */
  async #runCold(): Promise<Row[]> {
    const rows: Row[] = [];
    for (const [beside, programs] of besides) {
      const figures = await besideBusyPrograms(programs, () =>
        this.#subjects.withFresh((fresh) =>
          this.#crowd(
            `cold, ${beside}`,
            fresh,
            togetherCount,
            this.#atOnce(togetherCount, 1),
            programs === 0,
          ),
        ),
      );
      rows.push(carriedRow(`${togetherCount} at once, just started, ${beside}`, figures));
    }
    return rows;
  }

  async #runWarm(): Promise<Row[]> {
    const { refusing } = this.#subjects;
    const rows: Row[] = [];
    for (const [beside, programs] of besides) {
      await sleep(this.#timing.silenceMs);
      const order = this.#atOnce(togetherCount, this.#timing.rounds);
      const figures = await besideBusyPrograms(programs, () =>
        this.#crowd(`warm, ${beside}`, refusing, togetherCount, order, programs === 0),
      );
      rows.push(carriedRow(`${togetherCount} at once, warm, ${beside}`, figures));
    }
    return rows;
  }

  /** What is a share of the capacity, or a multiple. */
  async #runShares(capacity: number, has: (part: OverloadPart) => boolean): Promise<Row[]> {
    if (capacity === 0) throw new Error('the machine does not carry a single listener');
    const { refusing } = this.#subjects;
    const { rounds, silenceMs, steady } = this.#timing;
    const rows: Row[] = [];
    const share = (part: number) => Math.max(1, Math.floor(capacity * part));
    await this.#crowd('warm-up', refusing, share(0.5), this.#warmUp());
    if (has('half')) {
      await sleep(silenceMs);
      const listeners = share(0.5);
      rows.push(
        ...halfRows(
          listeners,
          await this.#crowd('half at once', refusing, listeners, this.#atOnce(listeners, rounds)),
        ),
      );
    }
    if (has('steady')) {
      const figures = await this.#crowd('0.9 x', refusing, share(steadyShare), steady);
      rows.push(carriedRow(`${steadyShare} x capacity for ${steady.durationMs / 1_000} s`, figures));
    }
    if (has('neighbour')) rows.push(await this.#runNeighbour(share(sharedShare)));
    let normal = idleFirstAudio(await this.#calmProbes());
    if (has('0.8')) {
      const runs = await this.#runCalm(share(calmShare));
      rows.push(...calmRows(runs.refusing, runs.late));
      // A second after the load, the listeners that were admitted still listen.
      normal = calmFirstAudio(runs.refusing);
    }
    for (const factor of overloads)
      if (has(factor)) rows.push(...(await this.#runOverload(factor, capacity, normal)));
    return rows;
  }

  async #runNeighbour(listeners: number): Promise<Row> {
    const { neighbourAfterMs, neighbourMs, shared } = this.#timing;
    const visit = async (): Promise<void> => {
      await sleep(neighbourAfterMs);
      const program = startBusyPrograms(1);
      await sleep(neighbourMs);
      await program.end();
    };
    const [figures] = await Promise.all([
      this.#crowd('0.4 x, a neighbour', this.#subjects.refusing, listeners, shared, false),
      visit(),
    ]);
    return carriedRow(
      `${sharedShare} x capacity, a busy program takes a core for ${neighbourMs / 1_000} s`,
      figures,
    );
  }

  /** Loads and compiles code in both services, and measures how long the texts are. */
  async #warm(): Promise<void> {
    for (const subject of [this.#subjects.late, this.#subjects.refusing]) {
      const durationsMs = await this.#load.call('durations', { target: subject.target, texts: this.#texts });
      this.#meanMs = mean(durationsMs);
      if (subject === this.#subjects.late)
        await this.#crowd('warm-up', subject, warmUpListeners, this.#warmUp());
    }
    say(`an utterance lasts ${(this.#meanMs / 1000).toFixed(2)} s (mean of ${textCount})`);
  }

  async #findCapacity(): Promise<Capacity> {
    const given = this.#options.capacity;
    if (given !== null) return { listeners: given, failed: null, figures: null };
    let best: CrowdFigures | null = null;
    const { held, failed } = await searchCapacity(this.#timing.search, async (listeners) => {
      const figures = await this.#crowd('trial', this.#subjects.late, listeners, {
        ...this.#timing.trial,
        hopeless: { firstAudioMs: bars.capacityFirstAudioP99MsMax, share: 0.05 },
      });
      const trouble = troubleOf(figures, listeners);
      say(
        trouble === null ? `${listeners} listeners held` : `${listeners} listeners did not hold: ${trouble}`,
      );
      if (trouble === null) best = figures;
      return trouble === null;
    });
    return { listeners: held, failed, figures: best };
  }

  async #calmProbes(): Promise<readonly (number | null)[]> {
    const { probes } = await this.#crowd('calm', this.#subjects.refusing, 0, {
      warmUpMs: 0,
      durationMs: 1,
      drainMsMax: 5_000,
      probes: calmProbes,
    });
    return probes;
  }

  /** In turns, so that a slow minute of the machine affects both. */
  async #runCalm(listeners: number): Promise<Record<'late' | 'refusing', CrowdFigures[]>> {
    const runs: Record<'late' | 'refusing', CrowdFigures[]> = { late: [], refusing: [] };
    for (let run = 0; run < this.#timing.calmRuns; run++)
      for (const way of run % 2 === 0 ? (['late', 'refusing'] as const) : (['refusing', 'late'] as const))
        runs[way].push(
          await this.#crowd(`0.8 x, ${way}`, this.#subjects[way], listeners, {
            ...this.#timing.calm,
            arrivals: this.#draw(listeners, this.#timing.calm, seed + run),
            wholesPerSecond,
          }),
        );
    return runs;
  }

  async #runOverload(factor: Overload, capacity: number, normal: NormalFirstAudio): Promise<readonly Row[]> {
    const figures = await this.#crowd(`${factor} x`, this.#subjects.refusing, capacity * Number(factor), {
      ...this.#timing.overload,
      wholesPerSecond,
      probes: probesAfter,
    });
    return overloadRows(factor, capacity, normal, figures);
  }

  async #runBurst(): Promise<BurstFigures> {
    const { service, target } = this.#subjects.refusing;
    process.stderr.write('burst\n');
    const figures = await this.#load.call('burst', {
      target,
      texts: this.#texts,
      connections: this.#timing.burstConnections,
      socketEvery: 3,
      msMax: 60_000,
    });
    say(`${figures.served} served, ${figures.refused} refused, ${figures.lost} lost: ${figures.faults}`);
    await awaitIdle(service);
    return figures;
  }

  #warmUp(): Pick<CrowdOrder, 'warmUpMs' | 'durationMs' | 'drainMsMax'> {
    return { ...this.#timing.trial, durationMs: this.#timing.warmUpMs };
  }

  #atOnce(listeners: number, rounds: number) {
    const { everyMs } = this.#timing;
    return {
      warmUpMs: 0,
      durationMs: (rounds - 1) * everyMs + 1_000,
      drainMsMax: this.#timing.calm.drainMsMax,
      arrivals: arrivalsAtOnce(listeners, rounds, everyMs, textCount),
    };
  }

  /** As often as so many listeners arrive who ask again when they have heard their utterance. */
  #draw(
    listeners: number,
    { durationMs, warmUpMs }: Pick<CrowdOrder, 'warmUpMs' | 'durationMs'>,
    drawSeed = seed,
  ): Arrival[] {
    return drawArrivals(drawSeed, (listeners * 1000) / this.#meanMs, warmUpMs + durationMs, textCount);
  }

  /** @param isAlone no other programs of this bench run beside it */
  async #crowd(
    name: string,
    { service, target }: Subject,
    listeners: number,
    order: Pick<CrowdOrder, 'warmUpMs' | 'durationMs' | 'drainMsMax'> & Partial<CrowdOrder>,
    isAlone = true,
  ): Promise<CrowdFigures> {
    const { result, looks } = await watched(service, () =>
      this.#load.call('crowd', {
        target,
        texts: this.#texts,
        arrivals: order.arrivals ?? this.#draw(listeners, order),
        wholesPerSecond: 0,
        probes: noProbes,
        hopeless: null,
        ...order,
      }),
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

export const measureOverload = (subjects: Subjects, options: OverloadOptions): Promise<OverloadResult> =>
  new OverloadRun(subjects, options).run();
