/** The scenario of the full disk: a small disk, filled and emptied in traffic. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Books, sqliteLedger } from '../kills/books.js';
import { Traffic } from '../kills/traffic.js';
import { Dice } from '../../rig/random.js';
import { Service } from '../../rig/service.js';
import { Tally } from '../../rig/tally.js';
import { createKeys } from '../../operator.js';
import { comesTrue, speak } from '../checks.js';
import { notRun, rowOf, unmet, type Scenario, type TortureOptions, type TortureRow } from '../scenario.js';
import { inScratch } from '../../rig/machine.js';

const DISK_MIB = 24;
const storeFull = {
  fault: 'disk of the store full',
  injected: `a disk of ${DISK_MIB} MiB filled to its last byte in traffic over HTTP and WebSocket, then emptied`,
};
const GRANTED = 100_000_000;
/** A whole result of this text is spooled to a file. */
const LONG_TEXT = 'Nobody had told the baker about the change. '.repeat(120);

/** Milliseconds after which its speech has begun, and has not ended. */
const SPOOLING_MS = 700;

/** Until no byte more fits. */
export const fill = (path: string): void => {
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
  const books = new Books(sqliteLedger(dataDir));
  books.grant(GRANTED);
  const service = await Service.start({ dataDir, ...threads });
  const wrong: string[] = [];
  const seen = new Tally();
  const filler = join(disk, 'filler');
  const reasonsAre = (reasons: string): Promise<boolean> =>
    comesTrue(async () => (await service.unreadyReasons()) === reasons);
  const statusOf = async (text: string, key = keys[0] ?? ''): Promise<number> =>
    (await speak(service.port, key, text)).status;
  try {
    for (let i = 0; i < options.count; i += 1) {
      const dice = new Dice(options.seed, i);
      const traffic = new Traffic(service.port, keys, dice);
      traffic.start(3, 2);
      await sleep(dice.below(400));
      fill(filler);
      const isReported = await reasonsAre(fullReason);
      const refused = await statusOf('Refused.');
      await books.look();
      rmSync(filler);
      const conditions = {
        'a full disk is reported': isReported,
        'speech is refused with 503': refused === 503,
        'it is ready when there is room': await reasonsAre(''),
        'it speaks again': (await statusOf('Admitted.')) === 200,
      };
      wrong.push(...unmet(conditions));
      await traffic.end();
      seen.merge(traffic.statuses);
      options.progress(`${i + 1} of ${options.count}: ${seen.toString()}, ${wrong.length} wrong`);
    }
    const spooling = statusOf(LONG_TEXT, keys[1]);
    await sleep(SPOOLING_MS);
    fill(filler);
    const status = await spooling;
    rmSync(filler);
    const isReady = await reasonsAre('');
    const { code } = await service.stop();
    const conditions = {
      'a result without room is answered with 500': status === 500,
      'it is ready at the end': isReady,
      'exit 0': code === 0,
    };
    wrong.push(...unmet(conditions), ...(await books.check()));
  } finally {
    await service.kill();
  }
  const saw = `answers ${seen.toString()}; ${books.entries} entries, none that was seen is lost, the store verifies`;
  return rowOf(storeFull, { count: options.count, saw, wrong });
};

export const fullDisk: Scenario = {
  name: 'disk-full',
  about: 'the disk of the store and of results filled in traffic, and emptied (needs root, to mount a disk)',
  defaultCount: 10,
  run: (options) =>
    inScratch(async (scratch) => {
      const disk = join(scratch, 'disk');
      mkdirSync(disk);
      const size = `size=${DISK_MIB}m`;
      const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', size, 'tmpfs', disk], { encoding: 'utf8' });
      if (mounted.status !== 0) {
        const why = `no disk may be mounted here: ${mounted.error?.message ?? mounted.stderr}`;
        return [notRun(storeFull, why)];
      }
      try {
        return [await fillInTraffic(disk, options)];
      } finally {
        spawnSync('umount', ['--lazy', disk]);
      }
    }),
};
