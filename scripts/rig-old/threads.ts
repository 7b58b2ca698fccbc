/** Where the service's CPU time goes, by what its threads do. */
import { readFileSync, readdirSync } from 'node:fs';
import { threadNames } from '../../src/thread-name.js';

/** `other`: V8's own threads (collecting garbage, compiling), the ledger's, those for files. */
export type ThreadRole = 'front' | 'actor' | 'synthesis' | 'other';

export type CpuTimes = Readonly<Record<ThreadRole, number>>;

const roleOf = (name: string, isMain: boolean): ThreadRole => {
  if (isMain) return 'front';
  if (name === threadNames.actor) return 'actor';
  return name === threadNames.synthesis ? 'synthesis' : 'other';
};

/** User and system time of all threads of a process so far, in clock ticks. `null` where the system has no `/proc`. */
export const readCpuTimes = (pid: number): CpuTimes | null => {
  const times = { front: 0, actor: 0, synthesis: 0, other: 0 };
  const folder = `/proc/${String(pid)}/task`;
  try {
    for (const id of readdirSync(folder)) {
      const stat = readFileSync(`${folder}/${id}/stat`, 'latin1');
      const nameEnd = stat.lastIndexOf(')');
      const name = stat.slice(stat.indexOf('(') + 1, nameEnd);
      // After the name come the state and ten figures more, then the two.
      const [userTicks, systemTicks] = stat
        .slice(nameEnd + 2)
        .split(' ')
        .slice(11, 13)
        .map(Number);
      times[roleOf(name, id === String(pid))] += userTicks! + systemTicks!;
    }
    return times;
  } catch {
    return null;
  }
};

/** Each role's share, 0 to 1, of what was used between two readings. */
export const cpuShares = (before: CpuTimes, after: CpuTimes): CpuTimes => {
  const used = (role: ThreadRole) => after[role] - before[role];
  const all = Math.max(1, used('front') + used('actor') + used('synthesis') + used('other'));
  return {
    front: used('front') / all,
    actor: used('actor') / all,
    synthesis: used('synthesis') / all,
    other: used('other') / all,
  };
};
