/** The rules of the house that no compiler checks. */
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import t from 'tap';
import { packageRoot } from './support/package-root.js';
import { filesIn, importsOf, readSource } from './support/source-files.js';

const code = filesIn(['src', 'workers', 'scripts'], /\.(?:ts|mjs)$/);
const tests = filesIn(['test'], /\.ts$/);
const documents = [
  ...readdirSync(packageRoot).filter((name) => name.endsWith('.md')),
  ...filesIn(['src', 'scripts'], /\.md$/),
];

interface Package {
  readonly scripts: Record<string, string>;
  readonly exports: Record<string, string | Record<string, string>>;
  readonly dependencies: Record<string, string>;
  readonly devDependencies: Record<string, string>;
  readonly allowScripts: Record<string, boolean>;
}
interface Locked {
  readonly version?: string;
  readonly license?: string;
  readonly dev?: boolean;
  readonly hasInstallScript?: boolean;
  readonly optionalDependencies?: Record<string, string>;
}
const manifest = JSON.parse(readSource('package.json')) as Package;
const locked = (JSON.parse(readSource('package-lock.json')) as { packages: Record<string, Locked> }).packages;

t.test('files are of a size to be read in one go', (t) => {
  const lines = (path: string) => readSource(path).split('\n').length - 1;
  t.strictSame(
    code.filter((path) => lines(path) > 400),
    [],
  );
  t.strictSame(
    tests.filter((path) => lines(path) > 600),
    [],
  );
  t.end();
});

/** From the lowest up: a file imports from its own layer and from lower ones. Files of `src` itself are leaves. */
const layers = [
  'leaf',
  'text',
  'api',
  'store',
  'accounts',
  'threads',
  'speech',
  'front',
  'ops',
  'app',
  'main',
];
const layerOf = (path: string): number => {
  const [, folder = '', file] = path.split('/');
  const name = folder.replace(/\.ts$/, '');
  return layers.indexOf(file === undefined && !layers.includes(name) ? 'leaf' : name);
};

t.test('imports point down', (t) => {
  const isAllowed = (from: string, to: string): boolean => {
    const [fromTop, toTop] = [from, to].map((path) => path.split('/')[0]);
    // The client runs on its users' machines: it shares the wire types, and nothing that needs the service.
    if (from.startsWith('src/client/')) return to.startsWith('src/client/') || to.startsWith('src/api/');
    if (fromTop === 'src') return toTop === 'src' && layerOf(to) >= 0 && layerOf(to) <= layerOf(from);
    if (fromTop === 'workers')
      return toTop === 'workers' || (toTop === 'src' && layerOf(to) <= layers.indexOf('threads'));
    return toTop !== 'test';
  };
  const wrong = code.flatMap((path) =>
    importsOf(path)
      .filter(({ isEntry, path: target }) => !isEntry && target.endsWith('.ts') && !isAllowed(path, target))
      .map(({ path: target }) => `${path} -> ${target}`),
  );
  t.strictSame([...new Set(wrong)], []);
  const folders = code.filter((path) => path.startsWith('src/') && !path.startsWith('src/client/'));
  t.strictSame(
    folders.filter((path) => layerOf(path) < 0),
    [],
    'every folder of src is a layer',
  );
  t.end();
});

t.test('no file imports itself by way of others', (t) => {
  const all = [...code, ...tests].filter((path) => path.endsWith('.ts'));
  const imports = new Map(
    all.map((path) => [path, importsOf(path).flatMap((target) => (target.isEntry ? [] : [target.path]))]),
  );
  const done = new Set<string>();
  const cycles: string[] = [];
  const visit = (path: string, trail: readonly string[]): void => {
    const at = trail.indexOf(path);
    if (at >= 0) cycles.push([...trail.slice(at), path].join(' -> '));
    if (at >= 0 || done.has(path)) return;
    for (const target of imports.get(path) ?? []) visit(target, [...trail, path]);
    done.add(path);
  };
  for (const path of all) visit(path, []);
  t.strictSame(cycles, []);
  t.end();
});

t.test('what the package exports is compiled from what is there', (t) => {
  const files = Object.values(manifest.exports).flatMap((target) =>
    typeof target === 'string' ? [target] : Object.values(target),
  );
  const compiled = files.filter((path) => path.startsWith('./dist/'));
  t.ok(compiled.length > 0);
  for (const path of files) {
    const source = path.replace('./dist/', './').replace(/\.d\.ts$|\.js$/, '.ts');
    t.ok(existsSync(join(packageRoot, source)), path);
  }
  t.end();
});

