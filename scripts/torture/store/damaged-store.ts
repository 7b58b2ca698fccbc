/** The scenario of the damaged store: what the service makes of it at a start, and while it runs. */
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { limits } from '../../../src/limits.js';
import { verifyStore } from '../../../src/store/sqlite/backup.js';
import { Dice } from '../dice.js';
import type { Scenario, TortureOptions, TortureRow } from '../scenario.js';
import { inScratch } from '../scratch.js';
import type { TortureService } from '../service.js';
import { speak } from '../speak.js';
import { startOutcome, Tally } from '../start-outcome.js';
import { applyDamage, damageNames } from './damage.js';
import { balancesOf, LeftStore, type End } from './left-store.js';

/** Of the ledger: one store that a start reads whole, one that is too large for that. */
const ENTRIES = { small: 600, large: 60_000 } as const;

const ends: readonly End[] = ['killed', 'closed'];
const sizes = ['small', 'large'] as const;

interface Case {
  readonly name: string;
  readonly end: End;
  readonly size: keyof typeof ENTRIES;
}

/** Every damage to either store; what is first tried on the one is tried on the other when all have had a turn. */
const cases: readonly Case[] = [0, 1].flatMap((round) =>
  ends
    .flatMap((end) => damageNames[end].map((name) => ({ name, end })))
    .map(({ name, end }, index) => ({ name, end, size: sizes[(index + round) % 2] ?? 'small' })),
);

type Stores = Readonly<Record<keyof typeof ENTRIES, LeftStore>>;

const TEXT = 'A charge.';

const balanceOf = (store: LeftStore): number => Number(balancesOf(store.dataDir).accounts[0]?.['balance']);

/** A request is charged what it costs, or refused because the store fails. `null`: so it was. */
const chargeFault = async (service: TortureService, store: LeftStore): Promise<string | null> => {
  const before = balanceOf(store);
  const status = (await speak(service.port, store.key, TEXT)).status;
  // Ends when its entries are durable, or given up.
  const { code } = await service.stop();
  if (code !== 0) return `it ended with ${String(code)}`;
  const after = balanceOf(store);
  if (status === 200 && after === before - TEXT.length) return null;
  if (status === 503 && after === before) return null;
  // Spoken before the damage was met at the commit, which the log tells.
  if (status === 200 && after === before && service.faultCount > 0) return null;
  return `status ${String(status)}, charged ${String(before - after)}`;
};

const environment = { SYNTHESIS_THREADS: '1', ACTOR_THREADS: '1' };

/** @returns `refused`, `served`, or what must not be */
const tryStart = async (store: LeftStore): Promise<string> => {
  const outcome = await startOutcome({ dataDir: store.dataDir, env: environment });
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

/** What so many turns have tried. */
const coverage = (count: number): string => {
  const tried = cases.slice(0, count);
  const namesOf = (some: readonly Case[]) => String(new Set(some.map(({ name }) => name)).size);
  const parts = ends.flatMap((end) =>
    sizes.map((size) => {
      const these = tried.filter((one) => one.end === end && one.size === size);
      return `${String(these.length)} of ${String(damageNames[end].length)} to a ${size} store that was ${end}`;
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
    options.progress(`start ${String(i + 1)} of ${String(options.count)}: ${tally.toString()}`);
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

/** Whatever it answers meanwhile, it lives, and the next start is right. */
const tryRunning = async (store: LeftStore, damage: () => void): Promise<string> => {
  const outcome = await startOutcome({ dataDir: store.dataDir, env: environment });
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
    const again = await startOutcome({ dataDir: store.dataDir, env: environment });
    if (again.kind === 'broke') return `the next start: ${again.how}`;
    if (again.kind === 'serves') {
      try {
        verifyStore(store.dataDir, limits);
      } catch (error) {
        return `served again, and not good: ${(error as Error).message}`;
      } finally {
        await again.service.kill();
      }
    }
    if (ended !== null) return `ended by ${String(ended.signal ?? ended.code)}`;
    return answers.of('503') > 0 ? 'answered 503' : 'went on';
  } finally {
    await service.kill();
  }
};

const right = ['answered 503', 'went on'];
/** The system ends every process whose mapped memory is cut off; the next start must be right. */
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
    options.progress(`running ${String(i + 1)} of ${String(count)}: ${tally.toString()}`);
  }
  return {
    fault: 'store damaged, while it runs',
    injected: `${String(Math.min(count, names.length))} of these kinds, between two requests; then SIGKILL and a start`,
    count,
    outcome: `${tally.toString()}; no 500, and the process lives but where its mapped memory was cut off (SIGBUS); the next start refuses or serves what verifies ${wrong.join('; ')}`,
    held: wrong.length === 0,
  };
};

export const damagedStore: Scenario = {
  name: 'store-damage',
  about: 'a store damaged in so many ways: refused with its cause, or served with the balances that it had',
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
