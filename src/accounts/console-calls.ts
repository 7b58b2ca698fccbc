/** What the console asks of accounts: runs on the administration thread, and speaks in terms that cross threads. */
import { randomUUID } from 'node:crypto';
import { Buckets } from '../buckets.js';
import type { Bounds } from '../limits.js';
import { monotonicMs } from '../monotonic.js';
import type { StorePlace } from '../store/driver.js';
import type { StoreDriver, StoreAdministration, StoreFault, UsageQuestion } from '../store/store.js';
import {
  AdministrationError,
  CHECK_FIRST,
  conflict,
  StoreError,
  type KeyProperties,
  type Objection,
} from '../store/store.js';
import type { SpeakingDefaults } from '../api/speech-settings.js';
import type { ListedAccount, ListedKey, StoreView } from '../store/store.js';
import type { ActFilter } from '../store/people.js';
import type { LexiconEntry } from '../text/lexicon.js';
import { Access, type AccessBounds, type Credentials, type LinkCredentials } from './access.js';
import { Administration } from './administration.js';
import type { Installed } from './checks.js';
import { phrases } from './admission.js';
import { record, refuseMember } from './audit.js';
import { Overview, type NamesQuestion } from './overview.js';
import { Passwords } from './passwords.js';
import { Sessions, type SessionBounds } from './sessions.js';
import { findAccount } from './targets.js';
import type { Alert, RefusedCharacters } from './alerts.js';
import { after, dueOf, textOf, type Webhook, type WebhookBounds, type Webhooks } from './webhooks.js';

const AUDIT_PAGE_ROWS = 100;
/** Accounts of which it is known how often they changed or tested their webhook. */
const COUNTED_ACCOUNTS = 10_000;

/** @throws {AdministrationError} the account has done it too often */
const take = (buckets: Buckets, accountId: number, what: string): void => {
  const seconds = Math.ceil(buckets.waitMs(String(accountId)) / 1_000);
  if (seconds > 0) {
    const when = seconds === 1 ? '1 second' : `${seconds} seconds`;
    throw new AdministrationError(`${what}. Try again in ${when}`, 'tooManyAttempts');
  }
  buckets.take(String(accountId));
};

export interface ConsoleBounds extends AccessBounds, SessionBounds, WebhookBounds {
  readonly passwordsWaitingMax: number;
}

/** `workerData` of the administration thread. */
export interface AdministrationData {
  readonly store: StorePlace;
  /** `WEBHOOK_ALLOW` */
  readonly webhookAllow: readonly string[];
  readonly bounds: Bounds;
}

const accountView = ({ deletedAtMs: _, ...view }: ListedAccount) => view;

const keyView = ({ account: _, ...view }: ListedKey) => view;

/** Who acts: a session, by the hash of its token. */
interface By {
  readonly tokenHash: string;
}
interface OfAccount {
  readonly accountId: number;
}
interface OfKey {
  readonly keyId: number;
}

type Act = (administration: Administration) => Promise<unknown>;

/** A word for the lexicon of an account. */
export interface AccountWord {
  readonly word: string;
  /** Another spelling, or phonemes between slashes. */
  readonly spoken: string;
}

/** A word that an account does not have yet. */
export interface Addition {
  readonly entry: LexiconEntry;
  /** The file has another form of it. */
  readonly isChange: boolean;
  readonly write: () => void;
}

export interface Removal {
  readonly entry: LexiconEntry;
  /** It was one line. */
  readonly isWhole: boolean;
  readonly write: () => void;
}

/** What was added to the lexicon of an account, or removed from it. */
export type ChangedWord<Change> = Omit<Change, 'write'> & { readonly account: string };

/** The words of accounts, in files. */
export interface AccountWords {
  /** @returns `null` if it is there already. @throws {AdministrationError} */
  addition(account: string, entry: AccountWord): Addition | null;
  /** @returns `null` if it is not there */
  removal(account: string, word: string): Removal | null;
  /** Those that users keep in the console. */
  list(account: string): readonly LexiconEntry[];
  /** All of the account. */
  remove(account: string): void;
}