t.test('every source is reached from an entry point, and every import exists', (t) => {
  const entries = Object.values(manifest.scripts)
    .flatMap((script) => [...script.matchAll(/run\.mjs (\S+)\.js/g)])
    .map(([, entry]) => `${entry ?? ''}.ts`)
    // The training of the voices has tools of its own.
    .concat(code.filter((path) => path.startsWith('scripts/voice/')));
  const reached = new Set<string>();
  const visit = (path: string) => {
    if (reached.has(path) || !existsSync(join(packageRoot, path))) return;
    reached.add(path);
    for (const target of importsOf(path)) visit(target.path);
  };
  entries.forEach(visit);
  t.ok(entries.length >= 3);
  const sources = code.filter((path) => path.endsWith('.ts') && !path.endsWith('.d.ts'));
  t.strictSame(
    sources.filter((path) => !reached.has(path)),
    [],
    'nothing is there for its test alone',
  );
  const missing = [...code, ...tests]
    .flatMap((path) => importsOf(path).map((target) => ({ path, target: target.path })))
    .filter(({ target }) => target.endsWith('.ts') && !existsSync(join(packageRoot, target)))
    .filter(({ target }) => !existsSync(join(packageRoot, target.replace(/\.ts$/, '.js'))));
  t.strictSame(missing, []);
  t.end();
});

