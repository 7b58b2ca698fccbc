/** Each role, and a client without a session, asks each route of the console, and reaches only what its role allows. */
import t from 'tap';
import { callNames, whoOf } from '../../src/console/call-rules.js';
import type { CallName, Question } from '../../src/console/contract.js';
import { ConsoleClient, PASSWORD } from '../support/console-client.js';
import { SCRIPTED, startService } from '../support/service.js';

type Questions = { readonly [N in CallName]: Question<N> };

t.test('every route with every role and with none', async (t) => {
  const service = await startService(
    t,
    { SYNTHESIS_THREADS: '1', CONSOLE_PORT: '0', BROWSER_PORT: '0' },
    SCRIPTED,
  );
  const operator = await ConsoleClient.claim(service);
  const own = await operator.call('createAccount', { name: 'own', credits: 1_000_000 });
  const other = await operator.call('createAccount', { name: 'other', credits: 1_000_000 });
  const member = await operator.invited(own.accountId, 'max');
  const stranger = await operator.invited(other.accountId, 'eve');
  const nobody = new ConsoleClient(service.consolePort);
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
    const forged = new ConsoleClient(service.consolePort);
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
