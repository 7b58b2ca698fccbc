/** Usage by account and key, as `npm run usage` shows it. */
import type { StoreDriver, UsagePeriod, Use } from '../store/store.js';

export interface KeyUse extends Use {
  readonly prefix: string;
  readonly revoked: boolean;
}

export interface AccountUse extends Use {
  readonly account: string;
  readonly metered: boolean;
  /** The current balance, whatever the period. */
  readonly balance: number;
  /** All keys in the order of their creation, unused ones included. */
  readonly keys: readonly KeyUse[];
}

const earliest = (a: number | null, b: number | null) =>
  a === null || b === null ? (a ?? b) : Math.min(a, b);
const latest = (a: number | null, b: number | null) => (a === null || b === null ? (a ?? b) : Math.max(a, b));

const unused: Use = {
  requests: 0,
  characters: 0,
  credits: 0,
  refunded: 0,
  audioMs: 0,
  firstAtMs: null,
  lastAtMs: null,
};

const addUse = (sum: Use, use: Use): Use => ({
  requests: sum.requests + use.requests,
  characters: sum.characters + use.characters,
  credits: sum.credits + use.credits,
  refunded: sum.refunded + use.refunded,
  audioMs: sum.audioMs + use.audioMs,
  firstAtMs: earliest(sum.firstAtMs, use.firstAtMs),
  lastAtMs: latest(sum.lastAtMs, use.lastAtMs),
});

/** Throws as `StoreDriver.readUsage` does. */
export const readUsage = async (driver: StoreDriver, period: UsagePeriod): Promise<AccountUse[]> =>
  (await driver.readUsage(period)).map(({ account, keys }) => ({
    account: account.name,
    metered: account.metered,
    balance: account.balance,
    ...keys.map(({ use }) => use).reduce(addUse, unused),
    keys: keys.map(({ prefix, revoked, use }) => ({ prefix, revoked, ...use })),
  }));
