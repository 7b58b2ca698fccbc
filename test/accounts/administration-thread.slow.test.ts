import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import t, { type Test } from 'tap';
import { ConsoleDesk, type ConsoleCalls } from '../../src/accounts/console-calls.js';
import type { SpeakingDefaults } from '../../src/api/speech-settings.js';
import type { Webhook, Webhooks } from '../../src/accounts/webhooks.js';
import { hashToken } from '../../src/accounts/tokens.js';
import { startAdministration, type ConsoleAdministration } from '../../src/console/administration.js';
import { ConsoleRefusal } from '../../src/console/refusal.js';
import { limits, type Bounds } from '../../src/limits.js';
import { createLog } from '../../src/log.js';
import { storeAt } from '../../src/store/driver.js';
import { SqliteAdministration } from '../../src/store/sqlite/administration.js';
import { storePath } from '../../src/store/sqlite/database.js';
import { StoreError, type StoreAdministration, type StoreTransaction } from '../../src/store/store.js';
import { createKeys } from '../../scripts/operator.js';
import { recordingLog, type LogLine } from '../support/front-server.js';
import { eventually } from '../support/waiting.js';
import { noWebhooks, signedIn, wordsWith } from '../support/console-desk.js';
import { openWebhooks } from '../../workers/webhooks.js';
import { memoryFolder } from '../store/support.js';

const ADDRESS = '203.0.113.7';
const PASSWORD = 'correct horse battery staple';
/** Installed. */
const INSTALLED = { voices: ['wren', 'lark'], lexicons: ['trains'] };

const start = (
  t: Test,
  dataDir: string,
  { bounds = {}, entry }: { readonly bounds?: Partial<Bounds>; readonly entry?: URL } = {},
): ConsoleAdministration => {
  const administration = startAdministration({
    store: { dataDir, storeUrl: null },
    bounds: { ...limits, ...bounds },
    log: createLog('silent', limits),
    ...(entry !== undefined && { entry }),
  });
  t.teardown(() => administration.close());
  return administration;
};

/** A store with the account "ada", and the console claimed by "root". */
const claimed = async (t: Test, bounds: Partial<Bounds> = {}) => {
  const dataDir = memoryFolder(t);
  await createKeys(dataDir, [['ada', 500]]);
  const administration = start(t, dataDir, { bounds });
  const link = await administration.claimLink();
  const question = { token: link?.token ?? '', name: 'root', password: PASSWORD };
  const session = await administration.claim(question, ADDRESS);
  return { dataDir, administration, session, root: { tokenHash: hashToken(session.token) } };
};

const deskOver = (dataDir: string, store: StoreAdministration): ConsoleDesk =>
  new ConsoleDesk(
    { ...storeAt({ dataDir, storeUrl: null }, limits), administer: () => store },
    limits,
    wordsWith(() => null),
    noWebhooks,
  );

const refusalOf = async (call: Promise<unknown>): Promise<ConsoleRefusal> => {
  const error: unknown = await call.then(
    () => new Error('it was not refused'),
    (reason: unknown) => reason,
  );
  if (error instanceof ConsoleRefusal) return error;
  throw error;
};

