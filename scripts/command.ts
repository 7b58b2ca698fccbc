/** What commands have in common: how they read their arguments, and how those of an operator end. */
import { parseArgs, type ParseArgsConfig } from 'node:util';
import { AdministrationError } from '../src/accounts/administration.js';
import { DamageError } from '../src/store/sqlite/backup.js';
import { StoreError } from '../src/store/sqlite/database.js';
import { ConfigError } from '../src/config.js';

/** The command line was not understood. */
export class UsageError extends Error {}

/** @throws {UsageError} for what the options do not allow */
export const parseCommandLine = <const Config extends ParseArgsConfig>(
  config: Config,
): ReturnType<typeof parseArgs<Config>> => {
  try {
    return parseArgs(config);
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
};

/**
 * Reads the arguments of this process. What was not understood is told with the usage, and ends it with exit code 2.
 *
 * @param read throws `UsageError`
 */
export const readArguments = <Options>(
  name: string,
  usage: string,
  read: (args: readonly string[]) => Options,
): Options => {
  try {
    return read(process.argv.slice(2));
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    process.stderr.write(`${name}: ${error.message}\n\n${usage}`);
    process.exit(2);
  }
};

/** @throws {UsageError} if there is no command of that name, or the name is empty */
export const commandNamed = <Row>(rows: Readonly<Record<string, Row>>, name: string): Row => {
  if (name === '') throw new UsageError('a command is missing');
  const row = Object.hasOwn(rows, name) ? rows[name] : undefined;
  if (row === undefined) throw new UsageError(`there is no command "${name}"`);
  return row;
};

/** Told in their own words; anything else is a defect and keeps its stack. */
const expected = [AdministrationError, ConfigError, DamageError, StoreError];

/**
 * Runs a command with the arguments of this process. Exit codes: 0 done, 1 the store did not allow it, 2 the command
 * was not understood.
 *
 * @param usage shown when it was not understood
 */
export const runCommand = (name: string, usage: string, run: (args: readonly string[]) => void): void => {
  try {
    run(process.argv.slice(2));
  } catch (error) {
    if (error instanceof UsageError) {
      process.stderr.write(`${name}: ${error.message}\n\n${usage}`);
      process.exitCode = 2;
    } else if (error instanceof Error && expected.some((kind) => error instanceof kind)) {
      process.stderr.write(`${error.message}\n`);
      process.exitCode = 1;
    } else throw error;
  }
};
