/** Reads files that an operator or a stranger put in their place. */
import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs';

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
