/** Files of the data folder: only the service's user can read them, and they survive a power cut. */
import {
  closeSync,
  existsSync,
  fchownSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  rmSync,
  statSync,
} from 'node:fs';
import { dirname, join } from 'node:path';

/** A killed command left a temporary file that has not changed for so many milliseconds. */
const LEFT_MS = 3_600_000;

/** When root creates a file in the folder of another user, the service of that user must be able to open it. */
const ownerOf = (folder: string): { uid: number; gid: number } | null =>
  process.getuid?.() === 0 ? statSync(folder) : null;

/** Like `mkdir -p`. Node's own `recursive` never returns where the kernel refuses with ENOENT, as under /proc. */
export const makeFolder = (path: string): void => {
  if (existsSync(path)) return;
  if (dirname(path) !== path) makeFolder(dirname(path));
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    // Another process may have been faster.
    if (!existsSync(path)) throw error;
  }
};

/** Creates an empty file with mode 0600 and its folder's owner, unless the file exists. */
export const makeFile = (path: string): void => {
  try {
    const file = openSync(path, 'wx', 0o600);
    try {
      const owner = ownerOf(dirname(path));
      if (owner !== null) fchownSync(file, owner.uid, owner.gid);
    } finally {
      closeSync(file);
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
};

/** Removes the temporary files and folders that killed commands left in `folder`. */
export const removeLeft = (folder: string, prefix: string): void => {
  for (const name of readdirSync(folder)) {
    const path = join(folder, name);
    const stats = name.startsWith(prefix) ? lstatSync(path, { throwIfNoEntry: false }) : undefined;
    if (stats !== undefined && Date.now() - stats.mtimeMs > LEFT_MS)
      rmSync(path, { recursive: true, force: true });
  }
};

export const syncFile = (path: string): void => {
  const file = openSync(path, 'r');
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
};

/** A rename is durable when its folder is. */
export const syncFolder = syncFile;
