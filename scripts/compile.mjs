/**
 * Compiles the sources into a folder: `node scripts/compile.mjs FOLDER PID`, for `scripts/build.mjs`, the process PID.
 *
 * Nothing is checked but the syntax: `npm run typecheck` checks the types. Types are read only
 * for the files whose code is made from types (typia), and for the declarations of the client, which other projects read.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { build, formatMessages } from 'esbuild';
import ts from 'typescript';
import makeTransformer from 'typia/lib/transform';
import { listSources, root } from './build.mjs';

const outDir = process.argv[2];
/** The process id of the build. */
const builder = Number(process.argv[3]);

/** A killed build leaves this process behind: it must not write into a folder that the next build has removed. */
const endWithBuild = () => {
  if (process.ppid !== builder) process.exit(1);
};

const sources = listSources().filter(
  (path) => path.endsWith('.ts') && !/\.d\.ts$|^src.console.web/.test(path),
);
const { options } = ts.getParsedCommandLineOfConfigFile(
  join(root, 'tsconfig.json'),
  { outDir, incremental: false, noCheck: true, declaration: false },
  { ...ts.sys, onUnRecoverableConfigFileDiagnostic: () => undefined },
);

/** @throws Error with the messages for people, if a source has a fault of syntax */
const transpile = async () => {
  try {
    await build({
      absWorkingDir: root,
      entryPoints: sources,
      outdir: outDir,
      outbase: root,
      format: 'esm',
      target: 'es2024',
      sourcemap: true,
      sourcesContent: false,
      logLevel: 'silent',
    });
  } catch (error) {
    if (!Array.isArray(error.errors)) throw error;
    throw new Error((await formatMessages(error.errors, { kind: 'error' })).join(''), { cause: error });
  }
};

/** Both programs read the same files. */
const read = new Map();
const hostFor = (settings) => {
  const host = ts.createCompilerHost(settings);
  const { getSourceFile } = host;
  host.getSourceFile = (path, ...more) => {
    if (!read.has(path)) read.set(path, getSourceFile(path, ...more));
    return read.get(path);
  };
  return host;
};

/** @returns {string[]} what typia cannot make */
const makeFromTypes = () => {
  const paths = sources
    .map((path) => join(root, path))
    .filter((path) => /^import typia\b/m.test(readFileSync(path, 'utf8')));
  if (paths.length === 0) return [];
  const wrong = [];
  const program = ts.createProgram(paths, options, hostFor(options));
  const transformer = makeTransformer(program, {}, { addDiagnostic: (diagnostic) => wrong.push(diagnostic) });
  for (const path of paths) {
    endWithBuild();
    program.emit(program.getSourceFile(path), undefined, undefined, false, { before: [transformer] });
  }
  return wrong.map((diagnostic) => ts.formatDiagnostic(diagnostic, hostFor(options)));
};

const declareClient = () => {
  const entry = join('src', 'client', 'index.ts');
  if (!sources.includes(entry)) return;
  const settings = { ...options, declaration: true, emitDeclarationOnly: true };
  const program = ts.createProgram([join(root, entry)], settings, hostFor(settings));
  endWithBuild();
  program.emit();
};

try {
  endWithBuild();
  await transpile();
  const wrong = makeFromTypes();
  if (wrong.length > 0) throw new Error(wrong.join(''));
  declareClient();
} catch (error) {
  process.stderr.write(error.message);
  process.exitCode = 1;
}