/** The calls over one open store, by name. Each takes what the page sent, and who sent it. */
const callsOver = (
  store: StoreAdministration,
  bounds: ConsoleBounds,
  words: AccountWords,
  webhooks: Webhooks,
  nowMs: () => number,
) => {
  const sessions = new Sessions(store, bounds, nowMs);
  const passwords = new Passwords(bounds.passwordsWaitingMax);
  const access = new Access({ store, sessions, passwords, bounds, nowMs });
  const userBy = (by: By) => (view: StoreView) => sessions.userOf(view, by.tokenHash);
  const actAs = (by: By) => new Administration(store, { actor: userBy(by), nowMs });
  const viewAs = (by: By) => new Overview(store, userBy(by), nowMs);
  /** An act and its answer in one transaction: a fault between two would say of an act that is done that it failed. */
  const actAndView = <T>(
    by: By,
    work: (administration: Administration, view: StoreView) => Promise<T>,
  ): Promise<T> =>
    store.transact((transaction) => {
      const within: StoreAdministration = {
        transact: (part) => part(transaction),
        read: (part) => part(transaction),
        close: () => undefined,
      };
      return work(new Administration(within, { actor: userBy(by), nowMs }), transaction);
    });
  // What is summed up for a view is read before the act: the ledger waits for the act, and its history can be long.
  const actOnAccount = async (by: By, { accountId }: OfAccount, act: Act) => {
    const before = await viewAs(by).account(accountId);
    const account = await actAndView(by, async (administration, view) => {
      await act(administration);
      return view.findAccount({ accountId });
    });
    return accountView({ ...before, ...account });
  };
  const actOnKey = async (by: By, { keyId }: OfKey, act: Act) => {
    const before = await viewAs(by).key(keyId);
    const [key] = await actAndView(by, async (administration, view) => {
      await act(administration);
      return view.findKeys({ keyIds: [keyId] });
    });
    return keyView({ ...before, ...key });
  };

  /** Of what changes nothing else in the store. */
  const recordAct = (by: By, action: string, subject: string, details = '') =>
    store.transact(async (transaction) => {
      const actor = await userBy(by)(transaction);
      await record(transaction, actor, { atMs: nowMs(), action, subject, details });
    });

  const changeWord = async <Change extends Addition | Removal>(
    by: By,
    accountId: number,
    action: string,
    details: string,
    changeOf: (account: string) => Change | null,
  ): Promise<ChangedWord<Change> | null> => {
    const changed = await store.transact(async (transaction) => {
      const actor = await userBy(by)(transaction);
      const { name: account } = await findAccount(transaction, actor, { accountId });
      const change = changeOf(account);
      if (change === null) return null;
      await record(transaction, actor, { atMs: nowMs(), action, subject: account, details });
      return { account, ...change };
    });
    if (changed === null) return null;
    // After the record: no word changes that the audit table lacks.
    const { write, ...rest } = changed;
    write();
    return rest;
  };

  const accountOf = (by: By, { accountId }: OfAccount) =>
    store.read(async (view) => findAccount(view, await userBy(by)(view), { accountId }));
  const overviewOfAll = new Overview(store, () => ({ name: 'service', accountId: null }), nowMs);

  const buckets = (atOnceMax: number, everyMs: number): Buckets =>
    new Buckets({ atOnceMax, everyMs, countedMax: COUNTED_ACCOUNTS, clock: monotonicMs });
  const webhookTests = buckets(1, bounds.webhookTestMs);
  const webhookChanges = buckets(bounds.webhookChangesMax, bounds.webhookChangeMs);

  /** Accounts whose webhook is being called: one message at a time. */
  const called = new Set<number>();
  let testing = 0;
  const sending = async <T>(accountId: number, send: () => Promise<T>): Promise<T> => {
    called.add(accountId);
    try {
      return await send();
    } finally {
      called.delete(accountId);
    }
  };

  const noteSent = (
    { accountId, account }: Pick<Alert, 'accountId' | 'account'>,
    url: string,
    change: (webhook: Webhook) => Webhook,
  ): void => {
    const now = webhooks.read(accountId, account);
    // A user may have changed it meanwhile.
    if (now?.url === url) webhooks.write(accountId, change(now));
  };

  /** Sends what is due of the alerts of one account. */
  const sendAlertsOf = async (accountId: number, alerts: readonly Alert[]): Promise<void> => {
    for (const alert of alerts) {
      const webhook = webhooks.read(accountId, alert.account);
      const due = webhook && dueOf(webhook, alert.cause, nowMs(), randomUUID);
      if (webhook === null || due === null || called.has(accountId)) continue;
      const message = { type: alert.cause, ...alert, text: textOf(alert) };
      const note = (isDelivered: boolean, lastResult: string): void =>
        noteSent(alert, webhook.url, (now) => ({
          ...now,
          deliveries: { ...now.deliveries, [alert.cause]: after(due, isDelivered, nowMs(), bounds) },
          ...{ lastAtMs: nowMs(), lastResult },
        }));
      // Before it is sent: if no attempt can be noted, it would be sent again and again.
      note(false, 'no answer yet');
      const { isDelivered, result } = await sending(accountId, () => webhooks.send(webhook, due.id, message));
      note(isDelivered, result);
    }
  };

  return {
    claimed: () => access.claimed(),
    claimLink: () => access.makeLink('service', true),
    claim: (question: LinkCredentials, address: string) => access.claim(question, address),
    signIn: (question: Credentials, address: string, isStranger: boolean) =>
      access.signIn(question, address, isStranger),
    invitation: ({ token }: { readonly token: string }) => access.invitation(token),
    acceptInvitation: (question: LinkCredentials, address: string) =>
      access.acceptInvitation(question, address),
    device: (name: string) => access.device(name),
    session: (hash: string) => sessions.session(hash),
    lastSessions: (sessionsMax: number) => store.read(async (view) => view.listSessions(sessionsMax)),
    liveSessions: (hashes: readonly string[]) => sessions.liveSessions(hashes),
    signOut: (hash: string, everywhere: boolean) => sessions.signOut(hash, everywhere),
    tokens: ({ tokenHash }: By) => sessions.tokens(tokenHash),
    createToken: ({ tokenHash }: By, { name, days }: { readonly name: string; readonly days: number }) =>
      sessions.makeToken(tokenHash, name, days),
    revokeToken: async ({ tokenHash }: By, { name }: { readonly name: string }) => {
      await sessions.revokeToken(tokenHash, name);
      return {};
    },
    changePassword: (
      hash: string,
      { current, password }: { readonly current: string; readonly password: string },
    ) => access.changePassword(hash, current, password),
    invite: ({ tokenHash }: By, { accountId }: { readonly accountId: number | null }) =>
      access.invite(tokenHash, accountId),
    invitations: ({ tokenHash }: By, { accountId }: { readonly accountId: number | null }) =>
      access.invitations(tokenHash, accountId),
    withdrawInvitations: async ({ tokenHash }: By, { accountId }: { readonly accountId: number | null }) => {
      await access.withdrawInvitations(tokenHash, accountId);
      return {};
    },
    users: ({ tokenHash }: By, { accountId }: { readonly accountId: number | null }) =>
      access.users(tokenHash, accountId),
    removeUser: async ({ tokenHash }: By, removed: { readonly userId: number }) => {
      await access.removeUser(tokenHash, removed.userId);
      return {};
    },

    accounts: async (by: By) => (await viewAs(by).accounts()).map(accountView),
    account: async (by: By, { accountId }: OfAccount) => accountView(await viewAs(by).account(accountId)),
    createAccount: (by: By, { name, credits }: { readonly name: string; readonly credits: number | null }) =>
      actAndView(by, async (administration, view) => {
        const [account] = await view.listAccounts(await administration.createAccount(name, credits), nowMs());
        return accountView(account!);
      }),
    credit: (by: By, { accountId, credits }: OfAccount & { readonly credits: number }) =>
      actOnAccount(by, { accountId }, (administration) => administration.credit({ accountId }, credits)),
    meterAccount: (
      by: By,
      { accountId, metered, credits }: OfAccount & { readonly metered: boolean; readonly credits: number },
    ) =>
      actOnAccount(by, { accountId }, (administration) =>
        administration.meter({ accountId }, metered, credits),
      ),
    changeAccount: (
      by: By,
      { accountId, changes }: OfAccount & { readonly changes: Partial<SpeakingDefaults> },
      installed: Installed,
    ) =>
      actOnAccount(by, { accountId }, (administration) =>
        administration.changeAccount({ accountId }, changes, installed),
      ),
    suspendAccount: (by: By, { accountId, suspended }: OfAccount & { readonly suspended: boolean }) =>
      actOnAccount(by, { accountId }, (administration) =>
        administration[suspended ? 'suspend' : 'resume']({ accountId }),
      ),
    deleteAccount: async (by: By, { accountId }: OfAccount) => {
      const { name } = await accountOf(by, { accountId });
      await actAs(by).deleteAccount({ accountId });
      // A new account may get the name.
      words.remove(name);
      webhooks.write(accountId, null);
      return {};
    },

    key: async (by: By, { keyId }: OfKey) => keyView(await viewAs(by).key(keyId)),
    keys: async (by: By, { accountId }: OfAccount) => (await viewAs(by).keysOf(accountId)).map(keyView),
    createKey: (
      by: By,
      { accountId, properties }: OfAccount & { readonly properties: Partial<KeyProperties> },
      installed: Installed,
    ) =>
      actAndView(by, async (administration, view) => {
        const { key, keyId } = await administration.createKeyOf(accountId, properties, installed);
        const [listed] = await view.listKeys({ keyId });
        return { key, view: keyView(listed!) };
      }),
    changeKey: (
      by: By,
      { keyId, changes }: OfKey & { readonly changes: Partial<KeyProperties> },
      installed: Installed,
    ) => actOnKey(by, { keyId }, (administration) => administration.change({ keyId }, changes, installed)),
    revokeKey: (by: By, { keyId }: OfKey) =>
      actOnKey(by, { keyId }, (administration) => administration.revoke({ keyId })),
    playgroundKey: async (by: By, { accountId }: OfAccount) =>
      (await actAs(by).playgroundKey({ accountId })).keyId,

    words: (by: By, { accountId }: OfAccount) =>
      store.read(async (view) => {
        const { name } = await findAccount(view, await userBy(by)(view), { accountId });
        return { account: name, own: words.list(name) };
      }),
    /** @returns `null` if the word is there already */
    addWord: (by: By, { accountId, word, spoken }: OfAccount & AccountWord) =>
      changeWord(by, accountId, 'lexicon.add', `${word} = ${spoken}`, (name) =>
        words.addition(name, { word, spoken }),
      ),
    /** @returns `null` if the word is not there */
    removeWord: (by: By, { accountId, word }: OfAccount & Pick<AccountWord, 'word'>) =>
      changeWord(by, accountId, 'lexicon.remove', word, (name) => words.removal(name, word)),
    alerts: (
      by: By,
      { accountId, refused }: { readonly accountId: number | null; readonly refused: RefusedCharacters },
    ) => viewAs(by).alerts(accountId, refused),
    webhook: async (by: By, question: OfAccount) => {
      const { name } = await accountOf(by, question);
      const {
        url = null,
        lastAtMs = null,
        lastResult = null,
      } = webhooks.read(question.accountId, name) ?? {};
      return { url, lastAtMs, lastResult };
    },
    setWebhook: async (by: By, { accountId, url }: OfAccount & { readonly url: string | null }) => {
      const secret = url === null ? null : webhooks.check(url);
      const account = await store.transact(async (transaction) => {
        const actor = await userBy(by)(transaction);
        const { name: subject } = await findAccount(transaction, actor, { accountId });
        take(webhookChanges, accountId, 'The webhook was changed too often');
        // Without its path, which may have a secret.
        const details = url === null ? 'none' : new URL(url).origin;
        await record(transaction, actor, { atMs: nowMs(), action: 'account.webhook', subject, details });
        return subject;
      });
      // Another address is no reason for more attempts.
      const { deliveries = {} } = webhooks.read(accountId, account) ?? {};
      const state = { account, deliveries, lastAtMs: null, lastResult: null };
      webhooks.write(accountId, url === null || secret === null ? null : { url, secret, ...state });
      return { secret: secret === null ? null : `whsec_${secret}` };
    },
    testWebhook: async (by: By, question: OfAccount) => {
      const { accountId, name: account } = await accountOf(by, question);
      const webhook = webhooks.read(accountId, account);
      if (webhook === null) throw conflict('The account has no webhook: set one');
      if (called.has(accountId) || testing >= bounds.webhooksAtOnceMax / 2)
        throw new AdministrationError(
          'Other messages are being sent. Try again in 10 seconds',
          'unavailable',
        );
      take(webhookTests, accountId, `A test may be sent every ${bounds.webhookTestMs / 1_000} seconds`);
      const text = `A test of the webhook of ${account}.`;
      testing++;
      const { isDelivered, result } = await sending(accountId, async () => {
        await recordAct(by, 'account.testWebhook', account, new URL(webhook.url).origin);
        return webhooks.send(webhook, randomUUID(), { type: 'test', accountId, account, text });
      }).finally(() => testing--);
      noteSent({ accountId, account }, webhook.url, (now) => ({
        ...now,
        lastAtMs: nowMs(),
        lastResult: result,
      }));
      return { isDelivered, result };
    },
    /** Makes the attempts that are due, of all accounts with a webhook on this host. */
    sendAlerts: async (refused: RefusedCharacters): Promise<void> => {
      const waiting = [...webhooks.ids()];
      if (waiting.length === 0) return;
      const alerts = Map.groupBy(await overviewOfAll.alerts(null, refused), ({ accountId }) => accountId);
      const faults: unknown[] = [];
      const work = async (): Promise<void> => {
        for (let id = waiting.pop(); id !== undefined; id = waiting.pop())
          await sendAlertsOf(id, alerts.get(id) ?? []).catch((fault: unknown) => faults.push(fault));
      };
      await Promise.all(Array.from({ length: bounds.webhooksAtOnceMax / 2 }, work));
      if (faults.length > 0) throw faults[0];
    },
    usage: (by: By, question: UsageQuestion) => viewAs(by).usage(question),
    usageFile: (by: By, question: UsageQuestion) => viewAs(by).usageFile(question),
    names: (by: By, question: NamesQuestion) => viewAs(by).names(question),
    balance: (by: By, { accountId }: OfAccount) => viewAs(by).balance(accountId),
    audit: (by: By, { beforeId, ...filter }: ActFilter & { readonly beforeId: number | null }) =>
      store.read(async (view) => {
        refuseMember(await userBy(by)(view));
        return view.listActs(beforeId, AUDIT_PAGE_ROWS, filter);
      }),
    record: recordAct,
  };
};

