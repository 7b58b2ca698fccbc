/** Which packages, and which of their files, the service needs when it runs on this platform. */
import { closeSync, existsSync, openSync, readSync } from 'node:fs';
import { join } from 'node:path';

interface Locked {
  readonly version?: string;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

/** package-lock.json: packages by their paths from the root; the root itself is ''. */
export type Lock = Readonly<Record<string, Locked>>;

/** Dependencies of these packages serve a build or an install only. */
const usedWhenRunning: Readonly<Record<string, readonly string[]>> = {
  typia: [],
  'onnxruntime-node': ['onnxruntime-common'],
  node: [],
};

/** @returns the path of a dependency, where Node would find it: in the package's own node_modules or in one above */
const resolve = (lock: Lock, from: string, name: string): string | null => {
  const candidate = `${from === '' ? '' : `${from}/`}node_modules/${name}`;
  if (candidate in lock) return candidate;
  return from === ''
    ? null
    : resolve(lock, from.replace(/(?:^|\/)node_modules\/(?:@[^/]+\/)?[^/]+$/, ''), name);
};

/** @returns sorted paths from the root; optional packages of other platforms are not installed, and not among them */
export const packagesWhenRunning = (root: string, lock: Lock): readonly string[] => {
  const found = new Set<string>();
  const visit = (path: string): void => {
    if (path === '' || found.has(path) || !existsSync(join(root, path))) return;
    found.add(path);
    const { dependencies, optionalDependencies } = lock[path] ?? {};
    const name = path.replace(/^.*node_modules\//, '');
    const needed = usedWhenRunning[name] ?? Object.keys({ ...dependencies, ...optionalDependencies });
    for (const dependency of needed) visit(resolve(lock, path, dependency) ?? '');
  };
  for (const name of Object.keys(lock['']?.dependencies ?? {})) visit(`node_modules/${name}`);
  return [...found].sort();
};

const elfMachines: Readonly<Record<string, number>> = { x64: 0x3e, arm64: 0xb7 };
const machOCpus: Readonly<Record<string, number>> = { x64: 0x01_00_00_07, arm64: 0x01_00_00_0c };

/** @returns `null` if the file is no native binary, otherwise whether this platform can load it */
export const isLoadableBinary = (path: string): boolean | null => {
  const head = Buffer.alloc(20);
  const descriptor = openSync(path, 'r');
  const length = readSync(descriptor, head, 0, head.length, 0);
  closeSync(descriptor);
  const magic = head.readUInt32BE(0);
  if (length < head.length) return null;
  if (magic === 0x7f_45_4c_46)
    return process.platform === 'linux' && head.readUInt16LE(18) === elfMachines[process.arch];
  if (magic === 0xcf_fa_ed_fe)
    return process.platform === 'darwin' && head.readUInt32LE(4) === machOCpus[process.arch];
  // Windows, and Mach-O of several machines.
  return magic >>> 16 === 0x4d_5a || magic === 0xca_fe_ba_be ? false : null;
};

/** Declarations, sources of them and source maps: no program reads them. */
const forCompilers = /\.(?:map|[cm]?ts)$/;

/** @param path of a file of a package */
export const isNeededWhenRunning = (path: string): boolean => {
  if (forCompilers.test(path)) return false;
  if (isLoadableBinary(path) === false) return false;
  // The runtime is built with glibc. uWebSockets.js has a binary for each ABI of Node.
  if (/\bmusl(?:_|\.)/.test(path)) return false;
  const [, abi] = /_(\d{3})\.node$/.exec(path) ?? [];
  return abi === undefined || abi === process.versions.modules;
};
