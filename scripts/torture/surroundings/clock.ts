/** The scenario of the clock: it is moved by a day, forwards and backwards, in the middle of speech. */
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { WebSocket } from 'ws';
import { limits } from '../../../src/limits.js';
import { verifyStore } from '../../../src/store/sqlite/backup.js';
import { storePath } from '../../../src/store/sqlite/database.js';
import { notRun, type Scenario, type TortureOptions, type TortureRow } from '../scenario.js';
import { inScratch } from '../scratch.js';
import { operate } from '../../operator.js';
import { TortureService, type LogLine } from '../service.js';
import { comes, readinessOf, speak } from '../speak.js';

const fault = 'clock moved by a day';
const DAY_MS = 86_400_000;
/** A step of the log's times that is a jump, and no waiting. */
const JUMP_MS = 3_600_000;
const TEXT = 'The clock on the wall is wrong again, and nobody minds. '.repeat(12);
/** Milliseconds within which a revoked key closes its WebSockets; twice that which it promises. */
const REVOKED_MS_MAX = 2_000;

/** libfaketime: the wall clock of a process from a file, its monotonic one as it is. `null` where it is not installed. */
const fakeClock = (): string | null => {
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

/** Idle for all the while: what it waits for must not be brought about by the clock. */
const openIdle = (port: number, key: string): Promise<WebSocket> =>
  new Promise((resolve, reject) => {
    const socket = new WebSocket(`ws://127.0.0.1:${String(port)}/v1/tts/ws`, {
      headers: { 'x-api-key': key },
    });
    socket.once('open', () => resolve(socket));
    socket.once('error', reject);
  });

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
  const setDays = (days: number) => writeFileSync(file, `${days < 0 ? '' : '+'}${String(days)}d\n`);
  setDays(0);
  const timesMs: number[] = [];
  const service = await TortureService.start({
    dataDir,
    env: {
      SYNTHESIS_THREADS: '2',
      ACTOR_THREADS: '1',
      LD_PRELOAD: library,
      FAKETIME_TIMESTAMP_FILE: file,
      FAKETIME_NO_CACHE: '1',
      DONT_FAKE_MONOTONIC: '1',
    },
    onLine: (line) => timesMs.push((JSON.parse(line) as LogLine & { time: number }).time),
  });
  const wrong: string[] = [];
  let moves = 0;
  let streams = 0;
  try {
    const { port } = service;
    const [key = '', idleKey = ''] = await service.makeKeys(2, 10_000_000);
    const idle = await openIdle(port, idleKey);
    const isClosed = (): boolean => idle.readyState === WebSocket.CLOSED;
    const move = async (days: number): Promise<void> => {
      setDays(days);
      moves += 1;
      // The log tells the time, so that each move is seen in it.
      await service.status();
      await sleep(100);
    };
    for (let i = 0; i < count; i += 1) {
      const whole = ['/v1/tts', '/v1/tts/stream', '/v1/tts/stream'] as const;
      const speaking = whole.map((path) => speak(port, key, TEXT, path));
      for (const days of [1, -1, 0]) await move(days);
      for (const { status, bytes } of await Promise.all(speaking)) {
        streams += 1;
        if (status !== 200 || bytes < 1_000_000)
          wrong.push(`a stream: ${String(status)}, ${String(bytes)} bytes`);
      }
      const slots = await Promise.all(Array.from({ length: 9 }, () => speak(port, key, 'Nine at a time.')));
      if (slots.some(({ status }) => status !== 200)) wrong.push('a slot was not given back');
      if ((await readinessOf(port)) !== '') wrong.push(`not ready: ${await readinessOf(port)}`);
      progress(`round ${String(i + 1)} of ${String(count)}, ${String(wrong.length)} wrong`);
    }
    if (isClosed()) wrong.push('an idle WebSocket was dropped');
    await move(1);
    await operate(dataDir, (administration) => administration.revoke(idleKey));
    if (!(await comes(() => Promise.resolve(isClosed()), REVOKED_MS_MAX)))
      wrong.push('a revoked key was not seen');
    await move(0);
    const { requestsInFlight } = await service.status();
    if (requestsInFlight > 0) wrong.push(`${String(requestsInFlight)} requests are left`);
    const { code } = await service.stop();
    if (code !== 0) wrong.push(`it ended with ${String(code)}`);
    if (service.faultCount > 0) wrong.push(`it logged ${service.faults[0] ?? ''}`);
    if (jumpsOf(timesMs) < moves - 1 || stepsBack(timesMs) > 0)
      wrong.push(
        `the log's times: ${String(jumpsOf(timesMs))} jumps, ${String(stepsBack(timesMs))} steps back`,
      );
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
    injected: `forwards, two days back and right again, in mid-stream: ${String(moves)} moves`,
    count: moves,
    outcome: `${String(streams)} streams went on to their ends, no slot, deadline, idle WebSocket or key was touched, the ledger verifies, the log's times jump with the clock and else never ${wrong.join('; ')}`,
    held: wrong.length === 0,
  };
};

export const clock: Scenario = {
  name: 'clock',
  about: 'the system clock moved by a day, forwards and backwards, in mid-stream (needs faketime)',
  defaultCount: 5,
  run: (options) =>
    inScratch(async (scratch) => {
      const library = fakeClock();
      if (library === null)
        return [notRun(fault, 'forwards and backwards in mid-stream', 'faketime is not installed')];
      return [await moveClock(scratch, library, options)];
    }),
};
