/**
 * Entry of the thread that sends one message to a webhook, and ends with the answer. A receiver can make it work or wait: the
 * thread has a low priority, and is ended when its time is over.
 */
import { Resolver } from 'node:dns/promises';
import { readFileSync } from 'node:fs';
import { request as requestHttp, type ClientRequest } from 'node:http';
import { request as requestHttps } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import { getPriority, setPriority } from 'node:os';
import { parentPort, workerData } from 'node:worker_threads';
import { hostOf, reachOf } from './webhook-reach.js';

export interface WebhookThreadData {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** `WEBHOOK_ALLOW` */
  readonly allow: readonly string[];
}

/** Its HTTP status, or why it has none. */
export type WebhookMail = { readonly status: number } | { readonly fault: string };

const PRIORITY = 10;
const HEADERS_BYTES_MAX = 16_384;
/** Milliseconds until the next name server is asked. */
const NAME_SERVER_MS = 2_000;
/** A receiver chooses the parameters of the other key exchanges of TLS 1.2: large ones take a second of a core. */
const CIPHERS =
  'TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256:ECDHE+AESGCM:ECDHE+CHACHA20';

/** The same for a name that is not there: which internal names there are is not for members. */
class NoAddress extends Error {
  constructor() {
    super('no address that may be called was found');
  }
}

const inHostsFile = (name: string): readonly string[] => {
  try {
    return readFileSync('/etc/hosts', 'utf8')
      .split('\n')
      .flatMap((line) => {
        const [address = '', ...names] = line.replace(/#.*/, '').trim().toLowerCase().split(/\s+/);
        return names.includes(name) && isIP(address) !== 0 ? [address] : [];
      });
  } catch {
    return [];
  }
};

/** All addresses of a name. Not by `lookup`: a slow name would hold one of the few threads that the process has for it. */
const addressesOf = async (name: string): Promise<readonly string[]> => {
  const known = inHostsFile(name);
  if (known.length > 0) return known;
  const resolver = new Resolver({ timeout: NAME_SERVER_MS, tries: 1 });
  const found = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]);
  return found.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
};

const statusOf = (request: ClientRequest): Promise<number> =>
  new Promise((resolve, reject) => {
    let hasInformed = false;
    request.on('information', () => {
      if (hasInformed) request.destroy(new Error('more than one interim answer'));
      hasInformed = true;
    });
    request.once('response', (response) => {
      resolve(response.statusCode ?? 0);
      // Its body is of no interest, however long it is.
      response.on('error', () => undefined);
      response.destroy();
    });
    request.once('upgrade', ({ statusCode = 0 }, socket) => {
      resolve(statusCode);
      socket.destroy();
    });
    request.on('error', reject);
    request.once('close', () => reject(new Error('the connection ended without an answer')));
  });

const post = async ({ allow, body, headers, url: text }: WebhookThreadData): Promise<number> => {
  const url = new URL(text);
  const isPlain = url.protocol === 'http:';
  const { isAllowed, mayCall } = reachOf(allow);
  // Plain HTTP needs an address that the operator allows.
  const may = isPlain ? isAllowed : mayCall;
  const host = hostOf(url);
  const found = (isIP(host) === 0 ? await addressesOf(host) : [host]).filter(may);
  // One of each family: a name may have any number.
  const called = [4, 6].flatMap((family) => {
    const address = found.find((one) => isIP(one) === family);
    return address === undefined ? [] : [{ address, family }];
  });
  if (called.length === 0) throw new NoAddress();
  // The connection uses what was checked.
  const lookup: LookupFunction = (_, __, callback) => callback(null, called);
  const request = (isPlain ? requestHttp : requestHttps)(url, {
    ...{ method: 'POST', agent: false, headers, maxHeaderSize: HEADERS_BYTES_MAX },
    ...{ lookup, autoSelectFamily: true, ciphers: CIPHERS },
  });
  request.end(body);
  return statusOf(request);
};

/** Of several addresses, that of the first. */
const faultOf = (error: unknown): string => {
  const [first] = error instanceof AggregateError ? (error.errors as Error[]) : [error as Error];
  return (first ?? (error as Error)).message.slice(0, 100);
};

setPriority(Math.max(PRIORITY, getPriority()));
const answer: Promise<WebhookMail> = post(workerData as WebhookThreadData).then(
  (status) => ({ status }),
  (error: unknown) => ({ fault: faultOf(error) }),
);
parentPort!.postMessage(await answer);
