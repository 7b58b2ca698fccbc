import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const findRoot = (folder: string): string => {
  if (existsSync(join(folder, 'package.json'))) return folder;
  const parent = dirname(folder);
  if (parent === folder) throw new Error('no package.json above the tests');
  return findRoot(parent);
};

/** The folder of package.json, wherever the tests were compiled to. */
export const packageRoot = findRoot(dirname(fileURLToPath(import.meta.url)));
