/** What Linux tells about a process. `null` where the system does not. */
import { readFileSync, readdirSync } from 'node:fs';
import { readCpuTimes } from './threads.js';

/** Clock ticks of `/proc` are hundredths of a second on every Linux that Node runs on. */
const msPerTick = 10;

const readProc = (pid: number, name: string): string | null => {
  try {
    return readFileSync(`/proc/${String(pid)}/${name}`, 'utf8');
  } catch {
    return null;
  }
};

export interface Memory {
  /** Resident set size: pages in memory, shared or not. */
  readonly rssBytes: number;
  /** Proportional set size: pages that several processes map count by share. */
  readonly pssBytes: number;
  /** Of no file: heaps and stacks. */
  readonly anonymousBytes: number;
}

export const readMemory = (pid: number): Memory | null => {
  const rollup = readProc(pid, 'smaps_rollup');
  const kiB = (name: string) => new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(rollup ?? '')?.[1];
  const [rss, pss, anonymous] = [kiB('Rss'), kiB('Pss'), kiB('Anonymous')];
  if (rss === undefined || pss === undefined || anonymous === undefined) return null;
  const bytes = (text: string) => Number(text) * 1024;
  return { rssBytes: bytes(rss), pssBytes: bytes(pss), anonymousBytes: bytes(anonymous) };
};

/** How many files, sockets among them, it may have open. */
export const readOpenFilesMax = (pid: number): number | null => {
  const soft = /^Max open files\s+(\w+)/m.exec(readProc(pid, 'limits') ?? '')?.[1];
  if (soft === undefined) return null;
  return soft === 'unlimited' ? Infinity : Number(soft);
};

/** How many files and sockets it has open, and how many threads. */
export const countHandles = (pid: number): { readonly files: number; readonly threads: number } | null => {
  try {
    const count = (name: string) => readdirSync(`/proc/${String(pid)}/${name}`).length;
    return { files: count('fd'), threads: count('task') };
  } catch {
    return null;
  }
};

/** User and system time of its main thread so far. */
export const readFrontCpuMs = (pid: number): number | null => {
  const times = readCpuTimes(pid);
  return times === null ? null : times.front * msPerTick;
};
