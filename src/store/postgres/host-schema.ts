/** What several hosts share: who writes, and which credit each may promise. `host-credit.ts` has the protocol. */

import type { Allotment } from '../allotments.js';

/** Notifications: `ACCOUNT:CALL:WRITER` calls for credit of an account; `ACCOUNT:0` says that some came back. */
export const CREDIT_CHANNEL = 'syrinx_credit';

/** What the process asks for one account. Amounts are credits. */
export interface Exchange {
  /** The database ignores an exchange that comes after a later one. */
  readonly turn: number;
  readonly accountId: number;
  /** What leases and entries use. */
  readonly used: number;
  /** That, and the request that waits longest. It is granted whole or not at all. */
  readonly needed: number;
  /** Headroom beyond it. */
  readonly ahead: number;
  readonly free: number;
  /** The reserved part is not lowered below this. `null`: it is not lowered. */
  readonly keep: number | null;
  /** If there is too little, other processes are called to give back. */
  readonly mayCall: boolean;
  /** The call that this exchange answers by giving back all headroom; 0 if none. */
  readonly answers: number;
  /** See `Allotment.settled`, as far as the process knows. */
  readonly settled: number;
}

/** The answer to an exchange. */
export interface Exchanged extends Allotment {
  readonly turn: number;
  /** The last call that this process has answered. */
  readonly answered: number;
  readonly free: number;
  readonly balance: number;
  /** What the allotments of others leave of the balance. */
  readonly room: number;
  /** The last call. */
  readonly call: number;
  /** Processes with credit that have not answered it. */
  readonly unanswered: number;
  /** What others reported as headroom, and their free parts. */
  readonly idleElsewhere: number;
}

