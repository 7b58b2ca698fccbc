/**
 * Compiles src, workers, scripts and test into dist, and bundles the console's page into dist/console. Plain JavaScript,
 * because it runs before anything is built.
 *
 *   node scripts/build.mjs [--if-stale] [--quiet]
 *
 * A build goes into a temporary folder, which replaces dist when it is complete, stamp included. So an interrupted build
 * keeps the last good one, removed sources leave no dead files, and dist is never half new. Several builds at once do the same work,
 * and the first one to end is used.
 */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { bundlePage } from './bundle.mjs';

export const root = dirname(dirname(fileURLToPath(import.meta.url)));

const sourceFolders = ['src', 'workers', 'scripts', 'test'];
const isOfPage = (path) => path.startsWith(join('src', 'console', 'web'));
const settings = ['tsconfig.json', 'package.json', 'package-lock.json'];
const stampName = '.build-stamp';
const temporaryPrefix = 'dist-tmp-';

/** A failed build, with a message for a terminal. */
class BuildError extends Error {}

/** Packages may be installed inside: the clients in test/interop, and the peers of the bench. @returns {string[]} paths */
const filesIn = (folder) =>
  readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    if (entry.isDirectory()) return entry.name === 'node_modules' ? [] : filesIn(join(folder, entry.name));
    return entry.isFile() ? [join(folder, entry.name)] : [];
  });

/** @returns {string[]} the sorted paths of all sources, from the root */
export const listSources = () =>
  sourceFolders
    .filter((folder) => existsSync(join(root, folder)))
    .flatMap((folder) => filesIn(join(root, folder)).map((path) => relative(root, path)))
    .filter((path) => /\.[cm]?ts$/.test(path) || isOfPage(path))
    .filter((path) => !path.startsWith(join('scripts', 'voice', 'work')))
    .sort();

const runtimePath = () => {
  const path = join(root, 'node_modules', 'node', 'bin', process.platform === 'win32' ? 'node.exe' : 'node');
  if (!existsSync(path) || !existsSync(join(root, 'node_modules', 'typescript'))) {
    throw new BuildError('The dependencies are not installed. Run `npm ci` first.');
  }
  return path;
};

/** By content, not by time: correct for a fresh clone, a checkout of an older commit and a touched file. */
const fingerprint = (sources) => {
  const hash = createHash('sha256');
  for (const path of [...settings, ...sources]) {
    const full = join(root, path);
    const bytes = existsSync(full) ? readFileSync(full) : Buffer.alloc(0);
    hash.update(`${path}\0${bytes.length}\0`).update(bytes);
  }
  return hash.digest('hex');
};

const outputOf = (source) =>
  isOfPage(source)
    ? join(root, 'dist', 'console', 'index.html')
    : join(root, 'dist', source.replace(/\.([cm]?)ts$/, '.$1js'));

const isFresh = () => {
  const sources = listSources();
  const stampPath = join(root, 'dist', stampName);
  if (!existsSync(stampPath) || readFileSync(stampPath, 'utf8') !== fingerprint(sources)) return false;
  return sources.every((source) => /\.d\.[cm]?ts$/.test(source) || existsSync(outputOf(source)));
};

/** Compiles with the pinned runtime. A signal ends it at once: no spawnSync. */
const compile = async (outDir, signal) => {
  const args = [join(root, 'scripts', 'compile.mjs'), outDir, String(process.pid)];
  const options = { cwd: root, stdio: ['ignore', 'pipe', 'pipe'], signal, killSignal: 'SIGKILL' };
  const child = spawn(runtimePath(), args, options);
  let output = '';
  const collect = (chunk) => (output += chunk);
  child.stdout.setEncoding('utf8').on('data', collect);
  child.stderr.setEncoding('utf8').on('data', collect);
  const code = await new Promise((resolve, reject) => child.once('error', reject).once('close', resolve));
  if (code !== 0) throw new BuildError(`${output.trim()}\n\nThe build failed: correct what is listed above.`);
};

