/** nginx with the configuration files of scripts/deploy; only addresses, paths and names differ. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { createServer } from 'node:net';
import { join } from 'node:path';
import type { Test } from 'tap';
import { replace, serves, shipped, startNginx } from '../../scripts/rig/proxy.js';
import { holdPort } from './service.js';

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
  const nginx = startNginx(folder, sites);
  t.teardown(() => nginx.end('SIGTERM'));
  await serves(nginx, port);
  const read = (name: string) => readFileSync(path(name), 'utf8');
  return {
    ...{ port, consolePort, certificate },
    url: `https://localhost:${port}`,
    log: () => read('access.log').split('\n').filter(Boolean),
    errors: () => read('error.log'),
  };
};

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
