/** The scenario of the clock: it moves by a day, forwards and backwards, in the middle of speech. */
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { limits } from '../../../src/limits.js';
import { verifyStore } from '../../../src/store/sqlite/backup.js';
import { storePath } from '../../../src/store/sqlite/database.js';
import { Service } from '../../rig/service.js';
import { SocketConnection } from '../../rig/socket.js';
import { operate } from '../../operator.js';
import { comesTrue, speak } from '../checks.js';
import { notRun, type Scenario, type TortureOptions, type TortureRow } from '../scenario.js';
import { inScratch } from '../../rig/machine.js';

const fault = 'clock moved by a day';
const DAY_MS = 86_400_000;
/** A larger step between times in the log is a jump. */
const JUMP_MS = 3_600_000;
const TEXT = 'The clock on the wall is wrong again, and no one minds. '.repeat(12);
/** Milliseconds for a revoked key to close its WebSockets: twice the service's promise. */
const REVOKED_MS_MAX = 2_000;

/** libfaketime sets the wall clock of a process from a file. @returns `null` where it is not installed */
export const fakeClock = (): string | null => {
  for (const folder of ['/usr/lib', '/usr/local/lib', '/usr/lib64'])
    try {
      for (const name of ['', ...readdirSync(folder)]) {
        const place = join(folder, name, 'faketime');
        try {
          const found = readdirSync(place).find((file) => /^libfaketimeMT\.so/.test(file));
          if (found !== undefined) return join(place, found);
        } catch {
          // Not there.
        }
      }
    } catch {
      // Not there.
    }
  return null;
};

const jumpsOf = (timesMs: readonly number[]): number =>
  timesMs.filter((timeMs, i) => i > 0 && Math.abs(timeMs - (timesMs[i - 1] ?? 0)) > JUMP_MS).length;

const stepsBack = (timesMs: readonly number[]): number =>
  timesMs.filter((timeMs, i) => {
    const step = timeMs - (timesMs[i - 1] ?? timeMs);
    return step < 0 && step > -JUMP_MS;
  }).length;

const moveClock = async (
  scratch: string,
  library: string,
  { count, progress }: TortureOptions,
): Promise<TortureRow> => {
  const dataDir = join(scratch, 'data');
  const file = join(scratch, 'clock');
  const setDays = (days: number) => writeFileSync(file, `${days < 0 ? '' : '+'}${days}d\n`);
  setDays(0);
  const timesMs: number[] = [];
  const service = await Service.start({
    dataDir,
    synthesisThreads: 2,
    actorThreads: 1,
    env: {
      LD_PRELOAD: library,
      FAKETIME_TIMESTAMP_FILE: file,
      FAKETIME_NO_CACHE: '1',
      DONT_FAKE_MONOTONIC: '1',
    },
    onLine: (line) => timesMs.push((JSON.parse(line) as { time: number }).time),
  });
  const wrong: string[] = [];
  let moves = 0;
  let streams = 0;
  try {
    const { port } = service;
    const [key = '', idleKey = ''] = await service.makeKeys(2, 10_000_000);
    // Idle all the time: a jump of the clock must not end it.
    const ends: string[] = [];
    const isClosed = (): boolean => ends.length > 0;
    const idle = new SocketConnection(
      { port, key: idleKey },
      { onMessage: () => undefined, onError: (error) => void ends.push(error.message) },
    );
    await idle.opened();
    const move = async (days: number): Promise<void> => {
      setDays(days);
      moves += 1;
      // The status line shows the new time in the log.
      await service.status();
      await sleep(100);
    };
    for (let i = 0; i < count; i += 1) {
      const whole = ['/v1/tts', '/v1/tts/stream', '/v1/tts/stream'] as const;
      const speaking = whole.map((path) => speak(port, key, TEXT, path));
      for (const days of [1, -1, 0]) await move(days);
      for (const { status, bytes } of await Promise.all(speaking)) {
        streams += 1;
        if (status !== 200 || bytes < 1_000_000) wrong.push(`a stream: ${status}, ${bytes} bytes`);
      }
      const slots = await Promise.all(Array.from({ length: 9 }, () => speak(port, key, 'Nine at a time.')));
      if (slots.some(({ status }) => status !== 200)) wrong.push('a slot was not given back');
      const reasons = await service.unreadyReasons();
      if (reasons !== '') wrong.push(`not ready: ${reasons}`);
      progress(`round ${i + 1} of ${count}, ${wrong.length} wrong`);
    }
    if (isClosed()) wrong.push('an idle WebSocket was dropped');
    await move(1);
    await operate(dataDir, (administration) => administration.revoke(idleKey));
    if (!(await comesTrue(() => Promise.resolve(isClosed()), REVOKED_MS_MAX)))
      wrong.push('a revoked key was not seen');
    await move(0);
    const { requestsInFlight } = await service.status();
    if (requestsInFlight > 0) wrong.push(`${requestsInFlight} requests are left`);
    const { code } = await service.stop();
    if (code !== 0) wrong.push(`it ended with ${String(code)}`);
    if (service.log.errors > 0) wrong.push(`it logged ${service.log.errorLines[0] ?? ''}`);
    if (jumpsOf(timesMs) < moves - 1 || stepsBack(timesMs) > 0)
      wrong.push(`the log's times: ${jumpsOf(timesMs)} jumps, ${stepsBack(timesMs)} steps back`);
    verifyStore(dataDir, limits);
    const database = new DatabaseSync(storePath(dataDir), { readOnly: true });
    const strange = database
      .prepare('SELECT count(*) AS entries FROM ledger WHERE abs(at_ms - ?) > ?')
      .get(Date.now(), DAY_MS + JUMP_MS);
    database.close();
    if (Number(strange?.['entries']) > 0) wrong.push('entries of a time that no clock showed');
  } finally {
    await service.kill();
  }
  return {
    fault,
    injected: `a day forwards, two days back and right again, in the middle of streams: ${moves} moves`,
    count: moves,
    outcome: `${streams} streams went on to their ends; no effect on slots, deadlines, idle WebSockets and keys; the ledger verifies; times in the log jump only with the clock ${wrong.join('; ')}`,
    held: wrong.length === 0,
  };
};

export const clock: Scenario = {
  name: 'clock',
  about: 'the system clock moves by a day, forwards and backwards, in the middle of streams (needs faketime)',
  defaultCount: 5,
  run: (options) =>
    inScratch(async (scratch) => {
      const library = fakeClock();
      if (library === null)
        return [
          notRun(fault, 'forwards and backwards, in the middle of streams', 'faketime is not installed'),
        ];
      return [await moveClock(scratch, library, options)];
    }),
};
