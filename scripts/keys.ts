/** Accounts and keys from the command line. Works while the service runs, and takes effect at once. */
import { administer, type Administration } from '../src/accounts/administration.js';
import type { Installed } from '../src/accounts/checks.js';
import { looksLikeKey } from '../src/accounts/keys.js';
import type { SpeakingDefaults } from '../src/api/speech-settings.js';
import { readConfig, type Config } from '../src/config.js';
import { limits } from '../src/limits.js';
import { storeAt } from '../src/store/driver.js';
import type { KeyProperties, ListedKey, StoreDriver, StoredKey } from '../src/store/store.js';
import { namedLexicons } from '../src/threads/lexicons.js';
import { catalogueOf } from '../src/threads/voices.js';
import {
  parseTime,
  program,
  runIfMain,
  storePlace,
  UsageError,
  type CommandLine,
  type Terminal,
} from './command.js';
import { formatTable, formatTime, iso } from './table.js';
import { installed, placesOf } from './voices/packs.js';

const usage = `Usage: npm run keys -- COMMAND

  create [--account NAME] [--credits N]   create a key and print it, once; without --account for a new account;
         [--name NAME] [PROPERTIES]       without --credits a new account is not metered
  rename KEY NAME                         name a key, for lists
  set KEY PROPERTIES                      change or remove properties of a key
  set ACCOUNT SPEAKING                    the same for what an account sets for its keys
  credit KEY_OR_ACCOUNT N                 add N credits to an account that is metered
  meter ACCOUNT on [--credits N]          let an account spend the credit that it has, and N more; "off" undoes it: the
  meter ACCOUNT off                       account is not metered: no credit is needed
  suspend ACCOUNT                         refuse all keys of an account
  resume ACCOUNT                          accept them again
  revoke KEY                              end a key, at once and for good
  list [--json]                           show all keys; --json for programs, times in ISO 8601

KEY is a key, or its beginning, such as \`list\` shows it. PROPERTIES are:

  --expires DATE      refuse the key from then on: 2027-07-01 or 2027-07-01T14:30, in UTC
  --expires DURATION  refuse it after 30m, 12h, 7d or 2w from now
  --limit N           the key may spend N credits in all, whatever its account has
  --voices ID,ID      the key knows these voices only

and SPEAKING, for requests that do not say it themselves:

  --normalize on|off  speak numbers, dates and the like as words, or as they are written
  --speed N           factor of pace, from 0.5 to 2
  --lexicon NAME      words of DATA_DIR/lexicons/named/NAME come before those of all other lexicons

\`--expires never\`, \`--limit none\` and \`--voices all\` remove a property. With \`default\` for --normalize, --speed or
--lexicon a key follows its account, and an account the transport. All commands work while the service runs, and take
effect at once; WebSockets follow within a second, from their next utterance on. ${storePlace}
`;

const wholeNumber = (text: string, what: string): number => {
  if (!/^\d{1,15}$/.test(text)) throw new UsageError(`${what} is a whole number, not "${text}"`);
  return Number(text);
};

const inCredits = (amount: number): string => `${amount} credit${amount === 1 ? '' : 's'}`;

const storeOf = (config: Config): StoreDriver =>
  storeAt(config, { ...limits, keysPerAccountMax: config.keysPerAccountMax });

/** @param create whether to create a store. For all other acts a missing store means that DATA_DIR is wrong. */
const open = <T>({ env }: Terminal, create: boolean, work: (administration: Administration) => Promise<T>) =>
  administer(storeOf(readConfig(env)), create, work);

const speakingOptions = ['normalize', 'speed', 'lexicon'] as const;
const propertyOptions = ['expires', 'limit', 'voices', ...speakingOptions] as const;

const switches: Readonly<Record<string, boolean | null>> = { on: true, off: false, default: null };

const readSpeaking = ({ option }: CommandLine): Partial<SpeakingDefaults> => {
  const [normalize, speed, lexicon] = [option('normalize'), option('speed'), option('lexicon')];
  if (normalize !== null && !Object.hasOwn(switches, normalize))
    throw new UsageError(`--normalize is on, off or default, not "${normalize}"`);
  if (speed !== null && speed !== 'default' && !/^\d+(?:\.\d+)?$/.test(speed))
    throw new UsageError(`--speed is a number or default, not "${speed}"`);
  return {
    ...(normalize !== null && { normalizeText: switches[normalize] ?? null }),
    ...(speed !== null && { speed: speed === 'default' ? null : Number(speed) }),
    ...(lexicon !== null && { lexiconId: lexicon === 'default' ? null : lexicon }),
  };
};

