/** Facts about processes: what Linux reports in `/proc`. Without it the functions return `null`, or NaN if they say so. */
import { readFileSync, readdirSync } from 'node:fs';
import { threadNames } from '../../src/thread-name.js';

const readProc = (pid: number, name: string): string | null => {
  try {
    return readFileSync(`/proc/${pid}/${name}`, 'utf8');
  } catch {
    return null;
  }
};

export interface Memory {
  /** Proportional set size: a page that several processes map counts by share. */
  readonly pssBytes: number;
  /** Pages without a file: heaps and stacks. */
  readonly anonymousBytes: number;
}

export const readMemory = (pid: number): Memory | null => {
  const rollup = readProc(pid, 'smaps_rollup');
  const kiB = (name: string) => new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(rollup ?? '')?.[1];
  const [pss, anonymous] = [kiB('Pss'), kiB('Anonymous')];
  if (pss === undefined || anonymous === undefined) return null;
  const bytes = (text: string) => Number(text) * 1024;
  return { pssBytes: bytes(pss), anonymousBytes: bytes(anonymous) };
};

/** Proportional set size; NaN where the system does not report it. */
export const pssMiB = (pid: number): number => (readMemory(pid)?.pssBytes ?? Number.NaN) / 2 ** 20;

/** The most files and sockets that the process may have open. */
export const readOpenFilesMax = (pid: number): number | null => {
  const soft = /^Max open files\s+(\w+)/m.exec(readProc(pid, 'limits') ?? '')?.[1];
  if (soft === undefined) return null;
  return soft === 'unlimited' ? Infinity : Number(soft);
};

/** Open files and sockets, and threads. */
export const countHandles = (pid: number): { readonly files: number; readonly threads: number } | null => {
  try {
    const count = (name: string) => readdirSync(`/proc/${pid}/${name}`).length;
    return { files: count('fd'), threads: count('task') };
  } catch {
    return null;
  }
};

const threadRoles = ['front', 'actor', 'synthesis', 'other'] as const;
/** `other`: V8's own threads (garbage collection, compiling), the ledger's, and those for files. */
export type ThreadRole = (typeof threadRoles)[number];
/** By role of the thread. */
export type CpuTimes = Readonly<Record<ThreadRole, number>>;

/** Clock ticks of `/proc` are hundredths of a second on every Linux that Node runs on. */
const msPerTick = 10;

const roleOf = (name: string, isMain: boolean): ThreadRole => {
  if (isMain) return 'front';
  if (name === threadNames.actor) return 'actor';
  return name === threadNames.synthesis ? 'synthesis' : 'other';
};

const byRole = (value: (role: ThreadRole) => number): Record<ThreadRole, number> =>
  Object.fromEntries(threadRoles.map((role) => [role, value(role)])) as Record<ThreadRole, number>;

/** After the name come the state and ten other fields, then user and system ticks; then those of children that have ended. */
const ticksOf = (stat: string): readonly number[] =>
  stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .slice(11, 15)
    .map(Number);

/** Milliseconds of user and system time that the process, and its children that have ended, have used so far. */
export const readCpuMsWithEnded = (pid: number): number | null => {
  const stat = readProc(pid, 'stat');
  return stat === null ? null : ticksOf(stat).reduce((sum, ticks) => sum + ticks * msPerTick, 0);
};

/** Milliseconds of user and system time that the threads of the process have used so far. */
export const readCpuTimes = (pid: number): CpuTimes | null => {
  const times = byRole(() => 0);
  const folder = `/proc/${pid}/task`;
  try {
    for (const id of readdirSync(folder)) {
      const stat = readFileSync(`${folder}/${id}/stat`, 'latin1');
      const name = stat.slice(stat.indexOf('(') + 1, stat.lastIndexOf(')'));
      const [user = 0, system = 0] = ticksOf(stat);
      times[roleOf(name, id === String(pid))] += (user + system) * msPerTick;
    }
    return times;
  } catch {
    return null;
  }
};

/** The same; NaN where the system does not report it. */
export const cpuTimesOf = (pid: number): CpuTimes => readCpuTimes(pid) ?? byRole(() => Number.NaN);

export const totalCpu = (times: CpuTimes): number => threadRoles.reduce((sum, role) => sum + times[role], 0);

/** What each role used between two readings, divided by `unit`. */
export const cpuBetween = (before: CpuTimes, after: CpuTimes, unit: number): CpuTimes =>
  byRole((role) => (after[role] - before[role]) / unit);

/** Each role's share, 0 to 1, of what was used between two readings. */
export const cpuShares = (before: CpuTimes, after: CpuTimes): CpuTimes =>
  cpuBetween(before, after, Math.max(1, totalCpu(after) - totalCpu(before)));

/** Milliseconds of CPU time that this process has used so far, on every system. Other work of the machine changes it little. */
export const cpuTimeMs = (): number => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
};

/** Milliseconds that the main thread has used so far. */
export const readFrontCpuMs = (pid: number): number | null => readCpuTimes(pid)?.front ?? null;
