/**
 * More load than the machine carries: finds its capacity, then offers 0.8, 2, 4 and 10 times as much, and a burst. Two
 * services run, one that refuses and one that admits everyone; only one is loaded at a time.
 */
import { searchCapacity } from '../../rig/capacity-search.js';
import { LoadProcess } from '../../rig/load-process.js';
import type { Service } from '../../rig/service.js';
import { mean } from '../../rig/statistics.js';
import { sentence } from '../../rig/texts.js';
import type { Row } from '../report.js';
import type { Target } from '../streams.js';
import type { CrowdFigures, CrowdOrder } from './crowd.js';
import type { OverloadLoad } from './load.js';
import { bars, overloads, timingOf, troubleOf, type Overload, type Timing } from './phases.js';
import {
  burstRow,
  calmFirstAudio,
  calmRows,
  capacityRow,
  describeCrowd,
  idleFirstAudio,
  overloadRows,
  type Capacity,
  type NormalFirstAudio,
} from './rows.js';
import { drawUtterances } from './schedule.js';
import { awaitIdle, watched, type Look } from './watch.js';

export type OverloadPart = '0.8' | Overload | 'burst';

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
const calmShare = 0.8;
const warmUpListeners = 48;
/** Calm first audio: single requests, one after the other. */
const calmProbes = { afterMs: 0, everyMs: 100, count: 40 };
const probesAfter = { afterMs: 1_000, everyMs: 100, count: 9 };
const noProbes = { afterMs: 0, everyMs: 0, count: 0 };
const wholesPerSecond = 0.5;
const seed = 18;

/** A service and how to reach it. */
export interface Subject {
  readonly service: Service;
  readonly target: Target;
}

export interface Subjects {
  /** It refuses what it cannot carry. */
  readonly refusing: Subject;
  /** It admits everyone. */
  readonly late: Subject;
}

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

  constructor(subjects: Subjects, options: OverloadOptions) {
    this.#subjects = subjects;
    this.#options = options;
    this.#timing = timingOf(options.seconds, options.isQuick);
  }

  async run(): Promise<OverloadResult> {
    const { parts } = this.#options;
    try {
      await this.#warm();
      const capacity = await this.#findCapacity();
      const { listeners } = capacity;
      const rows = [capacityRow(capacity)];
      const result = (figures: object): OverloadResult => ({
        rows,
        figures: { capacity: listeners, meanMs: this.#meanMs, ...figures, phases: this.#phases },
      });
      if (listeners === 0) throw new Error('the machine does not carry a single listener');
      await this.#crowd('warm-up', this.#subjects.refusing, Math.ceil(listeners / 2), {
        ...this.#timing.calm,
        durationMs: this.#timing.warmUpMs,
      });
      const probes = await this.#calmProbes();
      let normal = idleFirstAudio(probes);
      if (parts.includes('0.8')) {
        const runs = await this.#runCalm(listeners);
        rows.push(...calmRows(runs.refusing, runs.late));
        // A second after the load, the listeners that were admitted still listen.
        normal = calmFirstAudio(runs.refusing);
      }
      for (const factor of overloads)
        if (parts.includes(factor)) rows.push(...(await this.#runOverload(factor, listeners, normal)));
      if (!parts.includes('burst')) return result({ probes });
      const { connections, figures } = await this.#runBurst();
      rows.push(burstRow(connections, figures));
      return result({ probes, burst: figures });
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
        await this.#crowd('warm-up', subject, warmUpListeners, {
          ...this.#timing.trial,
          durationMs: this.#timing.warmUpMs,
        });
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
  async #runCalm(capacity: number): Promise<Record<keyof Subjects, CrowdFigures[]>> {
    const listeners = Math.max(1, Math.floor(capacity * calmShare));
    const runs: Record<keyof Subjects, CrowdFigures[]> = { late: [], refusing: [] };
    for (let run = 0; run < this.#timing.calmRuns; run++)
      for (const way of run % 2 === 0 ? (['late', 'refusing'] as const) : (['refusing', 'late'] as const))
        runs[way].push(
          await this.#crowd(`0.8 x, ${way}`, this.#subjects[way], listeners, {
            ...this.#timing.calm,
            seed: seed + run,
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

  async #runBurst() {
    const connections = this.#timing.burstConnections;
    const { service, target } = this.#subjects.refusing;
    process.stderr.write('burst\n');
    const figures = await this.#load.call('burst', {
      target,
      texts: this.#texts,
      connections,
      socketEvery: 3,
      msMax: 60_000,
    });
    say(`${figures.served} served, ${figures.refused} refused, ${figures.lost} lost: ${figures.faults}`);
    await awaitIdle(service);
    return { connections, figures };
  }

  async #crowd(
    name: string,
    { service, target }: Subject,
    listeners: number,
    order: Pick<CrowdOrder, 'warmUpMs' | 'durationMs' | 'drainMsMax'> & Partial<CrowdOrder>,
  ): Promise<CrowdFigures> {
    const { result, looks } = await watched(service, () =>
      this.#load.call('crowd', {
        target,
        texts: this.#texts,
        seed,
        visitsPerSecond: listeners === 0 ? 0 : (listeners * 1000) / this.#meanMs,
        wholesPerSecond: 0,
        probes: noProbes,
        hopeless: null,
        ...order,
      }),
    );
    this.#phases.push({ name, listeners, figures: result, looks });
    if (listeners > 0)
      say(`${name}, ${listeners} listeners: ${describeCrowd(result)}${describeLooks(looks)}`);
    await awaitIdle(service);
    return result;
  }
}

const describeLooks = (looks: readonly Look[]): string => {
  const cpu = looks.flatMap((look) => (look.cpu === null ? [] : [look.cpu]));
  if (cpu.length === 0) return '';
  const cores = (role: keyof (typeof cpu)[number]) => mean(cpu.map((times) => times[role])).toFixed(2);
  const ratios = looks.flatMap(({ capacityRatio }) => (capacityRatio === null ? [] : [capacityRatio]));
  const full = ratios.length === 0 ? '' : `; capacity ratio ${mean(ratios).toFixed(2)}`;
  const all = mean(looks.map(({ machineCores }) => machineCores)).toFixed(2);
  return `; cores: front ${cores('front')}, actors ${cores('actor')}, synthesis ${cores('synthesis')}, machine ${all}${full}`;
};

export const measureOverload = (subjects: Subjects, options: OverloadOptions): Promise<OverloadResult> =>
  new OverloadRun(subjects, options).run();
