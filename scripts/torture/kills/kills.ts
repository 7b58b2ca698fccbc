/** The scenario of the kills: SIGKILL in any moment of a life of the service, and what the next life finds. */
import { readFileSync, watch } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { logPath } from '../../../src/store/sqlite/database.js';
import { firstKeyPath } from '../../../src/accounts/administration.js';
import { percentile } from '../../rig-old/statistics.js';
import { createKeys, operate } from '../../operator.js';
import { Dice } from '../dice.js';
import type { Scenario, TortureOptions, TortureRow } from '../scenario.js';
import { inScratch } from '../scratch.js';
import { TortureService } from '../service.js';
import { Tally } from '../start-outcome.js';
import { CHARACTERS_MAX, Traffic } from './traffic.js';
import { Witness } from './witness.js';

/** When a life ends. */
const moments = [
  { weight: 60, value: 'in traffic' },
  { weight: 12, value: 'in a commit' },
  { weight: 12, value: 'in the start' },
  { weight: 11, value: 'after SIGTERM' },
  { weight: 5, value: 'in the first start' },
] as const;

/** Longest waits before the kill, in milliseconds. */
const TRAFFIC_MS_MAX = 1_200;
const START_MS_MAX = 600;
const DRAIN_MS_MAX = 250;
const COMMIT_MS_MAX = 3_000;
/** Milliseconds between two looks at the ledger. */
const LOOK_MS = 25;
/** Lives after which the whole store is verified. */
const VERIFY_EVERY = 20;
/** Lives after which a start without a kill before it is timed, to compare. */
const CONTROL_EVERY = 5;
/** Of a start after a kill, besides what one without takes. */
const READY_MS_MAX = 2_000;

const environment = { SYNTHESIS_THREADS: '2', ACTOR_THREADS: '1' };

const milliseconds = (values: readonly number[]): string =>
  [0.5, 0.99, 1].map((share) => String(Math.round(percentile(values, share)))).join('/');

/** @returns the service, and the milliseconds from its start until it listened */
const startTimed = async (dataDir: string): Promise<{ service: TortureService; readyMs: number }> => {
  const startedMs = performance.now();
  const service = await TortureService.start({ dataDir, env: environment });
  return { service, readyMs: performance.now() - startedMs };
};

/** A start with a store in which nothing happened: process, threads and voices, on a machine as busy as it is now. */
const controlMs = async (folder: string): Promise<number> => {
  const { service, readyMs } = await startTimed(join(folder, 'control'));
  await service.stop();
  return readyMs;
};

/** Resolves when the log of the store is written next: its commit is under way. */
const nextCommit = (dataDir: string): Promise<void> =>
  new Promise((resolve) => {
    const timer = setTimeout(done, COMMIT_MS_MAX);
    const watcher = watch(logPath(dataDir), done);
    function done(): void {
      clearTimeout(timer);
      watcher.close();
      resolve();
    }
  });

class Lives {
  readonly #dataDir: string;
  readonly #folder: string;
  readonly #keys: readonly string[];
  readonly #witness: Witness;
  readonly #statuses = new Map<number, number>();
  #granted: number;
  /** What the requests of the last life can be charged. */
  #costs: ReadonlyMap<string, number> = new Map();
  readonly wrong: string[] = [];
  readonly readyMs: number[] = [];
  readonly tally = new Tally();

  private constructor(folder: string, dataDir: string, keys: readonly string[]) {
    this.#folder = folder;
    this.#dataDir = dataDir;
    this.#keys = keys;
    this.#granted = 2_003_000;
    this.#witness = new Witness(this.#dataDir);
  }

  static async begin(folder: string): Promise<Lives> {
    const dataDir = join(folder, 'data');
    const keys = await createKeys(dataDir, [
      ['metered', 2_000_000],
      ['metered', null],
      ['poor', 3_000],
      ['unmetered', null],
    ]);
    return new Lives(folder, dataDir, keys);
  }

  get entries(): number {
    return this.#witness.entries;
  }

