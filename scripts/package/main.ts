/** Makes one archive for this platform: the built service, what it needs to run, the runtime and the voices. */
import { createHash } from 'node:crypto';
import {
  copyFileSync,
  cpSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { create, extract } from 'tar';
import { program, runIfMain } from '../command.js';
import { packClient } from './client.js';
import { npm, partsOf, writeBill, writeLicences } from './bill.js';
import { isNeededWhenRunning, packagesWhenRunning, type Lock } from './parts.js';

const usage = `Usage: npm run package [-- [--client] [--out FOLDER]]

Makes syrinx-VERSION-PLATFORM.tar.gz in dist-package, or in FOLDER: the built service with its dependencies, the runtime
and the voices. It runs without npm, compiler and network. The other machine needs the same platform and processor.

--client  makes syrinx-client-VERSION.tgz instead, the npm package of the client alone.
`;

const project = fileURLToPath(new URL('../../../', import.meta.url));

interface Manifest {
  readonly version: string;
  scripts?: unknown;
  devDependencies?: unknown;
}
const readJson = (path: string): unknown => JSON.parse(readFileSync(path, 'utf8'));

/** What `npm pack` takes is the service without its dependencies: `files` in package.json lists it. */
const unpackService = async (folder: string): Promise<void> => {
  const output = npm(project, 'pack', '--json', '--ignore-scripts', '--pack-destination', folder);
  const [packed] = JSON.parse(output) as [{ filename: string }];
  const path = join(folder, packed.filename);
  await extract({ file: path, cwd: folder, strip: 1 });
  rmSync(path);
  const manifest = readJson(join(folder, 'package.json')) as Manifest;
  // They need the sources.
  delete manifest.scripts;
  delete manifest.devDependencies;
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
};

/** Copies packages, the runtime and their licences. @returns the paths of the packages */
const copyPackages = (folder: string): readonly string[] => {
  const { packages } = readJson(join(project, 'package-lock.json')) as { packages: Lock };
  const paths = packagesWhenRunning(project, packages);
  for (const path of paths)
    cpSync(join(project, path), join(folder, path), {
      recursive: true,
      filter: (source) => {
        if (statSync(source).isDirectory()) return !source.endsWith('node_modules');
        return isNeededWhenRunning(source);
      },
    });
  const runtime = join('node_modules', 'node');
  const { platform, arch } = process;
  copyFileSync(
    join(project, runtime, 'node_modules', `node-${platform}-${arch}`, 'LICENSE'),
    join(folder, runtime, 'LICENSE'),
  );
  // The package of onnxruntime lacks them; they come from its wheel for Python.
  for (const name of ['LICENSE', 'ThirdPartyNotices'])
    for (const other of ['onnxruntime-node', 'onnxruntime-common'])
      copyFileSync(
        join(project, 'scripts', 'package', `onnxruntime-${name}.txt`),
        join(folder, 'node_modules', other, `${name}.txt`),
      );
  mkdirSync(join(folder, 'node_modules', '.bin'));
  symlinkSync('../node/bin/node', join(folder, 'node_modules', '.bin', 'node'));
  return paths;
};

/** @returns the path of the archive */
const makeArchive = async (out: string): Promise<string> => {
  const { version } = readJson(join(project, 'package.json')) as Manifest;
  const name = `syrinx-${version}-${process.platform}-${process.arch}`;
  const folder = join(out, name);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  try {
    await unpackService(folder);
    const parts = partsOf(folder, copyPackages(folder));
    writeBill(project, folder, parts);
    writeLicences(folder, parts);
    const file = `${folder}.tar.gz`;
    // No owners and one date: equal sources make equal archives.
    const options = { file, cwd: out, gzip: true, portable: true, mtime: new Date(0), umask: 0o022 };
    await create(options, [name]);
    return file;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};

export const packageProgram = program('package', usage, {
  options: ['out'],
  flags: ['client'],
  run: async ({ option, flag }, { out }) => {
    const folder = resolve(option('out') ?? join(project, 'dist-package'));
    mkdirSync(folder, { recursive: true });
    const file = flag('client') ? packClient(project, folder) : await makeArchive(folder);
    const bytes = readFileSync(file);
    const digest = createHash('sha256').update(bytes).digest('hex');
    out(`${file}\n${(bytes.length / 1e6).toFixed(3)} MB, sha256 ${digest}\n`);
  },
});

await runIfMain(import.meta.url, packageProgram);
