/** Bundles the console's page: src/console/web becomes an index.html, and assets whose names change with their content. */
import { readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const web = fileURLToPath(new URL('../src/console/web', import.meta.url));

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
      bundle: true,
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
  const urlOf = (source) =>
    `/assets/${basename(Object.keys(outputs).find((path) => outputs[path].entryPoint === source))}`;
  const html = readFileSync(join(web, 'index.html'), 'utf8')
    .replace('/style.css', urlOf('style.css'))
    .replace('/main.tsx', urlOf('main.tsx'));
  writeFileSync(join(folder, 'index.html'), html);
  return '';
};
