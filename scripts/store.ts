/** Backups of the store from the command line. `backup` and `verify` work while the service runs. */
import { existsSync } from 'node:fs';
import { readConfig } from '../src/config.js';
import { limits } from '../src/limits.js';
import { backUp, verifyBackup, verifyStore, type Contents } from '../src/store/sqlite/backup.js';
import { storePath } from '../src/store/sqlite/database.js';
import { restore } from '../src/store/sqlite/restore.js';
import { AdministrationError } from '../src/store/store.js';
import { program, runIfMain, UsageError, type Terminal } from './command.js';
import { formatTime } from './table.js';

const usage = `Usage: npm run store -- COMMAND

  backup FILE [--force]   copy the store into one file, and verify the copy; --force replaces an existing file
  verify [FILE]           read the whole store, or a backup, and report all damage
  restore FILE            put a backup in the place of the store, which is kept beside it; the service must be stopped

The store is in DATA_DIR (default ./data). A backup and a verification work while the service runs.
`;

const count = (number: number, one: string, many = `${one}s`): string =>
  `${number} ${number === 1 ? one : many}`;

const report = (
  { out }: Terminal,
  what: string,
  { accounts, keys, entries, bytes, newestAtMs }: Contents,
): void => {
  const counts = [
    count(accounts, 'account'),
    count(keys, 'key'),
    count(entries, 'entry', 'entries'),
    count(bytes, 'byte'),
  ];
  const newest = newestAtMs === null ? 'no entry yet' : `newest entry ${formatTime(newestAtMs)} UTC`;
  out(`${what}: ${counts.join(', ')}, ${newest}\n`);
};

const fileOf = (operands: readonly string[]): string => {
  const [file = ''] = operands;
  if (file === '') throw new UsageError('the name of the file is empty');
  return file;
};

/** A store in the default folder would be of no use: the service goes on with its own. */
const refuseDefaultFolder = (env: NodeJS.ProcessEnv, dataDir: string): void => {
  if ((env['DATA_DIR'] ?? '').trim() === '' && !existsSync(dataDir))
    throw new AdministrationError(`There is no folder ${dataDir}: set DATA_DIR to the folder of the service`);
};

export const store = program('store', usage, {
  backup: {
    operands: [1, 1],
    flags: ['force'],
    run: ({ operands, flag }, terminal) => {
      const file = fileOf(operands);
      const { dataDir } = readConfig(terminal.env);
      report(terminal, file, backUp(dataDir, file, flag('force'), limits));
    },
  },
  verify: {
    operands: [0, 1],
    run: ({ operands }, terminal) => {
      const { dataDir } = readConfig(terminal.env);
      if (operands.length === 0)
        report(terminal, `${storePath(dataDir)} is good`, verifyStore(dataDir, limits));
      else report(terminal, `${fileOf(operands)} is good`, verifyBackup(fileOf(operands), limits));
    },
  },
  restore: {
    operands: [1, 1],
    run: ({ operands }, terminal) => {
      const file = fileOf(operands);
      const { dataDir } = readConfig(terminal.env);
      refuseDefaultFolder(terminal.env, dataDir);
      const { contents, kept } = restore(dataDir, file, Date.now(), limits);
      report(terminal, storePath(dataDir), contents);
      if (kept !== null) terminal.out(`The previous store is ${kept}\n`);
    },
  },
});

await runIfMain(import.meta.url, store);
