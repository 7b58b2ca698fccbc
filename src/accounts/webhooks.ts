/** What the webhook of an account is, and when an alert is sent to it: once a day for each cause, with few retries. */
import type { Alert, AlertCause } from './alerts.js';

const DAY_MS = 86_400_000;
/** Each wait before another attempt is so many times as long as the one before it. */
const RETRY_GROWTH = 4;

/** Of the files, in the data folder. */
export const WEBHOOKS_FOLDER = 'webhooks';

/** A message, and the attempts to deliver it. */
export interface Delivery {
  /** The same for all attempts. */
  readonly id: string;
  readonly firstAtMs: number;
  readonly attempts: number;
  /** `null`: it was delivered, or no attempt is left. */
  readonly nextAtMs: number | null;
}

export interface Webhook {
  /** Whose it is: the store may give its id to another one, after a restore. Older files lack it. */
  readonly account?: string;
  readonly url: string;
  /** In base64. */
  readonly secret: string;
  readonly deliveries: Readonly<Partial<Record<AlertCause, Delivery>>>;
  /** Of the last attempt, in words. */
  readonly lastAtMs: number | null;
  readonly lastResult: string | null;
}

/** `text` is for people. */
export type WebhookMessage =
  | (Alert & { readonly type: AlertCause; readonly text: string })
  | { readonly type: 'test'; readonly accountId: number; readonly account: string; readonly text: string };

export interface SendResult {
  readonly isDelivered: boolean;
  /** Such as `answered 200`. */
  readonly result: string;
}

/** Keeps the webhooks of this host, and sends to them. */
export interface Webhooks {
  ids(): readonly number[];
  read(accountId: number, account: string): Webhook | null;
  write(accountId: number, webhook: Webhook | null): void;
  /** @returns a new secret. @throws {AdministrationError} the address may not be called */
  check(url: string): string;
  /** @throws {AdministrationError} it was stopped */
  send(webhook: Pick<Webhook, 'url' | 'secret'>, id: string, message: WebhookMessage): Promise<SendResult>;
  /** Ends what is being sent. */
  stop(): void;
}

export interface WebhookBounds {
  readonly webhookAttemptsMax: number;
  readonly webhookRetryMs: number;
  readonly webhooksAtOnceMax: number;
  readonly webhookTestMs: number;
  readonly webhookChangesMax: number;
  readonly webhookChangeMs: number;
}

export const textOf = ({ account, balance, cause, keys }: Alert): string => {
  switch (cause) {
    case 'credit.out':
      return `${account} is out of credit, with ${balance} left: its requests are refused.`;
    case 'credit.low':
      return `${account} has ${balance} credits left: too few for a week of its use.`;
    case 'keys.expiring': {
      const named = keys.map(
        ({ expiresAtMs, name, prefix }) => `${name || prefix} at ${new Date(expiresAtMs).toISOString()}`,
      );
      return `Keys of ${account} expire: ${named.join(', ')}.`;
    }
  }
};

/** @returns the delivery whose attempt is due now; `null` if none is. The last one may lie ahead, if the clock was set back */
export const dueOf = (
  { deliveries }: Pick<Webhook, 'deliveries'>,
  cause: AlertCause,
  nowMs: number,
  newId: () => string,
): Delivery | null => {
  const last = deliveries[cause];
  if (last === undefined || Math.abs(nowMs - last.firstAtMs) >= DAY_MS)
    return { id: newId(), firstAtMs: nowMs, attempts: 0, nextAtMs: nowMs };
  return last.nextAtMs !== null && last.nextAtMs <= nowMs ? last : null;
};

/** After an attempt. */
export const after = (
  delivery: Delivery,
  isDelivered: boolean,
  nowMs: number,
  { webhookAttemptsMax, webhookRetryMs }: Pick<WebhookBounds, 'webhookAttemptsMax' | 'webhookRetryMs'>,
): Delivery => {
  const attempts = delivery.attempts + 1;
  const isOver = isDelivered || attempts >= webhookAttemptsMax;
  const waitMs = webhookRetryMs * RETRY_GROWTH ** (attempts - 1);
  return { ...delivery, attempts, nextAtMs: isOver ? null : nowMs + waitMs };
};
