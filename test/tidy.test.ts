/** Rules of the project that no compiler checks. */
import { existsSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import t from 'tap';
import { packageRoot } from './support/package-root.js';
import { filesIn, importsOf, readSource } from './support/source-files.js';

const code = filesIn(['src', 'workers', 'scripts'], /\.(?:tsx?|mjs)$/);
const tests = filesIn(['test'], /\.ts$/);
const documents = [
  ...readdirSync(packageRoot).filter((name) => name.endsWith('.md')),
  ...filesIn(['src', 'workers', 'models', 'scripts'], /\.md$/),
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

const lines = (path: string): number => readSource(path).split('\n').length - 1;

/** Lines of code in and below each folder, at most. Who needs more takes out elsewhere. */
const budgets: Readonly<Record<string, number>> = {
  scripts: 21_435,
  src: 4_470,
  'src/accounts': 3_126,
  'src/api': 1_980,
  'src/client': 1_416,
  'src/console': 3_074,
  'src/console/web': 8_358,
  'src/dialects': 2_575,
  'src/front': 6_617,
  'src/ops': 309,
  'src/speech': 2_854,
  'src/store': 6_463,
  'src/text': 6_781,
  'src/threads': 3_468,
  workers: 1_305,
  'workers/actor': 1_178,
  'workers/audio': 1_743,
  'workers/engines': 13_540,
  'workers/lexicons': 502,
};

/** The nearest folder around a file that has a budget. What trains the voices has none. */
const budgetOf = (path: string): string => {
  const folder = dirname(path);
  return folder === '.' || Object.hasOwn(budgets, folder) ? folder : budgetOf(folder);
};

t.test('each folder keeps its budget of lines', (t) => {
  const used = new Map<string, number>();
  for (const path of code.filter((path) => !path.startsWith('scripts/voice/')))
    used.set(budgetOf(path), (used.get(budgetOf(path)) ?? 0) + lines(path));
  t.strictSame([...used.keys()].sort(), Object.keys(budgets).sort());
  t.strictSame(
    [...used].filter(([folder, count]) => count > budgets[folder]!),
    [],
  );
  t.ok(Buffer.byteLength(readSource('ARCHITECTURE.md')) < 25_600, 'what a newcomer reads in ten minutes');
  t.end();
});

/** Lowest first: a file imports from its own layer and from lower ones. The other files directly in `src` are leaves. */
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
  'console',
  'dialects',
  'app',
  'start',
  'main',
];
const layerOf = (path: string): number => {
  const [, folder = '', file] = path.split('/');
  const name = folder.replace(/\.ts$/, '');
  return layers.indexOf(file === undefined && !layers.includes(name) ? 'leaf' : name);
};

t.test('imports point downward', (t) => {
  const isAllowed = (from: string, to: string): boolean => {
    const [fromTop, toTop] = [from, to].map((path) => path.split('/')[0]);
    // The client runs on its users' machines: it shares the wire types and no part of the service.
    if (from.startsWith('src/client/')) return to.startsWith('src/client/') || to.startsWith('src/api/');
    // The console's page runs in a browser: it shares the types of the calls.
    if (from.startsWith('src/console/web/'))
      return (
        to.startsWith('src/console/web/') || to === 'src/console/contract.ts' || to.startsWith('src/api/')
      );
    if (to.startsWith('src/console/web/')) return false;
    if (fromTop === 'src') return toTop === 'src' && layerOf(to) >= 0 && layerOf(to) <= layerOf(from);
    if (fromTop === 'workers')
      return toTop === 'workers' || (toTop === 'src' && layerOf(to) <= layers.indexOf('threads'));
    return toTop !== 'test';
  };
  const wrong = code.flatMap((path) =>
    importsOf(path)
      .filter(({ isEntry, path: target }) => !isEntry && /\.tsx?$/.test(target) && !isAllowed(path, target))
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

t.test('there are no import cycles', (t) => {
  const all = [...code, ...tests].filter((path) => /\.tsx?$/.test(path));
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

t.test('only the start, the plan and command lines import the bounds; other files are handed theirs', (t) => {
  const mayImport = new Set(['src/start.ts', 'src/app.ts', 'src/config.ts', 'src/plan.ts']);
  const importsValue = (path: string): boolean =>
    importsOf(path).some((target) => target.path === 'src/limits.ts' && !target.typeOnly);
  t.strictSame(
    code.filter((path) => !path.startsWith('scripts/') && !mayImport.has(path) && importsValue(path)),
    [],
  );
  t.end();
});

t.test('a short file with a single importer in its folder is merged into it, where both fit', (t) => {
  const files = code.filter((path) => /^(?:src|workers)\/.*(?<!\.d)\.tsx?$/.test(path));
  const importers = new Map(files.map((path) => [path, new Set<string>()]));
  const entries = new Set<string>();
  for (const path of files)
    for (const target of importsOf(path))
      if (target.isEntry) entries.add(target.path);
      else importers.get(target.path)?.add(path);
  const fragments = files.filter((path) => {
    const [importer, ...others] = importers.get(path)!;
    if (importer === undefined || others.length > 0 || entries.has(path)) return false;
    if (dirname(importer) !== dirname(path) || lines(path) >= 60) return false;
    return lines(path) + lines(importer) <= 400;
  });
  t.strictSame(fragments, []);
  t.end();
});

t.test('private members have names with #, which no cast reaches', (t) => {
  const found = [...code, ...tests].filter((path) =>
    /^ +(?:static |readonly )*private (?!constructor)/m.test(readSource(path)),
  );
  t.same(found, []);
  t.end();
});

t.test('every export of the package has a source', (t) => {
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
    .concat('src/console/web/main.tsx')
    // The tools that train the voices run by themselves.
    .concat(code.filter((path) => path.startsWith('scripts/voice/')));
  const reached = new Set<string>();
  const visit = (path: string) => {
    if (reached.has(path) || !existsSync(join(packageRoot, path))) return;
    reached.add(path);
    for (const target of importsOf(path)) visit(target.path);
  };
  entries.forEach(visit);
  t.ok(entries.length >= 3);
  const sources = code.filter((path) => /(?<!\.d)\.tsx?$/.test(path));
  t.strictSame(
    sources.filter((path) => !reached.has(path)),
    [],
    'no file exists only for its test',
  );
  const missing = [...code, ...tests]
    .flatMap((path) => importsOf(path).map((target) => ({ path, target: target.path })))
    .filter(({ target }) => target.endsWith('.ts') && !existsSync(join(packageRoot, target)))
    .filter(({ target }) => !existsSync(join(packageRoot, target.replace(/\.ts$/, '.js'))));
  t.strictSame(missing, []);
  t.end();
});

t.test('every bound of limits.ts is used', (t) => {
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

t.test('dependencies have exact versions, equal to those in the lock file', (t) => {
  for (const [name, wanted] of Object.entries({ ...manifest.dependencies, ...manifest.devDependencies })) {
    t.match(wanted, /^(?:npm:[\w@/.-]+@)?\d+\.\d+\.\d+$/, name);
    t.equal(locked[`node_modules/${name}`]?.version, wanted.replace(/^npm:.*@/, ''), name);
  }
  t.end();
});

t.test('what an installation runs imports only packages that it has', (t) => {
  const shipped =
    /^(?:src\/(?!console\/web\/)|workers\/|scripts\/(?:[^/]+\.ts$|(?:say|voices|rig|soak)\/(?!fixtures\/)))/;
  const imported =
    /(?:^(?:import(?! type)|export|\}).* from |^import |\bimport\(|\bimport\.meta\.resolve\()['`]((?:@[\w-]+\/)?[a-zA-Z][\w.-]*)/gm;
  const missing = code
    .filter((path) => shipped.test(path) && /\.ts$/.test(path))
    .flatMap((path) =>
      [...readSource(path).matchAll(imported)]
        .map(([, name = '']) => name)
        .filter((name) => name !== 'node' && name !== 'syrinx' && !Object.hasOwn(manifest.dependencies, name))
        .map((name) => `${path}: ${name}`),
    );
  t.strictSame(missing, []);
  t.end();
});

t.test('the lock file has the binaries of every platform', (t) => {
  const wanted = Object.values(locked).flatMap(({ optionalDependencies }) =>
    Object.keys(optionalDependencies ?? {}),
  );
  t.ok(wanted.length > 0);
  t.strictSame(
    wanted.filter((name) => !Object.keys(locked).some((path) => path.endsWith(`node_modules/${name}`))),
    [],
    'npm ci refuses a lock file that lacks one',
  );
  t.end();
});

t.test('every install script is allowed or forbidden by name', (t) => {
  const withScripts = Object.entries(locked)
    .filter(([, { hasInstallScript }]) => hasInstallScript === true)
    .map(([path]) => path.replace(/^.*node_modules\//, ''));
  t.strictSame(
    withScripts.filter((name) => !(name in manifest.allowScripts)),
    [],
  );
  t.end();
});

t.test('dependencies have free licences, except espeak-ng, which the README names', (t) => {
  const free = /^\(?(?:MIT|ISC|0BSD|BSD-[23]-Clause|Apache-2\.0|CC0-1\.0|BlueOak-1\.0\.0|Zlib)\b/;
  const others = Object.entries(locked)
    .filter(([path, { dev }]) => path !== '' && dev !== true)
    .filter(([, { license }]) => !free.test(license ?? ''))
    .map(([path]) => path.replace(/^.*node_modules\//, ''));
  t.strictSame(others, ['@echogarden/espeak-ng-emscripten']);
  t.match(readSource('README.md'), /GPL-3\.0/);
  t.end();
});

t.test('no file names a local folder of a machine', (t) => {
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
  const statuses = [...readSource('src/errors.ts').matchAll(/(?:status: |worded\()(\d{3})/g)].map(
    ([, status]) => status ?? '',
  );
  t.strictSame(
    statuses.filter((status) => !readSource('src/front/README.md').includes(`| ${status} `)),
    [],
  );
  const commands = Object.keys(manifest.scripts)
    // npm calls it.
    .filter((name) => name !== 'prepack')
    .map((name) => (/^(?:start|test)$/.test(name) ? name : `run ${name}`));
  const text = documents.map(readSource).join('\n');
  t.strictSame(
    commands.filter((name) => !text.includes(`npm ${name}`)),
    [],
  );
  t.end();
});

t.test('every way to start the service sets the same options of the C library', (t) => {
  const optionsIn = (path: string): Record<string, string> =>
    Object.fromEntries(
      [...readSource(path).matchAll(/(MALLOC_[A-Z_]+)(?::-|[=:] ?'?)(\d+)/g)].map(
        ([, name = '', value = '']) => [name, value],
      ),
    );
  const started = optionsIn('scripts/syrinx');
  t.ok(Object.keys(started).length >= 2);
  t.strictSame(optionsIn('scripts/deploy/syrinx@.service'), started, 'as a unit');
  t.strictSame(optionsIn('scripts/rig/service.ts'), started, 'by the rig');
  t.end();
});

t.test('CI installs every program and every module of Python that a test needs', (t) => {
  const namesIn = (call: RegExp): string[] =>
    tests
      .flatMap((path) => [...readSource(path).matchAll(call)])
      .flatMap(([, names = '']) => [...names.matchAll(/'([\w.-]+)'/g)].map(([, name]) => name ?? ''));
  const [programs, modules] = [namesIn(/missingTool\(([^)]*)\)/g), namesIn(/pythonFor\(([^)]*)\)/g)];
  t.ok(programs.length > 0 && modules.length > 0);
  const installed = readSource('.ci/run');
  const [, installedModules = ''] = /^for module in (.*); do$/m.exec(installed) ?? [];
  t.strictSame(
    [
      ...programs.filter((name) => !new RegExp(`[( ]${name}:`).test(installed)),
      ...modules.filter((name) => !installedModules.split(' ').includes(name)),
    ],
    [],
  );
  t.end();
});

/** The anchor that GitHub makes of a heading. */
const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-');

t.test('links in documents lead to files and headings that exist', (t) => {
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
  const exists = ({ target, anchor }: (typeof links)[number]): boolean => {
    if (!existsSync(join(packageRoot, target))) return false;
    if (anchor === undefined) return true;
    const headings = [...readSource(target).matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) => heading);
    return headings.some((heading) => anchorOf(heading) === anchor);
  };
  t.strictSame(
    links.filter((link) => !exists(link)),
    [],
  );
  t.end();
});

t.test('the page for operators has every reason of /readyz', (t) => {
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