t.test('a whole life in the console: claim, account, key, invitation, deletion, audit', async (t) => {
  const { administration, session, root } = await claimed(t);
  t.ok(await administration.claimed());
  t.equal(await administration.claimLink(), null, 'only the first start makes a link');
  t.match(session.user, { name: 'root', role: 'operator', accountId: null, account: null });
  t.match(await administration.session(hashToken(session.token)), { userId: session.user.userId });
  t.equal(await administration.device('ROOT'), session.device);

  const [ada] = await administration.accounts(root);
  t.match(ada, { name: 'ada', balance: 500, metered: true, keys: 1, users: 0, recentCharacters: 0 });
  const made = await administration.createAccount(root, { name: 'bell', credits: null });
  const { accountId } = made;
  t.match(made, { name: 'bell', metered: false, keys: 0 });
  t.match(await refusalOf(administration.credit(root, { accountId, credits: 9 })), { code: 'conflict' });
  const meter = (metered: boolean, credits: number) =>
    administration.meterAccount(root, { accountId, metered, credits });
  t.match(await meter(true, 4), { metered: true, balance: 4 });
  t.match(await meter(false, 0), { metered: false });
  t.match(await meter(true, 5), { metered: true, balance: 9 });
  const properties = { name: 'till', creditLimit: 5, voices: ['wren'], expiresAtMs: null };
  const { key, view } = await administration.createKey(root, { accountId, properties }, INSTALLED);
  t.match(view, { ...properties, prefix: key.slice(0, 13), revokedAtMs: null, characters: 0, spent: 0 });
  t.match(await administration.changeKey(root, { keyId: view.keyId, changes: { name: 'desk' } }, INSTALLED), {
    name: 'desk',
    creditLimit: 5,
  });
  t.strictSame(
    (await administration.keys(root, { accountId })).map(({ name }) => name),
    ['desk'],
  );
  const withVoices = (voices: readonly string[], installed: readonly string[]) =>
    administration.changeKey(root, { keyId: view.keyId, changes: { voices } }, { voices: installed });
  t.match(await withVoices(['wren', 'lark'], ['lark']), { voices: ['wren', 'lark'] }, 'it keeps what it has');
  t.match(await refusalOf(withVoices(['lark', 'nightjar'], INSTALLED.voices)), {
    ...{ code: 'badRequest', field: 'voices' },
    message: 'No voice nightjar is installed: choose from wren, lark',
  });
  const withSpeech = (changes: Partial<SpeakingDefaults>, installed = INSTALLED) =>
    administration.changeKey(root, { keyId: view.keyId, changes }, installed);
  t.match(await withSpeech({ lexiconId: 'trains', speed: 1.1 }), { lexiconId: 'trains', speed: 1.1 });
  t.match(
    await withSpeech({ lexiconId: 'trains', normalizeText: true }, { ...INSTALLED, lexicons: [] }),
    { lexiconId: 'trains', normalizeText: true, speed: 1.1 },
    'it keeps what it has',
  );
  t.match(await refusalOf(withSpeech({ lexiconId: 'planes' })), {
    ...{ code: 'badRequest', field: 'lexiconId' },
    message: 'There is no lexicon "planes": choose from trains',
  });
  t.match(
    await administration.changeAccount(root, { accountId, changes: { normalizeText: true } }, INSTALLED),
    { normalizeText: true, speed: null, lexiconId: null },
  );
  t.match(await administration.revokeKey(root, { keyId: view.keyId }), { revokedAtMs: Number });
  t.match(await administration.suspendAccount(root, { accountId, suspended: true }), {
    suspendedAtMs: Number,
  });
  t.match(await administration.suspendAccount(root, { accountId, suspended: false }), {
    suspendedAtMs: null,
  });

  const invitation = await administration.invite(root, { accountId });
  t.strictSame(await administration.invitation(invitation), { role: 'member', account: 'bell' });
  const joined = await administration.acceptInvitation(
    { token: invitation.token, name: 'Mia', password: PASSWORD },
    ADDRESS,
  );
  t.match(joined.user, { name: 'Mia', role: 'member', account: 'bell', accountId });
  const mia = { tokenHash: hashToken(joined.token) };
  t.match(await administration.users(mia, { accountId }), [{ name: 'Mia' }]);
  t.equal(await administration.playgroundKey(mia, { accountId }), view.keyId + 1);
  t.equal(await administration.playgroundKey(root, { accountId }), view.keyId + 1, 'made once');
  t.equal((await administration.keys(root, { accountId })).length, 1, 'and hidden');

  t.strictSame(await administration.deleteAccount(root, { accountId }), {});
  t.equal(await administration.session(hashToken(joined.token)), null, 'its users are gone');
  t.equal((await refusalOf(administration.account(root, { accountId }))).code, 'notFound');
  t.match(await administration.createAccount(root, { name: 'bell', credits: 1 }), { name: 'bell' });
  await administration.record(root, 'voices.reload', '');
  const acts = (await administration.audit(root, { beforeId: null })).map(({ actor, action, subject }) =>
    `${actor} ${action} ${subject}`.trim(),
  );
  t.strictSame(acts, [
    'root voices.reload',
    'root account.create bell',
    'root account.delete bell',
    'Mia playground.open bell',
    'Mia user.join Mia',
    'root user.invite a member of bell',
    'root account.resume bell',
    'root account.suspend bell',
    `root key.revoke ${key.slice(0, 13)}`,
    'root account.change bell',
    `root key.change ${key.slice(0, 13)}`,
    `root key.change ${key.slice(0, 13)}`,
    `root key.change ${key.slice(0, 13)}`,
    `root key.change ${key.slice(0, 13)}`,
    `root key.create ${key.slice(0, 13)}`,
    'root account.meter bell',
    'root account.meter bell',
    'root account.meter bell',
    'root account.create bell',
    'root console.claim root',
    'service console.link claim',
    acts.at(-2),
    'command line account.create ada',
  ]);
  t.match(acts.at(-2), /^command line key\.create svc_sk_\w{6}$/);
});

