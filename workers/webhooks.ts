/**
 * The webhooks of accounts, in files of this host, and the requests to them. A member chooses the address, so it must not
 * lead into the network of this machine. Every address of the name is checked, and the connection uses a checked one.
 * Signatures follow standardwebhooks.com.
 */
import { createHmac, randomBytes } from 'node:crypto';
import { lookup, type LookupAddress } from 'node:dns';
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { isIP, type BlockList, type LookupFunction } from 'node:net';
import { join } from 'node:path';
import { writeSecret } from '../src/accounts/secret-file.js';
import type { SendResult, Webhook, WebhookMessage, Webhooks } from '../src/accounts/webhooks.js';
import { networkList } from '../src/network.js';
import { AdministrationError } from '../src/store/store.js';

/** Not of the public internet. Of IPv6, `2000::/3` is public, without what carries or documents other addresses. */
const internal = networkList([
  ...['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12'],
  ...['192.0.0.0/24', '192.0.2.0/24', '192.88.99.0/24', '192.168.0.0/16', '198.18.0.0/15'],
  ...['198.51.100.0/24', '203.0.113.0/24', '224.0.0.0/4', '240.0.0.0/4'],
  ...['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20'],
]);
const publicIpv6 = networkList(['2000::/3']);

const has = (list: BlockList, address: string): boolean =>
  list.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4');

/** Without the brackets of IPv6. */
const hostOf = ({ hostname }: URL): string => hostname.replace(/^\[(.*)\]$/, '$1');

export interface WebhooksOptions {
  /** Of the files. */
  readonly folder: string;
  /** Addresses and networks that may be called although they are internal: `WEBHOOK_ALLOW`. */
  readonly allow: readonly string[];
  readonly answerMsMax: number;
}

export const openWebhooks = ({ allow, answerMsMax, folder }: WebhooksOptions): Webhooks => {
  const allowed = networkList(allow);
  const isAllowed = (address: string): boolean => has(allowed, address);
  const mayCall = (address: string): boolean =>
    isAllowed(address) || (!has(internal, address) && (isIP(address) === 4 || has(publicIpv6, address)));
  const pathOf = (accountId: number): string => join(folder, `${accountId}.json`);
  const refuse = (message: string) => new AdministrationError(message, 'badRequest', 'url');

  /** Of a name, only the addresses that may be called. Plain HTTP needs one that the operator allows. */
  const lookupFor =
    (isPlain: boolean): LookupFunction =>
    (hostname, options, callback) => {
      lookup(hostname, { ...options, all: true }, (error, addresses: LookupAddress[]) => {
        const may = isPlain ? isAllowed : mayCall;
        const found = error === null ? addresses.filter(({ address }) => may(address)) : [];
        const [first] = found;
        if (error !== null) callback(error, '');
        else if (first === undefined) callback(new Error('its address is internal'), '');
        else if (options.all === true) callback(null, found);
        else callback(null, first.address, first.family);
      });
    };

  const read = (accountId: number): Webhook | null => {
    try {
      return JSON.parse(readFileSync(pathOf(accountId), 'utf8')) as Webhook;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
      throw error;
    }
  };

  const post = (url: URL, headers: Readonly<Record<string, string>>, body: string): Promise<number> =>
    new Promise((resolve, reject) => {
      const isPlain = url.protocol === 'http:';
      const host = hostOf(url);
      if (isIP(host) !== 0 && !(isPlain ? isAllowed : mayCall)(host)) {
        reject(new Error('its address is internal'));
        return;
      }
      const request = (isPlain ? requestHttp : requestHttps)(
        url,
        {
          ...{ method: 'POST', agent: false, headers, lookup: lookupFor(isPlain) },
          ...{ signal: AbortSignal.timeout(answerMsMax), maxHeaderSize: 16_384 },
        },
        (response) => {
          resolve(response.statusCode ?? 0);
          // Its body is of no interest, however long it is.
          response.on('error', () => undefined);
          response.destroy();
        },
      );
      request.on('error', reject);
      request.end(body);
    });

  return {
    ids: () => {
      try {
        return readdirSync(folder).flatMap((name) => {
          const id = /^(\d{1,10})\.json$/.exec(name)?.[1];
          return id === undefined ? [] : [Number(id)];
        });
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
        throw error;
      }
    },
    read,
    write: (accountId, webhook) => {
      if (webhook === null) rmSync(pathOf(accountId), { force: true });
      else writeSecret(pathOf(accountId), JSON.stringify(webhook));
    },
    check: (text) => {
      const url = URL.canParse(text) ? new URL(text) : null;
      if (url === null || !/^https?:$/.test(url.protocol) || url.username !== '' || url.password !== '')
        throw refuse('Give an address such as https://example.com/alerts, without a user and a password');
      const host = hostOf(url);
      const isLiteral = isIP(host) !== 0;
      if (isLiteral && !mayCall(host))
        throw refuse('This address is internal. An operator can allow it with WEBHOOK_ALLOW');
      if (url.protocol === 'http:' && isLiteral && !isAllowed(host))
        throw refuse('Give an address with https: alerts name keys');
      if (url.protocol === 'http:' && allow.length === 0)
        throw refuse('Give an address with https: alerts name keys');
      return randomBytes(24).toString('base64');
    },
    send: async ({ secret, url }, id, message: WebhookMessage): Promise<SendResult> => {
      const body = JSON.stringify(message);
      const timestamp = String(Math.floor(Date.now() / 1_000));
      const signature = createHmac('sha256', Buffer.from(secret, 'base64'))
        .update(`${id}.${timestamp}.${body}`)
        .digest('base64');
      const headers = {
        'content-type': 'application/json',
        'user-agent': 'syrinx',
        'webhook-id': id,
        'webhook-timestamp': timestamp,
        'webhook-signature': `v1,${signature}`,
      };
      try {
        const status = await post(new URL(url), headers, body);
        return { isDelivered: status >= 200 && status < 300, result: `answered ${status}` };
      } catch (error) {
        const { message: fault, name } = error as Error;
        return {
          isDelivered: false,
          result: name === 'AbortError' ? 'no answer in time' : fault.slice(0, 100),
        };
      }
    },
  };
};
