/**
 * Runs the compiled test files of suites, several files at a time.
 *
 *   node scripts/test.mjs SUITE...     `fast`, or `slow`: the files named *.slow.test.js
 *
 * A few files that fail run once more, alone: beside others, on a busy machine, a test can miss a deadline of its own.
 * The report names such a file as unstable, so that somebody mends it.
 *
 * tap can run files itself. But it then loads hooks into every process and thread of the tests, and into every Node
 * process that they start: a third of the CPU time of the suite. The hooks serve coverage, which we do not measure.
 */
import { spawn } from 'node:child_process';
import { globSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';

// One more than the cores of CI, because some tests mostly wait.
const jobs = 3;
// A service on a software GPU takes a minute alone, and twice that beside other files.
const timeoutSeconds = 180;
/** If more files fail, the machine is not the cause. */
const repeatedFilesMax = 3;
/** Files in these folders start services, threads or models, and take longest: they run first. */
const slowFolders = ['e2e', 'console', 'workers/engines', 'dialects', 'workers', 'model', 'client', 'front'];
const root = dirname(dirname(fileURLToPath(import.meta.url)));
const isCi = process.env.SYRINX_CI_REQUIRE_ALL === '1';

/** @returns {Promise<{ output: string, end: string | null }>} TAP, and how the process failed */
const runFile = (path) =>
  new Promise((resolve, reject) => {
    const child = spawn(
      process.execPath,
      ['--enable-source-maps', '--disable-warning=ExperimentalWarning', path],
      {
        cwd: root,
        env: { ...process.env, TAP: '1', TAP_TIMEOUT: String(timeoutSeconds) },
        stdio: ['ignore', 'pipe', 'inherit'],
      },
    );
    // tap ends a test at its timeout, and names it. This is for a process that cannot.
    const timer = setTimeout(() => child.kill('SIGKILL'), (timeoutSeconds + 10) * 1_000);
    let output = '';
    child.stdout.setEncoding('utf8').on('data', (text) => (output += text));
    child.once('error', reject).once('close', (code, signal) => {
      clearTimeout(timer);
      resolve({ output, end: code === 0 ? null : (signal ?? `exit code ${code}`) });
    });
  });

/** @returns {string[]} the failed assertions of a file: names of the tests around each, and what tap says about it */
const failuresIn = (output) => {
  const failures = [];
  const names = [];
  let open = null;
  for (const line of output.split('\n')) {
    const [, indent, text] = /^( *)(.*)$/.exec(line);
    const depth = indent.length / 4;
    const [, subtest] = /^# Subtest: (.*)$/.exec(text) ?? [];
    if (open !== null && indent.length > open) failures.push(line.slice(open));
    else open = null;
    if (open === null && subtest !== undefined) names[depth] = subtest;
    // A subtest that failed repeats what its assertions say.
    const [, assertion] = /^not ok \d+ - (.*)$/.exec(text) ?? [];
    if (assertion === undefined || open !== null || names[depth] === assertion.replace(/ # time=.*/, ''))
      continue;
    failures.push(['', ...names.slice(0, depth), assertion].join(' > '));
    open = indent.length;
  }
  return failures;
};

/** @returns {number} the place of the file in the order of the suite */
const turnOf = (path) => {
  const turn = slowFolders.findIndex((folder) => path.startsWith(`dist/test/${folder}/`));
  return turn < 0 ? slowFolders.length : turn;
};

const secondsSince = (ms) => (performance.now() - ms) / 1_000;

const totals = { passed: 0, failed: 0 };

/** Runs a file and reports on it. @returns {Promise<number>} how many of its assertions failed; they are not counted yet */
const tryFile = async (path) => {
  const startMs = performance.now();
  const { output, end } = await runFile(path);
  const seconds = secondsSince(startMs);
  const summary = /^# \{ total: .*\}$/m.exec(output)?.[0] ?? '';
  const count = (name) => Number(new RegExp(`\\b${name}: (\\d+)`).exec(summary)?.[1] ?? 0);
  const notRun = output.match(/^ *ok \d+ .*# (?:SKIP|TODO)\b.*$/gm) ?? [];
  const passed = count('pass');
  let failed = count('fail') + (isCi ? notRun.length : 0);
  // A file without a summary did not run to its end.
  if (failed === 0 && (end !== null || passed + notRun.length === 0)) failed = 1;
  totals.passed += passed;
  console.log(`${failed === 0 ? 'pass' : 'FAIL'} ${path} ${passed} ${seconds.toFixed(1)} s`);
  for (const line of notRun) console.log(`  not run: ${line.trim()}`);
  if (failed === 0) return 0;
  if (end !== null) console.log(`  ended with ${end}`);
  const failures = failuresIn(output);
  console.log(
    (failures.length > 0 ? failures : output.split('\n').slice(-30)).map((line) => `  ${line}`).join('\n'),
  );
  return failed;
};

const runSuite = async (suite) => {
  const startMs = performance.now();
  const paths = globSync('dist/test/**/*.test.js', { cwd: root })
    .filter((path) => path.endsWith('.slow.test.js') === (suite === 'slow'))
    .sort((a, b) => turnOf(a) - turnOf(b) || a.localeCompare(b));
  const waiting = paths.values();
  const failedByPath = new Map();
  const job = async () => {
    for (const path of waiting) {
      const failed = await tryFile(path);
      if (failed > 0) failedByPath.set(path, failed);
    }
  };
  await Promise.all(Array.from({ length: jobs }, job));
  const mayRepeat = failedByPath.size <= repeatedFilesMax;
  for (const [path, failed] of failedByPath) {
    const failedAlone = mayRepeat ? await tryFile(path) : failed;
    totals.failed += failedAlone;
    if (failedAlone === 0) console.log(`unstable: ${path} failed beside other files, and passed alone`);
  }
  console.log(`${suite}: ${paths.length} files in ${secondsSince(startMs).toFixed(0)} s`);
};

const suites = process.argv.slice(2);
if (suites.length === 0 || suites.some((suite) => suite !== 'fast' && suite !== 'slow')) {
  console.error('Usage: node scripts/test.mjs fast|slow ...');
  process.exit(2);
}
for (const suite of suites) await runSuite(suite);
console.log(`${totals.passed} passed, ${totals.failed} failed`);
process.exitCode = totals.failed > 0 || totals.passed === 0 ? 1 : 0;
