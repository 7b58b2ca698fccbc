/** nginx with the configuration files of scripts/deploy; only addresses, paths and names differ. */
import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { createServer, connect as connectTcp } from 'node:net';
import { join } from 'node:path';
import { connect, type TLSSocket } from 'node:tls';
import type { Test } from 'tap';
import { packageRoot } from './package-root.js';
import { freePort, holdPort, until } from './service.js';

const shipped = (name: string): string => readFileSync(join(packageRoot, 'scripts/deploy', name), 'utf8');

/** Replaces a text. @throws unless it occurs exactly `times` times, so that a changed file does not go untested */
const replace = (source: string, from: string, to: string, times = 1): string => {
  const pieces = source.split(from);
  if (pieces.length !== times + 1)
    throw new Error(`${JSON.stringify(from)} occurs ${pieces.length - 1} times, not ${times}`);
  return pieces.join(to);
};

const startMsMax = 10_000;

/** Connections that one address may hold, instead of 2,048. */
export const CONNECTIONS_OF_ADDRESS = 32;

/** Ports of two units, with four digits. The ops port of each, 10,000 above, and its console's, 20,000 above, are free too. */
export const freeUnitPorts = async (): Promise<[number, number]> => {
  const isFree = (port: number): Promise<boolean> =>
    new Promise((resolve) => {
      const server = createServer();
      server.once('error', () => resolve(false));
      server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
    });
  const found: number[] = [];
  // `fetch` refuses some ports up to 6697, such as 3659, because they belong to other protocols.
  for (let port = 7_000 + Math.floor(Math.random() * 2_500); port < 10_000; port++) {
    if ((await isFree(port)) && (await isFree(10_000 + port)) && (await isFree(20_000 + port)))
      found.push(port);
    const [first, second] = found;
    if (first !== undefined && second !== undefined) return [first, second];
  }
  throw new Error('no ports for two units');
};

export interface Proxy {
  readonly port: number;
  /** In front of the console; 0 if there is none. */
  readonly consolePort: number;
  /** The certificate of nginx, for `ca` of a client. */
  readonly certificate: string;
  readonly url: string;
  /** Lines of the access log. */
  readonly log: () => string[];
  readonly errors: () => string;
}

/**
 * Starts nginx with the configuration files of its sites. It ends with the test.
 * @param folder of nginx and of these files
 * @param answers whether nginx serves
 * @throws if it does not start
 */
const startNginx = async (
  t: Test,
  folder: string,
  sites: readonly string[],
  answers: () => Promise<boolean>,
): Promise<void> => {
  const path = (name: string) => join(folder, name);
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `  ${name}_temp_path ${path(`temp-${name}`)};`,
  );
  const main = [
    'daemon off;',
    'worker_processes 2;',
    // The default user of the workers, `nobody`, cannot read the folder of the test.
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
  const nginx = spawn('nginx', ['-p', folder, '-c', path('nginx.conf'), '-e', path('error.log')], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let stderr = '';
  nginx.stderr.on('data', (bytes: Buffer) => (stderr += bytes.toString()));
  const exited = new Promise<void>((resolve) => nginx.once('close', () => resolve()));
  t.teardown(async () => {
    nginx.kill('SIGTERM');
    await exited;
  });
  const isSettled = async () => nginx.exitCode !== null || (await answers());
  if (!(await until(isSettled, startMsMax)) || nginx.exitCode !== null)
    throw new Error(`nginx does not start: ${stderr}`);
};

/**
 * Starts nginx with TLS before two ports of the loopback address. It ends with the test.
 * @param folder for the files of nginx
 * @param consolePorts by default nginx serves no console
 */
export const startProxy = async (
  t: Test,
  folder: string,
  upstreamPorts: readonly [number, number],
  consolePorts?: readonly [number, number],
): Promise<Proxy> => {
  const held = [await holdPort(), await holdPort()];
  for (const { release } of held) await release();
  const [port = 0, otherPort = 0] = held.map((each) => each.port);
  const consolePort = consolePorts === undefined ? 0 : otherPort;
  const path = (name: string) => join(folder, name);
  mkdirSync(folder, { recursive: true });
  const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1'];
  const key = [
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:prime256v1',
    '-nodes',
    '-keyout',
    path('key.pem'),
  ];
  execFileSync('openssl', ['req', '-x509', ...key, '-out', path('cert.pem'), '-days', '2', ...subject], {
    stdio: 'pipe',
  });

  let upstream = shipped('syrinx-upstream.conf');
  upstream = replace(upstream, '127.0.0.1:8080', `127.0.0.1:${upstreamPorts[0]}`);
  upstream = replace(upstream, '127.0.0.1:8081', `127.0.0.1:${upstreamPorts[1]}`);
  writeFileSync(path('upstream.conf'), upstream);

  let site = shipped('nginx.conf');
  site = replace(site, '/etc/nginx/syrinx-upstream.conf', path('upstream.conf'));
  const onPort = (source: string, listened: number): string => {
    let moved = replace(source, 'listen 443 ssl;', `listen 127.0.0.1:${listened} ssl;`);
    moved = replace(moved, 'listen [::]:443 ssl;', '');
    moved = replace(moved, '/etc/ssl/syrinx/fullchain.pem', path('cert.pem'));
    return replace(moved, '/etc/ssl/syrinx/privkey.pem', path('key.pem'));
  };
  site = onPort(site, port);
  site = replace(site, 'syrinx_address 2048', `syrinx_address ${CONNECTIONS_OF_ADDRESS}`);
  site = replace(site, '/var/log/nginx/syrinx.log', path('access.log'));
  writeFileSync(path('site.conf'), site);
  if (consolePorts !== undefined) {
    let page = onPort(shipped('nginx-console.conf'), consolePort);
    page = replace(page, '127.0.0.1:28080', `127.0.0.1:${consolePorts[0]}`);
    page = replace(page, '127.0.0.1:28081', `127.0.0.1:${consolePorts[1]}`);
    page = replace(page, '/var/log/nginx/syrinx-console.log', path('console.log'));
    writeFileSync(path('console.conf'), page);
  }
  const certificate = readFileSync(path('cert.pem'), 'utf8');
  const sites = ['site.conf', ...(consolePorts === undefined ? [] : ['console.conf'])];
  await startNginx(t, folder, sites, async () => {
    const socket = await openTls(port, certificate).catch(() => null);
    socket?.destroy();
    return socket !== null;
  });
  const read = (name: string) => readFileSync(path(name), 'utf8');
  return {
    ...{ port, consolePort, certificate },
    url: `https://localhost:${port}`,
    log: () => read('access.log').split('\n').filter(Boolean),
    errors: () => read('error.log'),
  };
};

const listens = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connectTcp(port, '127.0.0.1');
    const settle = (isOpen: boolean): void => {
      socket.destroy();
      resolve(isOpen);
    };
    socket.once('connect', () => settle(true)).once('error', () => settle(false));
  });

