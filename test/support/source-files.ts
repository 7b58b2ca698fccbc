/** The sources of the project and their imports. */
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join, normalize, relative } from 'node:path';
import { packageRoot } from './package-root.js';

/** Files in or below the folders whose names match, as paths from the package root. */
export const filesIn = (folders: readonly string[], extensions: RegExp): string[] =>
  folders
    .filter((folder) => existsSync(join(packageRoot, folder)))
    .flatMap((folder) =>
      globSync(join(folder, '**'), {
        cwd: packageRoot,
        withFileTypes: true,
        // The clients of test/interop have tens of thousands of files.
        exclude: ({ name }) => name === 'node_modules',
      })
        .filter((entry) => entry.isFile() && extensions.test(entry.name))
        .map((entry) => relative(packageRoot, join(entry.parentPath, entry.name))),
    )
    .filter((path) => !path.startsWith(join('scripts', 'voice', 'work')))
    .sort();

export const readSource = (path: string): string => readFileSync(join(packageRoot, path), 'utf8');

export interface Import {
  /** Path of the imported source from the package root. */
  readonly path: string;
  readonly typeOnly: boolean;
  /** Named by a URL: the entry of a thread or process. */
  readonly isEntry: boolean;
}

const statement = /^(?:import|export)\b(?<clause>[^;'"=(]*?)(?:from\s*)?'(?<specifier>\.[^']*)'/gm;
const reference = /(?<by>\bimport\(|new URL\(\s*)'(?<specifier>\.[^']*\.js)'/g;

/** Relative imports of a source: imports, re-exports, dynamic imports, and entries of threads. */
export const importsOf = (path: string): Import[] => {
  const source = readSource(path);
  const resolve = (specifier: string) => {
    const base = normalize(join(dirname(path), specifier));
    if (!base.endsWith('.js')) return base;
    const source = base.replace(/\.js$/, '.ts');
    return existsSync(join(packageRoot, `${source}x`)) ? `${source}x` : source;
  };
  const statements = [...source.matchAll(statement)].map(({ groups }) => ({
    path: resolve(groups?.['specifier'] ?? ''),
    typeOnly: /^\s*type\s+[{*]/.test(groups?.['clause'] ?? ''),
    isEntry: false,
  }));
  const references = [...source.matchAll(reference)].map(({ groups }) => ({
    path: resolve(groups?.['specifier'] ?? ''),
    typeOnly: false,
    isEntry: groups?.['by']?.startsWith('new URL') ?? false,
  }));
  return [...statements, ...references];
};
