/** The scenario of the full disk: a small disk, filled and emptied in traffic. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { limits } from '../../../src/limits.js';
import { verifyStore } from '../../../src/store/sqlite/backup.js';
import { Traffic } from '../kills/traffic.js';
import { Witness } from '../kills/witness.js';
import { Dice } from '../../rig/random.js';
import { Service } from '../../rig/service.js';
import { Tally } from '../../rig/tally.js';
import { createKeys } from '../../operator.js';
import { comesTrue, speak } from '../checks.js';
import { notRun, type Scenario, type TortureOptions, type TortureRow } from '../scenario.js';
import { inScratch } from '../../rig/machine.js';

const storeFault = 'disk of the store full';
const logFault = 'disk of the log full';
const DISK_MIB = 24;
const GRANTED = 100_000_000;
/** A whole result of this text is spooled to a file. */
const LONG_TEXT = 'Nobody had told the baker about the change. '.repeat(120);

/** Milliseconds after which its speech has begun, and has not ended. */
const SPOOLING_MS = 700;

/** Until no byte more fits. */
const fill = (path: string): void => {
  for (let bytes = 2 ** 20; bytes >= 512; bytes /= 2)
    try {
      for (;;) writeFileSync(path, Buffer.alloc(bytes), { flag: 'a' });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
    }
};

const threads = { synthesisThreads: 1, actorThreads: 1 };
const fullReason = 'the disk of the store is full';

const fillInTraffic = async (disk: string, options: TortureOptions): Promise<TortureRow> => {
  const dataDir = join(disk, 'data');
  const keys = await createKeys(dataDir, [
    ['payer', GRANTED / 2],
    ['payer', GRANTED / 2],
  ]);
  const service = await Service.start({ dataDir, ...threads });
  const witness = new Witness(dataDir);
  const wrong: string[] = [];
  const seen = new Tally();
  const filler = join(disk, 'filler');
  const isReady = async (): Promise<boolean> => (await service.unreadyReasons()) === '';
  try {
    for (let i = 0; i < options.count; i += 1) {
      const traffic = new Traffic(service.port, keys, new Dice(options.seed, i));
      traffic.start(3, 2);
      await sleep(new Dice(options.seed, i).below(400));
      fill(filler);
      if (await comesTrue(async () => (await service.unreadyReasons()) === fullReason))
        seen.add('reported by /readyz');
      else wrong.push(`not reported: "${await service.unreadyReasons()}"`);
      const refused = await speak(service.port, keys[0] ?? '', 'Refused.');
      if (refused.status !== 503) wrong.push(`a request was answered ${refused.status}`);
      witness.look();
      rmSync(filler);
      if (await comesTrue(isReady)) seen.add('ready when there was room');
      else wrong.push(`not ready again: ${await service.unreadyReasons()}`);
      if ((await speak(service.port, keys[0] ?? '', 'Admitted.')).status !== 200)
        wrong.push('it does not speak');
      await traffic.end();
      if (traffic.statuses.of('500') > 0) seen.add('round with a 500 for a result without room');
      options.progress(`${i + 1} of ${options.count}: ${seen.toString()}`);
    }
    const spooling = speak(service.port, keys[1] ?? '', LONG_TEXT);
    await sleep(SPOOLING_MS);
    fill(filler);
    const { status } = await spooling;
    rmSync(filler);
    if (status !== 500) wrong.push(`a result without room was answered ${status}`);
    else seen.add('500 for a result without room');
    if (!(await comesTrue(isReady))) wrong.push('not ready at the end');
    const { code } = await service.stop();
    if (code !== 0) wrong.push(`it ended with ${code}`);
    wrong.push(...witness.check(true).wrong);
    verifyStore(dataDir, limits);
  } finally {
    await service.kill();
  }
  return {
    fault: storeFault,
    injected: `a disk of ${DISK_MIB} MiB filled to its last byte in traffic over HTTP and WebSocket, then emptied`,
    count: options.count,
    outcome: `${seen.toString()}; new requests 503 meanwhile, ${witness.entries} entries, no entry that was seen is lost, the store verifies ${wrong.join('; ')}`,
    held: wrong.length === 0,
  };
};

/** @returns the port in the log; 0 before the service listens */
const portIn = (log: string): number => {
  const lines = readFileSync(log, { flag: 'a+', encoding: 'utf8' }).split('\n');
  const line = lines.find((text) => text.endsWith('"msg":"listening"}'));
  return line === undefined ? 0 : (JSON.parse(line) as { port: number }).port;
};

/** Standard output is a file on the full disk. */
const fullLog = async (disk: string, scratch: string): Promise<TortureRow> => {
  const filler = join(disk, 'filler');
  mkdirSync(join(disk, 'log'));
  const log = join(disk, 'log', 'out');
  const service = new Service({
    dataDir: join(scratch, 'logged'),
    ...threads,
    env: { LOG_FILE: log },
    launcher: ['sh', '-c', 'exec "$0" "$@" >> "$LOG_FILE"'],
  });
  const wrong: string[] = [];
  try {
    if (!(await comesTrue(() => Promise.resolve(portIn(log) > 0), 60_000))) wrong.push('it did not start');
    const port = portIn(log);
    const [key = ''] = await service.makeKeys(1);
    fill(filler);
    for (let i = 0; i < 20; i += 1) {
      const { status } = await speak(port, key, 'Unlogged.');
      if (status !== 200) wrong.push(`answered ${status}`);
    }
    rmSync(filler);
    if ((await speak(port, key, 'Logged.')).status !== 200) wrong.push('it does not speak any more');
    const { code } = await service.stop();
    if (code !== 0) wrong.push(`it ended with ${code}`);
  } finally {
    await service.kill();
    rmSync(filler, { force: true });
  }
  return {
    fault: logFault,
    injected: 'standard output is a file on a disk that is full, 20 requests meanwhile',
    count: 1,
    outcome: wrong.length === 0 ? 'it serves on, and ends well' : wrong.join('; '),
    held: wrong.length === 0,
  };
};

export const fullDisk: Scenario = {
  name: 'disk-full',
  about:
    'the disk of the store, of results and of the log filled in traffic, and emptied (needs root, to mount a disk)',
  defaultCount: 10,
  run: (options) =>
    inScratch(async (scratch) => {
      const disk = join(scratch, 'disk');
      mkdirSync(disk);
      const size = `size=${DISK_MIB}m`;
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
