/**
 * The scenario of the damaged store: what the service does with it while it runs, and at the next start. What each kind of damage means
 * for a start, also to a large store and to one that was closed, is tested without a service (`test/store/store-damage.sweep.test.ts`).
 */
import { join } from 'node:path';
import { limits } from '../../../src/limits.js';
import { verifyStore } from '../../../src/store/sqlite/backup.js';
import { Dice } from '../../rig/random.js';
import { describeExit } from '../../rig/service.js';
import { Tally } from '../../rig/tally.js';
import { speak, startOutcome } from '../checks.js';
import { rowOf, type Scenario, type TortureOptions, type TortureRow } from '../scenario.js';
import { inScratch } from '../../rig/machine.js';
import { applyDamage, damageNames } from './damage.js';
import { LeftStore } from './left-store.js';

const ENTRIES = 600;
const TEXT = 'A charge.';
const REQUESTS = 6;
const names = damageNames.killed;
const threads = { synthesisThreads: 1, actorThreads: 1 };

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
    if (again.kind === 'refused' && !again.line.includes(store.dataDir))
      return `the next start is refused without the path: ${again.line}`;
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

const run = ({ count, progress, seed }: TortureOptions): Promise<readonly TortureRow[]> =>
  inScratch(async (folder) => {
    const random = new Dice(seed).unit;
    const store = await LeftStore.make(join(folder, 'damaged'), ENTRIES, random);
    const other = await LeftStore.make(join(folder, 'other'), ENTRIES, random);
    const tally = new Tally();
    const wrong: string[] = [];
    for (let i = 0; i < count; i += 1) {
      const dice = new Dice(seed, i);
      const name = names[i % names.length] ?? '';
      store.putBack('killed');
      const tools = { store, other, dice };
      const outcome = await tryRunning(store, () => applyDamage(name, tools));
      const isRight = right.includes(outcome) || (outcome === 'ended by SIGBUS' && cutMemory.includes(name));
      tally.add(isRight ? outcome : 'wrong');
      if (!isRight) wrong.push(`${name}: ${outcome}`);
      progress(`${i + 1} of ${count}: ${tally.toString()}`);
    }
    const named = {
      fault: 'store damaged, while it runs',
      injected: `${Math.min(count, names.length)} of ${names.length} kinds, between two requests; then SIGKILL and a start`,
    };
    const saw = `${tally.toString()}; no 500, and the process lives unless its mapped memory was cut (SIGBUS); the next start refuses, with path and cause, or serves what verifies`;
    return [rowOf(named, { count, saw, wrong })];
  });

export const damagedStore: Scenario = {
  name: 'store-damage',
  about:
    'a store damaged while it is served, in many ways: the service goes on or answers 503, and the next start is right',
  defaultCount: 2 * names.length,
  run,
};
