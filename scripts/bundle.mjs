/** Bundles the console's page: src/console/web becomes an index.html, and assets whose names change with their content. */
import { readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const web = fileURLToPath(new URL('../src/console/web', import.meta.url));

/** @returns {string[]} the files that a file imports, and those that they import */
const importedBy = (path, outputs, found = new Set()) => {
  for (const { kind, path: imported } of outputs[path].imports) {
    if (kind !== 'import-statement' || found.has(imported)) continue;
    found.add(imported);
    importedBy(imported, outputs, found);
  }
  return [...found];
};

/**
 * @param {string} folder where they go
 * @returns {Promise<string>} what is wrong in the sources; empty if they are bundled
 */
export const bundlePage = async (folder) => {
  // Loaded here: without the dependencies, the build says so before it comes here.
  const { build, formatMessages } = await import('esbuild');
  let metafile;
  try {
    ({ metafile } = await build({
      absWorkingDir: web,
      entryPoints: ['main.tsx', 'style.css'],
      outdir: join(folder, 'assets'),
      entryNames: '[name]-[hash]',
      chunkNames: '[name]-[hash]',
      bundle: true,
      splitting: true,
      format: 'esm',
      target: 'es2022',
      minify: true,
      legalComments: 'none',
      metafile: true,
      logLevel: 'silent',
    }));
  } catch (error) {
    if (!Array.isArray(error.errors)) throw error;
    return (await formatMessages(error.errors, { kind: 'error' })).join('');
  }
  const { outputs } = metafile;
  const outputOf = (source) => Object.keys(outputs).find((path) => outputs[path].entryPoint === source);
  const urlOf = (path) => `/assets/${basename(path)}`;
  const main = outputOf('main.tsx');
  // The browser asks for them at once, and not after it has read the files that import them.
  const preloads = importedBy(main, outputs).map(
    (path) => `    <link rel="modulepreload" href="${urlOf(path)}" />\n`,
  );
  const html = readFileSync(join(web, 'index.html'), 'utf8')
    .replace('/style.css', urlOf(outputOf('style.css')))
    .replace('/main.tsx', urlOf(main))
    .replace('    <script', `${preloads.join('')}    <script`);
  writeFileSync(join(folder, 'index.html'), html);
  return '';
};
