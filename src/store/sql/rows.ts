/** Accounts, keys and entries as SQL has them. */
import type { SpeakingDefaults } from '../../api/speech-settings.js';
import type { Account, LedgerEntry, Restriction, StoredKey, StoredProperties } from '../records.js';
import { clamped, columnsOf, type SqlValue } from './sql.js';

/** An object of our types as a row: SQL has numbers for truth values. */
export type RowOf<T> = {
  readonly [Name in keyof T]: boolean extends T[Name] ? number | Extract<T[Name], null> : T[Name];
};

/** @param table `accounts` or `api_keys` */
export const speakingOf = (table: string): readonly string[] =>
  ['normalize_text', 'speed', 'lexicon AS lexiconId'].map((column) => `${table}.${column}`);

export type SpeakingRow = RowOf<SpeakingDefaults>;

const toTruth = (value: number | null): boolean | null => (value === null ? null : value === 1);

export const toSpeaking = ({ normalizeText, speed, lexiconId }: SpeakingRow): SpeakingDefaults => ({
  normalizeText: toTruth(normalizeText),
  speed,
  lexiconId,
});

export const speakingValues = ({ normalizeText, speed, lexiconId }: SpeakingDefaults): SqlValue[] => [
  normalizeText === null ? null : normalizeText ? 1 : 0,
  speed,
  lexiconId,
];

const ofAccounts = [
  ...['accounts.id AS accountId', 'accounts.name', 'metered', `${clamped('balance')} AS balance`],
  ...['suspended_at_ms', 'deleted_at_ms', ...speakingOf('accounts')],
];
export const accountColumns = columnsOf(ofAccounts);
/** For rows that are more than an account: see `apart`. */
export const accountPart = columnsOf(ofAccounts, 'account.');

export type AccountRow = RowOf<Account>;

export const toAccount = <Row extends AccountRow>({ metered, normalizeText, ...row }: Row) => ({
  ...row,
  metered: metered === 1,
  normalizeText: toTruth(normalizeText),
});

/** @returns a row without the columns of `accountPart`, and its account */
export const apart = <Row extends object>(row: Row): [Row, Account] => {
  const parts: [Record<string, unknown>, Record<string, unknown>] = [{}, {}];
  for (const [column, value] of Object.entries(row))
    if (column.startsWith('account.')) parts[1][column.slice('account.'.length)] = value;
    else parts[0][column] = value;
  return [parts[0] as Row, toAccount(parts[1] as unknown as AccountRow)];
};

const keyColumns = `${columnsOf([
  ...['api_keys.id AS keyId', 'prefix', 'api_keys.created_at_ms', 'revoked_at_ms', 'api_keys.name'],
  ...['expires_at_ms', 'credit_limit', 'voices', 'by_operator', ...speakingOf('api_keys')],
  `${clamped('spent')} AS spent`,
])}, ${accountPart}`;

/** Reads the newest hour of the keys that it lists. @param condition on columns of `api_keys` and `accounts` */
export const selectListedKeys = (condition: string): string => `
  SELECT ${keyColumns}, ${clamped('charged_characters')} AS characters,
    (SELECT last_at_ms FROM usage_hours WHERE key_id = api_keys.id ORDER BY hour DESC, last_at_ms DESC LIMIT 1) AS "lastUsedAtMs"
  FROM api_keys JOIN accounts ON accounts.id = account_id
  WHERE kind = 'api' AND ${condition} ORDER BY api_keys.id
`;

/** @param condition on columns of `api_keys` and `accounts` */
export const selectKeys = (condition: string): string => `
  SELECT ${keyColumns} FROM api_keys JOIN accounts ON accounts.id = account_id
  WHERE kind = 'api' AND ${condition} ORDER BY api_keys.id
`;

/** Ids have no commas. */
export const toVoices = (column: string | null): readonly string[] | null => column?.split(',') ?? null;

export const propertyColumns = [
  ...['name', 'expires_at_ms', 'credit_limit', 'voices'],
  ...['normalize_text', 'speed', 'lexicon', 'by_operator'],
] as const;

export const propertyValues = (properties: StoredProperties): SqlValue[] => [
  properties.name,
  properties.expiresAtMs,
  properties.creditLimit,
  properties.voices?.join(',') ?? null,
  ...speakingValues(properties),
  properties.byOperator.join(','),
];

export type KeyRow<Key extends StoredKey = StoredKey> = RowOf<
  Omit<Key, 'account' | 'voices' | 'byOperator'> & {
    readonly voices: string | null;
    readonly byOperator: string;
  }
>;

export const toKey = <Row extends KeyRow>(row: Row) => {
  const [{ voices, byOperator, normalizeText, ...key }, account] = apart(row);
  return {
    ...key,
    normalizeText: toTruth(normalizeText),
    voices: toVoices(voices),
    byOperator: byOperator === '' ? [] : (byOperator.split(',') as Restriction[]),
    account,
  };
};

/** Appends one entry; an entry that is there already stays one. */
export const appendSql = `
  INSERT INTO ledger
    (writer, entry, account_id, key_id, request_id, kind, amount, characters, voice, audio_ms, begins_request, at_ms)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (writer, entry) DO NOTHING
`;

export const appendValues = (entry: LedgerEntry): SqlValue[] => [
  entry.writer,
  entry.entry,
  entry.accountId,
  entry.keyId,
  entry.requestId,
  entry.kind,
  entry.amount,
  entry.characters,
  entry.voice,
  entry.audioMs,
  entry.beginsRequest ? 1 : 0,
  entry.atMs,
];