t.test('an act that waits while its session ends is refused', async (t) => {
  const { administration, root, session } = await claimed(t);
  const credentials = { name: 'root', password: PASSWORD };
  const thief = { tokenHash: hashToken((await administration.signIn(credentials, ADDRESS, true)).token) };
  const change = { current: PASSWORD, password: 'another good password' };
  const tokens: string[] = [];
  const steal = async (chain: number): Promise<unknown> => {
    for (let index = 0; index < 1_000; index++) {
      const name = `token ${chain} ${index}`;
      try {
        tokens.push((await administration.createToken(thief, { name, days: 1 })).token);
        await administration.revokeToken(thief, { name });
      } catch (error) {
        return error;
      }
    }
    return null;
  };
  const chains = [steal(1), steal(2), steal(3)];
  await administration.changePassword(hashToken(session.token), change);
  for (const end of await Promise.all(chains)) t.match(end, { code: 'signedOut' });
  t.ok(tokens.length > 0);
  for (const token of tokens) t.equal(await administration.session(hashToken(token)), null);
  t.strictSame(await administration.tokens(root), []);
  t.equal((await refusalOf(administration.invite(thief, { accountId: 1 }))).code, 'signedOut');
});

t.test('what is not allowed is refused with its reason', async (t) => {
  const { administration, root, session } = await claimed(t);
  const invitation = await administration.invite(root, { accountId: 1 });
  const credentials = { token: invitation.token, name: 'mia', password: PASSWORD };
  const { token } = await administration.acceptInvitation(credentials, ADDRESS);
  const mia = { tokenHash: hashToken(token) };
  const other = await administration.createAccount(root, { name: 'other', credits: 5 });
  const { view } = await administration.createKey(
    root,
    { accountId: other.accountId, properties: {} },
    INSTALLED,
  );
  const { accountId } = other;
  const { keyId } = view;
  const hidden = await administration.playgroundKey(root, { accountId: 1 });
  const all = { accountId: null, fromMs: 0, toMs: 1, step: 'hour' } as const;
  const refused: Record<ConsoleRefusal['code'], (() => Promise<unknown>)[]> = {
    forbidden: [
      () => administration.accounts(mia),
      () => administration.createAccount(mia, { name: 'mine', credits: null }),
      () => administration.credit(mia, { accountId: 1, credits: 5 }),
      () => administration.suspendAccount(mia, { accountId: 1, suspended: true }),
      () => administration.deleteAccount(mia, { accountId: 1 }),
      () => administration.invite(mia, { accountId: 1 }),
      () => administration.removeUser(mia, { userId: session.user.userId }),
      () => administration.audit(mia, { beforeId: null }),
      () => administration.users(mia, { accountId: null }),
      () => administration.usage(mia, all),
      () => administration.signIn({ name: 'root', password: 'wrong password' }, ADDRESS, true),
      () => administration.signIn({ name: 'nobody', password: PASSWORD }, ADDRESS, true),
      () => administration.changePassword(hashToken(session.token), { current: 'wrong', password: PASSWORD }),
    ],
    notFound: [
      () => administration.account(mia, { accountId }),
      () => administration.keys(mia, { accountId }),
      () => administration.users(mia, { accountId }),
      () => administration.createKey(mia, { accountId, properties: {} }, INSTALLED),
      () => administration.changeKey(mia, { keyId, changes: { name: 'mine' } }, INSTALLED),
      () => administration.revokeKey(mia, { keyId }),
      () => administration.usage(mia, { ...all, accountId }),
      () => administration.balance(mia, { accountId }),
      () => administration.playgroundKey(mia, { accountId }),
      () => administration.changeKey(root, { keyId: hidden, changes: { name: 'mine' } }, INSTALLED),
      () => administration.revokeKey(root, { keyId: hidden }),
      () => administration.revokeKey(root, { keyId: 99 }),
      () => administration.account(root, { accountId: 99 }),
      () => administration.removeUser(root, { userId: 99 }),
      () => administration.invitation({ token: 'forged' }),
      () => administration.acceptInvitation(credentials, ADDRESS),
      () => administration.claim({ token: 'forged', name: 'eve', password: PASSWORD }, ADDRESS),
    ],
    conflict: [
      () => administration.createAccount(root, { name: 'other', credits: null }),
      () => administration.createAccount(root, { name: 'OTHER', credits: null }),
      () => administration.removeUser(root, { userId: session.user.userId }),
    ],
    badRequest: [
      () => administration.createKey(root, { accountId, properties: { expiresAtMs: 5 } }, INSTALLED),
      () => administration.createKey(root, { accountId, properties: { voices: ['nightjar'] } }, INSTALLED),
      () => administration.createAccount(root, { name: ' a', credits: null }),
    ],
    signedOut: [() => administration.accounts({ tokenHash: hashToken('unknown') })],
    tooManyAttempts: [],
    unavailable: [],
    uncertain: [],
    failed: [],
  };
  for (const [code, calls] of Object.entries(refused))
    for (const [index, call] of calls.entries())
      t.equal((await refusalOf(call())).code, code, `${code} ${index}`);
  t.match(await administration.keys(root, { accountId }), [{ revokedAtMs: null, name: '' }]);
  const field = await refusalOf(administration.createAccount(root, { name: 'other', credits: null }));
  t.equal(field.field, 'name');
});

