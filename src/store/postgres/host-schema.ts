/** What several hosts share: who writes, and which credit each has reserved. `../reservations.ts` has the other side. */

/**
 * Acts hold this lock alone, commits of the ledger share it. A lock of the table would also wait for VACUUM, and everybody
 * behind it. A transaction locks in this order: writers, this, accounts, reservations. Acts lock this before accounts.
 */
export const ACTS_LOCK = 0x53797279;
const shareActsLock = `PERFORM pg_advisory_xact_lock_shared(${ACTS_LOCK})`;

/** The functions of this version are in `reservationMigration`. */
export const hostMigration = `
  CREATE TABLE writers (
    id BIGINT PRIMARY KEY,
    host TEXT NOT NULL,
    started_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
    seen_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
    ended_at TIMESTAMPTZ,
    dead_at TIMESTAMPTZ
  );

  CREATE TABLE allotments (
    account_id BIGINT NOT NULL REFERENCES accounts (id),
    writer BIGINT NOT NULL REFERENCES writers (id) ON DELETE CASCADE,
    reserved BIGINT NOT NULL CHECK (reserved >= 0),
    PRIMARY KEY (account_id, writer)
  );
  CREATE INDEX allotments_by_writer ON allotments (writer);
`;

/** An account has plenty with so many times of what a host wants ahead. */
const PLENTY = 16;

