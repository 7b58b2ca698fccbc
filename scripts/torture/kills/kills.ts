/** The scenario of the kills: SIGKILL at any moment in a life of the service, and what the next life finds. */
import { readFileSync, watch } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { logPath } from '../../../src/store/sqlite/database.js';
import { firstKeyPath } from '../../../src/accounts/secret-file.js';
import { exchange } from '../../rig/http.js';
import { Dice } from '../../rig/random.js';
import { Service } from '../../rig/service.js';
import { percentile } from '../../rig/statistics.js';
import { Tally } from '../../rig/tally.js';
import { createKeys, operate } from '../../operator.js';
import { spreadOf } from '../checks.js';
import { rowOf, type Scenario, type TortureOptions, type TortureRow } from '../scenario.js';
import { inScratch } from '../../rig/machine.js';
import { Books, sqliteLedger } from './books.js';
import { Traffic } from './traffic.js';

/** When a life ends. */
const moments = [
  { weight: 60, value: 'in traffic' },
  { weight: 12, value: 'in a commit' },
  { weight: 12, value: 'in the start' },
  { weight: 11, value: 'after SIGTERM' },
  { weight: 5, value: 'in the first start' },
] as const;

/** Credits that one of the keys may spend. */
const LIMIT = 50_000;

/** Longest waits before the kill, in milliseconds. */
const TRAFFIC_MS_MAX = 1_200;
const START_MS_MAX = 600;
const DRAIN_MS_MAX = 250;
const COMMIT_MS_MAX = 3_000;
/** Milliseconds between two readings of the ledger. */
const LOOK_MS = 25;
/** Lives after which a start without a kill is timed, for comparison. */
const CONTROL_EVERY = 5;
/** A start after a kill may take so much longer than one without. */
const READY_MS_MAX = 2_000;

const threads = { synthesisThreads: 2, actorThreads: 1 };

/** @returns the service, and the milliseconds from its start until it listened */
const startTimed = async (dataDir: string): Promise<{ service: Service; readyMs: number }> => {
  const startedMs = performance.now();
  const service = await Service.start({ dataDir, ...threads });
  return { service, readyMs: performance.now() - startedMs };
};

/** The time of a start with an empty store: process, threads and voices, on the machine as busy as it is now. */
const controlMs = async (folder: string): Promise<number> => {
  const { service, readyMs } = await startTimed(join(folder, 'control'));
  await service.stop();
  return readyMs;
};