t.test('an act that is done is answered, whatever happens to the store then', async (t) => {
  const dataDir = memoryFolder(t);
  await createKeys(dataDir, [['ada', 500]]);
  const store = new SqliteAdministration(dataDir, limits);
  t.teardown(() => store.close());
  let isThere = true;
  const leaving: StoreAdministration = {
    transact: (work) => store.transact(work).finally(() => (isThere = false)),
    read: (work) =>
      isThere ? store.read(work) : Promise.reject(new StoreError('missing', 'it was moved away')),
    close: () => undefined,
  };
  const desk = deskOver(dataDir, leaving);
  const by = await signedIn(store);
  const made = await desk.run('createKey', [by, { accountId: 1, properties: { name: 'till' } }, INSTALLED]);
  t.match(made, { ok: true, answer: { key: /^svc_sk_/, view: { name: 'till' } } });
  isThere = true;
  t.match(await desk.run('credit', [by, { accountId: 1, credits: 7 }]), { answer: { balance: 507 } });
  t.match(await desk.run('account', [by, { accountId: 1 }]), { ok: false, refusal: { code: 'unavailable' } });
});

t.test('an act adds up no history while the ledger waits for it', async (t) => {
  const dataDir = memoryFolder(t);
  await createKeys(dataDir, [['ada', 500]]);
  const store = new SqliteAdministration(dataDir, limits);
  t.teardown(() => store.close());
  const summing = ['listKeys', 'listAccounts', 'readUsageRows', 'readBalanceChanges'];
  const withoutSums = (transaction: StoreTransaction): StoreTransaction =>
    new Proxy(transaction, {
      get: (target, name) => {
        if (summing.includes(String(name))) throw new Error(`${String(name)} under the lock`);
        return (Reflect.get(target, name) as () => unknown).bind(target);
      },
    });
  const quick: StoreAdministration = {
    transact: (work) => store.transact((transaction) => work(withoutSums(transaction))),
    read: (work) => store.read(work),
    close: () => undefined,
  };
  const desk = deskOver(dataDir, quick);
  const by = await signedIn(store);
  const ofAccount = { accountId: 1 };
  const speaking = { ...ofAccount, changes: { speed: 1.1 } };
  const ofKey = { keyId: 1 };
  const acts: readonly (readonly [keyof ConsoleCalls, object, object])[] = [
    ['changeKey', { ...ofKey, changes: { name: 'till' } }, { name: 'till', characters: 0, keyId: 1 }],
    ['revokeKey', ofKey, { revokedAtMs: Number, name: 'till', lastUsedAtMs: null }],
    ['credit', { ...ofAccount, credits: 7 }, { balance: 507, keys: 0, recentCharacters: 0 }],
    ['meterAccount', { ...ofAccount, metered: false, credits: 0 }, { metered: false, users: 0 }],
    ['changeAccount', speaking, { speed: 1.1, createdAtMs: Number }],
    ['suspendAccount', { ...ofAccount, suspended: true }, { suspendedAtMs: Number, name: 'ada' }],
    ['deleteAccount', ofAccount, {}],
  ];
  for (const [name, question, answer] of acts)
    t.match(await desk.run(name, [by, question, INSTALLED]), { ok: true, answer }, name);
});

