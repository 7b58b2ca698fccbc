/** The scenarios of several hosts: three services, a proxy and PostgreSQL, and each of them fails, and the lines between them. */
import { setTimeout as sleep } from 'node:timers/promises';
import { limits } from '../../../src/limits.js';
import { connect } from '../../../src/store/postgres/driver.js';
import { findDamage } from '../../../src/store/postgres/verification.js';
import { Hosts } from '../../rig/hosts.js';
import { inScratch } from '../../rig/machine.js';
import { postgresBinaries } from '../../rig/postgres.js';
import { Dice } from '../../rig/random.js';
import { Tally } from '../../rig/tally.js';
import { isInstalled } from '../../say/sinks.js';
import { comesTrue, spreadOf } from '../checks.js';
import { Books, type Ledger, type Row } from '../kills/books.js';
import { Traffic } from '../kills/traffic.js';
import { notRun, rowOf, type Scenario, type TortureOptions, type TortureRow } from '../scenario.js';
import { faults, type HostsFault } from './faults.js';
import { Round } from './round.js';

/** What an account gets in each round. All hosts spend it at once, and each knows what the others hold. */
const POOR_CREDITS = 1_000;

/** What hosts hold of an account is never more than it has. */
const overPromised = `SELECT name, balance, promised FROM syrinx.accounts
  LEFT JOIN (SELECT account_id, sum(reserved) AS promised FROM syrinx.reservations GROUP BY 1) AS held ON account_id = id
  WHERE metered = 1 AND balance < coalesce(promised, 0)`;

/** The client returns large integers as text. */
const numbersOf = (row: Readonly<Record<string, unknown>>) =>
  Object.fromEntries(['id', 'writer', 'entry', 'amount'].map((name) => [name, Number(row[name])]));

const ledgerOf = (hosts: Hosts): Ledger => ({
  // Entries get their ids before they are committed.
  idsOutOfOrderMax: 5_000,
  async rowsAfter(id) {
    const found = await hosts.query(`SELECT * FROM syrinx.ledger WHERE id > ${id} ORDER BY id`);
    return found.map((row) => ({ ...row, ...numbersOf(row) })) as unknown as readonly Row[];
  },
  async damage() {
    const promised = (await hosts.query(overPromised)).map(
      ({ name, balance, promised: held }) =>
        `${String(name)} has ${String(balance)}, and hosts hold ${String(held)}`,
    );
    const connection = await connect(hosts.databaseUrl, limits, false);
    try {
      return [...promised, ...(await findDamage(connection))];
    } finally {
      await connection.close();
    }
  },
});

/** A key, and the credits that its account gets with it. */
const accounts = [
  ['asking', null],
  ['poor', POOR_CREDITS],
  ['metered', 50_000_000],
  ['metered', null],
  ['unmetered', null],
  ['other', 50_000_000],
  ['other', null],
] as const;

const torture = async (
  hosts: Hosts,
  hostOf: ReadonlyMap<string, number>,
  fault: HostsFault,
  { count, progress, seed }: TortureOptions,
): Promise<TortureRow> => {
  const books = new Books(ledgerOf(hosts));
  const keys: string[] = [];
  for (const [account, credits] of accounts) {
    keys.push((await hosts.operate((administration) => administration.createKey(account, credits))).key);
    books.grant(credits ?? 0);
  }
  const [asking = '', poor = '', ...others] = keys;
  const [wrong, refusedMs, backMs]: [string[], number[], number[]] = [[], [], []];
  const statuses = new Tally();
  for (let i = 1; i <= count; i += 1) {
    const dice = new Dice(seed, i, fault.fault.length);
    const round = new Round(hosts, books, asking);
    await hosts.operate((administration) => administration.credit('poor', POOR_CREDITS));
    books.grant(POOR_CREDITS);
    const traffic = new Traffic(hosts.proxy.port, others, dice);
    traffic.start(2, 1);
    const spending = round.spend(poor);
    await sleep(dice.between(200, 1_000));
    await books.look();
    await fault.inject(round, dice);
    round.isOver = true;
    await traffic.end();
    await spending;
    statuses.merge(traffic.statuses);
    await round.settle();
    for (const [id, cost] of traffic.costs)
      round.answered(id, cost, hostOf.get(id), traffic.wholes.get(id) ?? null);
    await comesTrue(async () => (await books.countOwed()) === 0);
    wrong.push(...round.wrong, ...(await books.check()));
    refusedMs.push(...round.refusedMs);
    backMs.push(...round.backMs);
    progress(`${fault.fault}, ${i} of ${count}: ${books.entries} entries, wrong: ${wrong.at(-1) ?? 'none'}`);
  }
  const spreads = [
    ['admitted streams went on to their ends; new ones got 503 after', refusedMs],
    ['all hosts served again after', backMs],
  ] as const;
  const saw = [
    `${books.entries} entries: none is lost, changed or doubled, each balance is the sum of its entries, no account spent more than it had`,
    ...spreads.filter(([, ms]) => ms.length > 0).map(([words, ms]) => `${words} ${spreadOf(ms)} ms`),
    `the journals of killed hosts had ${books.left} entries: the ledger has each of them once`,
    `answers ${statuses.toString()}`,
  ];
  return rowOf(fault, { count, saw: saw.join('; '), wrong });
};

const scenarioOf = (fault: HostsFault): Scenario => ({
  name: `hosts-${fault.id}`,
  about: `three hosts, nginx and PostgreSQL: ${fault.fault}`,
  defaultCount: fault.defaultCount,
  run: (options) =>
    inScratch(async (folder) => {
      const isComplete = postgresBinaries() !== null && isInstalled('nginx');
      const missing = isComplete ? (fault.lacks?.() ?? null) : 'PostgreSQL or nginx is not installed';
      if (missing !== null) return [notRun(fault, missing)];
      const hostOf = new Map<string, number>();
      const onLine = (host: number, line: string): void => {
        if (!line.endsWith('"msg":"request"}')) return;
        hostOf.set((JSON.parse(line) as { requestId: string }).requestId, host);
      };
      const parts = { folder, proxy: 'nginx', synthesisThreads: 1, actorThreads: 1, onLine } as const;
      const hosts = await Hosts.start(parts);
      try {
        return [await torture(hosts, hostOf, fault, options)];
      } finally {
        await hosts.end();
      }
    }),
});

export const severalHosts: readonly Scenario[] = faults.map(scenarioOf);
