/**
 * A member, or somebody without a session, sends as many calls as possible. This must not harm other users or the service. Each
 * role then calls each route of the console, and reaches only what it is allowed.
 */
import t from 'tap';
import { callNames, whoOf } from '../../src/console/call-rules.js';
import type { CallName, Question } from '../../src/console/contract.js';
import { freePort, SCRIPTED, startService, until } from '../support/service.js';
import { ConsoleClient, PASSWORD } from '../support/console-client.js';

type Questions = { readonly [N in CallName]: Question<N> };

const KEYS_MAX = 5;
const consolePort = await freePort();
const service = await startService(
  t,
  {
    CONSOLE_PORT: String(consolePort),
    BROWSER_PORT: '0',
    // As behind a proxy, which says where clients are.
    CONSOLE_ORIGIN: `http://127.0.0.1:${consolePort}`,
    KEYS_PER_ACCOUNT: String(KEYS_MAX),
  },
  SCRIPTED,
);
const operator = await ConsoleClient.claim(service);
const withAccount = (name: string) => operator.call('createAccount', { name, credits: 1_000_000 });
// One for most tests: invitations of an address have a rate.
const { accountId } = await withAccount('account');
const member = await operator.invited(accountId, 'member');

t.test('a member creates keys up to a bound, also by revoking them; other accounts go on', async (t) => {
  const { accountId: many } = await withAccount('of many keys');
  const maker = await operator.invited(many, 'maker');
  const question = { accountId: many, properties: {} };
  const made = [];
  for (let i = 0; i < KEYS_MAX; i++) made.push(await maker.call('createKey', question));
  await t.rejects(maker.call('createKey', question), /409 conflict: The account has 5 keys, the most/);
  for (const { view } of made.slice(1)) await maker.call('revokeKey', { keyId: view.keyId });
  await t.rejects(maker.call('createKey', question), /409 conflict: The account got 5 keys in 24 hours/);
  await t.rejects(operator.call('createKey', question), /in 24 hours/, 'whoever asks');
  const { key } = await member.call('createKey', { ...question, accountId });
  for (const speaking of [key, made[0]?.key]) {
    const answer = await service.post('/v1/tts', { text: 'Hi.', voice: 'wren' }, { key: speaking ?? '' });
    t.equal(answer.status, 200);
    await answer.arrayBuffer();
  }
});

t.test('a member changes its own limits, and no limit that an operator set', async (t) => {
  const expiresAtMs = Date.now() + 86_400_000;
  const properties = { creditLimit: 10, voices: ['wren'], expiresAtMs };
  const own = await member.call('createKey', { accountId, properties });
  const given = await operator.call('createKey', { accountId, properties });
  const lifted = { creditLimit: null, voices: null, expiresAtMs: null };
  t.match(await member.call('changeKey', { keyId: own.view.keyId, changes: lifted }), lifted);
  for (const changes of [
    { creditLimit: null },
    { creditLimit: 1_000 },
    { voices: null },
    { expiresAtMs: null },
    { expiresAtMs: expiresAtMs + 1 },
  ])
    await t.rejects(member.call('changeKey', { keyId: given.view.keyId, changes }), /403 forbidden/);
  const changes = { name: 'till', speed: 1.2 };
  t.match(await member.call('changeKey', { keyId: given.view.keyId, changes }), {
    ...properties,
    ...changes,
  });
  await operator.call('changeKey', { keyId: own.view.keyId, changes: { creditLimit: 7 } });
  await t.rejects(
    member.call('changeKey', { keyId: own.view.keyId, changes: { creditLimit: 8 } }),
    /An operator set this/,
  );
  await operator.call('changeKey', { keyId: own.view.keyId, changes: { creditLimit: null } });
  t.match(await member.call('changeKey', { keyId: own.view.keyId, changes: { creditLimit: 8 } }), {
    creditLimit: 8,
  });
});

const long = 'The train was late again, so we walked along the river and talked about the summer. '.repeat(
  600,
);

for (const end of ['revoked', 'suspended', 'deleted'] as const)
  t.test(`texts on HTTP of an account that is ${end} end at once`, async (t) => {
    const { accountId } = await withAccount(end);
    const { key, view } = await operator.call('createKey', { accountId, properties: {} });
    const body = { text: long, voice: 'wren' };
    const stream = await service.post('/v1/tts/stream', body, { key });
    const reader = stream.body!.getReader();
    await reader.read();
    const whole = service.post('/v1/tts', body, { key });
    await until(async () => (await service.openContexts()) === 2);
    const startMs = performance.now();
    if (end === 'revoked') await operator.call('revokeKey', { keyId: view.keyId });
    else if (end === 'suspended') await operator.call('suspendAccount', { accountId, suspended: true });
    else await operator.call('deleteAccount', { accountId });
    const cut = (async () => {
      while (!(await reader.read()).done);
    })();
    await t.rejects(cut, 'the stream is cut short');
    const answer = await whole;
    t.equal(answer.status, 401);
    t.strictSame(await answer.json(), { error: 'INVALID_API_KEY' });
    const tookMs = performance.now() - startMs;
    t.comment(`${Math.round(tookMs)} ms`);
    t.ok(tookMs < 10_000, 'long before the texts are spoken');
    await until(async () => (await service.openContexts()) === 0);
  });

