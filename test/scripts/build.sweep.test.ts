import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { text as readAll } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { packageRoot } from '../support/package-root.js';
import { readSource } from '../support/source-files.js';

/** The declarations that these sources need of Node. Node's own would double the time of every build. */
const declarations = `declare const console: { log(...values: string[]): void };
declare const process: {
  readonly argv: readonly string[];
  readonly env: Record<string, string | undefined>;
  readonly pid: number;
  on(signal: string, listener: () => void): void;
  exit(code: number): never;
};
declare const setInterval: (listener: () => void, ms: number) => void;
`;

/** Creates a clone of a few sources, with this project's build, settings and packages. */
const createClone = (t: Test): string => {
  const root = t.testdir();
  for (const folder of ['scripts', 'src', 'node_modules']) mkdirSync(join(root, folder));
  for (const name of ['build.mjs', 'bundle.mjs', 'compile.mjs', 'run.mjs', 'start.mjs', 'syrinx']) {
    copyFileSync(join(packageRoot, 'scripts', name), join(root, 'scripts', name));
  }
  const settings = JSON.parse(readSource('tsconfig.json')) as { compilerOptions: object };
  const compilerOptions = { ...settings.compilerOptions, types: [] };
  writeFileSync(join(root, 'tsconfig.json'), JSON.stringify({ ...settings, compilerOptions }));
  writeFileSync(join(root, 'package.json'), '{ "type": "module" }');
  for (const name of readdirSync(join(packageRoot, 'node_modules'))) {
    if (!name.startsWith('.'))
      symlinkSync(join(packageRoot, 'node_modules', name), join(root, 'node_modules', name));
  }
  writeFileSync(join(root, 'src', 'main.ts'), "console.log('hello', process.argv.slice(2).join());\n");
  writeFileSync(join(root, 'src', 'node.d.ts'), declarations);
  writeFileSync(join(root, 'src', 'other.ts'), 'export const other = 1;\n');
  return root;
};

const start = (root: string, args: readonly string[]): ChildProcess =>
  spawn(process.execPath, args, { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] });

const run = async (root: string, ...args: string[]) => {
  const child = start(root, args);
  const [stdout, stderr, [code]] = await Promise.all([
    readAll(child.stdout!),
    readAll(child.stderr!),
    once(child, 'close') as Promise<[number | null]>,
  ]);
  return { stdout, stderr, code };
};

const leftovers = (root: string) => readdirSync(root).filter((name) => name.startsWith('dist-'));

void t.test(
  'several starts at once run the same build; later starts build only after a source changed',
  async (t) => {
    const root = createClone(t);
    const runs = await Promise.all(
      [1, 2, 3].map(() => run(root, 'scripts/run.mjs', 'src/main.js', 'a', 'b')),
    );
    for (const { code, stdout, stderr } of runs) {
      t.same([code, stdout], [0, 'hello a,b\n'], stderr);
      t.match(stderr, /^(?:Building syrinx[^\n]*\n)?$/, 'one line explains the wait');
    }
    t.strictSame(leftovers(root), []);

    const second = await run(root, 'scripts/run.mjs', 'src/main.js');
    t.equal(second.stderr, '', 'nothing to build');
    t.equal(second.stdout, 'hello \n');

    rmSync(join(root, 'src', 'other.ts'));
    writeFileSync(join(root, 'src', 'main.ts'), "console.log('changed');\n");
    const third = await run(root, 'scripts/run.mjs', 'src/main.js');
    t.equal(third.stdout, 'changed\n');
    t.notOk(existsSync(join(root, 'dist', 'src', 'other.js')), 'a removed source leaves no dead file');
    t.strictSame(leftovers(root), []);

    // What does not compile is a readable error, and the build stays stale.
    writeFileSync(join(root, 'src', 'main.ts'), "export const count = 'three;\n");
    for (let attempt = 0; attempt < 2; attempt++) {
      const failed = await run(root, 'scripts/run.mjs', 'src/main.js');
      t.equal(failed.code, 1);
      t.match(failed.stderr, /src\/main\.ts:1:28:/);
      t.notMatch(failed.stderr, /at .*build\.mjs/, 'no stack trace of the build');
      t.equal(failed.stdout, '', 'the previous build does not run');
    }
    t.strictSame(leftovers(root), []);
  },
);

void t.test('a killed build is repeated', async (t) => {
  const root = createClone(t);
  const child = start(root, ['scripts/build.mjs']);
  const closed = once(child, 'close');
  await once(child.stderr!, 'data');
  child.kill('SIGKILL');
  await closed;
  t.notOk(existsSync(join(root, 'dist')));
  for (const name of leftovers(root)) utimesSync(join(root, name), 0, 0);
  const again = await run(root, 'scripts/build.mjs', '--if-stale', '--quiet');
  t.equal(again.code, 0, again.stderr);
  t.ok(existsSync(join(root, 'dist', 'src', 'main.js')));
  t.strictSame(leftovers(root), []);
});

void t.test('SIGTERM during a build ends it at once and leaves nothing', async (t) => {
  const root = createClone(t);
  const child = start(root, ['scripts/run.mjs', 'src/main.js']);
  const closed = once(child, 'close') as Promise<[number | null]>;
  await once(child.stderr!, 'data');
  await sleep(200);
  child.kill('SIGTERM');
  t.strictSame((await closed)[0], 143);
  t.strictSame(leftovers(root), []);
});

void t.test(
  'the shell of npm start becomes the service: its signals, its exit code, its variables',
  async (t) => {
    const root = createClone(t);
    writeFileSync(
      join(root, 'src', 'main.ts'),
      `process.on('SIGTERM', () => { console.log('drained'); process.exit(3); });
    setInterval(() => undefined, 1000);
    const { MALLOC_ARENA_MAX, MALLOC_MMAP_THRESHOLD_ } = process.env;
    console.log(\`serving \${process.pid} \${MALLOC_ARENA_MAX} \${MALLOC_MMAP_THRESHOLD_}\`);
`,
    );
    const { scripts } = JSON.parse(readSource('package.json')) as { scripts: { start: string } };
    const PATH = [dirname(process.execPath), process.env['PATH']].join(':');
    for (const [given, seen] of [
      [{}, '2 131072'],
      [{ MALLOC_ARENA_MAX: '5', MALLOC_MMAP_THRESHOLD_: '' }, '5 131072'],
    ] as const) {
      const env = { ...process.env, PATH, ...given };
      const child = spawn('sh', ['-c', scripts.start], { cwd: root, env, stdio: ['ignore', 'pipe', 'pipe'] });
      const closed = once(child, 'close') as Promise<[number | null]>;
      let output = '';
      let errors = '';
      child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text));
      child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
      while (!output.includes('serving')) await once(child.stdout, 'data');
      t.equal(output, `serving ${child.pid} ${seen}\n`, 'in the same process');
      child.kill('SIGTERM');
      t.strictSame((await closed)[0], 3);
      t.match(output, /drained/);
      t.notMatch(errors, /Warning/);
    }
  },
);

void t.test('without packages the build says what to do', async (t) => {
  const root = createClone(t);
  rmSync(join(root, 'node_modules'), { recursive: true });
  const { code, stderr } = await run(root, 'scripts/build.mjs');
  t.equal(code, 1);
  t.match(stderr, /^The dependencies are not installed\. Run `npm ci` first\.\n$/);
});