/**
 * Starts nginx before several hosts, without TLS. It ends with the test.
 * @param folder for the files of nginx
 * @param hosts three ports of this machine, in the place of three hosts
 * @returns its port
 */
export const startHostsProxy = async (t: Test, folder: string, hosts: readonly number[]): Promise<number> => {
  const port = await freePort();
  const path = (name: string) => join(folder, name);
  mkdirSync(folder, { recursive: true });
  const upstream = hosts.reduce(
    (source, host, i) => replace(source, `10.0.0.${i + 1}:8080`, `127.0.0.1:${host}`),
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
  await startNginx(t, folder, ['site.conf'], () => listens(port));
  return port;
};

/** A TLS connection to a port of this machine. */
const openTls = (port: number, certificate: string): Promise<TLSSocket> =>
  new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port, servername: 'localhost', ca: certificate });
    socket.once('error', reject);
    socket.once('secureConnect', () => {
      socket.off('error', reject);
      resolve(socket);
    });
  });

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly requestId: string;
  /** The body as it arrives. `destroy` closes the connection. */
  readonly body: IncomingMessage;
}

export interface Question {
  readonly method?: string;
  readonly path: string;
  readonly key?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON; a string is sent unchanged. */
  readonly body?: unknown;
}

/** Sends a request through the proxy, on a new TLS connection. */
export const ask = ({ port, certificate }: Proxy, question: Question): Promise<Answer> => {
  const { method = 'GET', path, key, headers = {}, body } = question;
  return new Promise((resolve, reject) => {
    const request = httpsRequest({
      host: '127.0.0.1',
      servername: 'localhost',
      port,
      ca: certificate,
      agent: false,
      method,
      path,
      headers: {
        ...(key !== undefined && { 'x-api-key': key }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
    });
    request.once('error', reject);
    request.once('response', (response) => {
      request.off('error', reject);
      // After an abort or a refusal the connection may end in any way.
      request.on('error', () => undefined);
      resolve({
        status: response.statusCode ?? 0,
        headers: response.headers,
        requestId: String(response.headers['x-request-id'] ?? ''),
        body: response,
      });
    });
    request.end(body === undefined || typeof body === 'string' ? body : JSON.stringify(body));
  });
};

/** Reads the whole body. @throws if it is cut short */
export const textOf = async ({ body }: Answer): Promise<string> => {
  const pieces: Buffer[] = [];
  for await (const piece of body) pieces.push(piece as Buffer);
  if (!body.complete) throw new Error('the body was cut short');
  return Buffer.concat(pieces).toString();
};