t.test('guesses from 120 addresses do not keep the owner with the right password out', async (t) => {
  const signIn = async (address: string, password: string): Promise<number> => {
    const headers = { 'x-forwarded-for': address };
    const browser = new ConsoleClient(consolePort);
    return (await browser.post('/api/signIn', { name: 'member', password }, { headers })).status;
  };
  const guess = (i: number) => signIn(`198.51.100.${i}`, 'not the password');
  const guesses = await Promise.all(Array.from({ length: 120 }, (_, i) => guess(i)));
  t.notOk(guesses.includes(200));
  t.equal(await signIn('203.0.113.9', PASSWORD), 200);
});

t.test(
  'guesses that fill the queue of passwords do not keep out a browser that the user has used',
  async (t) => {
    const owner = { name: 'member', password: PASSWORD };
    let guesses = 0;
    const guess = async (): Promise<number> => {
      const n = (guesses += 1);
      const headers = { 'x-forwarded-for': `198.51.${n >> 8}.${n & 255}` };
      const credentials = { name: `user ${n}`, password: 'not the password' };
      return (await new ConsoleClient(consolePort).post('/api/signIn', credentials, { headers })).status;
    };
    for (let i = 0; i < 2; i++) {
      // On a busy machine passwords may be hashed as fast as this process sends them.
      let flood: Promise<number>[] = [];
      let isFull = false;
      while (!isFull) {
        flood = Array.from({ length: 120 }, guess);
        isFull = await Promise.any(
          flood.map(async (status) => (await status) === 503 || Promise.reject(new Error('not yet'))),
        ).catch(() => false);
      }
      const headers = { 'x-forwarded-for': `203.0.113.${i}` };
      t.equal((await member.post('/api/signIn', owner, { headers })).status, 200);
      t.notOk((await Promise.all(flood)).includes(200));
    }
  },
);

t.test('the calls of a member, however long, delay those of others by one of them', async (t) => {
  const text = 'On 3/4/2024 I paid $1,234.56 for 12 kg. '.repeat(60);
  const gone = new AbortController();
  let answered = 0;
  const said = Array.from({ length: 10 }, async () => {
    const question = { accountId, voice: 'wren', text, normalize: true };
    const answer = await member.post('/api/said', question, { signal: gone.signal });
    if (answer.status === 200) answered++;
  });
  await Promise.race(said);
  const before = answered;
  await operator.call('accounts', {});
  t.ok(answered - before <= 2, `${answered - before} calls of the member before the operator's`);
  gone.abort();
  await Promise.allSettled(said);
});