const readProperties = (line: CommandLine): Partial<KeyProperties> => {
  const { option } = line;
  const [expires, limit, voices] = [option('expires'), option('limit'), option('voices')];
  const after = (durationMs: number): number => Date.now() + durationMs;
  return {
    ...(expires !== null && {
      expiresAtMs: expires === 'never' ? null : parseTime('--expires', expires, after),
    }),
    ...(limit !== null && { creditLimit: limit === 'none' ? null : wholeNumber(limit, '--limit') }),
    ...(voices !== null && { voices: voices === 'all' ? null : voices.split(',') }),
    ...readSpeaking(line),
  };
};

/** Hosts that share a database have folders of their own: this machine may be none of them. */
const installedFor = async ({ env }: Terminal, { voices }: Partial<KeyProperties>): Promise<Installed> => {
  const { dataDir, storeUrl } = readConfig(env);
  const lexicons = namedLexicons(dataDir) ?? (storeUrl === null ? [] : null);
  const areNamed = voices !== undefined && voices !== null;
  const packs = areNamed && storeUrl === null ? (await installed(placesOf(env))).packs : [];
  return {
    ...(lexicons !== null && { lexicons }),
    // If no pack can be used, nothing is known.
    ...(packs.length > 0 && { voices: catalogueOf(packs).speakerIds }),
  };
};

/** In words, for the operator. */
const describeSpeaking = ({ normalizeText, speed, lexiconId }: SpeakingDefaults): string[] => [
  ...(normalizeText === null ? [] : [normalizeText ? 'normalizes text' : 'does not normalize text']),
  ...(speed === null ? [] : [`speaks at speed ${speed}`]),
  ...(lexiconId === null ? [] : [`uses the lexicon "${lexiconId}"`]),
];

const describe = (key: StoredKey): string => {
  const { expiresAtMs, creditLimit, spent, voices } = key;
  return [
    expiresAtMs === null ? 'does not expire' : `expires at ${formatTime(expiresAtMs)} UTC`,
    creditLimit === null ? 'has no limit of its own' : `has spent ${spent} of ${inCredits(creditLimit)}`,
    voices === null ? 'knows all voices' : `knows ${voices.join(', ')}`,
    ...describeSpeaking(key),
  ].join(', ');
};

const stateOf = ({ account, expiresAtMs, revokedAtMs }: StoredKey, nowMs: number): string => {
  if (revokedAtMs !== null) return 'revoked';
  if (expiresAtMs !== null && expiresAtMs <= nowMs) return 'expired';
  return account.suspendedAtMs === null ? 'active' : 'suspended';
};

/** What is in effect, and whether it comes from the account. */
const effective = <T>(own: T | null, ofAccount: T | null, cellOf: (value: T) => string): string => {
  if (own !== null) return cellOf(own);
  return ofAccount === null ? '' : `${cellOf(ofAccount)} (account)`;
};

type Column = readonly [heading: string, cellOf: (key: ListedKey, nowMs: number) => string];

const columns: readonly Column[] = [
  ['KEY', ({ prefix }) => `${prefix}...`],
  ['NAME', ({ name }) => name],
  ['ACCOUNT', ({ account }) => account.name],
  ['CREDITS', ({ account }) => (account.metered ? String(account.balance) : 'not metered')],
  ['CREATED (UTC)', ({ createdAtMs }) => formatTime(createdAtMs)],
  ['LAST USED (UTC)', ({ lastUsedAtMs }) => formatTime(lastUsedAtMs)],
  ['CHARACTERS', ({ characters }) => String(characters)],
  ['LIMIT', ({ creditLimit, spent }) => (creditLimit === null ? '' : `${spent} of ${creditLimit}`)],
  ['EXPIRES (UTC)', ({ expiresAtMs }) => (expiresAtMs === null ? '' : formatTime(expiresAtMs))],
  ['VOICES', ({ voices }) => voices?.join(',') ?? ''],
  [
    'NORMALIZE',
    ({ normalizeText, account }) =>
      effective(normalizeText, account.normalizeText, (isOn) => (isOn ? 'on' : 'off')),
  ],
  ['SPEED', ({ speed, account }) => effective(speed, account.speed, String)],
  ['LEXICON', ({ lexiconId, account }) => effective(lexiconId, account.lexiconId, String)],
  ['STATE', stateOf],
];

/** Columns that are empty for every key are left out. */
const table = (found: readonly ListedKey[], nowMs: number): string => {
  const filled = columns
    .map(([heading, cellOf]) => [heading, ...found.map((key) => cellOf(key, nowMs))])
    .filter((cells) => found.length === 0 || cells.slice(1).some((cell) => cell !== ''));
  const rows = (filled[0] ?? []).map((_, row) => filled.map((cells) => cells[row] ?? ''));
  const numbers = filled.flatMap(([heading], column) => (heading === 'CHARACTERS' ? [column] : []));
  return formatTable(rows, numbers);
};

