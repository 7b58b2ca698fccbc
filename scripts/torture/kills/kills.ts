/** The scenario of the kills: SIGKILL at any moment in a life of the service, and what the next life finds. */
import { readFileSync, watch } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { logPath } from '../../../src/store/sqlite/database.js';
import { firstKeyPath } from '../../../src/accounts/secret-file.js';
import { exchange } from '../../rig/http.js';
import { Dice } from '../../rig/random.js';
import { Service } from '../../rig/service.js';
import { percentile } from '../../rig/statistics.js';
import { Tally } from '../../rig/tally.js';
import { createKeys, operate } from '../../operator.js';
import { spreadOf } from '../checks.js';
import { type Scenario, type TortureOptions, type TortureRow } from '../scenario.js';
import { inScratch } from '../../rig/machine.js';
import { CHARACTERS_MAX, Traffic } from './traffic.js';
import { Witness, type ChangedKey } from './witness.js';
import { noSpeakingDefaults } from '../../../src/api/speech-settings.js';

/** When a life ends. */
const moments = [
  { weight: 60, value: 'in traffic' },
  { weight: 12, value: 'in a commit' },
  { weight: 12, value: 'in the start' },
  { weight: 11, value: 'after SIGTERM' },
  { weight: 5, value: 'in the first start' },
] as const;

/** The account of the key whose properties change. */
const CHANGED = 'changed';
/** Credits that another key may spend. */
const LIMIT = 50_000;

/** Longest waits before the kill, in milliseconds. */
const TRAFFIC_MS_MAX = 1_200;
const START_MS_MAX = 600;
const DRAIN_MS_MAX = 250;
const COMMIT_MS_MAX = 3_000;
/** Milliseconds between two readings of the ledger. */
const LOOK_MS = 25;
/** Lives after which the whole store is verified. */
const VERIFY_EVERY = 20;
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
  readonly #witness: Witness;
  readonly #statuses = new Tally();
  #granted: number;
  /** The last acknowledged state of the key that is not in the traffic, and of its account. */
  #changed: ChangedKey = {
    ...{ name: '', expiresAtMs: null, creditLimit: null, voices: null, isSuspended: false },
    ...noSpeakingDefaults,
  };
  /** The most that each request of the last life can be charged. */
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
    const limited = await operate(dataDir, async (administration) => {
      await administration.createKey(CHANGED, null);
      return administration.createKey('unmetered', null, { creditLimit: LIMIT });
    });
    return new Lives(folder, dataDir, [...keys, limited.key]);
  }

  get entries(): number {
    return this.#witness.entries;
  }

  get statuses(): string {
    return this.#statuses.toString();
  }

  async live(number: number, dice: Dice): Promise<void> {
    const moment = dice.weighted(moments);
    if (moment === 'in the first start') await this.#firstStart(number, dice);
    else if (moment === 'in the start') await this.#killedStart(dice);
    else await this.#life(moment, dice);
    this.tally.add(moment);
    this.#check(number);
  }

  /** A last life without a kill. */
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
      if (dice.chance(0.1)) await this.#change(dice);
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
    if (service.log.errors > 0) this.wrong.push(`it logged ${service.log.errorLines[0] ?? ''}`);
    this.#statuses.merge(traffic.statuses);
    this.#costs = traffic.costs;
  }

  async #killedStart(dice: Dice): Promise<void> {
    const service = new Service({ dataDir: this.#dataDir, ...threads });
    await sleep(dice.below(START_MS_MAX));
    if (dice.chance(0.3)) await this.#credit(dice.between(1, 5_000));
    if (dice.chance(0.3)) await this.#change(dice);
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

  /** The credit is acknowledged when it resolves. */
  async #credit(credits: number): Promise<void> {
    await operate(this.#dataDir, (administration) => administration.credit('metered', credits));
    this.#granted += credits;
  }

  /** Likewise for a property of a key, or the state of an account. */
  async #change(dice: Dice): Promise<void> {
    const { isSuspended } = this.#changed;
    const number = dice.between(1, 1_000);
    const changes = dice.pick<Partial<ChangedKey>>([
      { name: `name ${number}` },
      { creditLimit: dice.pick([number, null]) },
      { expiresAtMs: dice.pick([Date.UTC(2100, 0, 1) + number, null]) },
      { voices: dice.pick([['wren', `voice-${number}`], null]) },
      { normalizeText: dice.pick([true, false, null]), speed: dice.pick([1.1, null]) },
      { lexiconId: dice.pick([`lexicon ${number}`, null]) },
      { isSuspended: !isSuspended },
    ]);
    const { isSuspended: suspends, ...properties } = changes;
    await operate(this.#dataDir, async (administration) => {
      const key = (await administration.list()).find(({ account }) => account.name === CHANGED);
      if (suspends === undefined) await administration.change(key?.prefix ?? '', properties);
      else if (suspends) await administration.suspend(CHANGED);
      else await administration.resume(CHANGED);
    });
    this.#changed = { ...this.#changed, ...changes };
  }

  #check(number: number): void {
    const changed = this.#witness.keyOf(CHANGED);
    if (!isDeepStrictEqual(changed, this.#changed))
      this.wrong.push(`a key is ${JSON.stringify(changed)}, and was set to ${JSON.stringify(this.#changed)}`);
    const { wrong, charges } = this.#witness.check(number % VERIFY_EVERY === 0);
    this.wrong.push(...wrong);
    if (this.#witness.granted !== this.#granted)
      this.wrong.push(`granted ${this.#granted}, and the ledger has ${this.#witness.granted}`);
    for (const [id, credits] of charges) {
      const max = this.#costs.get(id) ?? CHARACTERS_MAX;
      if (credits < 0 || credits > max)
        this.wrong.push(`${id} was charged ${credits}, and costs ${max} at most`);
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
      options.progress(`kill ${i} of ${options.count}: ${lives.entries} entries, wrong: ${last}`);
    }
    await lives.finish();
    const usualMs = percentile(controls, 0.5);
    const late = lives.readyMs.filter((readyMs) => readyMs - usualMs >= READY_MS_MAX);
    const outcome = [
      `${lives.entries} entries, no entry that was seen or acknowledged is lost, changed or doubled, nor is a property of a key, balances and what keys spent are the sums, no limit is passed, the store verifies`,
      `ready again in ${spreadOf(lives.readyMs, [0.5, 0.99, 1])} ms (median, p99, longest of ${lives.readyMs.length}); ${controls.length} starts without a kill before them, for comparison: ${spreadOf(controls, [0.5, 0.99, 1])} ms`,
      `${late.length} took ${READY_MS_MAX} ms more than the median of those${late.length > 0 ? ` (WRONG: ${late.map((readyMs) => String(Math.round(readyMs))).join(', ')} ms)` : ''}`,
      `answers ${lives.statuses}`,
      ...(lives.wrong.length > 0 ? [`WRONG ${lives.wrong.slice(0, 5).join('; ')}`] : []),
    ];
    return [
      {
        fault: 'SIGKILL of the process',
        injected: `${lives.tally.toString()}; several keys over HTTP and WebSocket, credits and properties from another process`,
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
