/** Three hosts, a proxy and PostgreSQL under the load of a soak. The hosts are restarted one after the other, as hosts.md says. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createKeys } from '../operator.js';
import { Hosts, type Host } from '../rig/hosts.js';
import { postgresBinaries } from '../rig/postgres.js';
import { describeExit, type Service, type ServiceLog } from '../rig/service.js';
import { isInstalled } from '../say/sinks.js';
import type { Leftovers, LogFindings, ServiceEnd } from './invariants.js';
import { logFindingsOf, readStore, SoakError } from './service-access.js';
import { type Disturb, keyMaker, type Subject } from './subject.js';

/** From the end of a restart to the next: the proxy finds the host again in five seconds. */
const BETWEEN_RESTARTS_MS = 15_000;
/** What a start delays is reported so much later at most. */
const AFTER_START_MS = 1_500;

/** Keys of an account go to different hosts, which then share its credit. */
const KEYS_PER_ACCOUNT = 4;
/** More than a key can use in a soak: nothing may be refused for its credit. */
const CREDITS_PER_KEY = 100_000_000;

export class SoakHosts implements Subject {
  readonly #folder: string;
  readonly #hosts: Hosts;
  /** Of all services so far. */
  readonly #logs: ServiceLog[] = [];
  readonly #ends: string[] = [];
  readonly #stopped = new Set<Service>();
  readonly #over = new AbortController();
  readonly #failed = Promise.withResolvers<string>();
  #keysMade = 0;
  #isCreditShared = false;
  #restarting: Promise<void> = Promise.resolve();

  readonly opsUrl = null;
  readonly service = null;
  readonly dialectPorts = {};
  readonly keysFor: Subject['keysFor'];

  private constructor(folder: string, hosts: Hosts, httpClients: number) {
    this.#folder = folder;
    this.#hosts = hosts;
    this.keysFor = keyMaker((count) => this.#makeKeys(count), httpClients);
    for (const host of hosts.all) this.#watch(host);
  }

  /** @throws {SoakError} a program is missing */
  static async start(httpClients: number): Promise<SoakHosts> {
    if (postgresBinaries() === null || !isInstalled('nginx'))
      throw new SoakError('--hosts needs nginx and PostgreSQL: apt-get install nginx postgresql');
    const folder = mkdtempSync(join(tmpdir(), 'syrinx-soak-'));
    process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
    const parts = { folder, proxy: 'nginx', synthesisThreads: 1, actorThreads: 1 } as const;
    const hosts = await Hosts.start({ ...parts, env: { OVERLOAD: 'late' } });
    return new SoakHosts(folder, hosts, httpClients);
  }

  get baseUrl(): string {
    return `http://127.0.0.1:${this.#hosts.proxy.port}`;
  }

  /** Resolves when a host ends that was not stopped. */
  get failed(): Promise<string> {
    return this.#failed.promise;
  }

  log(): LogFindings {
    return logFindingsOf(this.#logs);
  }

  /** Of metered accounts. */
  #makeKeys(count: number): Promise<string[]> {
    const keys = Array.from({ length: count }, () => {
      const account = Math.floor(this.#keysMade++ / KEYS_PER_ACCOUNT);
      return [`account-${account}`, CREDITS_PER_KEY] as const;
    });
    return createKeys(this.#folder, keys, this.#hosts.databaseUrl);
  }

  /** A host that starts takes the cores of the others here, which hosts on machines of their own would not do. */
  begin(disturb: Disturb): void {
    this.#restarting = this.#restart(disturb).catch((error: unknown) => {
      this.#failed.resolve(`a host does not start again: ${String(error)}`);
    });
  }

  /** Of all hosts, when none is restarted any more. */
  async leftovers(): Promise<Leftovers> {
    await this.#endRestarts();
    await this.#watchCredit();
    const all = await Promise.all(this.#hosts.all.map(({ service }) => service.status()));
    const sum = (pick: (status: (typeof all)[number]) => number): number =>
      all.reduce((total, status) => total + pick(status), 0);
    return {
      requestsInFlight: sum(({ requestsInFlight }) => requestsInFlight),
      openContexts: sum(({ openContexts }) => openContexts),
    };
  }

  /** Each end must be good, those of the restarts too, and the hosts must have shared credit and given all of it back. */
  async end(keys: readonly string[]): Promise<ServiceEnd> {
    await this.#endRestarts();
    for (const host of this.#hosts.all) await this.#end(host);
    const left = await this.#hosts.query('SELECT DISTINCT account_id FROM syrinx.reservations');
    if (left.length > 0) this.#ends.push(`hosts that ended still hold credit of ${left.length} accounts`);
    if (!this.#isCreditShared) this.#ends.push('the hosts never shared the credit of an account');
    const bad = this.#ends.filter((end) => end !== '0');
    const store = await readStore({ dataDir: this.#folder, storeUrl: this.#hosts.databaseUrl }, keys);
    await this.#hosts.end();
    return { end: bad[0] ?? '0', store };
  }

  /** Idempotent. */
  async stop(): Promise<void> {
    await this.#endRestarts();
    for (const { service } of this.#hosts.all) this.#stopped.add(service);
    await this.#hosts.end();
  }

  async #endRestarts(): Promise<void> {
    this.#over.abort();
    await this.#restarting;
  }

  async #restart(disturb: Disturb): Promise<void> {
    const { signal } = this.#over;
    for (let next = 0; ; next += 1) {
      const isOver = await sleep(BETWEEN_RESTARTS_MS, false, { signal }).catch(() => true);
      const host = this.#hosts.all[next % this.#hosts.all.length];
      if (isOver || host === undefined) return;
      await this.#watchCredit();
      await this.#end(host);
      await disturb(true);
      await this.#hosts.startAgain(host);
      this.#watch(host);
      await sleep(AFTER_START_MS);
      await disturb(false);
      process.stderr.write(`host ${host.number + 1} was restarted\n`);
    }
  }

  async #watchCredit(): Promise<void> {
    const shared = await this.#hosts.query(
      `SELECT account_id FROM syrinx.reservations JOIN syrinx.accounts ON accounts.id = account_id
       WHERE metered = 1 GROUP BY account_id HAVING count(*) > 1`,
    );
    this.#isCreditShared ||= shared.length > 0;
  }

  async #end({ service }: Host): Promise<void> {
    this.#stopped.add(service);
    this.#ends.push(describeExit(await service.stop()));
  }

  #watch({ number, service }: Host): void {
    this.#logs.push(service.log);
    void service.exited.then((exit) => {
      if (!this.#stopped.has(service))
        this.#failed.resolve(`host ${number + 1} ended with ${describeExit(exit)}`);
    });
  }
}
