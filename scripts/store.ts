/**
 * Backups of the store from the command line. A backup and a verification work while the service runs.
 *
 * Exit codes: 0 done, 1 it is damaged or cannot be done, 2 the command was not understood.
 */
import { existsSync } from 'node:fs';
import { AdministrationError } from '../src/accounts/administration.js';
import { backUp, verifyBackup, verifyStore, type Contents } from '../src/store/sqlite/backup.js';
import { storePath } from '../src/store/sqlite/database.js';
import { restore } from '../src/store/sqlite/restore.js';
import { readConfig } from '../src/config.js';
import { commandNamed, parseCommandLine, runCommand, UsageError } from './command.js';
import { formatTime } from './table.js';

const usage = `Usage: npm run store -- COMMAND

  backup FILE [--force]   copy the store into one file, and read that back; --force takes the place of a file
  verify [FILE]           read all of the store, or of a backup, and tell what is wrong with it
  restore FILE            put a backup in the place of the store, which is kept beside it; the service must be stopped

The store is in DATA_DIR (default ./data). A backup and a verification work while the service runs.
`;

interface Command {
  readonly dataDir: string;
  readonly file: string;
  readonly force: boolean;
}

const count = (number: number, one: string, many = `${one}s`): string =>
  `${number} ${number === 1 ? one : many}`;

const tell = (what: string, { accounts, keys, entries, bytes, newestAtMs }: Contents): void => {
  const counts = [
    count(accounts, 'account'),
    count(keys, 'key'),
    count(entries, 'entry', 'entries'),
    count(bytes, 'byte'),
  ];
  const newest = newestAtMs === null ? 'no entry yet' : `newest entry ${formatTime(newestAtMs)} UTC`;
  process.stdout.write(`${what}: ${counts.join(', ')}, ${newest}\n`);
};

const backup = ({ dataDir, file, force }: Command): void => tell(file, backUp(dataDir, file, force));

const verify = ({ dataDir, file }: Command): void => {
  if (file === '') tell(`${storePath(dataDir)} is good`, verifyStore(dataDir));
  else tell(`${file} is good`, verifyBackup(file));
};

/** A store in a folder that nobody named helps nobody: the service goes on with its own. */
const refuseUnnamed = (dataDir: string): void => {
  if ((process.env['DATA_DIR'] ?? '').trim() === '' && !existsSync(dataDir))
    throw new AdministrationError(
      `There is no folder ${dataDir}: set DATA_DIR to the one that the service has`,
    );
};

const putBack = ({ dataDir, file }: Command): void => {
  refuseUnnamed(dataDir);
  const { contents, kept } = restore(dataDir, file, Date.now());
  tell(storePath(dataDir), contents);
  if (kept !== null) process.stdout.write(`The store that was there is ${kept}\n`);
};

interface CommandRow {
  readonly run: (command: Command) => void;
  readonly operandsMin: number;
  readonly takesForce: boolean;
}

const commands: Readonly<Record<string, CommandRow>> = {
  backup: { run: backup, operandsMin: 1, takesForce: true },
  verify: { run: verify, operandsMin: 0, takesForce: false },
  restore: { run: putBack, operandsMin: 1, takesForce: false },
};

const parse = (args: readonly string[]) =>
  parseCommandLine({
    args: [...args],
    allowPositionals: true,
    options: { force: { type: 'boolean' }, help: { type: 'boolean', short: 'h' } },
  });

runCommand('store', usage, (args) => {
  const { values, positionals } = parse(args);
  const [name = '', ...operands] = positionals;
  if (values.help === true || name === 'help') {
    process.stdout.write(usage);
    return;
  }
  const command = commandNamed(commands, name);
  const [file = ''] = operands;
  if (operands.length > 1 || operands.length < command.operandsMin || (operands.length === 1 && file === ''))
    throw new UsageError(`"${name}" takes ${command.operandsMin === 1 ? 'a file' : 'a file, or none'}`);
  if (values.force === true && !command.takesForce) throw new UsageError(`"${name}" takes no --force`);
  command.run({ dataDir: readConfig(process.env).dataDir, file, force: values.force === true });
});
