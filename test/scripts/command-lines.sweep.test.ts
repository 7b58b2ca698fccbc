/** The command lines of the service, its commands, and the programs that measure and break it. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { text as readAll } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { readOptions as readBench } from '../../scripts/bench/options.js';
import { consoleProgram } from '../../scripts/console.js';
import { keys } from '../../scripts/keys.js';
import { packageProgram } from '../../scripts/package/main.js';
import { phonemes } from '../../scripts/phonemes.js';
import { say } from '../../scripts/say.js';
import { readOptions as readSoak } from '../../scripts/soak/options.js';
import { store } from '../../scripts/store.js';
import { readOptions as readTorture } from '../../scripts/torture/options.js';
import { usageReport } from '../../scripts/usage.js';
import { voices } from '../../scripts/voices.js';
import { answerTo, UsageError } from '../../src/command-line.js';
import { version } from '../../src/version.js';
import { runner } from '../support/run-command.js';

const run = (program: string, ...args: readonly string[]) => {
  const file = fileURLToPath(new URL(`../../scripts/${program}/main.js`, import.meta.url));
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ['--disable-warning=ExperimentalWarning', file, ...args],
    { encoding: 'utf8' },
  );
  return { status, stdout, stderr };
};

for (const program of ['torture', 'bench', 'soak'])
  t.test(`${program}: a usage error is explained, with the usage`, (t) => {
    const { status, stdout, stderr } = run(program, '--bogus');
    t.equal(status, 2);
    t.equal(stdout, '');
    t.match(stderr, new RegExp(`^${program}: Unknown option '--bogus'.*\\n\\nUsage: npm run ${program} -- `));
    t.notMatch(stderr, /^ {4}at /m, 'no stack');
    t.end();
  });

t.test(
  'the service starts for no argument: it prints help or version, or refuses what it does not know',
  (t) => {
    const dataDir = t.testdir();
    const syrinx = (...args: readonly string[]) => {
      const file = fileURLToPath(new URL('../../../scripts/syrinx', import.meta.url));
      const env = { ...process.env, DATA_DIR: dataDir, PORT: 'no port' };
      return spawnSync('sh', [file, ...args], { encoding: 'utf8', env });
    };
    t.match(syrinx('--help'), { status: 0, stdout: /^Usage: syrinx /, stderr: '' });
    t.match(syrinx('--version'), { status: 0, stdout: `syrinx ${version}\n`, stderr: '' });
    t.match(syrinx('--', 'now'), { status: 2, stdout: '', stderr: /^syrinx: Unexpected argument 'now'/ });
    t.match(syrinx('nothing'), { status: 2, stdout: '', stderr: /there is no command "nothing"/ });
    t.strictSame(readdirSync(dataDir), [], 'nothing was started');
    t.end();
  },
);

const commands = {
  console: consoleProgram,
  keys,
  package: packageProgram,
  phonemes,
  say,
  store,
  usage: usageReport,
  voices,
};

for (const [name, program] of Object.entries(commands))
  t.test(`${name}: help and version end with 0, an unknown flag with 2`, async (t) => {
    const command = runner(program, t.testdir());
    for (const flag of ['--help', '-h'])
      t.match(await command(flag), { status: 0, stdout: /^Usage: npm run /, stderr: '' }, flag);
    t.match(await command('--version'), { status: 0, stdout: `syrinx ${version}\n`, stderr: '' });
    t.match(await command('--bogus'), {
      status: 2,
      stdout: '',
      stderr: new RegExp(`^${name}: Unknown option '--bogus'.*\\n\\nUsage: npm run ${name}\\b`),
    });
  });

t.test('the programs that measure and break the service tell their version and usage', (t) => {
  for (const read of [readBench, readSoak, (args: readonly string[]) => readTorture(args, [])]) {
    const answerOf = (flag: string) => {
      try {
        return read([flag]);
      } catch (error) {
        return answerTo(error, 'program', 'Usage\n');
      }
    };
    for (const flag of ['--help', '-h']) t.strictSame(answerOf(flag), { exitCode: 0, text: 'Usage\n' });
    t.strictSame(answerOf('--version'), { exitCode: 0, text: `syrinx ${version}\n` });
  }
  t.end();
});

for (const script of ['usage', 'torture/main', 'soak/main'])
  t.test(`${script} ends quietly when the reader of its output has gone`, async (t) => {
    const file = fileURLToPath(new URL(`../../scripts/${script}.js`, import.meta.url));
    const args = ['--disable-warning=ExperimentalWarning', file, '--help'];
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] });
    child.stdout.destroy();
    const closed = once(child, 'close') as Promise<[code: number | null]>;
    const [stderr, [code]] = await Promise.all([readAll(child.stderr), closed]);
    t.strictSame([code, stderr], [141, '']);
  });

t.test('torture: the scenarios, listed', (t) => {
  const { status, stdout } = run('torture', '--list');
  t.equal(status, 0);
  t.match(stdout, /^scenario +count +about\n/);
  t.match(stdout, /^kills +1250 /m);
  t.end();
});

t.test('torture: its options', (t) => {
  const read = (...args: readonly string[]) => readTorture(args, ['kill', 'fuzz', 'hosts-cut', 'hosts-kill']);
  t.same(read(), { names: [], count: null, seed: null, allowSkips: false });
  t.same(read('kill', '--count', '5', '--seed', '0', '--allow-skips'), {
    names: ['kill'],
    count: 5,
    seed: 0,
    allowSkips: true,
  });
  t.same(read('fuzz', 'kill'), { names: ['fuzz', 'kill'], count: null, seed: null, allowSkips: false });
  t.match(read('hosts', '--count', '2'), { names: ['hosts-cut', 'hosts-kill'], count: 2 }, 'a group');
  const refusals: readonly (readonly [readonly string[], RegExp])[] = [
    [['flood'], /^there is no scenario "flood": kill, fuzz, hosts-cut, hosts-kill$/],
    [['kill', '--count', '0'], /^--count is at least 1$/],
    [['kill', '--count', '1.5'], /^--count is a whole number/],
    [['--count', '5'], /^--count goes with the name of one scenario or group$/],
    [['kill', 'fuzz', '--count', '5'], /^--count goes with the name of one scenario or group$/],
    [['--seed', 'x'], /^--seed is a whole number below 1e9, not "x"$/],
  ];
  for (const [args, message] of refusals)
    t.throws(() => read(...args), { constructor: UsageError, message }, args.join(' '));
  t.end();
});

t.test('bench: its options', (t) => {
  const read = (...args: readonly string[]) => readBench(args);
  t.same(read('ws', '--only', 'idle, frames', '--json', 'a.json'), {
    program: 'ws',
    parts: ['idle', 'frames'],
    rateHz: 24_000,
    overload: { isQuick: false, seconds: 40, capacity: null },
    json: 'a.json',
    readme: false,
  });
  t.match(read('overload', '--only', '2,burst', '--seconds', '10', '--capacity', '200'), {
    parts: ['2', 'burst'],
    overload: { isQuick: false, seconds: 10, capacity: 200 },
  });
  t.ok(read('overload', '--quick').overload.seconds < 40);
  t.match(read('overload', '--only', 'cold,throughput'), { parts: ['cold', 'throughput'] });
  t.same(read('--readme', '--rate', '48000').rateHz, 48_000);
  t.ok(read().parts.length > 1, 'without a name all parts over HTTP');
  const refusals: readonly (readonly [readonly string[], RegExp])[] = [
    [
      ['http'],
      /^there is no "http": all, ws, pauses, overload, tokens, text, dialects, peers, voices, hosts, gpu$/,
    ],
    [['ws', 'tokens'], /^there is no "ws tokens"/],
    [['ws', '--only', 'memory'], /^--only: there is no part "memory": idle, together, streams, frames$/],
    [['--rate', '24k'], /^--rate is a sample rate in Hz, not "24k"$/],
    [['ws', '--readme'], /^--readme goes with/],
    [['ws', '--quick'], /^--seconds, --capacity and --quick go with overload$/],
    [['overload', '--only', '3'], /^--only: there is no part "3": cold, warm, half, .* throughput, audible$/],
    [['overload', '--seconds', '0.5'], /^--seconds is a whole number from 1 on, not "0.5"$/],
    [['overload', '--capacity', 'all'], /^--capacity is a whole number/],
  ];
  for (const [args, message] of refusals) t.throws(() => read(...args), { message }, args.join(' '));
  t.end();
});
