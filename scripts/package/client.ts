/** Makes the npm package `syrinx-client`: the client alone, from the files that the service's package has. */
import { copyFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { npm } from './bill.js';

interface Manifest {
  readonly version: string;
  readonly license: string;
  readonly dependencies: Readonly<Record<string, string>>;
}

/** The manual, without what is about plugins, and without links to files that the package lacks. */
const readmeOf = (page: string): string =>
  (page.split('\n## From voice agents')[0] ?? '').replaceAll(/\[([^\]]+)\]\((?!https:|#)[^)]*\)/g, '$1');

/**
 * @param project the built project
 * @param out an existing folder
 * @returns the path of the package
 */
export const packClient = (project: string, out: string): string => {
  const { version, license, dependencies } = JSON.parse(
    readFileSync(join(project, 'package.json'), 'utf8'),
  ) as Manifest;
  const manifest = {
    name: 'syrinx-client',
    version,
    description:
      'Client of the text-to-speech service syrinx: text in pieces, audio and word times as they come.',
    license,
    type: 'module',
    engines: { node: '>=20' },
    exports: { types: './index.d.ts', default: './index.js' },
    dependencies: { ws: dependencies['ws'] },
  };
  const folder = mkdtempSync(join(tmpdir(), 'syrinx-client-'));
  try {
    const compiled = join(project, 'dist', 'src', 'client');
    for (const name of readdirSync(compiled).filter((name) => /\.(?:js|d\.ts)$/.test(name)))
      copyFileSync(join(compiled, name), join(folder, name));
    copyFileSync(join(project, 'LICENSE'), join(folder, 'LICENSE'));
    writeFileSync(
      join(folder, 'README.md'),
      readmeOf(readFileSync(join(project, 'src', 'client', 'README.md'), 'utf8')),
    );
    writeFileSync(join(folder, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
    const output = npm(folder, 'pack', '--json', '--ignore-scripts', '--pack-destination', out);
    const [packed] = JSON.parse(output) as [{ filename: string }];
    return join(out, packed.filename);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};
