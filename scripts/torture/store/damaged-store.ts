/** The scenario of the damaged store: what the service does with it at a start, and while it runs. */
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { limits } from '../../../src/limits.js';
import { verifyStore } from '../../../src/store/sqlite/backup.js';
import { Dice } from '../../rig/random.js';
import { describeExit, type Service } from '../../rig/service.js';
import { Tally } from '../../rig/tally.js';
import { speak, startOutcome } from '../checks.js';
import { inScratch, type Scenario, type TortureOptions, type TortureRow } from '../scenario.js';
import { applyDamage, damageNames } from './damage.js';
import { balancesOf, LeftStore, type End } from './left-store.js';

/** Of the ledger: a start reads the small store whole; the other is too large for that. */
const ENTRIES = { small: 600, large: 60_000 } as const;

const ends: readonly End[] = ['killed', 'closed'];
const sizes = ['small', 'large'] as const;

interface Case {
  readonly name: string;
  readonly end: End;
  readonly size: keyof typeof ENTRIES;
}

/** Every damage to both stores: first each to one of them, then each to the other. */
const cases: readonly Case[] = [0, 1].flatMap((round) =>
  ends
    .flatMap((end) => damageNames[end].map((name) => ({ name, end })))
    .map(({ name, end }, index) => ({ name, end, size: sizes[(index + round) % 2] ?? 'small' })),
);

type Stores = Readonly<Record<keyof typeof ENTRIES, LeftStore>>;

const TEXT = 'A charge.';

const balanceOf = (store: LeftStore): number => Number(balancesOf(store.dataDir).accounts[0]?.['balance']);

/** A request must be charged what it costs, or refused because the store fails. @returns `null` if it was */
const chargeFault = async (service: Service, store: LeftStore): Promise<string | null> => {
  const before = balanceOf(store);
  const status = (await speak(service.port, store.key, TEXT)).status;
  // The service ends when its entries are durable, or lost.
  const { code } = await service.stop();
  if (code !== 0) return `it ended with ${String(code)}`;
  const after = balanceOf(store);
  if (status === 200 && after === before - TEXT.length) return null;
  if (status === 503 && after === before) return null;
  // It was spoken before the commit found the damage, which is logged.
  if (status === 200 && after === before && service.log.errors > 0) return null;
  return `status ${status}, charged ${before - after}`;
};

const threads = { synthesisThreads: 1, actorThreads: 1 };

/** @returns `refused`, `served`, or what is wrong */
const tryStart = async (store: LeftStore): Promise<string> => {
  const outcome = await startOutcome({ dataDir: store.dataDir, ...threads });
  if (outcome.kind === 'refused')
    return outcome.line.includes(store.dataDir) ? 'refused' : `refused without the path: ${outcome.line}`;
  if (outcome.kind === 'broke') return outcome.how;
  const { service } = outcome;
  try {
    if (!isDeepStrictEqual(balancesOf(store.dataDir), store.balances)) return 'served with other balances';
    const fault = await chargeFault(service, store);
    return fault === null ? 'served' : `served, then ${fault}`;
  } finally {
    await service.kill();
  }
};

/** What so many starts have tried. */
const coverage = (count: number): string => {
  const tried = cases.slice(0, count);
  const namesOf = (some: readonly Case[]) => String(new Set(some.map(({ name }) => name)).size);
  const parts = ends.flatMap((end) =>
    sizes.map((size) => {
      const these = tried.filter((one) => one.end === end && one.size === size);
      return `${these.length} of ${damageNames[end].length} to a ${size} store that was ${end}`;
    }),
  );
  return `${namesOf(tried)} of ${namesOf(cases)} kinds of damage: ${parts.join(', ')} (small: read whole at a start)`;
};

