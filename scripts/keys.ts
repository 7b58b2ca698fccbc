/** Accounts and keys from the command line. Works while the service runs, and takes effect at once. */
import { administer, type Administration } from '../src/accounts/administration.js';
import { readConfig } from '../src/config.js';
import { limits } from '../src/limits.js';
import { sqliteStore } from '../src/store/sqlite/driver.js';
import type { StoredKey } from '../src/store/store.js';
import { program, runIfMain, UsageError, type Terminal } from './command.js';
import { formatTable, formatTime } from './table.js';

const usage = `Usage: npm run keys -- COMMAND

  create [--account NAME] [--credits N]   create a key and print it, once; without --account for a new account;
                                          without --credits a new account never runs out of credit
  credit KEY_OR_ACCOUNT N                 add N credits
  revoke KEY_OR_PREFIX                    end a key, at once and for good
  list                                    show all keys by their prefixes

The store is in DATA_DIR (default ./data). All commands work while the service runs.
`;

const wholeNumber = (text: string, what: string): number => {
  if (!/^\d{1,15}$/.test(text)) throw new UsageError(`${what} is a whole number, not "${text}"`);
  return Number(text);
};

const inCredits = (amount: number): string => `${amount} credit${amount === 1 ? '' : 's'}`;

/** @param create whether to create a store. For all other acts a missing store means that DATA_DIR is wrong. */
const open = <T>({ env }: Terminal, create: boolean, work: (administration: Administration) => Promise<T>) =>
  administer(sqliteStore(readConfig(env).dataDir, limits), create, work);

const toRow = ({ prefix, account, createdAtMs, revokedAtMs }: StoredKey): readonly string[] => [
  `${prefix}...`,
  account.name,
  account.metered ? String(account.balance) : 'not metered',
  formatTime(createdAtMs),
  revokedAtMs === null ? 'active' : 'revoked',
];

export const keys = program('keys', usage, {
  create: {
    options: ['account', 'credits'],
    run: async ({ option }, terminal) => {
      const amount = option('credits');
      const credits = amount === null ? null : wholeNumber(amount, '--credits');
      const { key, account } = await open(terminal, true, (administration) =>
        administration.createKey(option('account'), credits),
      );
      const state = account.metered ? `has ${inCredits(account.balance)}` : 'never runs out of credit';
      terminal.out(`${key}\n`);
      terminal.err(`Account "${account.name}" ${state}. Keep the key: it is not shown again.\n`);
    },
  },
  credit: {
    operands: [2, 2],
    run: async ({ operands: [target = '', amount = ''] }, terminal) => {
      const credits = wholeNumber(amount, 'N');
      const { account, becameMetered } = await open(terminal, false, (administration) =>
        administration.credit(target, credits),
      );
      terminal.out(`Account "${account.name}" has ${inCredits(account.balance)}.\n`);
      if (becameMetered)
        terminal.out('Before, it never ran out of credit; now it does when these credits are spent.\n');
    },
  },
  revoke: {
    operands: [1, 1],
    run: async ({ operands: [target = ''] }, terminal) => {
      const { prefix, account, alreadyRevoked } = await open(terminal, false, (administration) =>
        administration.revoke(target),
      );
      const verb = alreadyRevoked ? 'was revoked before' : 'is revoked';
      terminal.out(`Key ${prefix}... of account "${account}" ${verb}.\n`);
    },
  },
  list: {
    run: async (_, terminal) => {
      const found = await open(terminal, false, (administration) => administration.list());
      terminal.out(
        formatTable([['KEY', 'ACCOUNT', 'CREDITS', 'CREATED (UTC)', 'STATE'], ...found.map(toRow)]),
      );
    },
  },
});

await runIfMain(import.meta.url, keys);