/** Resolves when the log of the store is written next, in the middle of a commit. */
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
  readonly books: Books;
  readonly wrong: string[] = [];
  readonly readyMs: number[] = [];
  readonly moments = new Tally();
  readonly statuses = new Tally();

  private constructor(folder: string, dataDir: string, keys: readonly string[]) {
    this.#folder = folder;
    this.#dataDir = dataDir;
    this.#keys = keys;
    this.books = new Books(sqliteLedger(dataDir));
    this.books.grant(2_003_000);
  }

  static async begin(folder: string): Promise<Lives> {
    const dataDir = join(folder, 'data');
    const keys = await createKeys(dataDir, [
      ['metered', 2_000_000],
      ['metered', null],
      ['poor', 3_000],
      ['unmetered', null],
    ]);
    const limited = await operate(dataDir, (administration) =>
      administration.createKey('unmetered', null, { creditLimit: LIMIT }),
    );
    return new Lives(folder, dataDir, [...keys, limited.key]);
  }

  async live(number: number, dice: Dice): Promise<void> {
    const moment = dice.weighted(moments);
    if (moment === 'in the first start') await this.#firstStart(number, dice);
    else if (moment === 'in the start') await this.#killedStart(dice);
    else await this.#life(moment, dice);
    this.moments.add(moment);
    this.wrong.push(...(await this.books.check()));
  }

  /** A last life without a kill. */
  async finish(): Promise<void> {
    const { service, readyMs } = await startTimed(this.#dataDir);
    this.readyMs.push(readyMs);
    const { code } = await service.stop();
    if (code !== 0) this.wrong.push(`the last one ended with ${String(code)}`);
    this.wrong.push(...(await this.books.check()));
  }

  async #life(moment: 'in traffic' | 'in a commit' | 'after SIGTERM', dice: Dice): Promise<void> {
    const { service, readyMs } = await startTimed(this.#dataDir);
    this.readyMs.push(readyMs);
    const traffic = new Traffic(service.port, this.#keys, dice);
    traffic.start(dice.between(1, 5), dice.between(0, 3));
    const endMs = performance.now() + dice.below(TRAFFIC_MS_MAX);
    while (performance.now() < endMs) {
      await sleep(LOOK_MS);
      await this.#operate(dice, 0.1);
      await this.books.look();
    }
    if (moment === 'in a commit') await nextCommit(this.#dataDir);
    else await this.books.look();
    if (moment === 'after SIGTERM') {
      service.signal('SIGTERM');
      await sleep(dice.below(DRAIN_MS_MAX));
      await this.books.look();
    }
    await service.kill();
    await traffic.end();
    if (service.log.errors > 0) this.wrong.push(`it logged ${service.log.errorLines[0] ?? ''}`);
    this.statuses.merge(traffic.statuses);
    for (const [id, cost] of traffic.costs) this.books.answer(id, cost);
  }

  async #killedStart(dice: Dice): Promise<void> {
    const service = new Service({ dataDir: this.#dataDir, ...threads });
    await sleep(dice.below(START_MS_MAX));
    await this.#operate(dice, 0.3);
    await service.kill();
  }

  /** Killed while it makes its store: the next start completes it, and the first key works. */
  async #firstStart(number: number, dice: Dice): Promise<void> {
    const dataDir = join(this.#folder, `first-${number}`);
    const killed = new Service({ dataDir, ...threads });
    await sleep(dice.below(START_MS_MAX));
    await killed.kill();
    const { service } = await startTimed(dataDir);
    try {
      const key = readFileSync(firstKeyPath(dataDir), 'utf8').trim();
      const { status } = await exchange(service.port, { path: '/v1/tts/speakers', key });
      if (status !== 200) this.wrong.push(`the first key of a killed first start: ${status}`);
    } finally {
      await service.stop();
    }
  }

  /** Perhaps gives credit: acknowledged when it resolves. */
  async #operate(dice: Dice, share: number): Promise<void> {
    if (!dice.chance(share)) return;
    const credits = dice.between(1, 5_000);
    await operate(this.#dataDir, (administration) => administration.credit('metered', credits));
    this.books.grant(credits);
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
      options.progress(`kill ${i} of ${options.count}: ${lives.books.entries} entries, wrong: ${last}`);
    }
    await lives.finish();
    const usualMs = percentile(controls, 0.5);
    const late = lives.readyMs.filter((readyMs) => readyMs - usualMs >= READY_MS_MAX);
    const saw = [
      `${lives.books.entries} entries, no entry that was seen or acknowledged is lost, changed or doubled, balances and what keys spent are the sums, no limit is passed, the store verifies`,
      `ready again in ${spreadOf(lives.readyMs, [0.5, 0.99, 1])} ms (median, p99, longest of ${lives.readyMs.length}); ${controls.length} starts without a kill before them, for comparison: ${spreadOf(controls, [0.5, 0.99, 1])} ms`,
      `answers ${lives.statuses.toString()}`,
    ];
    const slow = late.map((readyMs) => `a start took ${Math.round(readyMs)} ms`);
    const named = {
      fault: 'SIGKILL of the process',
      injected: `${lives.moments.toString()}; several keys over HTTP and WebSocket, credits from another process`,
    };
    return [rowOf(named, { count: options.count, saw: saw.join('; '), wrong: [...lives.wrong, ...slow] })];
  });

export const kills: Scenario = {
  name: 'kills',
  about:
    'SIGKILL in traffic, in a commit, in a start, after SIGTERM: nothing acknowledged is lost or doubled',
  // Of which a thousand have traffic: in it, in a commit, after SIGTERM.
  defaultCount: 1_250,
  run,
};
