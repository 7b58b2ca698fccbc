/** The scenario of several hosts: three services, a proxy and PostgreSQL, and each of them fails, and the lines between them. */
import { setTimeout as sleep } from 'node:timers/promises';
import { limits } from '../../../src/limits.js';
import { exchange, speechRequest } from '../../rig/http.js';
import { Hosts, type Host } from '../../rig/hosts.js';
import { postgresBinaries } from '../../rig/postgres.js';
import { Dice } from '../../rig/random.js';
import { percentile } from '../../rig/statistics.js';
import { Tally } from '../../rig/tally.js';
import { isInstalled } from '../../say/sinks.js';
import { comesTrue } from '../checks.js';
import { Traffic } from '../kills/traffic.js';
import { inScratch, notRun, type Scenario, type TortureOptions, type TortureRow } from '../scenario.js';
import { fakeClock } from '../surroundings/clock.js';
import { Books } from './books.js';
import { HeldStream } from './held-stream.js';

/** Milliseconds for a busy machine, beyond the times that are stated. */
const MARGIN_MS = 2_000;
const REFUSED_MS_MAX = limits.storeStaleMsMax + MARGIN_MS;
const BACK_MS_MAX = 30_000;
const SLOW_MS = 150;
const TEXT = 'The night train to the coast runs late again, and the guard reads out each stop. '.repeat(18);

/** What an account gets in each round. All hosts spend it at once, and each knows what the others hold. */
const POOR_CREDITS = 1_000;
const POOR_TEXT = 'Nobody on the platform knew whether the last tram had left already. '.repeat(2);

/** How a row was caused, and how often for a hundred kills. */
interface Fault {
  readonly name: string;
  readonly injected: string;
  readonly perHundred: number;
  readonly inject: (round: Round, dice: Dice) => Promise<void>;
}

/** Traffic, a fault in it, and what hosts and clients observed. */
class Round {
  readonly hosts: Hosts;
  readonly wrong: string[] = [];
  /** Milliseconds until a host refused new speech, and until all served again. */
  readonly refusedMs: number[] = [];
  readonly backMs: number[] = [];
  /** Hosts that lost what they had in memory. */
  readonly killed = new Set<number>();
  isOver = false;
  readonly #books: Books;
  readonly #key: string;

  constructor(hosts: Hosts, books: Books, key: string) {
    this.hosts = hosts;
    this.#books = books;
    this.#key = key;
  }

  async kill(host: Host): Promise<void> {
    this.killed.add(host.number);
    await host.service.kill();
  }

