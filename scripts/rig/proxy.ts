/** nginx and HAProxy with the files of scripts/deploy; only addresses, paths and names differ. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from './ports.js';
import { Program } from './program.js';

export const shipped = (name: string): string =>
  readFileSync(new URL(`../../../scripts/deploy/${name}`, import.meta.url), 'utf8');

/** Replaces a text. @throws unless it occurs exactly `times` times, so that a changed file does not go untested */
export const replace = (source: string, from: string, to: string, times = 1): string => {
  const pieces = source.split(from);
  if (pieces.length !== times + 1)
    throw new Error(`${JSON.stringify(from)} occurs ${pieces.length - 1} times, not ${times}`);
  return pieces.join(to);
};

/** @param sites files in `folder`, for the http block */
export const startNginx = (folder: string, sites: readonly string[]): Program => {
  const path = (name: string) => join(folder, name);
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `  ${name}_temp_path ${path(`temp-${name}`)};`,
  );
  const main = [
    'daemon off;',
    'worker_processes 2;',
    // The default user of the workers, `nobody`, cannot read a temporary folder.
    ...(process.getuid?.() === 0 ? ['user root;'] : []),
    `pid ${path('nginx.pid')};`,
    `error_log ${path('error.log')};`,
    'events { worker_connections 1024; }',
    'http {',
    ...temporary,
    ...sites.map((name) => `  include ${path(name)};`),
    '}',
  ];
  writeFileSync(path('nginx.conf'), main.join('\n'));
  return new Program('nginx', ['-p', folder, '-c', path('nginx.conf'), '-e', path('error.log')], {
    cwd: folder,
  });
};

const listens = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    const settle = (isOpen: boolean): void => {
      socket.destroy();
      resolve(isOpen);
    };
    socket.once('connect', () => settle(true)).once('error', () => settle(false));
  });

const startTriesMax = 200;
const startTryMs = 50;

/** Waits until a program listens. @throws if it ends instead */
export const serves = async (program: Program, port: number): Promise<void> => {
  for (let tries = 0; tries < startTriesMax && program.isRunning; tries += 1) {
    if (await listens(port)) return;
    await sleep(startTryMs);
  }
  throw new Error(`the proxy does not start: ${program.stderr}`);
};

/** Before several hosts. */
export type HostsProxyKind = 'nginx' | 'haproxy';

/** The key decides the host; without TLS. */
export class HostsProxy {
  readonly port: number;
  readonly #start: () => Program;
  #program: Program | null = null;

  private constructor(port: number, start: () => Program) {
    this.port = port;
    this.#start = start;
  }

  /**
   * @param folder for the files of the proxy
   * @param hosts three ports of this machine, in the place of three hosts
   */
  static async start(kind: HostsProxyKind, folder: string, hosts: readonly number[]): Promise<HostsProxy> {
    const port = await freePort();
    mkdirSync(folder, { recursive: true });
    const prepare = kind === 'nginx' ? prepareNginx : prepareHaproxy;
    const proxy = new HostsProxy(port, prepare(folder, port, hosts));
    await proxy.run();
    return proxy;
  }

  /** Starts it, also after `kill`. */
  async run(): Promise<void> {
    this.#program = this.#start();
    await serves(this.#program, this.port);
  }

  async kill(): Promise<void> {
    await this.#program?.kill();
  }
}

type Prepare = (folder: string, port: number, hosts: readonly number[]) => () => Program;

const prepareNginx: Prepare = (folder, port, hosts) => {
  const path = (name: string) => join(folder, name);
  const upstream = hosts.reduce(
    (text, host, i) => replace(text, `10.0.0.${i + 1}:8080`, `127.0.0.1:${host}`),
    shipped('syrinx-hosts.conf'),
  );
  writeFileSync(path('hosts.conf'), upstream);
  let site = shipped('nginx.conf');
  site = replace(site, '/etc/nginx/syrinx-upstream.conf', path('hosts.conf'));
  site = replace(site, 'listen 443 ssl;', `listen 127.0.0.1:${port};`);
  site = replace(site, 'listen [::]:443 ssl;', '');
  site = site.replaceAll(/^ *ssl_.*\n/gm, '');
  site = replace(site, '/var/log/nginx/syrinx.log', path('access.log'));
  writeFileSync(path('site.conf'), site);
  return () => startNginx(folder, ['site.conf']);
};

/** Its settings are variables. It needs two files for each connection, and this user may have no more. */
const prepareHaproxy: Prepare = (folder, port, hosts) => {
  const [path = '', lua] = ['haproxy.cfg', 'whole-body.lua'].map((name) => {
    const copy = join(folder, name);
    writeFileSync(copy, shipped(`chart/${name}`));
    return copy;
  });
  const settings = Object.fromEntries(hosts.map((host, i) => [`SYRINX_HOST${i + 1}`, `127.0.0.1:${host}`]));
  const env = { ...process.env, ...settings, SYRINX_BIND: `127.0.0.1:${port}`, SYRINX_LUA: lua };
  return () => new Program('haproxy', ['-db', '-n', '2000', '-f', path], { cwd: folder, env });
};
