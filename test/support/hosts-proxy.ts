/** nginx before several hosts, with the files of scripts/deploy. Only addresses, paths and TLS differ. */
import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { packageRoot } from './package-root.js';

export const proxyNames = ['nginx'] as const;
export type ProxyName = (typeof proxyNames)[number];

export interface HostsProxy {
  readonly port: number;
  /** Idempotent. */
  readonly stop: () => Promise<void>;
}

const startMsMax = 10_000;

const shipped = (name: string): string => readFileSync(join(packageRoot, 'scripts/deploy', name), 'utf8');

/** @throws unless `from` occurs exactly once, so that a changed file does not go untested */
const replace = (source: string, from: string, to: string): string => {
  const pieces = source.split(from);
  if (pieces.length !== 2)
    throw new Error(`${JSON.stringify(from)} occurs ${pieces.length - 1} times, not once`);
  return pieces.join(to);
};

const freePort = async (): Promise<number> => {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
};

const withHosts = (source: string, hosts: readonly number[]): string =>
  hosts.reduce((text, port, i) => replace(text, `10.0.0.${i + 1}:8080`, `127.0.0.1:${port}`), source);

/** Writes the files. @returns the arguments of the program */
const configure: Readonly<
  Record<ProxyName, (folder: string, port: number, hosts: readonly number[]) => readonly string[]>
> = {
  nginx: (folder, port, hosts) => {
    const path = (name: string): string => join(folder, name);
    writeFileSync(path('hosts.conf'), withHosts(shipped('syrinx-hosts.conf'), hosts));
    let site = shipped('nginx.conf');
    site = replace(site, '/etc/nginx/syrinx-upstream.conf', path('hosts.conf'));
    site = replace(site, 'listen 443 ssl;', `listen 127.0.0.1:${port};`);
    site = replace(site, 'listen [::]:443 ssl;', '');
    site = site.replaceAll(/^ *ssl_.*\n/gm, '');
    site = replace(site, '/var/log/nginx/syrinx.log', path('access.log'));
    writeFileSync(path('site.conf'), site);
    const main = [
      'daemon off;',
      'worker_processes 2;',
      // The default user of the workers, `nobody`, cannot read the folder.
      ...(process.getuid?.() === 0 ? ['user root;'] : []),
      `pid ${path('nginx.pid')};`,
      'events { worker_connections 4096; }',
      'http {',
      ...['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
        (name) => `  ${name}_temp_path ${path(`temp-${name}`)};`,
      ),
      `  include ${path('site.conf')};`,
      '}',
    ];
    writeFileSync(path('nginx.conf'), main.join('\n'));
    return ['-p', folder, '-c', path('nginx.conf'), '-e', path('error.log')];
  },
};

const listens = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    const end = (open: boolean): void => {
      socket.destroy();
      resolve(open);
    };
    socket.once('connect', () => end(true)).once('error', () => end(false));
  });

/**
 * @param folder for the files of the proxy
 * @param hosts three ports of this machine, in place of three hosts
 * @throws Error when the proxy does not start
 */
export const startHostsProxy = async (
  name: ProxyName,
  folder: string,
  hosts: readonly number[],
): Promise<HostsProxy> => {
  mkdirSync(folder, { recursive: true });
  const port = await freePort();
  const child = spawn(name, configure[name](folder, port, hosts), { stdio: ['ignore', 'ignore', 'pipe'] });
  let stderr = '';
  child.stderr.on('data', (bytes: Buffer) => (stderr = (stderr + bytes.toString()).slice(-4_000)));
  const exited = new Promise<void>((resolve) =>
    child.once('close', () => resolve()).once('error', () => resolve()),
  );
  const end = (): void => void child.kill('SIGKILL');
  process.once('exit', end);
  const stop = async (): Promise<void> => {
    child.kill('SIGTERM');
    await exited;
    process.off('exit', end);
  };
  const endMs = performance.now() + startMsMax;
  while (!(await listens(port))) {
    if (child.exitCode !== null || performance.now() > endMs) {
      await stop();
      throw new Error(`${name} does not start: ${stderr}`);
    }
    await sleep(20);
  }
  return { port, stop };
};
