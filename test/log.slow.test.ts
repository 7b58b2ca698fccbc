/** The log on outputs that refuse it or that nobody reads: its callers go on, and no line is lost without being counted. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, constants, existsSync, openSync, readFileSync } from 'node:fs';
import { Socket } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import t, { type Test } from 'tap';
import { until } from './support/service.js';
import { CTRL_D, noTerminal, Terminal } from './support/terminal.js';

const logModule = new URL('../src/log.js', import.meta.url).href;
const LINES = 20_000;
const waitingMax = 2 ** 20;

/** How long an end waits for a reader: longer than any test takes, where the wait is not the subject. */
const endMsMax = 60_000;

/** A program with a `log`; its standard error is what it has to say. */
const programOf = (program: string, readable = 'undefined', logEndMsMax = endMsMax): string => `
    import { createLog, loadTerminal } from ${JSON.stringify(logModule)};
    import { once } from 'node:events';
    import { setTimeout as sleep } from 'node:timers/promises';
    const log = createLog('info', { logBytesWaitingMax: ${waitingMax}, logEndMsMax: ${logEndMsMax} }, ${readable});
    const filler = 'x'.repeat(1_000);
    ${program}
  `;

const run = (program: string, output: number | 'pipe', logEndMsMax?: number): ChildProcess => {
  const source = programOf(program, undefined, logEndMsMax);
  const args = ['--expose-gc', '--input-type=module', '--eval', source];
  return spawn(process.execPath, args, { stdio: ['pipe', output, 'pipe'] });
};

const textOf = async (stream: Readable): Promise<string> => (await stream.toArray()).join('');

/** @returns the exit code and the standard error */
const ended = async (child: ChildProcess): Promise<readonly [number | null, string]> => {
  const [stderr, [code]] = await Promise.all([
    textOf(child.stderr!),
    once(child, 'exit') as Promise<[number]>,
  ]);
  return [code, stderr];
};

/** A pipe as a shell makes it. @returns its descriptor for both ends, and what reads it */
const makePipe = (t: Test) => {
  const path = join(t.testdir(), 'pipe');
  execFileSync('mkfifo', [path]);
  const pipe = openSync(path, constants.O_RDWR);
  t.teardown(() => closeSync(pipe));
  const read = () =>
    new Socket({ fd: openSync(path, constants.O_RDONLY | constants.O_NONBLOCK), writable: false });
  return { pipe, read };
};

t.test(
  'on a full disk no caller fails, and memory stays bounded',
  { skip: !existsSync('/dev/full') },
  async (t) => {
    const full = openSync('/dev/full', 'w');
    const child = run(
      `for (let i = 0; i < ${LINES}; i += 1) log.info({ filler }, 'a line');
    gc();
    await log.end();
    process.stderr.write(process.memoryUsage().heapUsed > 15e6 ? 'too much' : 'little');
    process.stderr.write(log.linesLost > 0 ? ', lost' : ', kept');`,
      full,
    );
    closeSync(full);
    t.strictSame(await ended(child), [0, 'little, lost']);
  },
);

/** Writes in several ticks, reports that it has written, and ends when its input ends. */
const patient = `
  for (let i = 0; i < ${LINES}; i += 1) {
    log.info({ i, filler }, 'a line');
    if (i % 100 === 0) await sleep(0);
  }
  process.stderr.write('written');
  await once(process.stdin.resume(), 'end');
  await log.end();
  process.exit(0);
`;

for (const kind of ['pipe', 'socket'] as const)
  t.test(
    `a log on a ${kind} without a reader does not wait; its reader then gets whole lines and a count`,
    async (t) => {
      const made = kind === 'pipe' ? makePipe(t) : null;
      // Node connects a child by a pair of sockets.
      const child = run(patient, made?.pipe ?? 'pipe');
      t.equal(String(await once(child.stderr!, 'data')), 'written');
      const output = made?.read() ?? child.stdout!;
      let lines = 0;
      let lost = 0;
      let last = -1;
      for await (const text of createInterface({ input: output })) {
        const line = JSON.parse(text) as { msg: string; i: number; lines: number };
        if (line.msg === 'a line') {
          lines++;
          if (line.i <= last) t.fail(`${line.i} after ${last}`);
          last = line.i;
        } else lost += line.lines;
        if (lines + lost === LINES) break;
      }
      t.ok(lost > 0 && lines > waitingMax / 1_100, `${lines} lines and ${lost} lost ones`);
      child.stdin!.end();
      t.strictSame(await ended(child), [0, '']);
    },
  );

t.test('a terminal that nobody reads: the same, with lines for people', { skip: noTerminal }, async (t) => {
  const progress = join(t.testdir({ progress: '' }), 'progress');
  const source = programOf(patient, `(await loadTerminal()).readable`);
  const command = `exec "$NODE" --input-type=module --eval "$SOURCE" 2>"$PROGRESS"`;
  const env = { NODE: process.execPath, SOURCE: source, PROGRESS: progress, NO_COLOR: '1' };
  const terminal = new Terminal(command, 2_000, env);
  terminal.child.stdout!.pause();
  t.ok(await until(() => readFileSync(progress, 'utf8') === 'written'));
  terminal.child.stdout!.resume();
  const counts = () => ({
    shown: terminal.shown.match(/INFO: a line i=\d+ filler=x{1000}\n/g)?.length ?? 0,
    lost: [...terminal.shown.matchAll(/WARN: log lines were lost.* lines=(\d+)\n/g)].reduce(
      (sum, [, lines]) => sum + Number(lines),
      0,
    ),
  });
  t.ok(await until(() => counts().shown + counts().lost === LINES));
  t.ok(counts().lost > 0 && counts().shown > waitingMax / 1_100, JSON.stringify(counts()));
  terminal.type(CTRL_D);
  t.equal(await terminal.exited, 0);
});

t.test('an end does not wait for a reader that does not read', async (t) => {
  const program = `for (let i = 0; i < 500; i += 1) log.info({ filler }, 'a line');
    await log.end();
    process.exit(3);`;
  t.strictSame(await ended(run(program, makePipe(t).pipe, 300)), [3, '']);
});

t.test('an end does not wait for a reader that has gone', async (t) => {
  const child = run(
    `await once(process.stdin.resume(), 'end');
    for (let i = 0; i < ${LINES}; i += 1) log.info({ filler }, 'a line');
    await sleep(20);
    const startedMs = performance.now();
    await log.end();
    process.stderr.write(performance.now() - startedMs < ${endMsMax / 2} ? 'at once' : 'late');
    process.stderr.write(log.linesLost > 0 ? ', lost' : ', kept');
    process.exit(0);`,
    'pipe',
  );
  child.stdout!.destroy();
  child.stdin!.end();
  t.strictSame(await ended(child), [0, 'at once, lost']);
});

t.test('a file has every line when the end resolves', async (t) => {
  const path = join(t.testdir(), 'log');
  const file = openSync(path, 'a');
  const program = `for (let i = 0; i < 900; i += 1) log.info({ i, filler }, 'a line');
    await log.end();
    process.exit(0);`;
  const child = run(program, file);
  closeSync(file);
  t.strictSame(await ended(child), [0, '']);
  const lines = readFileSync(path, 'utf8').trimEnd().split('\n');
  t.strictSame(
    lines.map((line) => (JSON.parse(line) as { i: number }).i),
    Array.from({ length: 900 }, (_, i) => i),
  );
});