  /** Streams that were admitted before go on, and new ones are refused in time. */
  async withoutDatabase(
    awayMs: number,
    leave: () => void | Promise<void>,
    comeBack: () => void | Promise<void>,
  ): Promise<void> {
    const { all } = this.hosts;
    const streams = await Promise.all(all.map(({ port }) => HeldStream.open(port, this.#key, TEXT)));
    const leftMs = performance.now();
    await leave();
    if (awayMs > REFUSED_MS_MAX) await Promise.all(all.map((host) => this.#isRefused(host, leftMs)));
    for (const stream of streams) stream.goOn();
    const ends = streams.map(({ ended }) => ended);
    if (awayMs > 2 * REFUSED_MS_MAX) this.#haveEnded(await Promise.all(ends));
    await sleep(Math.max(0, awayMs - (performance.now() - leftMs)));
    await comeBack();
    await this.serveAgain();
    if (awayMs <= 2 * REFUSED_MS_MAX) this.#haveEnded(await Promise.all(ends));
  }

  /** Waits until each host admits speech. */
  async serveAgain(): Promise<void> {
    const fromMs = performance.now();
    for (const host of this.hosts.all)
      if (!(await comesTrue(async () => (await this.#ask(host)) === 200, BACK_MS_MAX)))
        this.wrong.push(`host ${host.number + 1} does not serve again`);
    this.backMs.push(performance.now() - fromMs);
  }

  #haveEnded(ends: readonly { status: number; requestId: string; isWhole: boolean }[]): void {
    for (const { isWhole, requestId, status } of ends) {
      if (status !== 200 || !isWhole)
        this.wrong.push(`an admitted stream ended with ${status}, ${isWhole ? 'whole' : 'broken'}`);
      this.#books.answer(requestId, TEXT.length, isWhole);
    }
  }

  async #isRefused(host: Host, leftMs: number): Promise<void> {
    // An answer says what was so when its request was sent.
    let sentMs = leftMs;
    while (sentMs - leftMs <= REFUSED_MS_MAX) {
      sentMs = performance.now();
      if ((await this.#ask(host)) === 503) {
        this.refusedMs.push(sentMs - leftMs);
        return;
      }
      await sleep(50);
    }
    this.wrong.push(
      `host ${host.number + 1} still admits speech ${REFUSED_MS_MAX} ms after its database left`,
    );
  }

  /** All hosts spend the credit of one account until it has too little, or the round ends. */
  async spend(key: string): Promise<void> {
    await Promise.all(
      this.hosts.all.map(async (host) => {
        while (!this.isOver) {
          const status = await this.#ask(host, key, POOR_TEXT);
          if (status === 402) break;
          if (status !== 200) await sleep(200);
        }
      }),
    );
  }

  /** @returns the status of one request */
  async #ask({ number, port }: Host, key = this.#key, text = 'Still here.'): Promise<number> {
    const answer = await exchange(port, speechRequest({ key, voice: 'wren', text }));
    const id = answer.headers.get('x-request-id');
    if (id !== undefined) this.#books.answer(id, answer.status === 200 ? text.length : 0, false);
    if (![0, 200, 402, 503].includes(answer.status))
      this.wrong.push(`host ${number + 1} answers ${answer.status}`);
    return answer.status;
  }
}

const cutFor = (awayMs: number) => (round: Round) =>
  round.withoutDatabase(
    awayMs,
    () => round.hosts.all.forEach(({ line }) => line.cut()),
    () => round.hosts.all.forEach(({ line }) => line.heal()),
  );

const faults: readonly Fault[] = [
  {
    name: 'SIGKILL of a host',
    injected: 'one of three hosts behind the proxy, in traffic; it starts again with its data folder',
    perHundred: 60,
    inject: async (round, dice) => {
      const host = dice.pick(round.hosts.all);
      await round.kill(host);
      await sleep(dice.below(500));
      await round.hosts.startAgain(host);
      await round.serveAgain();
    },
  },
  {
    name: 'SIGKILL of PostgreSQL',
    injected: 'in traffic and in streams; it starts again after up to five seconds',
    perHundred: 28,
    inject: (round, dice) =>
      round.withoutDatabase(
        dice.below(5_000),
        () => round.hosts.database.signal('SIGKILL'),
        () => round.hosts.database.run(),
      ),
  },
  {
    name: 'SIGKILL of the proxy',
    injected: 'with all its workers, in traffic; it starts again',
    perHundred: 12,
    inject: async (round, dice) => {
      await round.hosts.proxy.kill();
      await sleep(dice.below(500));
      await round.hosts.proxy.run();
    },
  },
  {
    name: 'database cut off for 1 s',
    injected: 'all lines between hosts and database carry nothing, then everything that was sent',
    perHundred: 10,
    inject: cutFor(1_000),
  },
  { name: 'database cut off for 10 s', injected: 'the same', perHundred: 5, inject: cutFor(10_000) },
  // Only in a run of full length.
  { name: 'database cut off for 5 min', injected: 'the same', perHundred: 1, inject: cutFor(300_000) },
  {
    name: 'connections reset',
    injected: 'all connections to the database, and new ones for four seconds',
    perHundred: 5,
    inject: (round) =>
      round.withoutDatabase(
        4_000,
        () => round.hosts.all.forEach(({ line }) => line.reset()),
        () => round.hosts.all.forEach(({ line }) => line.heal()),
      ),
  },
  {
    name: 'database slow',
    injected: `every byte takes ${SLOW_MS} ms in each direction, for ten seconds: each host must still admit speech`,
    perHundred: 3,
    inject: async (round) => {
      for (const { line } of round.hosts.all) line.delayMs = SLOW_MS;
      await sleep(10_000);
      await round.serveAgain();
      for (const { line } of round.hosts.all) line.delayMs = 0;
    },
  },
  {
    name: 'failover',
    injected: 'SIGKILL of the primary; its synchronous standby is promoted, and takes the address',
    perHundred: 5,
    inject: async (round) => {
      const standby = await round.hosts.database.startStandby();
      await round.withoutDatabase(
        0,
        () => round.hosts.failOver(standby),
        () => undefined,
      );
    },
  },
];

const clockFault = 'clock off by an hour';
const clockInjected = 'one host starts with a clock that is an hour fast, or slow';

/** @returns `null` where faketime is not installed */
const wrongClock = (): Fault | null => {
  const library = fakeClock();
  if (library === null) return null;
  return {
    ...{ name: clockFault, injected: clockInjected, perHundred: 4 },
    inject: async (round, dice) => {
      const host = dice.pick(round.hosts.all);
      const env = { LD_PRELOAD: library, FAKETIME: dice.pick(['+1h', '-1h']), DONT_FAKE_MONOTONIC: '1' };
      for (const clock of [env, {}]) {
        await host.service.stop();
        await round.hosts.startAgain(host, clock);
        await round.serveAgain();
        await sleep(1_000);
      }
    },
  };
};

const milliseconds = (values: readonly number[]): string =>
  [0.5, 1].map((share) => String(Math.round(percentile(values, share)))).join('/');

class Torture {
  readonly #hosts: Hosts;
  readonly #books: Books;
  readonly #keys: readonly string[];
  readonly #hostOf: ReadonlyMap<string, number>;

  constructor(hosts: Hosts, keys: readonly string[], books: Books, hostOf: ReadonlyMap<string, number>) {
    this.#hosts = hosts;
    this.#keys = keys;
    this.#books = books;
    this.#hostOf = hostOf;
  }

  async row(fault: Fault, count: number, { progress, seed }: TortureOptions): Promise<TortureRow> {
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
            `admitted streams went on to their ends; new ones got 503 after ${milliseconds(refusedMs)} ms (median, longest)`,
          ]
        : []),
      ...(backMs.length > 0 ? [`all hosts served again after ${milliseconds(backMs)} ms`] : []),
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
    for (const [id, cost] of traffic.costs) {
      const host = this.#hostOf.get(id);
      const isDue = traffic.wholes.has(id) && host !== undefined && !round.killed.has(host);
      this.#books.answer(id, cost, isDue);
    }
    await comesTrue(async () => (await this.#books.countOwed()) === 0);
  }
}

const run = async (options: TortureOptions): Promise<readonly TortureRow[]> =>
  inScratch(async (folder) => {
    if (postgresBinaries() === null || !isInstalled('nginx'))
      return [notRun('several hosts', 'nine faults', 'PostgreSQL or nginx is not installed')];
    const hostOf = new Map<string, number>();
    const onLine = (host: number, line: string): void => {
      if (!line.endsWith('"msg":"request"}')) return;
      hostOf.set((JSON.parse(line) as { requestId: string }).requestId, host);
    };
    const hosts = await Hosts.start({ folder, proxy: 'nginx', synthesisThreads: 1, actorThreads: 1, onLine });
    try {
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
      const torture = new Torture(hosts, keys, books, hostOf);
      const clock = wrongClock();
      const rows: TortureRow[] = [];
      for (const fault of [...faults, ...(clock === null ? [] : [clock])]) {
        const count = Math.round((fault.perHundred * options.count) / 100);
        if (count === 0 && fault.perHundred === 1) continue;
        rows.push(await torture.row(fault, Math.max(1, count), options));
      }
      if (clock === null) rows.push(notRun(clockFault, clockInjected, 'faketime is not installed'));
      return rows;
    } finally {
      await hosts.end();
    }
  });

export const severalHosts: Scenario = {
  name: 'hosts',
  about:
    'three hosts, a proxy and PostgreSQL: kills, cut and slow lines, failover, a wrong clock (needs nginx, PostgreSQL)',
  defaultCount: 100,
  run,
};
