/**
 * PID files: which services run on a data folder. Each has a file of its own, named by its port, because both services of an
 * upgrade share the folder. The first line is the process id, for other programs.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { writeSecret } from '../accounts/secret-file.js';
import { readRegular } from '../regular-file.js';

export interface RunningService {
  readonly pid: number;
  /** Of the public listener. */
  readonly port: number;
  /** Of the ops listener, without a slash at the end. */
  readonly opsUrl: string;
  /** Where browsers find its console; `null`: it has none. */
  readonly consoleUrl: string | null;
  /** It listens since then. */
  readonly sinceMs: number;
  /** Whether it still runs. */
  isAlive(): boolean;
}

/** Field 22 of `/proc/PID/stat`; the second one is a name in parentheses, which may have spaces. */
const START_FIELD = 22 - 3;

/** When a process started, in the words of the system; `null`: there is none. A later process gets the id, but not the time. */
const startOf = (pid: number): string | null => {
  try {
    if (process.platform !== 'linux')
      return execFileSync('ps', ['-o', 'lstart=', '-p', String(pid)], { encoding: 'utf8' }).trim() || null;
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    // A zombie has ended: its parent has not asked yet.
    return fields[0] === 'Z' ? null : (fields[START_FIELD] ?? null);
  } catch {
    return null;
  }
};

const nameOf = (port: number): string => `syrinx-${port}.pid`;

/** @returns removes the file, unless it is another process's by now */
export const writePidFile = (
  dataDir: string,
  { port, opsUrl, consoleUrl }: Pick<RunningService, 'port' | 'opsUrl' | 'consoleUrl'>,
): (() => void) => {
  const path = join(dataDir, nameOf(port));
  writeSecret(path, [process.pid, startOf(process.pid) ?? '', opsUrl, consoleUrl ?? ''].join('\n'));
  return () => {
    try {
      if (readRegular(path).toString().startsWith(`${process.pid}\n`)) rmSync(path, { force: true });
    } catch {
      // It is gone, or no more files can be opened. What stays counts as no service when the process has ended.
    }
  };
};

/** The services that run on a data folder, by port. A file that a killed process left is no service. */
export const runningServices = (dataDir: string): readonly RunningService[] => {
  const names = existsSync(dataDir) ? readdirSync(dataDir) : [];
  const services = names.flatMap((name) => {
    const port = Number(/^syrinx-(\d+)\.pid$/.exec(name)?.[1] ?? Number.NaN);
    const path = join(dataDir, name);
    if (Number.isNaN(port) || statSync(path, { throwIfNoEntry: false })?.isFile() !== true) return [];
    const [pid = '', start = '', opsUrl = '', consoleUrl = ''] = readRegular(path).toString().split('\n');
    const isAlive = (): boolean => startOf(Number(pid)) === start;
    const addresses = { port, opsUrl, consoleUrl: consoleUrl || null };
    return [{ pid: Number(pid), ...addresses, sinceMs: statSync(path).mtimeMs, isAlive }];
  });
  return services.filter(({ isAlive }) => isAlive()).sort((a, b) => a.port - b.port);
};