export type ConsoleCalls = ReturnType<typeof callsOver>;

export interface RefusedCall {
  readonly code: Objection | 'uncertain';
  readonly message: string;
  readonly field?: string;
}

export type Outcome =
  | { readonly ok: true; readonly answer: unknown }
  /** `reason` is for the log: the store cannot be used. */
  | { readonly ok: false; readonly refusal: RefusedCall; readonly reason: string | null };

/** Faults that end by themselves. */
const passing: readonly StoreFault[] = ['busy', 'held', 'unreachable'];

/** Not a fault of the store. */
const UNFIT = 'A text of this call has a character that cannot be stored, or a number of it is too large.';

const refusalOf = (error: unknown): Outcome => {
  if (error instanceof StoreError) {
    if (error.fault === 'unfit')
      return { ok: false, refusal: { code: 'badRequest', message: UNFIT }, reason: null };
    const [first = '', ...rest] = phrases[error.fault];
    const code = error.fault === 'uncertain' ? 'uncertain' : 'unavailable';
    const repair = passing.includes(error.fault) ? 'Try again in a moment.' : 'An operator must repair it.';
    const remedy = code === 'uncertain' ? CHECK_FIRST : repair;
    const message = `${first.toUpperCase()}${rest.join('')}. ${remedy}`;
    return { ok: false, refusal: { code, message }, reason: error.message };
  }
  if (!(error instanceof AdministrationError)) throw error;
  const { objection, message, field } = error;
  return {
    ok: false,
    refusal: { code: objection, message, ...(field !== null && { field }) },
    reason: null,
  };
};

