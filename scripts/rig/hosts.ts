/** Several hosts on this machine: services with one PostgreSQL database, each over a line that can be cut, behind a proxy. */
import { join } from 'node:path';
import type { Administration } from '../../src/accounts/administration.js';
import { operate } from '../operator.js';
import { Cutter } from './cutter.js';
import { freePort } from './ports.js';
import { PostgresServer, type PostgresRow } from './postgres.js';
import { HostsProxy, type HostsProxyKind } from './proxy.js';
import { Service } from './service.js';

const DATABASE = 'syrinx';

export interface HostsOptions {
  /** For data folders and the files of the proxy. */
  readonly folder: string;
  readonly proxy: HostsProxyKind;
  /** For each host. */
  readonly synthesisThreads: number;
  readonly actorThreads: number;
  readonly env?: Readonly<Record<string, string>>;
  /** Called with each line of the log of a host. */
  readonly onLine?: (host: number, line: string) => void;
}

/** A host keeps its port and its data folder when it starts again. */
export interface Host {
  readonly number: number;
  readonly port: number;
  readonly line: Cutter;
  service: Service;
}

export class Hosts {
  /** The primary. */
  database: PostgresServer;
  readonly all: Host[] = [];
  readonly #options: HostsOptions;
  #proxy: HostsProxy | null = null;

  private constructor(options: HostsOptions, database: PostgresServer) {
    this.#options = options;
    this.database = database;
  }

  /** Starts three hosts. */
  static async start(options: HostsOptions): Promise<Hosts> {
    const database = await PostgresServer.start();
    const hosts = new Hosts(options, database);
    try {
      await database.execute('postgres', `CREATE DATABASE ${DATABASE}`);
      for (let number = 0; number < 3; number += 1) {
        const [port, line] = [await freePort(), await Cutter.start(database.socket)];
        hosts.all.push({ number, port, line, service: await hosts.#start(number, port, line) });
      }
      const ports = hosts.all.map(({ port }) => port);
      hosts.#proxy = await HostsProxy.start(options.proxy, join(options.folder, 'proxy'), ports);
      return hosts;
    } catch (error) {
      await hosts.end();
      throw error;
    }
  }

  get proxy(): HostsProxy {
    if (this.#proxy === null) throw new Error('the proxy has not started');
    return this.#proxy;
  }

  /** The service of a host must have ended. */
  async startAgain(host: Host, env: Readonly<Record<string, string>> = {}): Promise<void> {
    host.service = await this.#start(host.number, host.port, host.line, env);
  }

  /** Past the lines: as an operator on the machine of the database. */
  operate<T>(work: (administration: Administration) => Promise<T>): Promise<T> {
    return operate(this.#options.folder, work, this.databaseUrl);
  }

  get databaseUrl(): string {
    return this.database.urlOf(DATABASE);
  }

  query(text: string): Promise<readonly PostgresRow[]> {
    return this.database.execute(DATABASE, text);
  }

  /** The primary dies, its standby takes its place, and the lines lead there. */
  async failOver(standby: PostgresServer): Promise<void> {
    const lost = this.database;
    await lost.signal('SIGKILL');
    await standby.promote();
    this.database = standby;
    for (const { line } of this.all) line.target = standby.socket;
    await lost.stop();
  }

  /** Ends everything at once. Idempotent. */
  async end(): Promise<void> {
    await this.#proxy?.kill();
    for (const { service } of this.all) await service.kill();
    for (const { line } of this.all) await line.close();
    this.all.length = 0;
    await this.database.stop();
  }

  #start(
    number: number,
    port: number,
    line: Cutter,
    env: Readonly<Record<string, string>> = {},
  ): Promise<Service> {
    const { actorThreads, folder, onLine, synthesisThreads } = this.#options;
    const address = `postgres://postgres@127.0.0.1:${line.port}/${DATABASE}`;
    return Service.start({
      dataDir: join(folder, `host-${number}`),
      ...{ synthesisThreads, actorThreads },
      env: { ...this.#options.env, PORT: String(port), STORE_URL: address, ...env },
      ...(onLine !== undefined && { onLine: (text) => onLine(number, text) }),
    });
  }
}
