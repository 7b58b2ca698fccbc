/** Usage of accounts and keys, from the command line. Only reads, and works while the service runs. */
import { PLAYGROUND } from '../src/accounts/keys.js';
import { readUsage, type AccountUse } from '../src/accounts/usage.js';
import { readConfig } from '../src/config.js';
import { limits } from '../src/limits.js';
import { storeAt } from '../src/store/driver.js';
import type { Use } from '../src/store/store.js';
import { parseTime, program, runIfMain, storePlace } from './command.js';
import { formatTable, formatTime, iso } from './table.js';

const usage = `Usage: npm run usage -- [--account NAME] [--since DATE|DURATION] [--json]

  --account NAME   one account only
  --since DATE     from then on: 2026-07-01 or 2026-07-01T14:30, in UTC
  --since DURATION the last 30m, 12h, 7d or 2w
  --json           for programs: one JSON object, times in ISO 8601

Shows for each account, and below it for each of its keys: the requests that were charged, the characters and credits
they were charged for, the part of these credits that was given back, the seconds of audio that were handed over, and
the first and last use in the period. "Playground" is what the users of the account spoke in the console. BALANCE is
the current balance. A request in flight is counted after its first 1000 characters, or when it ends.

${storePlace}
`;

const seconds = (ms: number): string => (ms / 1000).toFixed(1);
const numbers = ({ requests, characters, credits, refunded, audioMs }: Use): string[] => [
  ...[requests, characters, credits, refunded].map(String),
  seconds(audioMs),
];
const times = ({ firstAtMs, lastAtMs }: Use): string[] => [formatTime(firstAtMs), formatTime(lastAtMs)];

const heading = [
  'ACCOUNT / KEY',
  'REQUESTS',
  'CHARACTERS',
  'CREDITS',
  'REFUNDED',
  'SECONDS',
  'BALANCE',
  'FIRST USE (UTC)',
  'LAST USE (UTC)',
];

const table = (accounts: readonly AccountUse[]): string => {
  const rows = accounts.flatMap((account) => [
    [
      account.account,
      ...numbers(account),
      account.metered ? String(account.balance) : 'not metered',
      ...times(account),
    ],
    ...account.keys.map((key) => [
      `  ${key.prefix}${key.prefix === PLAYGROUND ? '' : '...'}${key.revoked ? ' (revoked)' : ''}`,
      ...numbers(key),
      '',
      ...times(key),
    ]),
  ]);
  return formatTable([heading, ...rows], [1, 2, 3, 4, 5, 6]);
};

const useJson = ({ requests, characters, credits, refunded, audioMs, firstAtMs, lastAtMs }: Use) => ({
  requests,
  characters,
  credits,
  refunded_credits: refunded,
  audio_seconds: audioMs / 1000,
  first_use: iso(firstAtMs),
  last_use: iso(lastAtMs),
});

const json = (accounts: readonly AccountUse[], sinceMs: number | null): string =>
  `${JSON.stringify(
    {
      since: iso(sinceMs),
      accounts: accounts.map((account) => ({
        account: account.account,
        metered: account.metered,
        balance: account.balance,
        ...useJson(account),
        keys: account.keys.map((key) => ({ key: key.prefix, revoked: key.revoked, ...useJson(key) })),
      })),
    },
    null,
    2,
  )}\n`;

export const usageReport = program('usage', usage, {
  options: ['account', 'since'],
  flags: ['json'],
  run: async ({ option, flag }, { env, out }) => {
    const since = option('since');
    const nowMs = Date.now();
    const sinceMs = since === null ? null : parseTime('--since', since, (durationMs) => nowMs - durationMs);
    const driver = storeAt(readConfig(env), limits);
    const accounts = await readUsage(driver, { account: option('account'), sinceMs });
    out(flag('json') ? json(accounts, sinceMs) : table(accounts));
  },
});

await runIfMain(import.meta.url, usageReport);
