/** Reservations against the functions of a real PostgreSQL. `reservations.test.ts` has more schedules, in memory. */
import t, { type Test } from 'tap';
import { limits } from '../../src/limits.js';
import type { PostgresConnection } from '../../src/store/postgres/connection.js';
import { connect } from '../../src/store/postgres/driver.js';
import { commitEntries } from '../../src/store/postgres/writer.js';
import { findDamage } from '../../src/store/postgres/verification.js';
import type { Claim } from '../../src/store/reservations.js';
import { hasPostgres, startPostgres } from '../support/postgres.js';
import { times } from '../fuzz/check.js';
import { ACCOUNT, runSchedules, type Bank, type Entry, type Held } from './credit-world.js';
import { usageOf } from './usage.js';

/** The account has the id 1, and its key too. */
class PostgresBank implements Bank {
  readonly #connection: PostgresConnection;
  #grants = 0;

  constructor(connection: PostgresConnection) {
    this.#connection = connection;
  }

  async grant(amount: number): Promise<void> {
    await this.#query(
      `INSERT INTO ledger (writer, entry, account_id, kind, amount, at_ms) VALUES (0, $1, ${ACCOUNT}, 'grant', $2, 1)`,
      [++this.#grants, amount],
    );
  }

  async commit(writer: number, turn: number | null, entries: readonly Entry[], claims: readonly Claim[]) {
    const rows = entries.map(({ entry, amount }) => ({ ...usageOf(amount), writer, entry }));
    const result = await commitEntries(this.#connection, writer, turn, rows, claims);
    return result.ok ? (result.grants ?? []) : null;
  }

  async declareDead(writer: number): Promise<void> {
    await this.#query('SELECT declare_dead($1)', [writer]);
  }

  async end(writer: number): Promise<void> {
    await this.#query('SELECT end_writer($1)', [writer]);
  }

  async balance(): Promise<number> {
    const [row] = await this.#query<{ balance: number }>(
      `SELECT balance FROM accounts WHERE id = ${ACCOUNT}`,
    );
    return row!.balance;
  }

  async reservations(): Promise<readonly Held[]> {
    return this.#query<Held>('SELECT writer, reserved FROM reservations');
  }

  async entries(writer: number): Promise<readonly Entry[]> {
    return this.#query<Entry>(
      'SELECT entry, -amount AS amount FROM ledger WHERE writer = $1 AND writer > 0',
      [writer],
    );
  }

  async #query<Row>(text: string, parameters: readonly unknown[] = []): Promise<Row[]> {
    return (await this.#connection.session()).query<Row>(text, parameters);
  }
}

if (hasPostgres()) {
  const server = await startPostgres();
  t.teardown(() => server.stop());

  /** A database of its own with one account. */
  const openStore = async (t: Test): Promise<PostgresConnection> => {
    const { name, url } = await server.database();
    const connection = await connect(url, limits, true);
    t.teardown(() => connection.close());
    await server.execute(
      name,
      `INSERT INTO syrinx.accounts (name, metered, created_at_ms) VALUES ('ada', 1, 1);
       INSERT INTO syrinx.api_keys (account_id, hash, prefix, created_at_ms) VALUES (1, 'hash', 'svc', 1)`,
    );
    return connection;
  };

  t.test('what a host has reserved stays, also if the balance is less', async (t) => {
    const bank = new PostgresBank(await openStore(t));
    await bank.grant(100);
    for (const writer of [1, 2]) await bank.commit(writer, null, [], []);
    const asked = { accountId: ACCOUNT, kept: 0, requests: [{ amount: 60 }, { amount: 50 }], ahead: 2 };
    t.match(await bank.commit(1, 1, [], [asked]), [{ reserved: 62, granted: [true, false] }]);
    t.match(await bank.commit(2, 1, [], [{ ...asked, ahead: 3 }]), [
      { reserved: 0, granted: [false, false] },
    ]);
    // As when an account becomes metered while another host has its requests open.
    t.match(await bank.commit(2, 2, [{ entry: 1, amount: 80 }], []), []);
    t.match(await bank.commit(1, 2, [], [{ ...asked, kept: 62 }]), [
      { reserved: 62, granted: [false, false] },
    ]);
    t.equal(await bank.commit(1, 2, [], [{ ...asked, kept: 0 }]), null, 'a commit that comes late');
    const unknown = { accountId: 99, kept: 5, requests: [], ahead: 0 };
    t.strictSame(await bank.commit(1, 3, [], [unknown]), []);
  });

  t.test(
    'in any schedule no credit is spent twice, and balances stay the sums of their entries',
    async (t) => {
      const stores: PostgresConnection[] = [];
      await runSchedules(t, 2 * times, 300, async () => {
        const store = await openStore(t);
        stores.push(store);
        return new PostgresBank(store);
      });
      for (const store of stores) t.strictSame(await findDamage(store), []);
    },
  );
}