  get statuses(): string {
    return [...this.#statuses].map(([status, count]) => `${String(count)} x ${String(status)}`).join(', ');
  }

  async live(number: number, dice: Dice): Promise<void> {
    const moment = dice.weighted(moments);
    if (moment === 'in the first start') await this.#firstStart(number, dice);
    else if (moment === 'in the start') await this.#killedStart(dice);
    else await this.#life(moment, dice);
    this.tally.add(moment);
    this.#check(number);
  }

  /** In the end, a life without a kill. */
  async finish(): Promise<void> {
    const { service, readyMs } = await startTimed(this.#dataDir);
    this.readyMs.push(readyMs);
    const { code } = await service.stop();
    if (code !== 0) this.wrong.push(`the last one ended with ${String(code)}`);
    this.#check(0);
  }

  async #life(moment: 'in traffic' | 'in a commit' | 'after SIGTERM', dice: Dice): Promise<void> {
    const { service, readyMs } = await startTimed(this.#dataDir);
    this.readyMs.push(readyMs);
    const traffic = new Traffic(service.port, this.#keys, dice);
    traffic.start(dice.between(1, 5), dice.between(0, 3));
    const endMs = performance.now() + dice.below(TRAFFIC_MS_MAX);
    while (performance.now() < endMs) {
      await sleep(LOOK_MS);
      if (dice.chance(0.1)) await this.#credit(dice.between(1, 5_000));
      this.#witness.look();
    }
    if (moment === 'in a commit') await nextCommit(this.#dataDir);
    else this.#witness.look();
    if (moment === 'after SIGTERM') {
      service.signal('SIGTERM');
      await sleep(dice.below(DRAIN_MS_MAX));
      this.#witness.look();
    }
    await service.kill();
    await traffic.end();
    if (service.faultCount > 0) this.wrong.push(`it logged ${service.faults[0] ?? ''}`);
    for (const [status, count] of traffic.statuses)
      this.#statuses.set(status, (this.#statuses.get(status) ?? 0) + count);
    this.#costs = traffic.costs;
  }

  async #killedStart(dice: Dice): Promise<void> {
    const service = new TortureService({ dataDir: this.#dataDir, env: environment });
    await sleep(dice.below(START_MS_MAX));
    if (dice.chance(0.3)) await this.#credit(dice.between(1, 5_000));
    await service.kill();
  }

  /** The store is being made: the next start makes it, and its key works. */
  async #firstStart(number: number, dice: Dice): Promise<void> {
    const dataDir = join(this.#folder, `first-${String(number)}`);
    const killed = new TortureService({ dataDir, env: environment });
    await sleep(dice.below(START_MS_MAX));
    await killed.kill();
    const { service } = await startTimed(dataDir);
    try {
      const key = readFileSync(firstKeyPath(dataDir), 'utf8').trim();
      const url = `http://127.0.0.1:${String(service.port)}/v1/tts/speakers`;
      const { status } = await fetch(url, { headers: { 'x-api-key': key } });
      if (status !== 200) this.wrong.push(`the first key of a killed first start: ${String(status)}`);
    } finally {
      await service.stop();
    }
  }

  /** The credit is acknowledged when it resolves. */
  async #credit(credits: number): Promise<void> {
    await operate(this.#dataDir, (administration) => administration.credit('metered', credits));
    this.#granted += credits;
  }

  #check(number: number): void {
    const { wrong, charges } = this.#witness.check(number % VERIFY_EVERY === 0);
    this.wrong.push(...wrong);
    if (this.#witness.granted !== this.#granted)
      this.wrong.push(
        `granted ${String(this.#granted)}, and the ledger has ${String(this.#witness.granted)}`,
      );
    for (const [id, credits] of charges) {
      const max = this.#costs.get(id) ?? CHARACTERS_MAX;
      if (credits < 0 || credits > max)
        this.wrong.push(`${id} was charged ${String(credits)}, and costs ${String(max)} at most`);
    }
  }
}

const run = async (options: TortureOptions): Promise<readonly TortureRow[]> =>
  inScratch(async (folder) => {
    const controls: number[] = [];
    const lives = await Lives.begin(folder);
    for (let i = 1; i <= options.count; i += 1) {
      if (i % CONTROL_EVERY === 1) controls.push(await controlMs(folder));
      await lives.live(i, new Dice(options.seed, i));
      const last = lives.wrong.at(-1) ?? 'none';
      options.progress(
        `kill ${String(i)} of ${String(options.count)}: ${String(lives.entries)} entries, wrong: ${last}`,
      );
    }
    await lives.finish();
    const usualMs = percentile(controls, 0.5);
    const late = lives.readyMs.filter((readyMs) => readyMs - usualMs >= READY_MS_MAX);
    const outcome = [
      `${String(lives.entries)} entries, none that was seen or acknowledged lost or changed, none doubled, balances the sums, the store verifies`,
      `ready again in ${milliseconds(lives.readyMs)} ms (median, p99, longest of ${String(lives.readyMs.length)}); ${String(controls.length)} starts without a kill before them, in between: ${milliseconds(controls)} ms`,
      `${String(late.length)} took ${String(READY_MS_MAX)} ms more than the median of those${late.length > 0 ? ` (WRONG: ${late.map((readyMs) => String(Math.round(readyMs))).join(', ')} ms)` : ''}`,
      `answers ${lives.statuses}`,
      ...(lives.wrong.length > 0 ? [`WRONG ${lives.wrong.slice(0, 5).join('; ')}`] : []),
    ];
    return [
      {
        fault: 'SIGKILL of the process',
        injected: `${lives.tally.toString()}; several keys over HTTP and WebSocket, credits from another process`,
        count: options.count,
        outcome: outcome.join('; '),
        held: lives.wrong.length === 0 && late.length === 0,
      },
    ];
  });

export const kills: Scenario = {
  name: 'kills',
  about:
    'SIGKILL in traffic, in a commit, in a start, after SIGTERM: nothing acknowledged is lost or doubled',
  // Of which a thousand have traffic: in it, in a commit, after SIGTERM.
  defaultCount: 1_250,
  run,
};
