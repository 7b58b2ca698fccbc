/**
 * The webhooks of accounts, in files of this host, and the messages to them. Each message has a thread of its own
 * (`webhook.ts`). Signatures follow standardwebhooks.com.
 */
import { createHmac, randomBytes } from 'node:crypto';
import { readdirSync, rmSync } from 'node:fs';
import { isIP } from 'node:net';
import { join } from 'node:path';
import { writeSecret } from '../src/accounts/secret-file.js';
import type { SendResult, Webhook, WebhookMessage, Webhooks } from '../src/accounts/webhooks.js';
import type { Bounds } from '../src/limits.js';
import { readRegular } from '../src/regular-file.js';
import { AdministrationError, invalid } from '../src/store/store.js';
import { readInThread } from '../src/threads/reader.js';
import type { WebhookMail, WebhookThreadData } from './webhook.js';
import { hostOf, reachOf } from './webhook-reach.js';

/** Heap of a thread that sends. */
const HEAP_MIB = 32;

export interface WebhooksOptions {
  /** Of the files. */
  readonly folder: string;
  /** Addresses and networks that may be called although they are internal: `WEBHOOK_ALLOW`. */
  readonly allow: readonly string[];
  readonly bounds: Pick<Bounds, 'webhookAnswerMsMax' | 'watchdogBeatMs' | 'threadHangMsMax'>;
}

export const openWebhooks = ({ allow, bounds, folder }: WebhooksOptions): Webhooks => {
  const pathOf = (accountId: number): string => join(folder, `${accountId}.json`);
  const refuse = (message: string) => invalid('url', message);
  const stopping = new AbortController();

  const read = (accountId: number, account: string): Webhook | null => {
    try {
      const webhook = JSON.parse(readRegular(pathOf(accountId)).toString()) as Webhook;
      return (webhook.account ?? account) === account ? webhook : null;
    } catch (error) {
      // A damaged file is none, so that its account can set another.
      if (error instanceof SyntaxError || (error as NodeJS.ErrnoException).code === 'ENOENT') return null;
      throw error;
    }
  };

  const post = async (workerData: WebhookThreadData): Promise<SendResult> => {
    const { webhookAnswerMsMax: msMax } = bounds;
    const outcome = await readInThread({
      ...{ entry: new URL('./webhook.js', import.meta.url), workerData, what: 'answer', bounds },
      ...{ item: { name: 'answer', path: '' }, itemMsMax: msMax, otherMsMax: msMax, heapMiBMax: HEAP_MIB },
      ...{ signal: stopping.signal, onMail: (mail: WebhookMail) => mail },
    });
    if ('loss' in outcome) {
      const { fault, kind } = outcome.loss;
      return { isDelivered: false, result: kind === 'late' ? 'no answer in time' : fault.slice(0, 100) };
    }
    const { answer } = outcome;
    if ('fault' in answer) return { isDelivered: false, result: answer.fault };
    const { status } = answer;
    return { isDelivered: status >= 200 && status < 300, result: `answered ${status}` };
  };

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
      const { isAllowed, mayCall } = reachOf(allow);
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
        return await post({ url, headers, body, allow });
      } catch (error) {
        if (!stopping.signal.aborted) throw error;
        throw new AdministrationError('The service is stopping', 'unavailable');
      }
    },
    stop: () => stopping.abort(),
  };
};
