/** Reads files and folders that an operator or a stranger put in their place. */
import { closeSync, constants, type Dirent, fstatSync, openSync, readFileSync } from 'node:fs';
import { opendir } from 'node:fs/promises';

/** A pipe in the place of a file does not block its reader. Windows has no such flag. */
export const READ_FLAGS = constants.O_RDONLY | ((constants.O_NONBLOCK as number | undefined) ?? 0);

/** @throws also if it is a pipe or a device, whose reader may wait without end */
export const readRegular = (path: string): Buffer => {
  const file = openSync(path, READ_FLAGS);
  try {
    const stats = fstatSync(file);
    // `readFileSync` refuses a folder with a code of its own.
    if (!stats.isFile() && !stats.isDirectory())
      throw new Error(`cannot read ${path}: it is not a regular file`);
    return readFileSync(file);
  } finally {
    closeSync(file);
  }
};

/**
 * Lists a folder that may have any number of names: `readdir` would hold them all in memory.
 *
 * @returns at most `max` + 1 names: one more than `max` shows that there are too many
 */
export const listFolder = async (folder: string, max: number): Promise<Dirent[]> => {
  const found: Dirent[] = [];
  for await (const entry of await opendir(folder)) if (found.push(entry) > max) break;
  return found;
};
