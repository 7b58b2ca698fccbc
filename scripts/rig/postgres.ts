/** A PostgreSQL server of its own for tests and scenarios, on a socket in a temporary folder. */
import { execFileSync } from 'node:child_process';
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { readCpuMsWithEnded } from './process-facts.js';
import { Program } from './program.js';

const PACKAGES = '/usr/lib/postgresql';
/** Half a minute: after a crash it recovers first. */
const startTriesMax = 300;
const startTryMs = 100;

/** Folder of the newest server that Debian's packages installed, which is not on PATH; `null` if there is none. */
export const postgresBinaries = (): string | null => {
  const versions = existsSync(PACKAGES) ? readdirSync(PACKAGES).map(Number).filter(Number.isFinite) : [];
  const folders = versions.sort((a, b) => b - a).map((version) => join(PACKAGES, String(version), 'bin'));
  return folders.find((folder) => existsSync(join(folder, 'postgres'))) ?? null;
};

const idOf = (flag: '-u' | '-g'): number =>
  Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }));

export type PostgresRow = Readonly<Record<string, unknown>>;

export class PostgresServer {
  readonly folder: string;
  readonly #binaries: string;
  /** The server refuses to run as root. */
  readonly #user: { readonly uid: number; readonly gid: number } | null;
  #process: Program | null = null;
  #databases = 0;

  private constructor(parent: string) {
    const found = postgresBinaries();
    if (found === null) throw new Error('PostgreSQL is not installed: apt-get install postgresql');
    this.#binaries = found;
    this.#user = process.getuid?.() === 0 ? { uid: idOf('-u'), gid: idOf('-g') } : null;
    this.folder = mkdtempSync(join(parent, 'syrinx-postgres-'));
    if (this.#user !== null) chownSync(this.folder, this.#user.uid, this.#user.gid);
  }

  /** @param parent of its folder */
  static async start(parent = tmpdir()): Promise<PostgresServer> {
    const server = new PostgresServer(parent);
    server.#run('initdb', '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C', '-N');
    await server.run();
    return server;
  }

  /** Where clients of this machine connect. */
  get socket(): string {
    return join(this.folder, '.s.PGSQL.5432');
  }

  /** Starts the server on its data, and waits until it answers. */
  async run(): Promise<void> {
    for (let tries = 0; tries < startTriesMax; tries += 1) {
      // After a crash it refuses to start until the last process of the crashed server has ended.
      if (this.#process?.isRunning !== true) this.#spawn();
      try {
        await this.execute('postgres', 'SELECT 1');
        return;
      } catch {
        await sleep(startTryMs);
      }
    }
    throw new Error('PostgreSQL does not start');
  }

  /** @param signal SIGINT ends all sessions; SIGKILL is a crash; SIGSTOP and SIGCONT hold it */
  async signal(signal: NodeJS.Signals): Promise<void> {
    const server = this.#process;
    if (server?.isRunning !== true) return;
    if (signal === 'SIGSTOP' || signal === 'SIGCONT') {
      for (const pid of this.#processes())
        try {
          process.kill(pid, signal);
        } catch {
          // It has ended.
        }
      return;
    }
    await server.end(signal);
  }

  /** Milliseconds of user and system time that the server and all its processes have used so far. */
  cpuMs(): number {
    return this.#processes().reduce((sum, pid) => sum + (readCpuMsWithEnded(pid) ?? 0), 0);
  }

  async stop(): Promise<void> {
    // A test that failed may have left it held.
    await this.signal('SIGCONT');
    await this.signal('SIGINT');
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** Starts a standby. When this resolves, a commit waits until the standby has it on its disk. */
  async startStandby(): Promise<PostgresServer> {
    const standby = new PostgresServer(dirname(this.folder));
    standby.#run('pg_basebackup', '-h', this.folder, '-U', 'postgres', '-R', '-c', 'fast');
    await this.execute('postgres', "ALTER SYSTEM SET synchronous_standby_names = '*'");
    await this.execute('postgres', 'SELECT pg_reload_conf()');
    await standby.run();
    for (let tries = 0; tries < startTriesMax; tries += 1) {
      const rows = await this.execute('postgres', 'SELECT sync_state FROM pg_stat_replication');
      if (rows.some((row) => row['sync_state'] === 'sync')) return standby;
      await sleep(startTryMs);
    }
    throw new Error('the standby does not follow');
  }

  /** Makes a standby the primary. */
  async promote(): Promise<void> {
    await this.execute('postgres', 'SELECT pg_promote()');
  }

  async execute(database: string, text: string): Promise<readonly PostgresRow[]> {
    const client = new pg.Client({ host: this.folder, database, user: 'postgres' });
    client.on('error', () => undefined);
    try {
      await client.connect();
      return ((await client.query(text)) as { rows?: PostgresRow[] }).rows ?? [];
    } finally {
      await client.end().catch(() => undefined);
    }
  }

  /** @returns the address of a new, empty database */
  async database(): Promise<{ readonly name: string; readonly url: string }> {
    const name = `test${++this.#databases}`;
    await this.execute('postgres', `CREATE DATABASE ${name}`);
    return { name, url: this.urlOf(name) };
  }

  urlOf(database: string): string {
    return `postgres://postgres@localhost/${database}?host=${encodeURIComponent(this.folder)}`;
  }

  /** The server and its children. */
  #processes(): number[] {
    const pid = String(this.#process?.pid ?? 0);
    const children = execFileSync('ps', ['-o', 'pid=', '--ppid', pid], { encoding: 'utf8' });
    return [pid, ...children.trim().split(/\s+/)].map(Number);
  }

  #spawn(): void {
    const options = ['-c', 'listen_addresses=', '-c', `unix_socket_directories=${this.folder}`];
    this.#process = new Program(join(this.#binaries, 'postgres'), ['-D', this.#data, ...options], {
      ...this.#user,
      cwd: this.folder,
    });
  }

  /** Runs a program that fills the data folder. */
  #run(program: string, ...args: readonly string[]): void {
    execFileSync(join(this.#binaries, program), ['-D', this.#data, ...args], {
      ...this.#user,
      stdio: 'ignore',
      cwd: this.folder,
    });
  }

  get #data(): string {
    return join(this.folder, 'data');
  }
}
