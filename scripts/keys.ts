/**
 * Accounts and keys from the command line. Works while the service runs, and takes effect at once.
 *
 * Exit codes: 0 done, 1 the store did not allow it, 2 the command was not understood.
 */
import { existsSync } from 'node:fs';
import { Administration, AdministrationError, type ListedKey } from '../src/accounts/administration.js';
import { storePath } from '../src/store/sqlite/database.js';
import { readConfig } from '../src/config.js';
import { commandNamed, parseCommandLine, runCommand, UsageError } from './command.js';
import { formatTable, formatTime } from './table.js';

const usage = `Usage: npm run keys -- COMMAND

  create [--account NAME] [--credits N]   make a key and print it, once; without --account for a new account;
                                          without --credits a new account is never out of credit
  credit KEY_OR_ACCOUNT N                 add N credits
  revoke KEY_OR_PREFIX                    end a key, at once and for good
  list                                    show all keys by their prefixes

The store is in DATA_DIR (default ./data). All commands work while the service runs.
`;

interface Command {
  readonly operands: readonly string[];
  readonly account: string | null;
  readonly credits: number | null;
}

const wholeNumber = (text: string, what: string): number => {
  if (!/^\d{1,15}$/.test(text)) throw new UsageError(`${what} is a whole number, not "${text}"`);
  return Number(text);
};

const credits = (amount: number): string => `${amount} credit${amount === 1 ? '' : 's'}`;

const create = (administration: Administration, { account, credits: amount }: Command): void => {
  const created = administration.createKey(account, amount);
  const { name, metered, balance } = created.account;
  process.stdout.write(`${created.key}\n`);
  const state = metered ? `has ${credits(balance)}` : 'is never out of credit';
  process.stderr.write(`Account "${name}" ${state}. Keep the key: it is not shown again.\n`);
};

const credit = (administration: Administration, { operands }: Command): void => {
  const [target = '', amount = ''] = operands;
  const { account, becameMetered } = administration.credit(target, wholeNumber(amount, 'N'));
  process.stdout.write(`Account "${account.name}" has ${credits(account.balance)}.\n`);
  if (becameMetered)
    process.stdout.write('It was never out of credit before; now it is when these are spent.\n');
};

const revoke = (administration: Administration, { operands }: Command): void => {
  const { prefix, account, alreadyRevoked } = administration.revoke(operands[0] ?? '');
  const verb = alreadyRevoked ? 'was revoked before' : 'is revoked';
  process.stdout.write(`Key ${prefix}... of account "${account}" ${verb}.\n`);
};

const row = (key: ListedKey): readonly string[] => [
  `${key.prefix}...`,
  key.account,
  key.metered ? String(key.balance) : 'not metered',
  formatTime(key.createdAtMs),
  key.revokedAtMs === null ? 'active' : 'revoked',
];

const list = (administration: Administration): void => {
  const rows = [['KEY', 'ACCOUNT', 'CREDITS', 'CREATED (UTC)', 'STATE'], ...administration.list().map(row)];
  process.stdout.write(formatTable(rows));
};

interface CommandRow {
  readonly run: (administration: Administration, command: Command) => void;
  readonly operands: number;
  readonly takesOptions: boolean;
}

const commands: Readonly<Record<string, CommandRow>> = {
  create: { run: create, operands: 0, takesOptions: true },
  credit: { run: credit, operands: 2, takesOptions: false },
  revoke: { run: revoke, operands: 1, takesOptions: false },
  list: { run: list, operands: 0, takesOptions: false },
};

const parse = (args: readonly string[]) =>
  parseCommandLine({
    args: [...args],
    allowPositionals: true,
    options: {
      account: { type: 'string' },
      credits: { type: 'string' },
      help: { type: 'boolean', short: 'h' },
    },
  });

const run = (args: readonly string[]): void => {
  const { values, positionals } = parse(args);
  const [name = '', ...operands] = positionals;
  if (values.help === true || name === 'help') {
    process.stdout.write(usage);
    return;
  }
  const command = commandNamed(commands, name);
  if (operands.length !== command.operands)
    throw new UsageError(`"${name}" takes ${command.operands} operands, not ${operands.length}`);
  const { account = null, credits: amount } = values;
  if (!command.takesOptions && (account !== null || amount !== undefined))
    throw new UsageError(`"${name}" takes no options`);
  const parsed: Command = {
    operands,
    account,
    credits: amount === undefined ? null : wholeNumber(amount, '--credits'),
  };
  const { dataDir } = readConfig(process.env);
  // To create a key is to create a store; to ask for one that is not there is to have the wrong folder.
  if (name !== 'create' && !existsSync(storePath(dataDir)))
    throw new AdministrationError(`There is no store in ${dataDir}: set DATA_DIR to that of the service`);
  const administration = new Administration(dataDir);
  try {
    command.run(administration, parsed);
  } finally {
    administration.close();
  }
};

runCommand('keys', usage, run);