/**
 * Removes `import typia from 'typia'` from files in which the compiler has replaced every use of it. The compiler keeps the
 * import, and it costs each thread that loads it 25 ms.
 */
const dropUnusedTypia = (outDir) => {
  for (const entry of readdirSync(outDir, { recursive: true, withFileTypes: true })) {
    if (!entry.name.endsWith('.js')) continue;
    const path = join(entry.parentPath, entry.name);
    const code = readFileSync(path, 'utf8');
    const without = code.replace(/^import typia(?:, \{\})? from 'typia';$/m, '');
    if (without !== code && !/\btypia\./.test(without)) writeFileSync(path, without);
  }
};

/** Of several builds at once each may win: they are alike. */
const replaceDist = (outDir) => {
  const dist = join(root, 'dist');
  const old = `${outDir}-old`;
  try {
    if (existsSync(dist)) renameSync(dist, old);
    renameSync(outDir, dist);
  } catch (error) {
    if (!['ENOENT', 'ENOTEMPTY', 'EEXIST'].includes(error.code)) throw error;
  }
  rmSync(old, { recursive: true, force: true });
};

/** No build takes so long. */
const deadAfterMs = 30 * 60_000;

/** Of builds that were killed. */
const removeLeftovers = () => {
  for (const name of readdirSync(root)) {
    if (!name.startsWith(temporaryPrefix)) continue;
    const path = join(root, name);
    // Another build may have ended, and its folder be dist.
    const left = statSync(path, { throwIfNoEntry: false });
    if (left !== undefined && Date.now() - left.mtimeMs > deadAfterMs)
      rmSync(path, { recursive: true, force: true });
  }
};

/**
 * Brings dist up to date. Concurrent calls are safe.
 *
 * @param {{ ifStale?: boolean, quiet?: boolean }} options
 * @throws {BuildError} with the compiler's messages
 */
export const build = async ({ ifStale = false, quiet = false } = {}) => {
  if (ifStale && isFresh()) return;
  runtimePath();
  removeLeftovers();
  if (!quiet) process.stderr.write('Building syrinx, once; this takes some seconds ...\n');
  const outDir = mkdtempSync(join(root, temporaryPrefix));
  // Another user than the one who builds may run the service.
  chmodSync(outDir, 0o755);
  const ending = new AbortController();
  const stop = (signal) => {
    ending.abort();
    rmSync(outDir, { recursive: true, force: true });
    process.exit(signal === 'SIGINT' ? 130 : 143);
  };
  process.once('SIGINT', stop).once('SIGTERM', stop);
  try {
    const sources = listSources();
    const stamp = fingerprint(sources);
    await compile(outDir, ending.signal);
    const wrong = sources.some(isOfPage) ? await bundlePage(join(outDir, 'console')) : '';
    if (wrong !== '') throw new BuildError(`${wrong}\nThe build failed: correct what is listed above.`);
    dropUnusedTypia(outDir);
    writeFileSync(join(outDir, stampName), stamp);
    // Another build may have been quicker: its files are in use.
    if (!ifStale || !isFresh()) replaceDist(outDir);
  } finally {
    process.off('SIGINT', stop).off('SIGTERM', stop);
    rmSync(outDir, { recursive: true, force: true });
  }
};

/** Like `build`, for a command line: an error becomes a message and exit code 1. */
export const buildOrExit = async (options) => {
  try {
    await build(options);
  } catch (error) {
    if (!(error instanceof BuildError)) throw error;
    process.stderr.write(`${error.message}\n`);
    process.exit(1);
  }
};

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const flags = process.argv.slice(2);
  const unknown = flags.find((flag) => flag !== '--if-stale' && flag !== '--quiet');
  if (unknown !== undefined) {
    process.stderr.write(`Unknown option ${unknown}. Usage: node scripts/build.mjs [--if-stale] [--quiet]\n`);
    process.exit(2);
  }
  await buildOrExit({ ifStale: flags.includes('--if-stale'), quiet: flags.includes('--quiet') });
}