const atStarts = async (stores: Stores, options: TortureOptions): Promise<TortureRow> => {
  const tally = new Tally();
  const wrong: string[] = [];
  for (let i = 0; i < options.count; i += 1) {
    const dice = new Dice(options.seed, i);
    const { name, end, size } = cases[i % cases.length]!;
    const store = stores[size];
    store.putBack(end);
    applyDamage(name, {
      store,
      other: stores[size === 'small' ? 'large' : 'small'],
      random: () => dice.unit(),
    });
    const outcome = await tryStart(store);
    const isRight = outcome === 'refused' || outcome === 'served';
    tally.add(isRight ? outcome : 'wrong');
    if (!isRight) wrong.push(`${name} (${end}, ${size}): ${outcome}`);
    options.progress(`start ${i + 1} of ${options.count}: ${tally.toString()}`);
  }
  return {
    fault: 'store damaged, at a start',
    injected: `${coverage(options.count)}; of file, log, side files and contents`,
    count: options.count,
    outcome: `${tally.toString()}; refused: exit 1 and one line with path and cause; served: every balance and key as before, the next charge right ${wrong.join('; ')}`,
    held: wrong.length === 0,
  };
};

const REQUESTS = 6;

/** The service must live through the damage, and the next start must be right. */
const tryRunning = async (store: LeftStore, damage: () => void): Promise<string> => {
  const outcome = await startOutcome({ dataDir: store.dataDir, ...threads });
  if (outcome.kind !== 'serves') return 'it did not start';
  const { service } = outcome;
  const answers = new Tally();
  try {
    await speak(service.port, store.key, TEXT);
    damage();
    for (let i = 0; i < REQUESTS; i += 1)
      answers.add(String((await speak(service.port, store.key, TEXT)).status));
    if (answers.of('500') > 0 || (answers.of('0') > 0 && service.exit === null))
      return `answers ${answers.toString()}`;
    const ended = service.exit;
    await service.kill();
    const again = await startOutcome({ dataDir: store.dataDir, ...threads });
    if (again.kind === 'broke') return `the next start: ${again.how}`;
    if (again.kind === 'serves') {
      try {
        verifyStore(store.dataDir, limits);
      } catch (error) {
        return `served again, and the store is bad: ${(error as Error).message}`;
      } finally {
        await again.service.kill();
      }
    }
    if (ended !== null) return `ended by ${describeExit(ended)}`;
    return answers.of('503') > 0 ? 'answered 503' : 'went on';
  } finally {
    await service.kill();
  }
};

const right = ['answered 503', 'went on'];
/** The system ends a process whose mapped memory is cut; the next start must be right. */
const cutMemory: readonly string[] = [
  'the index of the log is cut',
  'garbage in place of the index of the log',
];

const whileRunning = async (stores: Stores, options: TortureOptions): Promise<TortureRow> => {
  const tally = new Tally();
  const wrong: string[] = [];
  const names = damageNames.killed;
  const count = Math.max(Math.ceil(options.count / 4), Math.min(options.count, names.length));
  for (let i = 0; i < count; i += 1) {
    const dice = new Dice(options.seed, 1_000_000 + i);
    const name = names[i % names.length] ?? '';
    const store = stores.small;
    store.putBack('killed');
    const tools = { store, other: stores.large, random: () => dice.unit() };
    const outcome = await tryRunning(store, () => applyDamage(name, tools));
    const isRight = right.includes(outcome) || (outcome === 'ended by SIGBUS' && cutMemory.includes(name));
    tally.add(isRight ? outcome : 'wrong');
    if (!isRight) wrong.push(`${name}: ${outcome}`);
    options.progress(`running ${i + 1} of ${count}: ${tally.toString()}`);
  }
  return {
    fault: 'store damaged, while it runs',
    injected: `${Math.min(count, names.length)} of these kinds, between two requests; then SIGKILL and a start`,
    count,
    outcome: `${tally.toString()}; no 500, and the process lives unless its mapped memory was cut (SIGBUS); the next start refuses or serves what verifies ${wrong.join('; ')}`,
    held: wrong.length === 0,
  };
};

export const damagedStore: Scenario = {
  name: 'store-damage',
  about: 'a damaged store, in many ways: refused with its cause, or served with the same balances',
  defaultCount: cases.length,
  run: (options) =>
    inScratch(async (folder) => {
      const dice = new Dice(options.seed);
      const make = (size: keyof typeof ENTRIES) =>
        LeftStore.make(join(folder, size), ENTRIES[size], () => dice.unit());
      const stores = { small: await make('small'), large: await make('large') };
      return [await atStarts(stores, options), await whileRunning(stores, options)];
    }),
};
