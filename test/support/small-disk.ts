/** A disk of 1 MiB for one test, that can be filled. */
import { spawnSync } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Test } from 'tap';
import { temporaryFolder } from '../store/support.js';

export interface SmallDisk {
  readonly path: string;
  /** Until no byte more fits. */
  fill(): void;
  makeRoom(): void;
}

/** @returns `null` if this user may not mount */
export const smallDisk = (t: Test): SmallDisk | null => {
  const path = temporaryFolder(t);
  if (spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', path]).status !== 0) return null;
  t.teardown(() => spawnSync('umount', ['--lazy', path]));
  const filler = join(path, 'filler');
  return {
    path,
    fill: () => {
      for (let bytes = 512 * 1024; bytes >= 512; bytes /= 2)
        try {
          for (;;) writeFileSync(filler, Buffer.alloc(bytes), { flag: 'a' });
        } catch (error) {
          if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
        }
    },
    makeRoom: () => rmSync(filler),
  };
};
