/** The scenario of the full disk: a small one of its own, filled and emptied in traffic. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { limits } from '../../../src/limits.js';
import { verifyStore } from '../../../src/store/sqlite/backup.js';
import { Traffic } from '../kills/traffic.js';
import { Witness } from '../kills/witness.js';
import { Dice } from '../dice.js';
import { notRun, type Scenario, type TortureOptions, type TortureRow } from '../scenario.js';
import { inScratch } from '../scratch.js';
import { createKeys } from '../../operator.js';
import { TortureService } from '../service.js';
import { comes, readinessOf, speak } from '../speak.js';
import { Tally } from '../start-outcome.js';

const storeFault = 'disk of the store full';
const logFault = 'disk of the log full';
const DISK_MIB = 24;
const GRANTED = 100_000_000;
/** A whole result of this text goes to its file: it is over what memory takes. */
const LONG_TEXT = 'Nobody had told the baker about the change. '.repeat(120);

/** Milliseconds after which its speech has begun, and has a while to go. */
const SPOOLING_MS = 700;

/** Until not a byte more fits. */
const fill = (path: string): void => {
  for (let bytes = 2 ** 20; bytes >= 512; bytes /= 2)
    try {
      for (;;) writeFileSync(path, Buffer.alloc(bytes), { flag: 'a' });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
    }
};

const environment = { SYNTHESIS_THREADS: '1', ACTOR_THREADS: '1' };
const fullReason = 'the disk of the store is full';

const fillInTraffic = async (disk: string, options: TortureOptions): Promise<TortureRow> => {
  const dataDir = join(disk, 'data');
  const keys = await createKeys(dataDir, [
    ['payer', GRANTED / 2],
    ['payer', GRANTED / 2],
  ]);
  const service = await TortureService.start({ dataDir, env: environment });
  const witness = new Witness(dataDir);
  const wrong: string[] = [];
  const seen = new Tally();
  const filler = join(disk, 'filler');
  try {
    for (let i = 0; i < options.count; i += 1) {
      const traffic = new Traffic(service.port, keys, new Dice(options.seed, i));
      traffic.start(3, 2);
      await sleep(new Dice(options.seed, i).below(400));
      fill(filler);
      if (await comes(async () => (await readinessOf(service.port)) === fullReason))
        seen.add('told by /readyz');
      else wrong.push(`not told: "${await readinessOf(service.port)}"`);
      const refused = await speak(service.port, keys[0] ?? '', 'Refused.');
      if (refused.status !== 503) wrong.push(`a request was answered ${String(refused.status)}`);
      witness.look();
      rmSync(filler);
      if (await comes(async () => (await readinessOf(service.port)) === ''))
        seen.add('ready when there was room');
      else wrong.push(`not ready again: ${await readinessOf(service.port)}`);
      if ((await speak(service.port, keys[0] ?? '', 'Admitted.')).status !== 200)
        wrong.push('it does not speak');
      await traffic.end();
      if ((traffic.statuses.get(500) ?? 0) > 0) seen.add('rounds with a 500 of a result that found no room');
      options.progress(`${String(i + 1)} of ${String(options.count)}: ${seen.toString()}`);
    }
    const spooling = speak(service.port, keys[1] ?? '', LONG_TEXT);
    await sleep(SPOOLING_MS);
    fill(filler);
    const { status } = await spooling;
    rmSync(filler);
    if (status !== 500) wrong.push(`a result that found no room was answered ${String(status)}`);
    else seen.add('result that found no room: 500');
    if (!(await comes(async () => (await readinessOf(service.port)) === '')))
      wrong.push('not ready at the end');
    const { code } = await service.stop();
    if (code !== 0) wrong.push(`it ended with ${String(code)}`);
    wrong.push(...witness.check(true).wrong);
    verifyStore(dataDir, limits);
  } finally {
    await service.kill();
  }
  return {
    fault: storeFault,
    injected: `a disk of ${String(DISK_MIB)} MiB filled to its last byte in traffic over HTTP and WebSocket, then emptied`,
    count: options.count,
    outcome: `${seen.toString()}; new requests 503 meanwhile, ${String(witness.entries)} entries, none that was seen lost, the store verifies ${wrong.join('; ')}`,
    held: wrong.length === 0,
  };
};

/** @returns where it listens, as its log says; 0 while it does not */
const portIn = (log: string): number => {
  const lines = readFileSync(log, { flag: 'a+', encoding: 'utf8' }).split('\n');
  const line = lines.find((text) => text.endsWith('"msg":"listening"}'));
  return line === undefined ? 0 : (JSON.parse(line) as { port: number }).port;
};

/** Standard output goes to a file on the full disk. */
const fullLog = async (disk: string, scratch: string): Promise<TortureRow> => {
  const filler = join(disk, 'filler');
  mkdirSync(join(disk, 'log'));
  const log = join(disk, 'log', 'out');
  const service = new TortureService({
    dataDir: join(scratch, 'logged'),
    env: { ...environment, LOG_FILE: log },
    launcher: ['sh', '-c', 'exec "$0" "$@" >> "$LOG_FILE"'],
  });
  const wrong: string[] = [];
  try {
    if (!(await comes(() => Promise.resolve(portIn(log) > 0), 60_000))) wrong.push('it did not start');
    const port = portIn(log);
    const [key = ''] = await service.makeKeys(1);
    fill(filler);
    for (let i = 0; i < 20; i += 1) {
      const { status } = await speak(port, key, 'Unlogged.');
      if (status !== 200) wrong.push(`answered ${String(status)}`);
    }
    rmSync(filler);
    if ((await speak(port, key, 'Logged.')).status !== 200) wrong.push('it does not speak any more');
    const { code } = await service.stop();
    if (code !== 0) wrong.push(`it ended with ${String(code)}`);
  } finally {
    await service.kill();
    rmSync(filler, { force: true });
  }
  return {
    fault: logFault,
    injected: 'standard output is a file on a disk that is full, 20 requests meanwhile',
    count: 1,
    outcome: wrong.length === 0 ? 'it serves on, and ends as it should' : wrong.join('; '),
    held: wrong.length === 0,
  };
};

export const fullDisk: Scenario = {
  name: 'disk-full',
  about:
    'the disk of the store, of results and of the log filled in traffic, and emptied (needs root, for a disk)',
  defaultCount: 10,
  run: (options) =>
    inScratch(async (scratch) => {
      const disk = join(scratch, 'disk');
      mkdirSync(disk);
      const size = `size=${String(DISK_MIB)}m`;
      const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', size, 'tmpfs', disk], { encoding: 'utf8' });
      if (mounted.status !== 0) {
        const why = `no disk may be mounted here: ${mounted.error?.message ?? mounted.stderr}`;
        return [storeFault, logFault].map((fault) => notRun(fault, 'a small disk, filled', why));
      }
      try {
        return [await fillInTraffic(disk, options), await fullLog(disk, scratch)];
      } finally {
        spawnSync('umount', ['--lazy', disk]);
      }
    }),
};