t.test('a word is written only when its record is committed', async (t) => {
  const dataDir = memoryFolder(t);
  await createKeys(dataDir, [['ada', 500]]);
  const store = new SqliteAdministration(dataDir, limits);
  t.teardown(() => store.close());
  let commits = false;
  const failing: StoreAdministration = {
    transact: (work) =>
      store.transact(async (transaction) => {
        const result = await work(transaction);
        if (!commits) throw new StoreError('missing', 'the commit failed');
        return result;
      }),
    read: (work) => store.read(work),
    close: () => undefined,
  };
  let written = 0;
  const entry = {
    written: 'kettle',
    caseRule: 'smart',
    language: null,
    form: { spelling: 'teapot' },
  } as const;
  const driver = { ...storeAt({ dataDir, storeUrl: null }, limits), administer: () => failing };
  const desk = new ConsoleDesk(
    driver,
    limits,
    wordsWith(() => ({ entry, isChange: false, write: () => written++ })),
    noWebhooks,
  );
  const by = await signedIn(store);
  const question = { accountId: 1, word: 'kettle', spoken: 'teapot' };
  t.match(await desk.run('addWord', [by, question]), { ok: false });
  t.equal(written, 0);
  commits = true;
  t.match(await desk.run('addWord', [by, question]), {
    ok: true,
    answer: { account: 'ada', entry },
  });
  t.equal(written, 1);
});

t.test('another address of a webhook gets no more attempts than the one before', async (t) => {
  const dataDir = memoryFolder(t);
  await createKeys(dataDir, [['ada', 500]]);
  const webhooks = openWebhooks({ folder: dataDir, allow: [], bounds: limits });
  const words = wordsWith(() => null);
  const desk = new ConsoleDesk(storeAt({ dataDir, storeUrl: null }, limits), limits, words, webhooks);
  t.teardown(() => desk.close());
  const store = new SqliteAdministration(dataDir, limits);
  t.teardown(() => store.close());
  const by = await signedIn(store);
  const deliveries = { 'credit.low': { id: 'one', firstAtMs: 1, attempts: 5, nextAtMs: null } };
  const url = 'https://one.example/';
  webhooks.write(1, { ...{ url, secret: 'AAAA', deliveries }, lastAtMs: 1, lastResult: 'answered 500' });
  const set = await desk.run('setWebhook', [by, { accountId: 1, url: 'https://two.example/' }]);
  t.match(set, { ok: true, answer: { secret: /^whsec_/ } });
  t.match(webhooks.read(1, 'ada'), { url: 'https://two.example/', deliveries, lastAtMs: null });
  t.equal(webhooks.read(1, 'bob'), null, 'after a restore its id may belong to another account');
  writeFileSync(join(dataDir, '1.json'), '{"url":');
  t.match(await desk.run('webhook', [by, { accountId: 1 }]), { ok: true, answer: { url: null } });
  t.match(await desk.run('setWebhook', [by, { accountId: 1, url }]), { ok: true }, 'damaged: set again');
});

