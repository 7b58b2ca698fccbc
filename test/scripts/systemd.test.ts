/** The unit is one that systemd understands, and as closed as it is meant to be. */
import { spawnSync } from 'node:child_process';
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { limits } from '../../src/limits.js';
import { worstCaseOf } from '../../src/worst-case.js';
import { packageRoot } from '../support/package-root.js';
import { missingTool } from '../support/tools.js';

const skip = missingTool('systemd-analyze');
const shipped = join(packageRoot, 'scripts/deploy/syrinx@.service');
const unit = readFileSync(shipped, 'utf8');

const setting = (name: string): string => {
  const values = [...unit.matchAll(new RegExp(`^${name}=(.*)$`, 'gm'))];
  if (values.length !== 1) throw new Error(`${name} is there ${values.length} times`);
  return values[0]?.[1] ?? '';
};

t.test('systemd finds nothing wrong with the unit', { skip }, (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'syrinx-unit-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  // What is there on a machine on which it is installed: it looks for the program, and for the page.
  symlinkSync(packageRoot, join(folder, 'current'));
  const path = join(folder, 'syrinx@.service');
  writeFileSync(path, unit.replaceAll('/opt/syrinx/current', join(folder, 'current')));
  const dropIn = join(folder, 'syrinx@.service.d');
  mkdirSync(dropIn);
  copyFileSync(join(packageRoot, 'scripts/deploy/syrinx-gpu.conf'), join(dropIn, 'gpu.conf'));
  const verified = spawnSync('systemd-analyze', ['verify', path], { encoding: 'utf8' });
  t.equal(verified.stderr + verified.stdout, '');
  t.equal(verified.status, 0);
  t.end();
});

t.test('its exposure, as systemd reckons, is low', { skip }, (t) => {
  // In tenths. What is left: it has a network, and /proc.
  const analyse = ['security', '--offline=true', '--threshold=15', '--no-pager', shipped];
  const analysed = spawnSync('systemd-analyze', analyse, { encoding: 'utf8' });
  t.equal(analysed.status, 0, analysed.stdout.trim().split('\n').at(-1) ?? '');
  t.match(analysed.stdout, /Overall exposure level/);
  t.end();
});

t.test('it fits the service', (t) => {
  const [, ...command] = setting('ExecStart').split(' ');
  t.same(command, ['--disable-warning=ExperimentalWarning', 'dist/src/main.js']);
  const { drainMsMax, stepEndMsMax, longStepEndMsMax, ledgerCloseMsMax, administrationCloseMsMax } = limits;
  const stopMsMax =
    drainMsMax + administrationCloseMsMax + stepEndMsMax + longStepEndMsMax + ledgerCloseMsMax;
  t.ok(Number(setting('TimeoutStopSec')) * 1_000 >= stopMsMax + 5_000, 'a drain is never cut off');
  const threads = {
    synthesisThreads: 64,
    actorThreads: 8,
    modelBytes: 0,
    sharedBytes: 0,
    stateBytes: 0,
    packFiles: 24,
    tls: true,
    console: true,
    lexicons: true,
    gpuBatch: 0,
    gpuItemBytes: 0,
    aac: true,
  };
  const { files } = worstCaseOf(limits, threads);
  t.ok(Number(setting('LimitNOFILE')) >= 2 * files, 'of all that is bounded, on a large machine');
  t.notMatch(unit, /^MemoryDenyWriteExecute=/m, 'V8 could not compile');
  t.end();
});
