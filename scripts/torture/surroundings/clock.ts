/** The scenario of the clock: it moves by a day, forwards and backwards, in the middle of speech. */
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { limits } from '../../../src/limits.js';
import { verifyStore } from '../../../src/store/sqlite/backup.js';
import { storePath } from '../../../src/store/sqlite/database.js';
import { operate } from '../../operator.js';
import { inScratch } from '../../rig/machine.js';
import { withService, type Service } from '../../rig/service.js';
import { SocketConnection } from '../../rig/socket.js';
import { besideNeighbours, type Fault } from '../beside.js';
import { comesTrue } from '../checks.js';
import { notRun, unmet, type Scenario } from '../scenario.js';

const DAY_MS = 86_400_000;
/** A larger step between times in the log is a jump. */
const JUMP_MS = 3_600_000;
/** Milliseconds for a revoked key to close its WebSockets: twice the service's promise. */
const REVOKED_MS_MAX = 2_000;

/** Variables that give a process the wall clock of libfaketime; `null` where it is not installed. */
export const fakeClock = (): Readonly<Record<string, string>> | null => {
  for (const folder of ['/usr/lib', '/usr/local/lib', '/usr/lib64'].filter(existsSync))
    for (const name of ['', ...readdirSync(folder)]) {
      const place = join(folder, name, 'faketime');
      const library = existsSync(place) && readdirSync(place).find((file) => /^libfaketimeMT\.so/.test(file));
      if (library) return { LD_PRELOAD: join(place, library), DONT_FAKE_MONOTONIC: '1' };
    }
  return null;
};

/** Of the times in the log, one after the other. */
const stepsOf = (timesMs: readonly number[]): readonly number[] =>
  timesMs.slice(1).map((timeMs, i) => timeMs - timesMs[i]!);

const strangeEntries = ({ dataDir }: Service): number => {
  verifyStore(dataDir, limits);
  using database = new DatabaseSync(storePath(dataDir), { readOnly: true });
  const found = database
    .prepare('SELECT count(*) AS entries FROM ledger WHERE abs(at_ms - ?) > ?')
    .get(Date.now(), DAY_MS + JUMP_MS);
  return Number(found?.['entries']);
};

const named = {
  fault: 'clock moved by a day',
  injected: 'a day forwards, two days back and right again, in the middle of streams',
};

/** @param timesMs the times in the log, as they come */
const moves = (setDays: (days: number) => void, timesMs: readonly number[]): Fault => ({
  ...named,
  async inject({ count, progress, service }) {
    const { port } = service;
    // It is revoked in the end.
    const [idleKey = ''] = await service.makeKeys(1);
    let isClosed = false;
    const onError = (): void => void (isClosed = true);
    const idle = new SocketConnection({ port, key: idleKey }, { onMessage: () => undefined, onError });
    await idle.opened();
    let moved = 0;
    const move = async (days: number): Promise<void> => {
      setDays(days);
      moved += 1;
      // The status line shows the new time in the log.
      await service.status();
      // Neighbours speak meanwhile.
      await sleep(500);
    };
    const wrong: string[] = [];
    for (let i = 0; i < count; i += 1) {
      for (const days of [1, -1, 0]) await move(days);
      const reasons = await service.unreadyReasons();
      if (reasons !== '') wrong.push(`not ready: ${reasons}`);
      progress(`round ${i + 1} of ${count}, ${wrong.length} wrong`);
    }
    const stayedOpen = !isClosed;
    await move(1);
    await operate(service.dataDir, (administration) => administration.revoke(idleKey));
    const isSeen = await comesTrue(() => Promise.resolve(isClosed), REVOKED_MS_MAX);
    await move(0);
    const steps = stepsOf(timesMs);
    const jumps = steps.filter((step) => Math.abs(step) > JUMP_MS).length;
    const conditions = {
      'an idle WebSocket stays open': stayedOpen,
      'a revoked key is seen': isSeen,
      'times in the log jump with the clock': jumps >= moved - 1,
      'they go back only with the clock': steps.every((step) => step >= 0 || step < -JUMP_MS),
      'each entry has a time that a clock showed': strangeEntries(service) === 0,
    };
    const saw = `${jumps} jumps in the log; the ledger verifies`;
    return { count: moved, saw, wrong: [...wrong, ...unmet(conditions)] };
  },
});

export const clock: Scenario = {
  name: 'clock',
  about: 'the system clock moves by a day, forwards and backwards, while neighbours speak (needs faketime)',
  defaultCount: 20,
  run: (options) =>
    inScratch(async (scratch) => {
      const fake = fakeClock();
      if (fake === null) return [notRun(named, 'faketime is not installed')];
      const file = join(scratch, 'clock');
      const setDays = (days: number) => writeFileSync(file, `${days < 0 ? '' : '+'}${days}d\n`);
      setDays(0);
      const timesMs: number[] = [];
      const parts = {
        ...{ dataDir: join(scratch, 'data'), synthesisThreads: 2, actorThreads: 1 },
        env: { ...fake, FAKETIME_TIMESTAMP_FILE: file, FAKETIME_NO_CACHE: '1' },
        onLine: (line: string) => timesMs.push((JSON.parse(line) as { time: number }).time),
      };
      return withService(parts, async (service) => [
        await besideNeighbours(service, moves(setDays, timesMs), options),
      ]);
    }),
};