t.test('an alert that cannot be noted is not sent, and holds up no other account', async (t) => {
  const dataDir = memoryFolder(t);
  const names = ['ada', 'bob', 'cleo', 'dan', 'eve'];
  await createKeys(
    dataDir,
    names.map((name) => [name, 0]),
  );
  const webhook = { url: 'https://one.example/', secret: 'AAAA', deliveries: {} };
  const kept = new Map<number, Webhook>(
    names.map((_, place) => [place + 1, { ...webhook, lastAtMs: null, lastResult: null }]),
  );
  const sent: string[] = [];
  const webhooks: Webhooks = {
    ...noWebhooks,
    ids: () => [...kept.keys()],
    read: (accountId) => kept.get(accountId) ?? null,
    write: (accountId, written) => {
      if (accountId !== 1) throw new Error('the disk is full');
      kept.set(accountId, written!);
    },
    send: (_, __, { account }) => {
      sent.push(account);
      return Promise.resolve({ isDelivered: true, result: 'answered 200' });
    },
  };
  const words = wordsWith(() => null);
  const desk = new ConsoleDesk(storeAt({ dataDir, storeUrl: null }, limits), limits, words, webhooks);
  t.teardown(() => desk.close());
  for (let check = 0; check < 2; check++) await desk.run('sendAlerts', [new Map()]).catch(() => undefined);
  t.strictSame(sent, ['ada']);
  t.equal(kept.get(1)?.lastResult, 'answered 200');
});

t.test('a thread that dies fails the calls under way, and the next one starts another', async (t) => {
  const dataDir = memoryFolder(t);
  await createKeys(dataDir, [['ada', 500]]);
  const dying = new URL('../support/dying-administration.js', import.meta.url);
  const administration = start(t, dataDir, { entry: dying, bounds: { administrationRestartMs: 2_000 } });
  const [one, two] = [administration.claimed(), administration.claimed()];
  for (const call of [one, two])
    t.match(await refusalOf(call), { code: 'uncertain', message: /interrupted/ });
  t.equal(administration.restarts, 1);
  t.match(await refusalOf(administration.claimed()), { code: 'unavailable', message: /starting again/ });
  await eventually(async () => /interrupted/.test((await refusalOf(administration.claimed())).message));
  t.equal(administration.restarts, 2);
});

t.test('calls beyond the bound are refused at once, and a close ends the others well', async (t) => {
  const { administration, root } = await claimed(t, { administrationCallsMax: 4 });
  const calls = Array.from({ length: 4 }, () => administration.accounts(root));
  t.match(await refusalOf(administration.accounts(root)), {
    code: 'unavailable',
    message: /Too many calls/,
  });
  const [first, second] = [administration.close(), administration.close()];
  t.equal((await Promise.all(calls)).length, 4);
  await Promise.all([first, second]);
  t.match(await refusalOf(administration.claimed()), { code: 'unavailable', message: /stopping/ });
});

t.test('while the store is missing or locked, calls say so, and change nothing', async (t) => {
  const missing = memoryFolder(t);
  const lines: LogLine[] = [];
  const administration = startAdministration({
    store: { dataDir: missing, storeUrl: null },
    bounds: limits,
    log: recordingLog(lines),
  });
  t.teardown(() => administration.close());
  for (let count = 0; count < 2; count += 1)
    t.match(await refusalOf(administration.claimed()), {
      code: 'unavailable',
      message: 'The store is not where it was. An operator must repair it.',
    });
  t.equal(lines.length, 1, 'one line of the log for each fault');
  t.notOk(existsSync(storePath(missing)), 'it never makes one');
  await createKeys(missing, [['ada', 500]]);
  t.equal(await administration.claimed(), false);

  const { dataDir, administration: other, root } = await claimed(t, { storeBusyMsMax: 50 });
  const lock = new DatabaseSync(storePath(dataDir), { timeout: 10_000 });
  lock.exec('BEGIN IMMEDIATE');
  const credit = other.credit(root, { accountId: 1, credits: 5 });
  t.match(await refusalOf(credit), { code: 'unavailable', message: /locked by another process/ });
  t.match(await other.account(root, { accountId: 1 }), { balance: 500 }, 'reading goes on');
  lock.exec('ROLLBACK');
  lock.close();
  t.match(await other.credit(root, { accountId: 1, credits: 5 }), { balance: 505 });
});
