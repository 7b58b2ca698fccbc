/** What this process may use: memory, and files open at once. */
import { readFileSync } from 'node:fs';
import { totalmem } from 'node:os';

export interface Machine {
  readonly memoryBytes: number;
  /** Infinity where the system has no such bound. */
  readonly filesMax: number;
}

const CGROUP_ROOT = '/sys/fs/cgroup';

/** @returns the number in the file; `null` without the file, or for `max` */
const readNumber = (path: string): number | null => {
  try {
    const text = readFileSync(path, 'utf8').trim();
    return /^\d+$/.test(text) ? Number(text) : null;
  } catch {
    return null;
  }
};

const readText = (path: string): string => {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
};

/**
 * Files that may tell a bound of the memory, in version 2 of control groups and in version 1: of the group of this
 * process and of all above it. In a container the root of the tree is its own.
 *
 * @param groups `/proc/self/cgroup`
 */
export const memoryFiles = (groups: string): readonly string[] => {
  const files: string[] = [];
  const add = (tree: string, group: string, file: string) => {
    for (let path = group; ; path = path.slice(0, path.lastIndexOf('/'))) {
      files.push(`${tree}${path}/${file}`);
      if (path === '') return;
    }
  };
  for (const line of groups.split('\n')) {
    const [, controllers, group = ''] = /^\d+:([^:]*):(\/.*)$/.exec(line) ?? [];
    if (controllers === undefined) continue;
    const path = group === '/' ? '' : group;
    if (controllers === '') add(CGROUP_ROOT, path, 'memory.max');
    else if (controllers.split(',').includes('memory'))
      add(`${CGROUP_ROOT}/memory`, path, 'memory.limit_in_bytes');
  }
  return files;
};

const memoryBytes = (): number => {
  const bounds = memoryFiles(readText('/proc/self/cgroup'))
    .map(readNumber)
    .filter((bytes) => bytes !== null && bytes > 0) as number[];
  return Math.min(totalmem(), ...bounds);
};

/** Node has raised the soft bound to the hard one by now. */
const filesMax = (): number => {
  // Without it the report looks for names of all network interfaces.
  (process.report as { excludeNetwork?: boolean }).excludeNetwork = true;
  const report = process.report.getReport() as {
    readonly userLimits?: { readonly open_files?: { readonly soft: number | string } };
  };
  const soft = report.userLimits?.open_files?.soft;
  return typeof soft === 'number' ? soft : Number.POSITIVE_INFINITY;
};

export const readMachine = (): Machine => ({ memoryBytes: memoryBytes(), filesMax: filesMax() });
