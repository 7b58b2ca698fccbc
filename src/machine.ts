/** Resources of this process: memory and open files. */
import { readFileSync } from 'node:fs';
import { totalmem } from 'node:os';

export interface Machine {
  readonly memoryBytes: number;
  /** Infinity where the system sets no limit. */
  readonly filesMax: number;
}

const CGROUP_ROOT = '/sys/fs/cgroup';

const readText = (path: string): string => {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
};

/** @returns the number in the file; `null` if there is no such file, or for `max` */
const readNumber = (path: string): number | null => {
  const text = readText(path).trim();
  return /^\d+$/.test(text) ? Number(text) : null;
};

/**
 * Files that may contain a memory limit, for control groups of version 2 and version 1: those of this process's group and
 * of all groups above it. In a container the tree's root is the container's own.
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
  const memoryLimits = memoryFiles(readText('/proc/self/cgroup'))
    .map(readNumber)
    .filter((bytes) => bytes !== null && bytes > 0) as number[];
  return Math.min(totalmem(), ...memoryLimits);
};

/** Node raises the soft limit to the hard limit when it starts. */
const filesMax = (): number => {
  // By default the report looks up the names of all network interfaces.
  (process.report as { excludeNetwork?: boolean }).excludeNetwork = true;
  const report = process.report.getReport() as {
    readonly userLimits?: { readonly open_files?: { readonly soft: number | string } };
  };
  const soft = report.userLimits?.open_files?.soft;
  return typeof soft === 'number' ? soft : Number.POSITIVE_INFINITY;
};

export const readMachine = (): Machine => ({ memoryBytes: memoryBytes(), filesMax: filesMax() });
