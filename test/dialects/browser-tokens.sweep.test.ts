/** The listener for pages in browsers: tokens that an API of the console issues, over real sockets. */
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { BrowserTokens } from '../../src/accounts/browser-tokens.js';
import { limits } from '../../src/limits.js';
import { ConsoleClient } from '../support/console-client.js';
import { failsToStart, SCRIPTED, spawnService, startService, until } from '../support/service.js';
import { openWs } from '../support/socket-client.js';
import { memoryFolder } from '../store/support.js';

const ORIGIN = 'https://app.example.com';
const WORDS = { text: 'Yes.', voice: 'wren' };

t.test('a token is good for one key, one origin and one minute', (t) => {
  const dataDir = memoryFolder(t);
  const clock = { nowMs: 1_700_000_000_000 };
  const tokens = new BrowserTokens(dataDir, limits, () => clock.nowMs);
  const { token, expiresAtMs } = tokens.issue(7, ORIGIN);
  t.equal(expiresAtMs, clock.nowMs + 60_000);
  t.equal(tokens.keyIdOf(token, ORIGIN), 7);
  t.equal(tokens.keyIdOf(token, 'https://app.example.org'), null, 'another origin');
  t.equal(tokens.keyIdOf(token.replace(/^7/, '8'), ORIGIN), null, 'another key');
  t.equal(
    tokens.keyIdOf(token.replace(`.${expiresAtMs}.`, `.${expiresAtMs + 1}.`), ORIGIN),
    null,
    'a later end',
  );
  for (const forged of [
    '',
    '..',
    token.slice(0, -1),
    `${token}A`,
    token.replace(/.$/, (end) => (end === 'A' ? 'E' : 'A')),
  ])
    t.equal(tokens.keyIdOf(forged, ORIGIN), null, JSON.stringify(forged));
  const successor = new BrowserTokens(dataDir, limits, () => clock.nowMs);
  t.equal(successor.keyIdOf(token, ORIGIN), 7, 'a service on the same data folder takes it');
  t.equal(new BrowserTokens(memoryFolder(t), limits, () => clock.nowMs).keyIdOf(token, ORIGIN), null);
  const path = join(dataDir, 'browser-secret');
  t.equal(statSync(path).mode & 0o777, 0o600);
  t.notMatch(token, readFileSync(path, 'utf8').trim());
  clock.nowMs = expiresAtMs;
  t.equal(tokens.keyIdOf(token, ORIGIN), null, 'from the end on');
  t.end();
});

t.test('an empty secret, with which anybody could sign, is refused at the start', async (t) => {
  const dataDir = memoryFolder(t);
  writeFileSync(join(dataDir, 'browser-secret'), '\n');
  const service = spawnService(t, { DATA_DIR: dataDir, BROWSER_PORT: '0' }, SCRIPTED);
  await failsToStart(t, service, /browser-secret is no secret: remove it/);
});

