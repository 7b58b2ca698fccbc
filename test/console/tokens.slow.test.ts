/** Tokens with which programs call the console's API, and the document that describes it. */
import t from 'tap';
import { callNames, whoOf } from '../../src/console/call-rules.js';
import type { Answer, CallName, Question } from '../../src/console/contract.js';
import { limits } from '../../src/limits.js';
import { ConsoleClient, PASSWORD } from '../support/console-client.js';
import { SCRIPTED, startService } from '../support/service.js';
import { openWs } from '../support/socket-client.js';

t.test('a program with a token', async (t) => {
  const service = await startService(t, { SYNTHESIS_THREADS: '1', CONSOLE_PORT: '0' }, SCRIPTED);
  const { consolePort } = service;
  const operator = await ConsoleClient.claim(service);
  const { accountId } = await operator.call('createAccount', { name: 'own', credits: 1_000 });
  const member = await operator.invited(accountId, 'max');
  const ofOperator = (await operator.call('createToken', { name: 'billing', days: 30 })).token;
  const ofMember = (await member.call('createToken', { name: 'billing', days: 1 })).token;

  /** As a program asks: without cookies, and without what browsers add. */
  const post = (path: string, token: string, body: unknown): Promise<Response> =>
    fetch(`http://127.0.0.1:${consolePort}${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
  const call = async <N extends CallName>(
    name: N,
    token: string,
    question: Question<N>,
  ): Promise<Answer<N>> => {
    const answer = await post(`/api/${name}`, token, question);
    t.equal(answer.status, 200, name);
    return (await answer.json()) as Answer<N>;
  };
  const statusOf = async (name: CallName, token: string, question: unknown): Promise<number> =>
    (await post(`/api/${name}`, token, question)).status;

  await t.test('acts as its user: an operator manages accounts, a member only reaches its own', async (t) => {
    t.match(ofOperator, /^svc_op_[\w-]{43}$/);
    const made = await call('createAccount', ofOperator, { name: 'by program', credits: 5 });
    await call('credit', ofOperator, { accountId: made.accountId, credits: 7 });
    t.equal((await call('account', ofOperator, { accountId: made.accountId })).balance, 12);
    const { key } = await call('createKey', ofOperator, {
      accountId: made.accountId,
      properties: { name: 'web' },
    });
    t.equal((await service.get('/v1/tts/speakers', { 'x-api-key': key })).status, 200);
    t.equal((await call('keys', ofMember, { accountId })).length, 0);
    t.equal(await statusOf('accounts', ofMember, {}), 403);
    t.match(await statusOf('keys', ofMember, { accountId: made.accountId }), /^40[34]$/);
    const acts = await operator.call('audit', { beforeId: null });
    t.ok(
      acts.some(
        ({ action, actor, subject }) => [action, actor, subject].join() === 'token.create,olga,billing',
      ),
    );
    t.ok(acts.some(({ action, actor }) => action === 'account.create' && actor === 'olga'));
  });

  await t.test('speaks for an account, over HTTP and a WebSocket', async (t) => {
    const spoken = await post(`/api/v1/tts/stream?accountId=${accountId}`, ofMember, {
      text: 'Yes.',
      voice: 'wren',
    });
    t.equal(spoken.status, 200);
    t.match(await spoken.text(), /^data: /);
    const path = `/api/socket?accountId=${accountId}`;
    const socket = await openWs(consolePort, '', { path, headers: { authorization: `Bearer ${ofMember}` } });
    await member.call('revokeToken', { name: 'billing' });
    t.match(await socket.closing(), { code: 1008 }, 'what it has open ends with it');
    t.equal(await statusOf('keys', ofMember, { accountId }), 401);
  });

  await t.test('makes no token and changes no password', async (t) => {
    t.equal(await statusOf('createToken', ofOperator, { name: 'second', days: 1 }), 403);
    const refused = await post('/api/changePassword', ofOperator, {
      current: PASSWORD,
      password: 'another password',
    });
    t.equal(refused.status, 403);
    t.match(await refused.json(), { message: /sign in to the console/ });
    t.equal(await statusOf('signOut', ofOperator, { everywhere: true }), 403);
    t.match(await operator.call('session', {}), { user: { name: 'olga' } }, 'nor does it end a session');
  });

  await t.test('a token is no cookie, a cookie no token, and other schemes are of others', async (t) => {
    const session = operator.cookies.get('syrinx-session') ?? '';
    t.equal(await statusOf('accounts', session, {}), 401);
    const asCookie = new ConsoleClient(consolePort);
    asCookie.cookies.set('syrinx-session', ofOperator);
    t.equal((await asCookie.post('/api/accounts', {})).status, 401);
    for (const forged of [`${ofOperator}x`, ofOperator.slice(0, -1), `svc_op_${'A'.repeat(43)}`, ''])
      t.equal(await statusOf('accounts', forged, {}), 401, forged.slice(0, 9));
    t.match(await (await post('/api/accounts', 'svc_op_x', {})).json(), { message: /token is not valid/ });
    const behindPassword = await operator.post(
      '/api/accounts',
      {},
      { headers: { authorization: 'Basic eDp5' } },
    );
    t.equal(behindPassword.status, 200, 'a proxy may ask for a password of its own');
  });

  await t.test('another site gets nothing with it', async (t) => {
    const headers = { authorization: `Bearer ${ofOperator}`, 'content-type': 'application/json' };
    for (const more of [{ origin: 'http://evil.example' }, { 'sec-fetch-site': 'cross-site' }])
      t.equal((await operator.post('/api/accounts', {}, { headers: { ...headers, ...more } })).status, 403);
  });

  await t.test('names are unique, and their number is bounded', async (t) => {
    const same = await operator.post('/api/createToken', { name: 'billing', days: 1 });
    t.equal(same.status, 409);
    t.match(await same.json(), { field: 'name' });
    for (let index = 1; index < limits.tokensPerUserMax; index++)
      await operator.call('createToken', { name: `n${index}`, days: 1 });
    t.equal((await operator.post('/api/createToken', { name: 'one more', days: 1 })).status, 409);
    const listed = await operator.call('tokens', {});
    t.equal(listed.length, limits.tokensPerUserMax);
    t.notMatch(JSON.stringify(listed), ofOperator.slice(7));
  });

  await t.test('the document has every call that a program may make, with its types', async (t) => {
    const url = `http://127.0.0.1:${consolePort}/api/administration.json`;
    t.equal((await fetch(url)).status, 401);
    const answer = await fetch(url, { headers: { authorization: `Bearer ${ofOperator}` } });
    const { components, paths } = (await answer.json()) as {
      components: { schemas: Record<string, { properties?: object }> };
      paths: Record<string, { post: { requestBody: object; responses: Record<string, object> } }>;
    };
    const open = callNames.filter((name) => !/anyone|person/.test(whoOf(name)));
    t.strictSame(Object.keys(paths).sort(), open.map((name) => `/api/${name}`).sort());
    const text = JSON.stringify(paths);
    for (const [, name = ''] of text.matchAll(/"#\/components\/schemas\/([^"]+)"/g))
      t.ok(name in components.schemas, name);
    t.match(components.schemas['AccountView']?.properties, {
      balance: { type: 'number' },
      name: { type: 'string' },
    });
    t.match(text, '"credits"');
  });

  await t.test('a new password ends the tokens', async (t) => {
    await operator.call('changePassword', { current: PASSWORD, password: 'another password' });
    t.equal(await statusOf('accounts', ofOperator, {}), 401);
    t.strictSame(await operator.call('tokens', {}), []);
  });

  for (const secret of [ofOperator, ofMember])
    t.notMatch(service.stdout, secret.slice(7, 30), 'the log has none');
});
