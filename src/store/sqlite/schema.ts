/**
 * The tables of the store, by version. `migrations[n - 1]` turns schema n - 1 into schema n; `user_version` holds n.
 * Released migrations are never edited.
 */

/** "Syrx": distinguishes a store of ours from any other SQLite file. */
export const APPLICATION_ID = 0x53797278;

export const migrations = [
  // The balance of an account is the sum of its entries: the triggers keep it so, whatever program writes.
  `
  CREATE TABLE accounts (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    metered INTEGER NOT NULL CHECK (metered IN (0, 1)),
    balance INTEGER NOT NULL DEFAULT 0,
    created_at_ms INTEGER NOT NULL
  ) STRICT;

  CREATE TABLE api_keys (
    id INTEGER PRIMARY KEY,
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    hash BLOB NOT NULL UNIQUE,
    prefix TEXT NOT NULL,
    created_at_ms INTEGER NOT NULL,
    revoked_at_ms INTEGER
  ) STRICT;

  CREATE TABLE ledger (
    id INTEGER PRIMARY KEY,
    writer INTEGER NOT NULL,
    entry INTEGER NOT NULL,
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    key_id INTEGER REFERENCES api_keys (id),
    request_id TEXT,
    kind TEXT NOT NULL CHECK (kind IN ('grant', 'usage', 'refund')),
    amount INTEGER NOT NULL,
    at_ms INTEGER NOT NULL,
    UNIQUE (writer, entry)
  ) STRICT;

  CREATE TRIGGER ledger_adds_to_balance AFTER INSERT ON ledger BEGIN
    UPDATE accounts SET balance = balance + NEW.amount WHERE id = NEW.account_id;
  END;
  CREATE TRIGGER ledger_is_never_changed BEFORE UPDATE ON ledger BEGIN
    SELECT RAISE(ABORT, 'the ledger is append-only');
  END;
  CREATE TRIGGER ledger_is_never_cut BEFORE DELETE ON ledger BEGIN
    SELECT RAISE(ABORT, 'the ledger is append-only');
  END;
  `,
  // A trigger sums up usage by key and hour, so that a report need not read the ledger. A request begins with the first
  // entry that charges it; entries of the first schema have no number of characters.
  `
  ALTER TABLE ledger ADD COLUMN characters INTEGER;
  ALTER TABLE ledger ADD COLUMN begins_request INTEGER NOT NULL DEFAULT 0 CHECK (begins_request IN (0, 1));

  CREATE INDEX ledger_by_time ON ledger (at_ms);

  CREATE TABLE usage_hours (
    key_id INTEGER NOT NULL REFERENCES api_keys (id),
    hour INTEGER NOT NULL,
    requests INTEGER NOT NULL,
    characters INTEGER NOT NULL,
    credits INTEGER NOT NULL,
    refunded INTEGER NOT NULL,
    first_at_ms INTEGER NOT NULL,
    last_at_ms INTEGER NOT NULL,
    PRIMARY KEY (key_id, hour)
  ) STRICT, WITHOUT ROWID;

  DROP TRIGGER ledger_is_never_changed;
  UPDATE ledger SET begins_request = 1 WHERE id IN (
    SELECT min(id) FROM ledger WHERE kind = 'usage' GROUP BY key_id, request_id
  );
  CREATE TRIGGER ledger_is_never_changed BEFORE UPDATE ON ledger BEGIN
    SELECT RAISE(ABORT, 'the ledger is append-only');
  END;

  INSERT INTO usage_hours
  SELECT key_id, at_ms / 3600000, sum(begins_request), 0,
    coalesce(sum(-amount) FILTER (WHERE kind = 'usage'), 0),
    coalesce(sum(amount) FILTER (WHERE kind = 'refund'), 0), min(at_ms), max(at_ms)
  FROM ledger WHERE kind <> 'grant' AND key_id IS NOT NULL GROUP BY 1, 2;

  CREATE TRIGGER ledger_adds_to_usage AFTER INSERT ON ledger
  WHEN NEW.kind <> 'grant' AND NEW.key_id IS NOT NULL BEGIN
    INSERT INTO usage_hours
    VALUES (
      NEW.key_id, NEW.at_ms / 3600000, NEW.begins_request,
      iif(NEW.kind = 'usage', coalesce(NEW.characters, 0), 0),
      iif(NEW.kind = 'usage', -NEW.amount, 0), iif(NEW.kind = 'refund', NEW.amount, 0), NEW.at_ms, NEW.at_ms
    )
    ON CONFLICT (key_id, hour) DO UPDATE SET
      requests = requests + excluded.requests,
      characters = characters + excluded.characters,
      credits = credits + excluded.credits,
      refunded = refunded + excluded.refunded,
      first_at_ms = min(first_at_ms, excluded.first_at_ms),
      last_at_ms = max(last_at_ms, excluded.last_at_ms);
  END;
  `,
  // For the check at the start, which does not read the ledger: indexes hold each row of the small tables a second time,
  // so that a changed row shows; balances can be added up from the hours and the few entries that are in no hour.
  `
  CREATE INDEX accounts_twice ON accounts (id, name, metered, created_at_ms);
  CREATE INDEX api_keys_twice ON api_keys (id, account_id, hash, prefix, created_at_ms, revoked_at_ms);
  CREATE INDEX ledger_beside_hours ON ledger (account_id, amount) WHERE kind = 'grant' OR key_id IS NULL;

  CREATE INDEX api_keys_revoked ON api_keys (id) WHERE revoked_at_ms IS NOT NULL;

  CREATE TABLE identity (store TEXT NOT NULL) STRICT;
  INSERT INTO identity VALUES (lower(hex(randomblob(8))));
  `,
  // Properties of keys, and suspended accounts. A trigger keeps what each key has spent, because a request asks for it.
  // `changes` counts the acts that no other count of the commit mark shows.
  `
  ALTER TABLE accounts ADD COLUMN suspended_at_ms INTEGER;

  ALTER TABLE api_keys ADD COLUMN name TEXT NOT NULL DEFAULT '';
  ALTER TABLE api_keys ADD COLUMN expires_at_ms INTEGER;
  ALTER TABLE api_keys ADD COLUMN credit_limit INTEGER CHECK (credit_limit >= 0);
  ALTER TABLE api_keys ADD COLUMN voices TEXT;
  ALTER TABLE api_keys ADD COLUMN spent INTEGER NOT NULL DEFAULT 0;
  UPDATE api_keys SET spent = (
    SELECT coalesce(sum(credits - refunded), 0) FROM usage_hours WHERE key_id = api_keys.id
  );
  CREATE TRIGGER ledger_adds_to_spent AFTER INSERT ON ledger
  WHEN NEW.kind <> 'grant' AND NEW.key_id IS NOT NULL BEGIN
    UPDATE api_keys SET spent = spent - NEW.amount WHERE id = NEW.key_id;
  END;

  DROP INDEX accounts_twice;
  DROP INDEX api_keys_twice;
  CREATE INDEX accounts_twice ON accounts (id, name, metered, created_at_ms, suspended_at_ms);
  CREATE INDEX api_keys_twice ON api_keys (
    id, account_id, hash, prefix, created_at_ms, revoked_at_ms, name, expires_at_ms, credit_limit, voices
  );

  ALTER TABLE identity ADD COLUMN changes INTEGER NOT NULL DEFAULT 0;
  CREATE TRIGGER account_is_changed AFTER UPDATE OF suspended_at_ms ON accounts BEGIN
    UPDATE identity SET changes = changes + 1;
  END;
  CREATE TRIGGER key_is_changed AFTER UPDATE OF name, expires_at_ms, credit_limit, voices ON api_keys BEGIN
    UPDATE identity SET changes = changes + 1;
  END;
  `,
  // The console: users, their sessions, one-time links and the audit table; the hidden key of an account; deleted accounts.
  // Usage has its voice and its seconds of audio. Each row of the audit table counts as a change.
  `
  ALTER TABLE accounts ADD COLUMN deleted_at_ms INTEGER;
  ALTER TABLE api_keys ADD COLUMN kind TEXT NOT NULL DEFAULT 'api' CHECK (kind IN ('api', 'playground'));
  CREATE UNIQUE INDEX api_keys_playground ON api_keys (account_id) WHERE kind = 'playground';
  CREATE INDEX api_keys_by_account ON api_keys (account_id);

  DROP INDEX accounts_twice;
  DROP INDEX api_keys_twice;
  CREATE INDEX accounts_twice ON accounts (id, name, metered, created_at_ms, suspended_at_ms, deleted_at_ms);
  CREATE INDEX api_keys_twice ON api_keys (
    id, account_id, kind, hash, prefix, created_at_ms, revoked_at_ms, name, expires_at_ms, credit_limit, voices
  );

  ALTER TABLE ledger ADD COLUMN voice TEXT NOT NULL DEFAULT '';
  ALTER TABLE ledger ADD COLUMN audio_ms INTEGER NOT NULL DEFAULT 0;

  DROP TRIGGER ledger_adds_to_usage;
  ALTER TABLE usage_hours RENAME TO usage_hours_without_voices;
  CREATE TABLE usage_hours (
    key_id INTEGER NOT NULL REFERENCES api_keys (id),
    hour INTEGER NOT NULL,
    voice TEXT NOT NULL,
    requests INTEGER NOT NULL,
    characters INTEGER NOT NULL,
    credits INTEGER NOT NULL,
    refunded INTEGER NOT NULL,
    audio_ms INTEGER NOT NULL,
    first_at_ms INTEGER NOT NULL,
    last_at_ms INTEGER NOT NULL,
    PRIMARY KEY (key_id, hour, voice)
  ) STRICT, WITHOUT ROWID;
  INSERT INTO usage_hours
  SELECT key_id, hour, '', requests, characters, credits, refunded, 0, first_at_ms, last_at_ms
  FROM usage_hours_without_voices;
  DROP TABLE usage_hours_without_voices;
  CREATE TRIGGER ledger_adds_to_usage AFTER INSERT ON ledger
  WHEN NEW.kind <> 'grant' AND NEW.key_id IS NOT NULL BEGIN
    INSERT INTO usage_hours
    VALUES (
      NEW.key_id, NEW.at_ms / 3600000, NEW.voice, NEW.begins_request,
      iif(NEW.kind = 'usage', coalesce(NEW.characters, 0), 0),
      iif(NEW.kind = 'usage', -NEW.amount, 0), iif(NEW.kind = 'refund', NEW.amount, 0),
      iif(NEW.kind = 'usage', NEW.audio_ms, 0), NEW.at_ms, NEW.at_ms
    )
    ON CONFLICT (key_id, hour, voice) DO UPDATE SET
      requests = requests + excluded.requests,
      characters = characters + excluded.characters,
      credits = credits + excluded.credits,
      refunded = refunded + excluded.refunded,
      audio_ms = audio_ms + excluded.audio_ms,
      first_at_ms = min(first_at_ms, excluded.first_at_ms),
      last_at_ms = max(last_at_ms, excluded.last_at_ms);
  END;

  CREATE TABLE users (
    -- Never used again: an act names its user by the id.
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL,
    handle TEXT NOT NULL UNIQUE,
    role TEXT NOT NULL CHECK (role IN ('operator', 'member')),
    account_id INTEGER REFERENCES accounts (id),
    password TEXT NOT NULL,
    created_at_ms INTEGER NOT NULL,
    last_seen_at_ms INTEGER,
    CHECK ((role = 'member') = (account_id IS NOT NULL))
  ) STRICT;
  CREATE INDEX users_by_account ON users (account_id);
  CREATE INDEX users_twice ON users (id, name, handle, role, account_id, password, created_at_ms);

  CREATE TABLE sessions (
    hash TEXT PRIMARY KEY,
    user_id INTEGER NOT NULL REFERENCES users (id),
    created_at_ms INTEGER NOT NULL,
    seen_at_ms INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX sessions_by_user ON sessions (user_id);

  CREATE TABLE links (
    hash TEXT PRIMARY KEY,
    kind TEXT NOT NULL CHECK (kind IN ('claim', 'recovery', 'invitation')),
    account_id INTEGER REFERENCES accounts (id),
    expires_at_ms INTEGER NOT NULL,
    CHECK (kind = 'invitation' OR account_id IS NULL)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE audit (
    id INTEGER PRIMARY KEY,
    at_ms INTEGER NOT NULL,
    actor TEXT NOT NULL,
    action TEXT NOT NULL,
    subject TEXT NOT NULL,
    details TEXT NOT NULL
  ) STRICT;
  CREATE INDEX audit_by_time ON audit (at_ms);
  CREATE INDEX audit_by_action ON audit (action, id);
  CREATE TRIGGER act_is_recorded AFTER INSERT ON audit BEGIN
    UPDATE identity SET changes = changes + 1;
  END;
  `,
  // Speaking defaults of accounts and of keys.
  `
  ALTER TABLE accounts ADD COLUMN normalize_text INTEGER CHECK (normalize_text IN (0, 1));
  ALTER TABLE accounts ADD COLUMN speed REAL CHECK (speed BETWEEN 0.5 AND 2);
  ALTER TABLE accounts ADD COLUMN lexicon TEXT;
  ALTER TABLE api_keys ADD COLUMN normalize_text INTEGER CHECK (normalize_text IN (0, 1));
  ALTER TABLE api_keys ADD COLUMN speed REAL CHECK (speed BETWEEN 0.5 AND 2);
  ALTER TABLE api_keys ADD COLUMN lexicon TEXT;

  DROP INDEX accounts_twice;
  DROP INDEX api_keys_twice;
  CREATE INDEX accounts_twice ON accounts (
    id, name, metered, created_at_ms, suspended_at_ms, deleted_at_ms, normalize_text, speed, lexicon
  );
  CREATE INDEX api_keys_twice ON api_keys (
    id, account_id, kind, hash, prefix, created_at_ms, revoked_at_ms, name, expires_at_ms, credit_limit, voices,
    normalize_text, speed, lexicon
  );
  `,
  // Which restrictions of a key an operator set. The store does not know who set the existing ones: they count as an
  // operator's. Acts of members are known by their account, so that they have a part of the audit table of their own.
  `
  ALTER TABLE api_keys ADD COLUMN by_operator TEXT NOT NULL DEFAULT '';
  UPDATE api_keys SET by_operator = concat_ws(',', CASE WHEN expires_at_ms IS NOT NULL THEN 'expiresAtMs' END,
    CASE WHEN credit_limit IS NOT NULL THEN 'creditLimit' END, CASE WHEN voices IS NOT NULL THEN 'voices' END);

  DROP INDEX api_keys_twice;
  CREATE INDEX api_keys_twice ON api_keys (
    id, account_id, kind, hash, prefix, created_at_ms, revoked_at_ms, name, expires_at_ms, credit_limit, voices,
    normalize_text, speed, lexicon, by_operator
  );

  ALTER TABLE audit ADD COLUMN account_id INTEGER REFERENCES accounts (id);
  CREATE INDEX audit_by_account ON audit (account_id, id);
  `,
  // Tokens of programs: sessions with a name and an end of their own.
  `
  ALTER TABLE sessions ADD COLUMN name TEXT;
  ALTER TABLE sessions ADD COLUMN expires_at_ms INTEGER;
  `,
  // What each account used by day, and what each key was charged for: a call of the console adds up no long history.
  `
  CREATE TABLE usage_days (
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    day INTEGER NOT NULL,
    characters INTEGER NOT NULL,
    amount INTEGER NOT NULL,
    last_at_ms INTEGER NOT NULL,
    PRIMARY KEY (account_id, day)
  ) STRICT, WITHOUT ROWID;
  INSERT INTO usage_days
  SELECT account_id, hour / 24, sum(characters), sum(refunded - credits), max(last_at_ms)
  FROM usage_hours JOIN api_keys ON api_keys.id = key_id GROUP BY 1, 2;
  CREATE TRIGGER ledger_adds_to_days AFTER INSERT ON ledger
  WHEN NEW.kind <> 'grant' AND NEW.key_id IS NOT NULL BEGIN
    INSERT INTO usage_days
    VALUES (
      NEW.account_id, NEW.at_ms / 86400000, iif(NEW.kind = 'usage', coalesce(NEW.characters, 0), 0), NEW.amount, NEW.at_ms
    )
    ON CONFLICT (account_id, day) DO UPDATE SET
      characters = characters + excluded.characters,
      amount = amount + excluded.amount,
      last_at_ms = max(last_at_ms, excluded.last_at_ms);
  END;

  ALTER TABLE api_keys ADD COLUMN charged_characters INTEGER NOT NULL DEFAULT 0;
  UPDATE api_keys SET charged_characters = (
    SELECT coalesce(sum(characters), 0) FROM usage_hours WHERE key_id = api_keys.id
  );
  DROP TRIGGER ledger_adds_to_spent;
  CREATE TRIGGER ledger_adds_to_spent AFTER INSERT ON ledger
  WHEN NEW.kind <> 'grant' AND NEW.key_id IS NOT NULL BEGIN
    UPDATE api_keys SET
      spent = spent - NEW.amount,
      charged_characters = charged_characters + iif(NEW.kind = 'usage', coalesce(NEW.characters, 0), 0)
    WHERE id = NEW.key_id;
  END;
  `,
] as const;

export const SCHEMA_VERSION = migrations.length;
