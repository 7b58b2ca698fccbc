/** Facts about this machine and this package, and a folder to work in. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { availableParallelism, cpus, tmpdir, totalmem } from 'node:os';
import { join } from 'node:path';

export interface Machine {
  readonly processor: string;
  readonly cores: number;
  readonly memoryGiB: number;
  readonly system: string;
  readonly node: string;
}

export const describeMachine = (): Machine => ({
  processor: cpus()[0]?.model.trim() ?? 'unknown',
  cores: availableParallelism(),
  memoryGiB: Math.round(totalmem() / 2 ** 30),
  system: `${process.platform} ${process.arch}`,
  node: process.version,
});

/** Milliseconds that the cores of this machine have been busy so far. */
export const machineBusyMs = (): number =>
  cpus().reduce((sum, { times }) => sum + times.user + times.nice + times.sys + times.irq, 0);

/** The compiled file lies three folders below the package. */
export const packageVersion = (): string => {
  const text = readFileSync(new URL('../../../package.json', import.meta.url), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
};

/** A folder that exists while `work` runs. */
export const inScratch = async <T>(work: (folder: string) => Promise<T>): Promise<T> => {
  const folder = mkdtempSync(join(tmpdir(), 'syrinx-scratch-'));
  try {
    return await work(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};