t.test('every route with every role and with none', async (t) => {
  const own = await operator.call('createAccount', { name: 'own', credits: 1_000_000 });
  const other = await operator.call('createAccount', { name: 'other', credits: 1_000_000 });
  const member = await operator.invited(own.accountId, 'max');
  const stranger = await operator.invited(other.accountId, 'eve');
  const nobody = new ConsoleClient(consolePort);
  /** An operator that stays to the end. */
  let last = operator;
  const { view: key } = await operator.call('createKey', {
    accountId: own.accountId,
    properties: { name: 'web' },
  });
  const [user] = await operator.call('users', { accountId: own.accountId });
  const { accountId } = own;
  const day = { fromMs: Date.now() - 86_400_000, toMs: Date.now() + 1_000, step: 'hour' as const };
  /** Questions about what is the member's. */
  const questions: Questions = {
    session: {},
    claim: { token: 'x', name: 'someone', password: PASSWORD },
    signIn: { name: 'no-one', password: 'wrong password' },
    invitation: { token: 'x' },
    acceptInvitation: { token: 'x', name: 'someone', password: PASSWORD },
    signOut: { everywhere: false },
    changePassword: { current: 'wrong password', password: PASSWORD },
    account: { accountId },
    keys: { accountId },
    createKey: { accountId, properties: { name: 'another' } },
    changeKey: { keyId: key.keyId, changes: { name: 'renamed' } },
    revokeKey: { keyId: key.keyId },
    usage: { accountId, ...day },
    balance: { accountId },
    users: { accountId },
    browserToken: { keyId: key.keyId, origin: 'https://app.example.com' },
    tokens: {},
    createToken: { name: 'nightly', days: 1 },
    revokeToken: { name: 'nightly' },
    voices: {},
    lexicons: {},
    said: { accountId, voice: 'wren', text: 'Hello.', normalize: false },
    addWord: { accountId, word: 'kettle', spoken: 'teapot' },
    words: { accountId, search: '' },
    removeWord: { accountId, word: 'kettle' },
    alerts: { accountId },
    webhook: { accountId },
    setWebhook: { accountId, url: null },
    testWebhook: { accountId },
    accounts: {},
    createAccount: { name: 'third', credits: null },
    credit: { accountId, credits: 5 },
    changeAccount: { accountId, changes: { speed: 1.1 } },
    meterAccount: { accountId, metered: false, credits: 0 },
    suspendAccount: { accountId, suspended: false },
    deleteAccount: { accountId: 4_000_000_000 },
    invite: { accountId },
    invitations: { accountId },
    withdrawInvitations: { accountId },
    removeUser: { userId: 4_000_000_000 },
    reloadVoices: {},
    requests: { accountId, keyId: null, status: null, before: null },
    history: { range: 'hour' },
    audit: { beforeId: null },
  };
  const statusOf = async (client: ConsoleClient, name: CallName): Promise<number> =>
    (await client.post(`/api/${name}`, questions[name])).status;

  // Those of one-time links are for whoever has the link, and signing out asks for nothing.
  const open: readonly CallName[] = [
    'session',
    'claim',
    'signIn',
    'invitation',
    'acceptInvitation',
    'signOut',
  ];
  t.strictSame(
    callNames.filter((name) => whoOf(name) === 'anyone'),
    open,
  );
  const closed = callNames.filter((name) => whoOf(name) !== 'anyone');

  await t.test('a client without a session sees only the session and the sign-in', async (t) => {
    for (const name of closed) t.equal(await statusOf(nobody, name), 401, name);
    t.equal(await statusOf(nobody, 'session'), 200);
    t.notOk((await nobody.call('session', {})).user);
    for (const name of ['claim', 'invitation', 'acceptInvitation'] as const)
      t.match(await statusOf(nobody, name), /^(?:403|404|409)$/, name);
    t.equal(await statusOf(nobody, 'signIn'), 403);
    for (const path of [
      '/api/live',
      '/api/audit.csv',
      '/api/sample?voice=wren',
      `/api/usage.csv?fromMs=0&toMs=1&step=day`,
    ])
      t.equal((await nobody.ask(path)).status, 401, path);
    t.equal((await nobody.post(`/api/v1/tts/stream?accountId=${accountId}`, {})).status, 401);
    t.equal((await nobody.post(`/api/hear?accountId=${accountId}`, {})).status, 401);
    const forged = new ConsoleClient(consolePort);
    forged.cookies.set('syrinx-session', 'A'.repeat(43));
    for (const name of closed) t.equal(await statusOf(forged, name), 401, name);
  });

  await t.test('a member of another account reaches nothing of this one', async (t) => {
    const refused = closed.filter(
      (name) => !/^(?:voices|lexicons|changePassword|tokens|createToken|revokeToken)$/.test(name),
    );
    for (const name of refused) {
      const status = await statusOf(stranger, name);
      t.match(status, whoOf(name) === 'operator' ? /^403$/ : /^(?:403|404)$/, name);
    }
    const all = { ...day, accountId: null };
    t.match((await stranger.post('/api/usage', all)).status, /^(?:403|404)$/, 'usage of all');
    const allRequests = { ...questions.requests, accountId: null };
    t.match((await stranger.post('/api/requests', allRequests)).status, /^(?:403|404)$/, 'requests of all');
    t.match((await stranger.post('/api/users', { accountId: null })).status, /^(?:403|404)$/, 'operators');
    t.equal((await stranger.ask('/api/live')).status, 403);
    t.equal((await stranger.ask('/api/audit.csv')).status, 403);
    const word = { voice: 'wren', word: 'kettle', spoken: 'pot' };
    t.match((await stranger.post(`/api/hear?accountId=${accountId}`, word)).status, /^(?:403|404)$/);
    const csv = `/api/usage.csv?accountId=${accountId}&fromMs=0&toMs=1&step=day`;
    t.match((await stranger.ask(csv)).status, /^(?:403|404)$/);
    t.match((await stranger.ask(csv.replace(/accountId=\d+&/, ''))).status, /^(?:403|404)$/);
    const request = { text: 'Yes.', voice: 'wren' };
    t.match(
      (await stranger.post(`/api/v1/tts/stream?accountId=${accountId}`, request)).status,
      /^(?:403|404)$/,
    );
    await t.rejects(stranger.openSocket(accountId), /refused/);
    t.equal(
      (await operator.call('keys', { accountId })).find(({ keyId }) => keyId === key.keyId)?.name,
      'web',
    );
  });

  await t.test('a member reaches its account, and nothing of operators', async (t) => {
    for (const name of [
      'account',
      'keys',
      'createKey',
      'changeKey',
      'browserToken',
      'createToken',
      'tokens',
      'revokeToken',
      'usage',
      'requests',
      'balance',
      'users',
      'voices',
      'lexicons',
    ] as const)
      t.equal(await statusOf(member, name), 200, name);
    for (const name of closed.filter((call) => whoOf(call) === 'operator'))
      t.equal(await statusOf(member, name), 403, name);
    t.equal(await statusOf(member, 'changePassword'), 403, 'a wrong password');
    t.equal((await member.ask('/api/live')).status, 403);
    t.equal((await member.ask(`/api/usage.csv?accountId=${accountId}&fromMs=0&toMs=1&step=day`)).status, 200);
    t.equal((await member.ask('/api/sample?voice=wren')).status, 200);
    const speak = await member.post(`/api/v1/tts/stream?accountId=${accountId}`, {
      text: 'Yes.',
      voice: 'wren',
    });
    t.equal(speak.status, 200);
    await speak.text();
    t.equal(await statusOf(member, 'revokeKey'), 200);
  });

  await t.test('an operator reaches all', async (t) => {
    // The member has revoked the key of these.
    const acts = closed.filter((name) => !/^(?:changePassword|changeKey|browserToken)$/.test(name));
    const others: Partial<Record<string, number>> = { deleteAccount: 404, removeUser: 404, testWebhook: 409 };
    for (const name of acts) t.equal(await statusOf(operator, name), others[name] ?? 200, name);
    const live = await operator.ask('/api/live');
    t.equal(live.status, 200);
    await live.body?.cancel();
    t.equal((await operator.ask('/api/usage.csv?fromMs=0&toMs=1&step=day')).status, 200);
  });

  await t.test('two operators who change the same thing at once do not undo each other', async (t) => {
    const otto = await operator.invited(null, 'otto');
    const both = async <N extends CallName>(name: N, one: Question<N>, two: Question<N> = one) => {
      const answers = [operator.post(`/api/${name}`, one), otto.post(`/api/${name}`, two)];
      return (await Promise.all(answers)).map(({ status }) => status).sort();
    };
    const shared = await operator.call('createAccount', { name: 'shared', credits: 100 });
    const ofShared = { accountId: shared.accountId };
    const { view } = await operator.call('createKey', { ...ofShared, properties: { name: 'one' } });
    const { keyId } = view;
    t.strictSame(await both('credit', { ...ofShared, credits: 5 }), [200, 200]);
    t.equal((await operator.call('account', ofShared)).balance, 110, 'both are added');
    const changes = [
      { keyId, changes: { name: 'two' } },
      { keyId, changes: { creditLimit: 9 } },
    ] as const;
    t.strictSame(await both('changeKey', ...changes), [200, 200]);
    t.match(await operator.call('keys', ofShared), [{ name: 'two', creditLimit: 9 }]);
    t.strictSame(await both('revokeKey', { keyId }), [200, 200], 'it is revoked once');
    t.equal(
      (await operator.post('/api/changeKey', changes[0])).status,
      409,
      'and cannot be changed any more',
    );
    t.strictSame(await both('suspendAccount', { ...ofShared, suspended: true }), [200, 200]);
    t.strictSame(await both('createAccount', { name: 'wanted', credits: null }), [200, 409]);
    t.strictSame(await both('deleteAccount', ofShared), [200, 404]);
    const acts = (await operator.call('audit', { beforeId: null })).filter(
      ({ subject }) => subject === 'shared',
    );
    t.strictSame(
      acts.map(({ action }) => action).sort(),
      ['account.create', 'account.credit', 'account.credit', 'account.delete', 'account.suspend'],
      'one row for each act that changed something',
    );
    const ids = (await operator.call('users', { accountId: null })).map(({ userId }) => ({ userId }));
    const removals = await both('removeUser', ids[1]!, ids[0]);
    t.equal(removals[0], 200);
    t.not(removals[1], 200, 'two who remove each other: one stays');
    const left = (await operator.post('/api/session', {}).then((answer) => answer.json())) as {
      user: unknown;
    };
    last = left.user === null ? otto : operator;
  });

  await t.test('a removed user is refused at once', async (t) => {
    await last.call('removeUser', { userId: user!.userId });
    for (const name of closed) t.equal(await statusOf(member, name), 401, name);
  });

  await t.test('no other call exists', async (t) => {
    for (const path of [
      '/api',
      '/api/',
      '/api/constructor',
      '/api/toString',
      '/api/keys/',
      '/api/Keys',
      '/API/keys',
    ])
      t.match((await last.post(path, {})).status, /^40[45]$/, path);
    t.equal((await last.ask('/api/nothing')).status, 404);
    t.equal((await last.ask('/api/keys')).status, 405, 'a call is never a GET');
  });
});
