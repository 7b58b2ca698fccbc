import { spawnSync } from 'node:child_process';
import { closeSync, existsSync, openSync } from 'node:fs';
import t from 'tap';

const logModule = new URL('../src/log.js', import.meta.url).href;

t.test(
  'a log on a full disk does not fail its callers, and its memory stays bounded',
  { skip: !existsSync('/dev/full') },
  (t) => {
    const program = `
    const { createLog } = await import(${JSON.stringify(logModule)});
    const log = createLog('info', { logBytesWaitingMax: 2 ** 20 });
    const filler = 'x'.repeat(1_000);
    for (let i = 0; i < 20_000; i += 1) log.info({ filler }, 'a line');
    gc();
    process.stderr.write(process.memoryUsage().heapUsed > 15e6 ? 'too much' : 'little');
  `;
    const full = openSync('/dev/full', 'w');
    const args = ['--expose-gc', '--input-type=module', '--eval', program];
    const { status, stderr } = spawnSync(process.execPath, args, {
      stdio: ['ignore', full, 'pipe'],
      encoding: 'utf8',
    });
    closeSync(full);
    t.equal(stderr, 'little');
    t.equal(status, 0);
    t.end();
  },
);
