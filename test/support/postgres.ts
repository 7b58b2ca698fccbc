/** A PostgreSQL server of its own for a test file, on a socket in a temporary folder. */
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import t from 'tap';

const PACKAGES = '/usr/lib/postgresql';
/** Half a minute: after a crash it recovers first. */
const startTriesMax = 300;
const startTryMs = 100;

/** Folder of the newest server that Debian's packages installed, which is not on PATH; `null` if there is none. */
const binaries = (): string | null => {
  const versions = existsSync(PACKAGES) ? readdirSync(PACKAGES).map(Number).filter(Number.isFinite) : [];
  const folders = versions.sort((a, b) => b - a).map((version) => join(PACKAGES, String(version), 'bin'));
  return folders.find((folder) => existsSync(join(folder, 'postgres'))) ?? null;
};

/** Without a server the tests that need one are not registered, and the report says so. */
export const hasPostgres = (): boolean => {
  if (binaries() !== null || process.env['SYRINX_CI_REQUIRE_ALL'] === '1') return true;
  t.pass('PostgreSQL', { skip: 'not installed: apt-get install postgresql' });
  return false;
};

const idOf = (flag: '-u' | '-g'): number =>
  Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }));

export class PostgresServer {
  readonly folder: string;
  readonly #binaries: string;
  /** The server refuses to run as root. */
  readonly #user: { readonly uid: number; readonly gid: number } | null;
  #process: ChildProcess | null = null;
  #databases = 0;

  private constructor() {
    const found = binaries();
    if (found === null) throw new Error('PostgreSQL is not installed: apt-get install postgresql');
    this.#binaries = found;
    this.#user = process.getuid?.() === 0 ? { uid: idOf('-u'), gid: idOf('-g') } : null;
    this.folder = mkdtempSync(join(tmpdir(), 'syrinx-postgres-'));
    if (this.#user !== null) chownSync(this.folder, this.#user.uid, this.#user.gid);
  }

  static async start(): Promise<PostgresServer> {
    const server = new PostgresServer();
    execFileSync(
      join(server.#binaries, 'initdb'),
      ['-D', server.#data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C', '-N'],
      { ...server.#user, stdio: 'ignore', cwd: server.folder },
    );
    await server.run();
    return server;
  }

  /** Starts the server on its data, and waits until it answers. */
  async run(): Promise<void> {
    for (let tries = 0; tries < startTriesMax; tries += 1) {
      // After a crash it refuses to start until the last process of the crashed server has ended.
      if (!this.#isRunning) this.#spawn();
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
    if (server?.pid === undefined || !this.#isRunning) return;
    if (signal === 'SIGSTOP' || signal === 'SIGCONT') {
      const children = execFileSync('ps', ['-o', 'pid=', '--ppid', String(server.pid)], { encoding: 'utf8' });
      for (const pid of [server.pid, ...children.trim().split(/\s+/).map(Number)])
        try {
          process.kill(pid, signal);
        } catch {
          // It has ended.
        }
      return;
    }
    server.kill(signal);
    await once(server, 'exit');
  }

  async stop(): Promise<void> {
    // A test that failed may have left it held.
    await this.signal('SIGCONT');
    await this.signal('SIGINT');
    rmSync(this.folder, { recursive: true, force: true });
  }

  async execute(database: string, text: string): Promise<readonly Record<string, unknown>[]> {
    const client = new pg.Client({ host: this.folder, database, user: 'postgres' });
    client.on('error', () => undefined);
    try {
      await client.connect();
      return ((await client.query(text)) as { rows?: Record<string, unknown>[] }).rows ?? [];
    } finally {
      await client.end().catch(() => undefined);
    }
  }

  /** @returns the address of a new, empty database */
  async database(): Promise<{ readonly name: string; readonly url: string }> {
    const name = `test${++this.#databases}`;
    await this.execute('postgres', `CREATE DATABASE ${name}`);
    return { name, url: `postgres://postgres@localhost/${name}?host=${encodeURIComponent(this.folder)}` };
  }

  get #isRunning(): boolean {
    return this.#process !== null && this.#process.exitCode === null && this.#process.signalCode === null;
  }

  #spawn(): void {
    const options = ['-c', 'listen_addresses=', '-c', `unix_socket_directories=${this.folder}`];
    this.#process = spawn(join(this.#binaries, 'postgres'), ['-D', this.#data, ...options], {
      ...this.#user,
      stdio: 'ignore',
      cwd: this.folder,
    });
  }

  get #data(): string {
    return join(this.folder, 'data');
  }
}
