/** Accounts, keys and entries as SQL has them. */
import type { SpeakingDefaults } from '../../api/speech-settings.js';
import type { Account, LedgerEntry, ListedKey, Restriction, StoredKey, StoredProperties } from '../store.js';
import { clamped, type SqlValue } from './sql.js';

/** Columns of `accounts` and of `api_keys`. */
export interface SpeakingRow {
  readonly normalize_text: number | null;
  readonly speed: number | null;
  readonly lexicon: string | null;
}

export const toSpeaking = ({ normalize_text, speed, lexicon }: SpeakingRow): SpeakingDefaults => ({
  normalizeText: normalize_text === null ? null : normalize_text === 1,
  speed,
  lexiconId: lexicon,
});

export const speakingValues = ({ normalizeText, speed, lexiconId }: SpeakingDefaults): SqlValue[] => [
  normalizeText === null ? null : normalizeText ? 1 : 0,
  speed,
  lexiconId,
];

export interface AccountRow {
  readonly account_id: number;
  readonly account: string;
  readonly metered: number;
  readonly balance: number;
  readonly suspended_at_ms: number | null;
  readonly deleted_at_ms: number | null;
  readonly account_normalize_text: number | null;
  readonly account_speed: number | null;
  readonly account_lexicon: string | null;
}

export interface KeyRow extends AccountRow, SpeakingRow {
  readonly key_id: number;
  readonly prefix: string;
  readonly created_at_ms: number;
  readonly revoked_at_ms: number | null;
  readonly name: string;
  readonly expires_at_ms: number | null;
  readonly credit_limit: number | null;
  readonly voices: string | null;
  readonly by_operator: string;
  readonly spent: number;
}

export interface ListedKeyRow extends KeyRow {
  readonly characters: number;
  readonly last_used_at_ms: number | null;
}

export const accountColumns = `
  accounts.id AS account_id, accounts.name AS account, metered, ${clamped('balance')} AS balance, suspended_at_ms,
  deleted_at_ms, accounts.normalize_text AS account_normalize_text, accounts.speed AS account_speed,
  accounts.lexicon AS account_lexicon
`;
const keyColumns = `
  api_keys.id AS key_id, prefix, api_keys.created_at_ms, revoked_at_ms, api_keys.name, expires_at_ms, credit_limit,
  voices, by_operator, api_keys.normalize_text, api_keys.speed, api_keys.lexicon, ${clamped('spent')} AS spent, ${accountColumns}
`;

/** @param condition on columns of `api_keys` and `accounts` */
export const selectListedKeys = (condition: string): string => `
  SELECT ${keyColumns}, ${clamped('coalesce(characters, 0)')} AS characters, last_used_at_ms
  FROM api_keys JOIN accounts ON accounts.id = account_id LEFT JOIN (
    SELECT key_id, sum(characters) AS characters, max(last_at_ms) AS last_used_at_ms
    FROM usage_hours GROUP BY key_id
  ) AS used ON used.key_id = api_keys.id
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

export const toAccount = (row: AccountRow): Account => ({
  accountId: row.account_id,
  name: row.account,
  metered: row.metered === 1,
  balance: row.balance,
  suspendedAtMs: row.suspended_at_ms,
  deletedAtMs: row.deleted_at_ms,
  ...toSpeaking({
    normalize_text: row.account_normalize_text,
    speed: row.account_speed,
    lexicon: row.account_lexicon,
  }),
});

export const toKey = (row: KeyRow): StoredKey => ({
  keyId: row.key_id,
  prefix: row.prefix,
  createdAtMs: row.created_at_ms,
  revokedAtMs: row.revoked_at_ms,
  name: row.name,
  expiresAtMs: row.expires_at_ms,
  creditLimit: row.credit_limit,
  voices: toVoices(row.voices),
  byOperator: row.by_operator === '' ? [] : (row.by_operator.split(',') as Restriction[]),
  ...toSpeaking(row),
  spent: row.spent,
  account: toAccount(row),
});

export const toListedKey = (row: ListedKeyRow): ListedKey => ({
  ...toKey(row),
  characters: row.characters,
  lastUsedAtMs: row.last_used_at_ms,
});

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