t.test('every bound of limits.ts bounds something', (t) => {
  const names = [...readSource('src/limits.ts').matchAll(/^ {2}(\w+): [\d(]/gm)].map(
    ([, name]) => name ?? '',
  );
  t.ok(names.length > 20);
  const sources = code.filter((path) => path !== 'src/limits.ts').map(readSource);
  t.strictSame(
    names.filter((name) => !sources.some((source) => source.includes(name))),
    [],
  );
  t.end();
});

t.test('dependencies have exact versions, the same in the lock', (t) => {
  for (const [name, wanted] of Object.entries({ ...manifest.dependencies, ...manifest.devDependencies })) {
    t.match(wanted, /^(?:npm:[\w@/.-]+@)?\d+\.\d+\.\d+$/, name);
    t.equal(locked[`node_modules/${name}`]?.version, wanted.replace(/^npm:.*@/, ''), name);
  }
  t.end();
});

t.test('the lock has the binaries of every platform', (t) => {
  const wanted = Object.values(locked).flatMap(({ optionalDependencies }) =>
    Object.keys(optionalDependencies ?? {}),
  );
  t.ok(wanted.length > 0);
  t.strictSame(
    wanted.filter((name) => !Object.keys(locked).some((path) => path.endsWith(`node_modules/${name}`))),
    [],
    'npm ci refuses a lock that lacks one',
  );
  t.end();
});

t.test('install scripts are decided upon, one by one', (t) => {
  const withScripts = Object.entries(locked)
    .filter(([, { hasInstallScript }]) => hasInstallScript === true)
    .map(([path]) => path.replace(/^.*node_modules\//, ''));
  t.strictSame(
    withScripts.filter((name) => !(name in manifest.allowScripts)),
    [],
  );
  t.end();
});

t.test('what the service is made of may be used freely, but for espeak-ng, and that is said', (t) => {
  const free = /^\(?(?:MIT|ISC|0BSD|BSD-[23]-Clause|Apache-2\.0|CC0-1\.0|BlueOak-1\.0\.0|Zlib)\b/;
  const others = Object.entries(locked)
    .filter(([path, { dev }]) => path !== '' && dev !== true)
    .filter(([, { license }]) => !free.test(license ?? ''))
    .map(([path]) => path.replace(/^.*node_modules\//, ''));
  t.strictSame(others, ['@echogarden/espeak-ng-emscripten']);
  t.match(readSource('README.md'), /GPL-3\.0/);
  t.end();
});

t.test('no file names a folder of somebody’s machine', (t) => {
  const standard = [
    'bin',
    'boot',
    'dev',
    'etc',
    'lib',
    'lib32',
    'lib64',
    'libx32',
    'media',
    'mnt',
    'opt',
    'proc',
    'run',
  ];
  const more = ['sbin', 'srv', 'sys', 'usr', 'var', 'app', 'data', 'models', 'src', 'test', 'scripts'];
  const usual = new Set([...standard, ...more]);
  const local = readdirSync('/').filter((name) => /^\w[\w.-]*$/.test(name) && !usual.has(name));
  const places = [...new Set([...local, 'home', 'root', 'tmp', 'Users'])].join('|');
  const path = new RegExp(`(?<![\\w.~$}/)\\]*-])/(?:${places})/[\\w.]`);
  const files = [
    ...code,
    ...tests,
    ...documents,
    'package.json',
    'package-lock.json',
    'tsconfig.json',
    '.taprc',
  ];
  t.strictSame(
    files.filter((file) => path.test(readSource(file))),
    [],
  );
  t.end();
});

t.test('the documents name every variable, every status and every command', (t) => {
  const readme = readSource('README.md');
  const variables = [...readSource('src/config.ts').matchAll(/\(env, '(\w+)'/g)].map(
    ([, name]) => name ?? '',
  );
  t.ok(variables.length >= 8);
  t.strictSame(
    variables.filter((name) => !readme.includes(`\`${name}\``)),
    [],
  );
  const statuses = [...readSource('src/errors.ts').matchAll(/status: (\d{3})/g)].map(
    ([, status]) => status ?? '',
  );
  t.strictSame(
    statuses.filter((status) => !readSource('src/front/README.md').includes(`| ${status} `)),
    [],
  );
  const commands = Object.keys(manifest.scripts).map((name) =>
    /^(?:start|test)$/.test(name) ? name : `run ${name}`,
  );
  const told = documents.map((name) => readFileSync(join(packageRoot, name), 'utf8')).join('\n');
  t.strictSame(
    commands.filter((name) => !told.includes(`npm ${name}`)),
    [],
  );
  t.end();
});

t.test('the C library is told the same, however the service is started', (t) => {
  const told = (path: string): Record<string, string> =>
    Object.fromEntries(
      [...readSource(path).matchAll(/(MALLOC_[A-Z_]+)[=:] ?'?(?:\$\{MALLOC_[A-Z_]+:-)?(\d+)/g)].map(
        ([, name = '', value = '']) => [name, value],
      ),
    );
  const started = told('package.json');
  t.ok(Object.keys(started).length >= 2);
  t.strictSame(told('scripts/deploy/syrinx@.service'), started, 'as a unit');
  t.strictSame(told('scripts/rig/service.ts'), started, 'under load, and in tests');
  t.end();
});

t.test('CI installs every program that a test asks for', (t) => {
  const asked = tests
    .flatMap((path) => [...readSource(path).matchAll(/missingTool\(([^)]*)\)/g)])
    .flatMap(([, programs = '']) => [...programs.matchAll(/'([\w.-]+)'/g)].map(([, name]) => name ?? ''));
  t.ok(asked.length > 0);
  const installed = readSource('.ci/run');
  t.strictSame(
    asked.filter((name) => !new RegExp(`[( ]${name}:`).test(installed)),
    [],
  );
  t.end();
});

/** As GitHub makes it of a heading. */
const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-');

t.test('what a document links to is there, headings too', (t) => {
  const links = documents.flatMap((path) =>
    [...readSource(path).matchAll(/\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)/g)].map(
      ([, target = '', anchor]) => ({
        path,
        target: target === '' ? path : join(dirname(path), target),
        anchor,
      }),
    ),
  );
  t.ok(links.length > 20);
  const isThere = ({ target, anchor }: (typeof links)[number]): boolean => {
    if (!existsSync(join(packageRoot, target))) return false;
    if (anchor === undefined) return true;
    const headings = [...readSource(target).matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) => heading);
    return headings.some((heading) => anchorOf(heading) === anchor);
  };
  t.strictSame(
    links.filter((link) => !isThere(link)),
    [],
  );
  t.end();
});

t.test('the operator’s page has every reason of /readyz', (t) => {
  const page = readSource('scripts/deploy/README.md');
  const [, ofTheStore = ''] =
    /const phrases[^{]*\{([^}]*)\}/.exec(readSource('src/accounts/admission.ts')) ?? [];
  const reasons = [...ofTheStore.matchAll(/'([^']+)',$/gm)].map(([, phrase]) => phrase ?? '');
  t.ok(reasons.length > 10);
  reasons.push('voices are loading', 'draining', 'threads are starting again');
  t.strictSame(
    reasons.filter((reason) => !page.includes(`\`${reason}\``)),
    [],
  );
  t.end();
});