// A transaction locks rows of several tables in this order: writers, accounts, allotments.
export const hostMigration = (schema: string): string => `
  CREATE TABLE writers (
    id BIGINT PRIMARY KEY,
    host TEXT NOT NULL,
    started_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
    seen_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
    ended_at TIMESTAMPTZ,
    dead_at TIMESTAMPTZ
  );

  CREATE SEQUENCE allotment_versions;
  CREATE TABLE allotments (
    account_id BIGINT NOT NULL REFERENCES accounts (id),
    writer BIGINT NOT NULL REFERENCES writers (id) ON DELETE CASCADE,
    version BIGINT NOT NULL,
    turn BIGINT NOT NULL,
    reserved BIGINT NOT NULL CHECK (reserved >= 0),
    spare BIGINT NOT NULL,
    settled BIGINT NOT NULL,
    free BIGINT NOT NULL CHECK (free >= 0),
    free_until TIMESTAMPTZ NOT NULL,
    answered BIGINT NOT NULL,
    PRIMARY KEY (account_id, writer)
  );
  CREATE INDEX allotments_by_writer ON allotments (writer);
  ALTER TABLE accounts ADD COLUMN calls BIGINT NOT NULL DEFAULT 0;

  -- What a writer charges comes out of its reserved part, in the commit that takes it off the balance. The account is
  -- locked: add_up comes first, in the order of the names.
  CREATE FUNCTION settle_allotments() RETURNS trigger LANGUAGE plpgsql SET search_path = ${schema} AS $$
  BEGIN
    UPDATE allotments SET reserved = greatest(0, reserved - sums.used), settled = sums.last,
      version = nextval('allotment_versions')
    FROM (
      SELECT writer, account_id, coalesce(sum(-amount) FILTER (WHERE kind = 'usage'), 0) AS used, max(entry) AS last
      FROM added WHERE kind <> 'grant' GROUP BY writer, account_id
    ) AS sums
    WHERE allotments.writer = sums.writer AND allotments.account_id = sums.account_id;
    RETURN NULL;
  END $$;
  CREATE TRIGGER ledger_is_settled AFTER INSERT ON ledger REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION settle_allotments();

  -- A sign of life. Returns false if the writer has ended, or was declared dead.
  CREATE FUNCTION lives(w BIGINT, at_host TEXT) RETURNS boolean LANGUAGE plpgsql AS $$
  BEGIN
    INSERT INTO writers (id, host) VALUES (w, at_host)
    ON CONFLICT (id) DO UPDATE SET seen_at = clock_timestamp()
    WHERE writers.dead_at IS NULL AND writers.ended_at IS NULL;
    RETURN FOUND;
  END $$;

  -- Appends entries of a writer that lives. Entries that the ledger has already are skipped, and those of accounts and
  -- keys that the store does not have are counted.
  CREATE FUNCTION append_entries(
    w BIGINT, at_host TEXT, writers BIGINT[], entries BIGINT[], account_ids BIGINT[], key_ids BIGINT[],
    request_ids TEXT[], kinds TEXT[], amounts BIGINT[], all_characters BIGINT[], voices TEXT[], audio BIGINT[],
    begins BIGINT[], times BIGINT[]
  ) RETURNS JSON LANGUAGE plpgsql AS $$
  DECLARE
    known BIGINT;
  BEGIN
    IF NOT lives(w, at_host) THEN RETURN NULL; END IF;
    IF cardinality(entries) = 0 THEN RETURN json_build_object('givenUp', 0, 'allotments', json_build_array()); END IF;
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
    )
    SELECT count(*) INTO known FROM given;
    RETURN json_build_object('givenUp', cardinality(entries) - known, 'allotments', (
      SELECT coalesce(json_agg(json_build_object(
        'accountId', account_id, 'version', version, 'reserved', reserved, 'settled', settled)), json_build_array())
      FROM allotments WHERE writer = w AND account_id = ANY (account_ids)
    ));
  END $$;

  -- One exchange of host-credit.ts. The sum of the allotments of an account never exceeds its balance.
  CREATE FUNCTION exchange_one(
    w BIGINT, asked_turn BIGINT, of_account BIGINT, used BIGINT, needed BIGINT, ahead BIGINT, wanted_free BIGINT,
    keep BIGINT, may_call BOOLEAN, answers BIGINT, known_settled BIGINT, free_ms BIGINT, last_settled BIGINT
  ) RETURNS JSON LANGUAGE plpgsql AS $$
  DECLARE
    account RECORD;
    own RECORD;
    elsewhere RECORD;
    last_call BIGINT;
    room BIGINT;
    target BIGINT;
    part BIGINT;
    is_known BOOLEAN;
  BEGIN
    SELECT balance, calls INTO account FROM accounts WHERE id = of_account FOR NO KEY UPDATE;
    IF NOT FOUND THEN RETURN NULL; END IF;
    last_call := account.calls;
    INSERT INTO allotments (account_id, writer, version, turn, reserved, spare, settled, free, free_until, answered)
    VALUES (of_account, w, nextval('allotment_versions'), 0, 0, 0, last_settled, 0, '-infinity', 0)
    ON CONFLICT (account_id, writer) DO NOTHING;
    SELECT * INTO own FROM allotments WHERE account_id = of_account AND writer = w;
    SELECT coalesce(sum(reserved + live), 0) AS held, coalesce(sum(greatest(spare, 0) + live), 0) AS idle
    INTO elsewhere FROM (
      SELECT reserved, spare, CASE WHEN free_until > clock_timestamp() THEN free ELSE 0 END AS live
      FROM allotments WHERE account_id = of_account AND writer <> w
    ) AS others;
    room := account.balance - elsewhere.held;
    IF asked_turn > own.turn THEN
      target := CASE WHEN room >= needed THEN needed + least(ahead, (room - needed) / 2) ELSE 0 END;
      part := greatest(least(own.reserved, coalesce(keep, own.reserved)), target);
      -- An entry that was settled since is still in \`used\`: then there is more headroom than the writer knows.
      is_known := own.settled <= known_settled;
      UPDATE allotments SET turn = asked_turn, reserved = part,
        spare = CASE WHEN is_known THEN part - used ELSE greatest(1, part - used) END,
        free = CASE WHEN room >= needed THEN greatest(0, least(wanted_free, (room - part) / 2)) ELSE 0 END,
        free_until = clock_timestamp() + free_ms * INTERVAL '1 millisecond',
        answered = CASE WHEN is_known THEN greatest(answered, answers) ELSE answered END, version = nextval('allotment_versions')
      WHERE account_id = of_account AND writer = w RETURNING * INTO own;
      IF may_call AND part < needed THEN
        UPDATE accounts SET calls = calls + 1 WHERE id = of_account RETURNING calls INTO last_call;
        PERFORM pg_notify('${CREDIT_CHANNEL}', of_account || ':' || last_call || ':' || w);
      ELSIF answers > 0 AND is_known THEN
        PERFORM pg_notify('${CREDIT_CHANNEL}', of_account || ':0');
      END IF;
    END IF;
    RETURN json_build_object(
      'turn', asked_turn, 'accountId', of_account, 'version', own.version, 'reserved', own.reserved,
      'settled', own.settled, 'answered', own.answered, 'free', own.free, 'balance', account.balance, 'room', room, 'call', last_call,
      'idleElsewhere', elsewhere.idle, 'unanswered', (
        SELECT count(*) FROM allotments WHERE account_id = of_account AND writer <> w AND answered < last_call
          AND (reserved > 0 OR (free > 0 AND free_until > clock_timestamp()))
      )
    );
  END $$;

  -- NULL if the writer does not live.
  CREATE FUNCTION exchange_credit(
    w BIGINT, free_ms BIGINT, last_settled BIGINT, turns BIGINT[], account_ids BIGINT[], used BIGINT[], needed BIGINT[],
    ahead BIGINT[], free BIGINT[], keep BIGINT[], may_call BOOLEAN[], answers BIGINT[],
    settled BIGINT[]
  ) RETURNS JSON LANGUAGE plpgsql AS $$
  DECLARE
    answer JSON;
    found_answers JSON[] := ARRAY[]::JSON[];
    asked RECORD;
  BEGIN
    PERFORM 1 FROM writers WHERE id = w AND dead_at IS NULL AND ended_at IS NULL FOR SHARE;
    IF NOT FOUND THEN RETURN NULL; END IF;
    FOR asked IN
      SELECT * FROM unnest(turns, account_ids, used, needed, ahead, free, keep, may_call, answers, settled)
        AS asked (turn, account_id, used, needed, ahead, free, keep, may_call, answers, settled)
      ORDER BY account_id
    LOOP
      answer := exchange_one(w, asked.turn, asked.account_id, asked.used, asked.needed, asked.ahead, asked.free,
        asked.keep, asked.may_call, asked.answers, asked.settled, free_ms, last_settled);
      found_answers := found_answers || coalesce(answer, 'null'::json);
    END LOOP;
    RETURN array_to_json(found_answers);
  END $$;

  -- The end of a writer whose entries are all here.
  CREATE FUNCTION end_writer(w BIGINT) RETURNS void LANGUAGE sql AS $$
    UPDATE writers SET ended_at = clock_timestamp() WHERE id = w AND dead_at IS NULL;
    DELETE FROM allotments WHERE writer = w;
  $$;

  -- Its allotments end, and its later entries are refused. Returns the credit that it held; NULL if it is not there, or is
  -- dead already.
  CREATE FUNCTION declare_dead(w BIGINT) RETURNS BIGINT LANGUAGE plpgsql AS $$
  DECLARE
    held BIGINT;
  BEGIN
    UPDATE writers SET dead_at = clock_timestamp() WHERE id = w AND dead_at IS NULL AND ended_at IS NULL;
    IF NOT FOUND THEN RETURN NULL; END IF;
    WITH ended AS (DELETE FROM allotments WHERE writer = w RETURNING reserved)
    SELECT coalesce(sum(reserved), 0) INTO held FROM ended;
    RETURN held;
  END $$;
`;
