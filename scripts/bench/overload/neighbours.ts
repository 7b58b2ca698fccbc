/** Other programs of the machine, at the priority of the service. */
import { setTimeout as sleep } from 'node:timers/promises';
import { Program } from '../../rig/program.js';

/** The service needs this long to notice that they are busy. The bench asks for nothing before. */
const settleMs = 4_000;
/** They end by themselves if this process is killed. */
const lifeMs = 180_000;

const spin = `const end = Date.now() + ${lifeMs}; while (Date.now() < end);`;

/** @param count each takes as much of a core as it gets */
export const startBusyPrograms = (count: number): { readonly end: () => Promise<void> } => {
  const programs = Array.from(
    { length: count },
    () => new Program(process.execPath, ['-e', spin], { cwd: process.cwd() }),
  );
  return {
    end: async () => {
      await Promise.all(programs.map((program) => program.kill()));
    },
  };
};

/** Runs `work` beside busy programs that began some seconds before. */
export const besideBusyPrograms = async <T>(count: number, work: () => Promise<T>): Promise<T> => {
  const programs = startBusyPrograms(count);
  try {
    if (count > 0) await sleep(settleMs);
    return await work();
  } finally {
    await programs.end();
  }
};
