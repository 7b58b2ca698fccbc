/** A disk of 1 MiB for one test, that can be filled. */
import { spawnSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Test } from 'tap';
import { fill } from '../../scripts/torture/surroundings/full-disk.js';
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
    fill: () => fill(filler),
    makeRoom: () => rmSync(filler),
  };
};
