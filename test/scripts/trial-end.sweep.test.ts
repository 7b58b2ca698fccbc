/** A trial of a voice pack ends with the process that asked for it: here the model never ends. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, readFileSync, readdirSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import t, { type Test } from 'tap';
import { badPacks } from '../../scripts/torture/voices/bad-packs.js';
import { newDataFolder } from '../support/service.js';
import { modelsDir } from '../support/voices.js';
import { eventually } from '../support/waiting.js';

/** Well below the 30 s of processor time that a trial has. */
const ENDED_MS_MAX = 15_000;

/** Half a second: it has read its order. */
const BUSY_TICKS = 50;
/** A trial of a service has niceness 10: beside busy programs it gets a twentieth of a core. */
const BUSY_MS_MAX = 90_000;

const fileOf = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url));

const readProcess = (pid: string | number, name: string): string => {
  try {
    return readFileSync(`/proc/${pid}/${name}`, 'utf8');
  } catch {
    return '';
  }
};

const isRunning = (pid: number): boolean => /^State:\s+[^ZX]/m.test(readProcess(pid, 'status'));

/** Processor time in user mode. */
const cpuTicks = (pid: number): number => Number(readProcess(pid, 'stat').split(') ')[1]?.split(' ')[11]);

/** The process of a trial that is a child of `parent`. */
const trialOf = ({ pid }: ChildProcess): number | undefined =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .find(
      (child) =>
        readProcess(child, 'cmdline').includes(fileOf('workers/trial.js')) &&
        readProcess(child, 'status').includes(`PPid:\t${pid}\n`),
    ) as number | undefined;

const begin = async (t: Test, args: readonly string[], isInstalled: boolean) => {
  const root = t.testdir({ models: {} });
  const dataDir = newDataFolder(t);
  const [models, pack] = [join(root, 'models'), join(root, 'endless')];
  cpSync(join(modelsDir, 'syrinx-en'), join(models, 'syrinx-en'), { recursive: true });
  await badPacks.find(({ name }) => name === 'endless')!.make(pack);
  const install = () => renameSync(pack, join(models, 'endless'));
  if (isInstalled) install();
  const child = spawn(process.execPath, [...args.map((arg) => (arg === 'PACK' ? pack : arg))], {
    env: {
      ...{ PATH: process.env['PATH'], HOME: root, MODELS_DIR: models, DATA_DIR: dataDir },
      ...{ PORT: '0', OPS_PORT: '0', CONSOLE_PORT: '0', SYNTHESIS_THREADS: '1' },
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.teardown(() => child.kill('SIGKILL'));
  let log = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (log += text));
  return { dataDir, models, child, install, log: () => log, isListening: () => log.includes('"listening"') };
};

const busyTrialOf = async (child: ChildProcess): Promise<number> => {
  let trial: number | undefined;
  await eventually(() => (trial = trialOf(child)) !== undefined && cpuTicks(trial) > BUSY_TICKS, BUSY_MS_MAX);
  return trial!;
};

/** @returns how the process ended */
const endInTrial = async (child: ChildProcess, signal: NodeJS.Signals): Promise<unknown> => {
  const trial = await busyTrialOf(child);
  const ended = once(child, 'exit', { signal: AbortSignal.timeout(ENDED_MS_MAX) });
  child.kill(signal);
  const how = await ended;
  await eventually(() => !isRunning(trial), ENDED_MS_MAX);
  return how;
};

const skip = process.platform === 'linux' ? false : 'it reads /proc';

t.test('of `voices add`, at SIGTERM', { skip }, async (t) => {
  const { child, models } = await begin(t, [fileOf('scripts/voices.js'), 'add', 'PACK'], false);
  t.strictSame(await endInTrial(child, 'SIGTERM'), [143, null]);
  t.strictSame(readdirSync(models), ['syrinx-en'], 'nothing is left');
});

for (const signal of ['SIGTERM', 'SIGKILL'] as const)
  t.test(`of a start that reads the packs, at ${signal}`, { skip }, async (t) => {
    const { child } = await begin(t, [fileOf('src/main.js')], true);
    t.strictSame(await endInTrial(child, signal), signal === 'SIGTERM' ? [0, null] : [null, signal]);
  });

t.test('of a reload, at SIGTERM', { skip }, async (t) => {
  const { child, install, isListening } = await begin(t, [fileOf('src/main.js')], false);
  await eventually(isListening);
  install();
  child.kill('SIGHUP');
  t.strictSame(await endInTrial(child, 'SIGTERM'), [0, null]);
});

t.test('SIGKILL that ends the trial alone says nothing about the pack', { skip }, async (t) => {
  const { dataDir, child, log } = await begin(t, [fileOf('scripts/voices.js'), 'check', 'PACK'], false);
  const trial = await busyTrialOf(child);
  const ended = once(child, 'close');
  process.kill(trial, 'SIGKILL');
  t.strictSame(await ended, [1, null]);
  t.match(log(), 'its trial was ended by SIGKILL: reload to try it again');
  t.notOk(existsSync(join(dataDir, 'voices', 'trials.json')), 'it is not kept');
});