t.test('the listener for browsers', async (t) => {
  const service = await startService(
    t,
    { SYNTHESIS_THREADS: '1', CONSOLE_PORT: '0', BROWSER_PORT: '0' },
    SCRIPTED,
  );
  const port = service.dialectPorts['browser'] ?? 0;
  const operator = await ConsoleClient.claim(service);
  const { accountId } = await operator.call('createAccount', { name: 'own', credits: 1_000_000 });
  const { view } = await operator.call('createKey', {
    accountId,
    properties: { name: 'web', voices: ['wren'] },
  });
  const { keyId } = view;
  const issue = async (origin = ORIGIN): Promise<string> =>
    (await operator.call('browserToken', { keyId, origin })).token;
  const stream = (token: string, body: object = WORDS, origin: string | null = ORIGIN): Promise<Response> =>
    fetch(`http://127.0.0.1:${port}/v1/tts/stream?token=${token}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...(origin !== null && { origin }) },
      body: JSON.stringify(body),
    });
  const socket = (token: string, origin = ORIGIN) =>
    openWs(port, '', { path: `/v1/tts/ws?token=${token}`, headers: { origin } });

  await t.test('speaks for the key of the token, which pays and has its own voices', async (t) => {
    const answer = await stream(await issue());
    t.equal(answer.status, 200);
    t.equal(answer.headers.get('access-control-allow-origin'), '*');
    t.match(await answer.text(), /^data: \{"type":"audio"/);
    t.match(await (await stream(await issue(), { ...WORDS, voice: 'lark' })).json(), {
      valid_voices: ['wren'],
    });
    const client = await socket(await issue());
    client.start('a', { voice_id: 'wren' });
    client.text('a', 'Said. ');
    client.closeContext('a');
    await client.frame((frame) => frame.context_closed === true);
    t.ok(client.audio('a').length > 0);
    client.close();
    await until(async () => (await operator.call('keys', { accountId }))[0]!.characters > 8);
    t.equal((await operator.call('keys', { accountId }))[0]?.characters, 'Yes.'.length + 'Said. '.length);
  });

  await t.test('a browser may ask before it sends, and the answer does not repeat its origin', async (t) => {
    const asked = await fetch(`http://127.0.0.1:${port}/v1/tts/stream?token=x`, {
      method: 'OPTIONS',
      headers: {
        origin: ORIGIN,
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'content-type',
      },
    });
    t.equal(asked.status, 200);
    t.equal(asked.headers.get('access-control-allow-origin'), '*');
    t.match(asked.headers.get('access-control-allow-headers'), '*');
  });

  await t.test('another origin, no origin and a forged token are refused, with what to do', async (t) => {
    const token = await issue();
    const other = 'https://evil.example';
    for (const answer of [
      await stream(token, WORDS, other),
      await stream(token, WORDS, null),
      await stream(`${token}x`),
      await stream(''),
    ]) {
      t.equal(answer.status, 401);
      t.match(await answer.json(), { error: /^Invalid or missing token: ask your server for a new one/ });
    }
    const refused = await socket(token, other);
    t.match(await refused.closing(), { code: 1008 });
    t.match(refused.frames, [{ error: /^Invalid or missing token/ }], 'a page reads a frame, and no status');
    await t.rejects(socket(''), /401/);
    t.equal(
      (await fetch(`http://127.0.0.1:${port}/v1/tts/speakers?token=${token}`)).status,
      404,
      'nothing else is here',
    );
  });

  await t.test('the public port takes no token, and this one no key', async (t) => {
    const token = await issue();
    const headers = { 'content-type': 'application/json', origin: ORIGIN };
    const body = JSON.stringify(WORDS);
    const there = await fetch(`${service.url}/v1/tts/stream?token=${token}`, {
      method: 'POST',
      headers,
      body,
    });
    t.equal(there.status, 401);
    t.match(await there.json(), { error: 'Invalid or missing API key' });
    const here = await fetch(`http://127.0.0.1:${port}/v1/tts/stream`, {
      ...{ method: 'POST', body },
      headers: { ...headers, 'x-api-key': service.key },
    });
    t.equal(here.status, 401);
  });

  await t.test('tokens are issued for usable keys of the own account, and for origins', async (t) => {
    const other = await operator.call('createAccount', { name: 'other', credits: 10 });
    const stranger = await operator.invited(other.accountId, 'eve');
    t.match((await stranger.post('/api/browserToken', { keyId, origin: ORIGIN })).status, /^40[34]$/);
    for (const origin of ['app.example.com', 'https://app.example.com/page', 'null', '*', '']) {
      const answer = await operator.post('/api/browserToken', { keyId, origin });
      t.equal(answer.status, 400, origin);
      t.match(await answer.json(), { field: 'origin' });
    }
    const { prefix } = (await operator.call('keys', { accountId }))[0]!;
    const acts = async () =>
      (await operator.call('audit', { beforeId: null, kind: 'key', search: 'browserToken' })).map(
        ({ subject, details }) => [subject, details],
      );
    t.strictSame(await acts(), [[prefix, ORIGIN]], 'one act an hour for a key and an origin');
    await issue('https://other.example.com');
    t.strictSame((await acts())[0], [prefix, 'https://other.example.com']);
    const canonical = await issue('HTTPS://App.example.com:443');
    t.equal((await stream(canonical)).status, 200, 'in the form that browsers send');
  });

  await t.test(
    'its connections and streams count with the others, and a suspension ends them within seconds',
    async (t) => {
      const token = await issue();
      const client = await socket(token);
      t.ok(
        await until(async () => (await service.metric('syrinx_sockets')) === 1),
        'among the sockets of the service',
      );
      const long = await stream(token, { text: 'A long story. '.repeat(4_000), voice: 'wren' });
      const reader = long.body!.getReader();
      await reader.read();
      t.equal(await service.metric('syrinx_streams', { route: 'browser:/v1/tts/stream' }), 1);
      await operator.call('suspendAccount', { accountId, suspended: true });
      t.match(await client.closing(), { code: 1008, reason: 'INVALID_API_KEY' });
      await t.rejects(async () => {
        while (!(await reader.read()).done);
      });
      t.equal((await stream(token)).status, 401, 'a token that has not expired');
      t.equal((await operator.post('/api/browserToken', { keyId, origin: ORIGIN })).status, 409);
      await operator.call('suspendAccount', { accountId, suspended: false });
      t.equal((await stream(await issue())).status, 200);
      await operator.call('revokeKey', { keyId });
      t.equal((await operator.post('/api/browserToken', { keyId, origin: ORIGIN })).status, 409);
    },
  );

  await t.test('the log has routes and no tokens', async (t) => {
    await service.requests();
    t.ok(service.logged('request').some(({ route }) => route === 'browser:/v1/tts/stream'));
    t.notMatch(service.stdout, /token=|\d+\.\d{13}\.[\w-]{43}/);
    t.notMatch(service.stdout, readFileSync(join(service.dataDir, 'browser-secret'), 'utf8').trim());
  });
});

t.test('without BROWSER_PORT no token is issued', async (t) => {
  const service = await startService(t, { SYNTHESIS_THREADS: '1', CONSOLE_PORT: '0' }, SCRIPTED);
  const operator = await ConsoleClient.claim(service);
  const [account] = await operator.call('accounts', {});
  const [key] = await operator.call('keys', { accountId: account!.accountId });
  const refused = await operator.post('/api/browserToken', { keyId: key!.keyId, origin: ORIGIN });
  t.equal(refused.status, 409);
  t.match(await refused.json(), { message: /BROWSER_PORT/ });
});
