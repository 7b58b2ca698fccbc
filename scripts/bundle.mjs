/** Bundles the console's page: src/console/web becomes an index.html, and assets whose names change with their content. */
import { readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const web = fileURLToPath(new URL('../src/console/web', import.meta.url));

/** By the path of a page: the source that comes when it is shown. A visit that begins there preloads it. */
const laterFiles = { '/docs': 'docs/docs.tsx', '/live': 'pages/plots.ts', '/usage': 'pages/plots.ts' };

/** @returns {Set<string>} the files that a file imports in these ways, and those that they import */
const importedBy = (path, outputs, kinds, found = new Set()) => {
  for (const { kind, path: imported } of outputs[path].imports) {
    if (!kinds.includes(kind) || found.has(imported)) continue;
    found.add(imported);
    importedBy(imported, outputs, kinds, found);
  }
  return found;
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
  const first = importedBy(main, outputs, ['import-statement']);
  const linksOf = (paths) =>
    [...paths].map((path) => `    <link rel="modulepreload" href="${urlOf(path)}" />\n`).join('');
  const later = Object.entries(laterFiles).map(([page, source]) => {
    const path = outputOf(source);
    const all = importedBy(path, outputs, ['import-statement', 'dynamic-import'], new Set([path]));
    return [page, linksOf([...all].filter((file) => file !== main && !first.has(file)))];
  });
  writeFileSync(join(folder, 'preloads.json'), JSON.stringify(Object.fromEntries(later)));
  const html = readFileSync(join(web, 'index.html'), 'utf8')
    .replace('/style.css', urlOf(outputOf('style.css')))
    .replace('/main.tsx', urlOf(main))
    .replace('    <script', `${linksOf(first)}    <script`);
  writeFileSync(join(folder, 'index.html'), html);
  return '';
};
