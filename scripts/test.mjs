/**
 * Runs the compiled test files of suites, several files at a time.
 *
 *   node scripts/test.mjs SUITE... [PART...]     `fast` or `slow`; the files whose path has a PART
 *
 * The files of `slow` are named *.slow.test.js, and *.sweep.test.js: of these each day another part runs, and all by night.
 *
 * A file that fails is not tried again: a test that fails now and then is a defect.
 *
 * tap can run files itself. But it takes a process for each, which loads tap and the sources again, and it loads hooks into
 * every process and thread of the tests, and into every Node process that they start. Here a few processes take one file
 * after the other.
 */
import { spawn } from 'node:child_process';
import { globSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

// More than the cores of CI, because many tests mostly wait.
const jobs = 5;
// A service on a software GPU takes a minute alone, twice that beside other files, and more on a slow day.
const timeoutSeconds = 300;
/**
 * Files in these folders start services, threads or models, wait for long, or try many inputs. They run first: at the end one
 * core would have no work.
 */
const slowFolders = [
  ...['store', 'e2e', 'console', 'text', 'client-python', 'workers/engines', 'scripts', 'dialects'],
  ...['front', 'limits', 'speech', 'threads', 'workers', 'model', 'client'],
];
const root = dirname(dirname(fileURLToPath(import.meta.url)));
const isCi = process.env.SYRINX_CI_REQUIRE_ALL === '1';

/** A process that runs files, one after the other. */
class Worker {
  #child = spawn(
    process.execPath,
    [
      '--enable-source-maps',
      '--disable-warning=ExperimentalWarning',
      join(root, 'scripts', 'test-worker.mjs'),
    ],
    {
      cwd: root,
      env: { ...process.env, TAP: '1', TAP_TIMEOUT: String(timeoutSeconds) },
      stdio: ['pipe', 'pipe', 'inherit', 'pipe'],
    },
  );
  /** What the process wrote since the last file ended. */
  #output = '';
  /** The counts of the file that has ended, as JSON. */
  #counts = '';
  #notify = () => undefined;
  /** How the process ended, or null. */
  #end = null;
  #ended;

  constructor() {
    this.#child.stdin.on('error', () => undefined);
    this.#child.stdout.setEncoding('utf8').on('data', (text) => {
      this.#output += text;
      this.#notify();
    });
    this.#child.stdio[3].setEncoding('utf8').on('data', (text) => {
      this.#counts += text;
      this.#notify();
    });
    this.#ended = new Promise((resolve) => {
      this.#child.once('close', (code, signal) => {
        this.#end = signal ?? `exit code ${code}`;
        this.#notify();
        resolve();
      });
    });
  }

  /** @returns {Promise<{ output: string, pass: number, fail: number, cpuSeconds: number, end: string | null }>} `end`: how the process failed */
  async run(path) {
    this.#child.stdin.write(`${path}\n`);
    // tap ends a test at its timeout, and names it. This is for a process that cannot.
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), (timeoutSeconds + 10) * 1_000);
    const lastLine = new RegExp(`^(?:not )?ok \\d+ - ${path.replaceAll('.', '\\.')}`, 'm');
    while (this.#end === null && (this.#counts === '' || !lastLine.test(this.#output)))
      await new Promise((resolve) => (this.#notify = resolve));
    clearTimeout(timer);
    const counts = this.#counts === '' ? { pass: 0, fail: 1, cpuSeconds: 0 } : JSON.parse(this.#counts);
    const ran = { output: this.#output, ...counts, end: this.#end };
    this.#output = this.#counts = '';
    return ran;
  }

  /** @returns {Promise<string | null>} what was wrong with the end of the process */
  async end() {
    this.#child.stdin.end();
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), 30_000);
    await this.#ended;
    clearTimeout(timer);
    if (this.#end === 'SIGKILL') return 'something that a test opened keeps its process alive';
    return this.#end === 'exit code 0' ? null : `the process ended with ${this.#end}`;
  }

  async kill() {
    this.#child.kill('SIGKILL');
    await this.#ended;
  }
}

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

const totals = { passed: 0, failed: 0, cpuSeconds: 0 };

/** Runs a file and reports on it. @returns {Promise<boolean>} whether it passed */
const runFile = async (worker, path) => {
  const startMs = performance.now();
  const { output, pass, fail, cpuSeconds, end } = await worker.run(path);
  const seconds = secondsSince(startMs);
  const notRun = output.match(/^ *ok \d+ .*# (?:SKIP|TODO)\b.*$/gm) ?? [];
  // A file without results did not run to its end.
  const failed = Math.max(fail + (isCi ? notRun.length : 0), pass + notRun.length === 0 ? 1 : 0);
  totals.passed += pass;
  totals.failed += failed;
  totals.cpuSeconds += cpuSeconds;
  console.log(
    `${failed === 0 ? 'pass' : 'FAIL'} ${path} ${pass} ${seconds.toFixed(1)} s (${cpuSeconds.toFixed(1)} s of CPU)`,
  );
  for (const line of notRun) console.log(`  not run: ${line.trim()}`);
  if (failed === 0) return true;
  if (end !== null) console.log(`  ended with ${end}`);
  const failures = failuresIn(output);
  console.log(
    (failures.length > 0 ? failures : output.split('\n').slice(-30)).map((line) => `  ${line}`).join('\n'),
  );
  return false;
};

/** Runs files in one process until there are no more. */
const job = async (waiting) => {
  let worker = null;
  let ran = [];
  const end = async () => {
    const fault = (await worker?.end()) ?? null;
    if (fault !== null) {
      totals.failed += 1;
      console.log(`FAIL: ${fault}, after ${ran.join(' ')}`);
    }
    worker = null;
  };
  for (const path of waiting) {
    if (worker === null) [worker, ran] = [new Worker(), []];
    ran.push(path);
    if (!(await runFile(worker, path))) {
      // It may have left what disturbs the next one.
      await worker.kill();
      worker = null;
    }
  }
  await end();
};

/** Each sweep runs on one day of so many. */
const sweepDays = 4;

/** @returns {string[]} the files of a suite, in order */
const filesOf = (suite, parts) => {
  const files = globSync('dist/test/**/*.test.js', { cwd: root })
    .filter((path) => parts.length === 0 || parts.some((part) => path.includes(part)))
    .sort();
  const named = (kind) => files.filter((path) => path.endsWith(`.${kind}.test.js`));
  const sweeps = parts.length > 0 ? named('sweep') : partOfToday(named('sweep'), sweepDays);
  const slow = [...named('slow'), ...sweeps];
  const fast = files.filter((path) => !/\.(slow|sweep)\.test\.js$/.test(path));
  return (suite === 'slow' ? slow : fast).sort((a, b) => turnOf(a) - turnOf(b) || a.localeCompare(b));
};

const suites = process.argv.slice(2).filter((word) => word === 'fast' || word === 'slow');
const parts = process.argv.slice(2).filter((word) => !suites.includes(word));
if (suites.length === 0) {
  console.error('Usage: node scripts/test.mjs fast|slow ... [PART...]');
  process.exit(2);
}
const { partOfToday, seedOfRun } = await import('../dist/test/fuzz/check.js');
const startMs = performance.now();
const paths = suites.flatMap((suite) => filesOf(suite, parts));
const waiting = paths.values();
await Promise.all(Array.from({ length: jobs }, () => job(waiting)));
console.log(
  `${suites.join(' and ')}: ${paths.length} files in ${secondsSince(startMs).toFixed(0)} s, with ${totals.cpuSeconds.toFixed(0)} s of CPU`,
);
console.log(`SYRINX_FUZZ_SEED=${seedOfRun()} repeats the random inputs of this run`);
console.log(`${totals.passed} passed, ${totals.failed} failed`);
process.exitCode = totals.failed > 0 || totals.passed === 0 ? 1 : 0;
