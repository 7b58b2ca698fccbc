/** What the commands of an operator have in common: how they end. */
import { AdministrationError } from '../src/admission/administration.js';
import { DamageError } from '../src/admission/backup.js';
import { StoreError } from '../src/admission/database.js';
import { ConfigError } from '../src/config.js';

/** The command line was not understood. */
export class UsageError extends Error {}

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