/** In place of allotments, which hosts exchanged: what a host killed with an older version has reserved stays. */
export const reservationMigration = `
  DROP FUNCTION IF EXISTS exchange_credit, exchange_one, append_entries, end_writer, declare_dead, lives;
  DROP TRIGGER IF EXISTS ledger_is_settled ON ledger;
  DROP FUNCTION IF EXISTS settle_allotments;
  ALTER TABLE accounts DROP COLUMN IF EXISTS calls;
  DROP SEQUENCE IF EXISTS allotment_versions;
  ALTER TABLE allotments RENAME TO reservations;
  ALTER INDEX allotments_by_writer RENAME TO reservations_by_writer;
  ALTER TABLE reservations DROP COLUMN IF EXISTS version, DROP COLUMN IF EXISTS turn, DROP COLUMN IF EXISTS spare,
    DROP COLUMN IF EXISTS settled, DROP COLUMN IF EXISTS free, DROP COLUMN IF EXISTS free_until, DROP COLUMN IF EXISTS answered;
  ALTER TABLE writers ADD COLUMN turn BIGINT NOT NULL DEFAULT 0;

  -- A sign of life. Returns false if the writer has ended or was declared dead, or if a later commit of it came before.
  CREATE FUNCTION lives(w BIGINT, at_host TEXT, at_turn BIGINT) RETURNS boolean LANGUAGE plpgsql AS $$
  BEGIN
    INSERT INTO writers (id, host, turn) VALUES (w, at_host, coalesce(at_turn, 0))
    ON CONFLICT (id) DO UPDATE SET seen_at = clock_timestamp(), turn = coalesce(at_turn, writers.turn)
    WHERE writers.dead_at IS NULL AND writers.ended_at IS NULL AND coalesce(at_turn > writers.turn, true);
    RETURN FOUND;
  END $$;

  -- Appends entries of a writer that lives, takes them off what it has reserved, and answers its claims on credit. Entries that
  -- the ledger has already are skipped, and those of accounts and keys that the store does not have are counted.
  CREATE FUNCTION commit_entries(
    w BIGINT, at_host TEXT, at_turn BIGINT, writers BIGINT[], entries BIGINT[], account_ids BIGINT[], key_ids BIGINT[],
    request_ids TEXT[], kinds TEXT[], amounts BIGINT[], all_characters BIGINT[], voices TEXT[], audio BIGINT[],
    begins BIGINT[], times BIGINT[],
    claimed BIGINT[], all_kept BIGINT[], all_ahead BIGINT[], requested BIGINT[], request_amounts BIGINT[]
  ) RETURNS JSON LANGUAGE plpgsql AS $$
  DECLARE
    known BIGINT := 0;
    claim RECORD;
    room BIGINT;
    sum_reserved BIGINT;
    wanted BIGINT;
    granted BOOLEAN[];
    grants JSON[] := ARRAY[]::JSON[];
  BEGIN
    IF NOT lives(w, at_host, at_turn) THEN RETURN NULL; END IF;
    IF cardinality(entries) > 0 THEN ${shareActsLock}; END IF;
    PERFORM 1 FROM accounts WHERE id = ANY (account_ids || claimed) ORDER BY id FOR NO KEY UPDATE;
    IF cardinality(entries) > 0 THEN
      WITH given AS (
        SELECT * FROM unnest(writers, entries, account_ids, key_ids, request_ids, kinds, amounts, all_characters, voices,
          audio, begins, times)
          AS given (writer, entry, account_id, key_id, request_id, kind, amount, characters, voice, audio_ms,
          begins_request, at_ms)
        WHERE EXISTS (SELECT 1 FROM accounts WHERE id = account_id)
          AND (key_id IS NULL OR EXISTS (SELECT 1 FROM api_keys WHERE id = key_id))
      ), added AS (
        INSERT INTO ledger (writer, entry, account_id, key_id, request_id, kind, amount, characters, voice, audio_ms,
          begins_request, at_ms)
        SELECT * FROM given ORDER BY entry ON CONFLICT (writer, entry) DO NOTHING
        RETURNING ledger.account_id, ledger.kind, ledger.amount
      ), used AS (
        SELECT added.account_id, sum(-added.amount) AS used FROM added WHERE added.kind = 'usage' GROUP BY 1
      ), settled AS (
        UPDATE reservations SET reserved = greatest(0, reserved - used.used) FROM used
        WHERE reservations.account_id = used.account_id AND reservations.writer = w
      )
      SELECT count(*) INTO known FROM given;
    END IF;
    FOR claim IN
      SELECT * FROM unnest(claimed, all_kept, all_ahead) AS asked (account_id, kept, ahead)
      WHERE EXISTS (SELECT 1 FROM accounts WHERE id = asked.account_id)
    LOOP
      SELECT balance - (
        SELECT coalesce(sum(reserved), 0) FROM reservations WHERE account_id = claim.account_id AND writer <> w
      ) INTO room FROM accounts WHERE id = claim.account_id;
      sum_reserved := claim.kept;
      granted := ARRAY[]::BOOLEAN[];
      FOR wanted IN
        SELECT request.amount FROM unnest(requested, request_amounts) WITH ORDINALITY AS request (account_id, amount, place)
        WHERE request.account_id = claim.account_id ORDER BY place
      LOOP
        granted := granted || (sum_reserved + wanted <= room);
        IF sum_reserved + wanted <= room THEN sum_reserved := sum_reserved + wanted; END IF;
      END LOOP;
      IF room - sum_reserved >= ${PLENTY} * claim.ahead THEN sum_reserved := sum_reserved + claim.ahead; END IF;
      INSERT INTO reservations VALUES (claim.account_id, w, sum_reserved)
      ON CONFLICT (account_id, writer) DO UPDATE SET reserved = excluded.reserved;
      grants := grants || json_build_object('accountId', claim.account_id, 'reserved', sum_reserved, 'granted', granted);
    END LOOP;
    RETURN json_build_object('givenUp', cardinality(entries) - known, 'grants', array_to_json(grants));
  END $$;

  -- The end of a writer whose entries are all here.
  CREATE FUNCTION end_writer(w BIGINT) RETURNS void LANGUAGE sql AS $$
    UPDATE writers SET ended_at = clock_timestamp() WHERE id = w AND dead_at IS NULL;
    DELETE FROM reservations WHERE writer = w;
  $$;

  -- Its reservations end, and its later entries are refused. Returns the credit that it held; NULL if it is not there, or is
  -- dead already.
  CREATE FUNCTION declare_dead(w BIGINT) RETURNS BIGINT LANGUAGE plpgsql AS $$
  DECLARE
    held BIGINT;
  BEGIN
    UPDATE writers SET dead_at = clock_timestamp() WHERE id = w AND dead_at IS NULL AND ended_at IS NULL;
    IF NOT FOUND THEN RETURN NULL; END IF;
    WITH ended AS (DELETE FROM reservations WHERE writer = w RETURNING reserved)
    SELECT coalesce(sum(reserved), 0) INTO held FROM ended;
    RETURN held;
  END $$;
`;

/** In stores of older versions, commits of the ledger lock its table. */
export const actsLockMigration = `
  DO $$ BEGIN
    EXECUTE replace(pg_get_functiondef('commit_entries'::regproc), 'LOCK TABLE ledger IN ROW EXCLUSIVE MODE', '${shareActsLock}');
  END $$;
`;