const json = (found: readonly ListedKey[], nowMs: number): string => {
  const keys = found.map((key) => ({
    ...{ key: key.prefix, name: key.name, account: key.account.name, state: stateOf(key, nowMs) },
    balance: key.account.metered ? key.account.balance : null,
    created: iso(key.createdAtMs),
    last_used: iso(key.lastUsedAtMs),
    ...{ characters: key.characters, credit_limit: key.creditLimit, spent: key.spent },
    expires: iso(key.expiresAtMs),
    voices: key.voices,
    normalize: key.normalizeText ?? key.account.normalizeText,
    speed: key.speed ?? key.account.speed,
    lexicon: key.lexiconId ?? key.account.lexiconId,
  }));
  return `${JSON.stringify({ keys }, null, 2)}\n`;
};

export const keys = program('keys', usage, {
  create: {
    options: ['account', 'credits', 'name', ...propertyOptions],
    run: async (line, terminal) => {
      const amount = line.option('credits');
      const credits = amount === null ? null : wholeNumber(amount, '--credits');
      const properties = { ...readProperties(line), name: line.option('name') ?? '' };
      const has = await installedFor(terminal, properties);
      const { key, account } = await open(terminal, true, (administration) =>
        administration.createKey(line.option('account'), credits, properties, has),
      );
      const state = account.metered ? `has ${inCredits(account.balance)}` : 'is not metered';
      const suspended = account.suspendedAtMs === null ? '' : ' and is suspended';
      terminal.out(`${key}\n`);
      terminal.err(`Account "${account.name}" ${state}${suspended}. Keep the key: it is not shown again.\n`);
    },
  },
  rename: {
    operands: [2, 2],
    run: async ({ operands: [target = '', name = ''] }, terminal) => {
      const { prefix } = await open(terminal, false, (administration) =>
        administration.change(target, { name }),
      );
      terminal.out(`Key ${prefix}... is named "${name}".\n`);
    },
  },
  set: {
    operands: [1, 1],
    options: propertyOptions,
    run: async (line, terminal) => {
      const [target = ''] = line.operands;
      const changes = readProperties(line);
      if (Object.keys(changes).length === 0)
        throw new UsageError(`"set" needs one of ${propertyOptions.map((name) => `--${name}`).join(', ')}`);
      const has = await installedFor(terminal, changes);
      if (looksLikeKey(target)) {
        const key = await open(terminal, false, (administration) =>
          administration.change(target, changes, has),
        );
        terminal.out(`Key ${key.prefix}... ${describe(key)}.\n`);
        return;
      }
      const speaking = readSpeaking(line);
      if (Object.keys(speaking).length < Object.keys(changes).length)
        throw new UsageError('An account has no expiry, limit or voices: its keys have');
      const account = await open(terminal, false, (administration) =>
        administration.changeAccount(target, speaking, has),
      );
      const described = describeSpeaking(account).join(', ') || 'sets nothing for its keys';
      terminal.out(`Account "${account.name}" ${described}.\n`);
    },
  },
  suspend: {
    operands: [1, 1],
    run: async ({ operands: [name = ''] }, terminal) => {
      const isNew = await open(terminal, false, (administration) => administration.suspend(name));
      terminal.out(`Account "${name}" ${isNew ? 'is' : 'was'} suspended${isNew ? '' : ' before'}.\n`);
    },
  },
  resume: {
    operands: [1, 1],
    run: async ({ operands: [name = ''] }, terminal) => {
      const isNew = await open(terminal, false, (administration) => administration.resume(name));
      terminal.out(`Account "${name}" ${isNew ? 'is resumed' : 'was not suspended'}.\n`);
    },
  },
  credit: {
    operands: [2, 2],
    run: async ({ operands: [target = '', amount = ''] }, terminal) => {
      const credits = wholeNumber(amount, 'N');
      const { name, balance } = await open(terminal, false, (administration) =>
        administration.credit(target, credits),
      );
      terminal.out(`Account "${name}" has ${inCredits(balance)}.\n`);
    },
  },
  meter: {
    operands: [2, 2],
    options: ['credits'],
    run: async ({ operands: [target = '', state = ''], option }, terminal) => {
      const amount = option('credits');
      if (state !== 'on' && state !== 'off') throw new UsageError(`"meter" is on or off, not "${state}"`);
      if (state === 'off' && amount !== null) throw new UsageError('--credits goes with "meter ACCOUNT on"');
      const credits = amount === null ? 0 : wholeNumber(amount, '--credits');
      const { name, metered, balance } = await open(terminal, false, (administration) =>
        administration.meter(target, state === 'on', credits),
      );
      const effect = metered ? `has ${inCredits(balance)}, and is refused beyond` : 'is not metered';
      terminal.out(`Account "${name}" ${effect}.\n`);
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
    flags: ['json'],
    run: async ({ flag }, terminal) => {
      const found = await open(terminal, false, (administration) => administration.list());
      terminal.out((flag('json') ? json : table)(found, Date.now()));
    },
  },
});

await runIfMain(import.meta.url, keys);
