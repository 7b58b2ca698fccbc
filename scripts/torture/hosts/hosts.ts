/** The scenarios of several hosts: three services, a proxy and PostgreSQL, and each of them fails, and the lines between them. */
import { setTimeout as sleep } from 'node:timers/promises';
import { Hosts } from '../../rig/hosts.js';
import { postgresBinaries } from '../../rig/postgres.js';
import { Dice } from '../../rig/random.js';
import { Tally } from '../../rig/tally.js';
import { isInstalled } from '../../say/sinks.js';
import { comesTrue, spreadOf } from '../checks.js';
import { Traffic } from '../kills/traffic.js';
import { notRun, type Scenario, type TortureOptions, type TortureRow } from '../scenario.js';
import { inScratch } from '../../rig/machine.js';
import { Books } from './books.js';
import { faults, type Fault } from './faults.js';
import { Round } from './round.js';

/** What an account gets in each round. All hosts spend it at once, and each knows what the others hold. */
const POOR_CREDITS = 1_000;

class Torture {
  readonly #hosts: Hosts;
  readonly #books: Books;
  readonly #keys: readonly string[];
  readonly #hostOf: ReadonlyMap<string, number>;

  private constructor(
    hosts: Hosts,
    keys: readonly string[],
    books: Books,
    hostOf: ReadonlyMap<string, number>,
  ) {
    this.#hosts = hosts;
    this.#keys = keys;
    this.#books = books;
    this.#hostOf = hostOf;
  }

  static async start(hosts: Hosts, hostOf: ReadonlyMap<string, number>): Promise<Torture> {
    const books = new Books(hosts);
    const keys: string[] = [];
    for (const [account, credits] of [
      ['asking', null],
      ['poor', POOR_CREDITS],
      ['metered', 50_000_000],
      ['metered', null],
      ['unmetered', null],
      ['other', 50_000_000],
      ['other', null],
    ] as const) {
      keys.push((await hosts.operate((administration) => administration.createKey(account, credits))).key);
      books.grant(credits ?? 0);
    }
    return new Torture(hosts, keys, books, hostOf);
  }

  async row(fault: Fault, { count, progress, seed }: TortureOptions): Promise<TortureRow> {
    const [wrong, refusedMs, backMs]: [string[], number[], number[]] = [[], [], []];
    const statuses = new Tally();
    const before = this.#books.entries;
    for (let i = 1; i <= count; i += 1) {
      const dice = new Dice(seed, i, fault.name.length);
      const [asking = '', poor = '', ...others] = this.#keys;
      const round = new Round(this.#hosts, this.#books, asking);
      await this.#hosts.operate((administration) => administration.credit('poor', POOR_CREDITS));
      this.#books.grant(POOR_CREDITS);
      const traffic = new Traffic(this.#hosts.proxy.port, others, dice);
      traffic.start(2, 1);
      const spending = round.spend(poor);
      await sleep(dice.between(200, 1_000));
      await this.#books.look();
      await fault.inject(round, dice);
      round.isOver = true;
      await traffic.end();
      await spending;
      statuses.merge(traffic.statuses);
      await this.#settle(traffic, round);
      wrong.push(...round.wrong, ...(await this.#books.check()));
      refusedMs.push(...round.refusedMs);
      backMs.push(...round.backMs);
      progress(
        `${fault.name}, ${i} of ${count}: ${this.#books.entries} entries, wrong: ${wrong.at(-1) ?? 'none'}`,
      );
    }
    const outcome = [
      `${this.#books.entries - before} entries: none is lost, changed or doubled, each balance is the sum of its entries, no account spent more than it had`,
      ...(refusedMs.length > 0
        ? [
            `admitted streams went on to their ends; new ones got 503 after ${spreadOf(refusedMs)} ms (median, longest)`,
          ]
        : []),
      ...(backMs.length > 0 ? [`all hosts served again after ${spreadOf(backMs)} ms`] : []),
      ...(this.#books.left > 0
        ? [`the journals of killed hosts had ${this.#books.left} entries: the ledger has each of them once`]
        : []),
      `answers ${statuses.toString()}`,
      ...(wrong.length > 0 ? [`WRONG ${wrong.slice(0, 5).join('; ')}`] : []),
    ];
    return {
      fault: fault.name,
      injected: fault.injected,
      count,
      outcome: outcome.join('; '),
      held: wrong.length === 0,
    };
  }

  /** Waits until every host is at rest, and the ledger has what is due. */
  async #settle(traffic: Traffic, round: Round): Promise<void> {
    for (const { number, service } of this.#hosts.all) {
      if (!(await comesTrue(async () => (await service.unreadyReasons()) === '')))
        round.wrong.push(`host ${number + 1} is not ready`);
      if (!(await comesTrue(async () => (await service.status()).openContexts === 0)))
        round.wrong.push(`host ${number + 1} still has contexts`);
    }
    for (const [id, cost] of traffic.costs)
      round.answered(id, cost, this.#hostOf.get(id), traffic.wholes.get(id) ?? null);
    await comesTrue(async () => (await this.#books.countOwed()) === 0);
  }
}

const scenarioOf = (fault: Fault): Scenario => ({
  name: `hosts-${fault.id}`,
  about: `three hosts, nginx and PostgreSQL: ${fault.name}`,
  defaultCount: fault.defaultCount,
  run: (options) =>
    inScratch(async (folder) => {
      const isComplete = postgresBinaries() !== null && isInstalled('nginx');
      const missing = isComplete ? (fault.lacks?.() ?? null) : 'PostgreSQL or nginx is not installed';
      if (missing !== null) return [notRun(fault.name, fault.injected, missing)];
      const hostOf = new Map<string, number>();
      const onLine = (host: number, line: string): void => {
        if (!line.endsWith('"msg":"request"}')) return;
        hostOf.set((JSON.parse(line) as { requestId: string }).requestId, host);
      };
      const hosts = await Hosts.start({
        folder,
        proxy: 'nginx',
        synthesisThreads: 1,
        actorThreads: 1,
        onLine,
      });
      try {
        return [await (await Torture.start(hosts, hostOf)).row(fault, options)];
      } finally {
        await hosts.end();
      }
    }),
});

export const severalHosts: readonly Scenario[] = faults.map(scenarioOf);