/** The administration thread. It opens the store at the first call, and again after a failure. */
export class ConsoleDesk {
  readonly #driver: StoreDriver;
  readonly #bounds: ConsoleBounds;
  readonly #words: AccountWords;
  readonly #webhooks: Webhooks;
  readonly #nowMs: () => number;
  #opened: Promise<{ readonly store: StoreAdministration; readonly calls: ConsoleCalls }> | null = null;

  constructor(
    driver: StoreDriver,
    bounds: ConsoleBounds,
    words: AccountWords,
    webhooks: Webhooks,
    nowMs: () => number = Date.now,
  ) {
    this.#driver = driver;
    this.#bounds = bounds;
    this.#words = words;
    this.#webhooks = webhooks;
    this.#nowMs = nowMs;
  }

  /** @param args of the call. Rejects only for a defect */
  async run(name: keyof ConsoleCalls, args: readonly unknown[]): Promise<Outcome> {
    try {
      const opened = (this.#opened ??= this.#open());
      const { calls } = await opened.catch((error: unknown) => {
        this.#opened = null;
        throw error;
      });
      const call = calls[name] as (...args: readonly unknown[]) => Promise<unknown>;
      return { ok: true, answer: await call(...args) };
    } catch (error) {
      return refusalOf(error);
    }
  }

  /** Ends the messages to webhooks that are under way: the end of the service does not wait for their receivers. */
  stopSending(): void {
    this.#webhooks.stop();
  }

  /** Idempotent. */
  async close(): Promise<void> {
    const opened = this.#opened;
    this.#opened = null;
    await (await opened?.catch(() => null))?.store.close();
  }

  async #open() {
    const store = await this.#driver.administer(false);
    return { store, calls: callsOver(store, this.#bounds, this.#words, this.#webhooks, this.#nowMs) };
  }
}
