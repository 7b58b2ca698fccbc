/** The console against other sites, forged requests and bad bodies, and what its answers tell a browser. */
import { statSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { HEAD_BYTES_MAX } from '../../src/front/response-sender.js';
import { limits } from '../../src/limits.js';
import { ConsoleClient, PASSWORD } from '../support/console-client.js';
import { RawClient } from '../support/raw-client.js';
import { SCRIPTED, startService } from '../support/service.js';
import { openWs } from '../support/socket-client.js';

t.test('the console of a service', async (t) => {
  const service = await startService(t, { SYNTHESIS_THREADS: '1', CONSOLE_PORT: '0' }, SCRIPTED);
  const { consolePort } = service;
  const link = join(service.dataDir, 'console-link');
  t.equal(statSync(link).mode & 0o777, 0o600);
  const [written] = service.logged('link to the console written to a file: it is good for 30 minutes');
  t.equal(written?.['path'], link);
  t.notMatch(service.stdout, '/claim#', 'the log has no link');

  const operator = await ConsoleClient.claim(service);
  const account = await operator.call('createAccount', { name: 'own', credits: 100_000 });
  const { accountId } = account;
  const speakPath = `/api/v1/tts/stream?accountId=${accountId}`;

  await t.test('every answer tells the browser to be strict', async (t) => {
    const answers = [
      await operator.ask('/'),
      await operator.ask('/accounts/3/keys'),
      await operator.ask('/assets/nothing.js'),
      await operator.ask('/api/nothing'),
      await operator.ask('/api/keys'),
      await operator.post('/api/session', {}),
      await operator.post('/api/session', { x: 1 }),
      await operator.post('/api/keys', 'x'.repeat(limits.consoleBodyBytesMax + 1)),
      await operator.post(speakPath, { text: 'Yes.', voice: 'wren' }),
      await operator.post(speakPath, { text: 1 }),
      await new ConsoleClient(consolePort).ask('/api/live'),
    ];
    for (const answer of answers) {
      const path = new URL(answer.url).pathname;
      const policy = answer.headers.get('content-security-policy') ?? '';
      t.match(policy, /^default-src 'none'; script-src 'self';/, path);
      t.match(policy, "require-trusted-types-for 'script'");
      t.match(policy, "frame-ancestors 'none'");
      t.notMatch(policy, 'unsafe');
      t.equal(answer.headers.get('x-frame-options'), 'DENY');
      t.equal(answer.headers.get('x-content-type-options'), 'nosniff');
      t.equal(answer.headers.get('referrer-policy'), 'no-referrer');
      t.equal(answer.headers.get('cross-origin-opener-policy'), 'same-origin');
      t.equal(answer.headers.get('cross-origin-resource-policy'), 'same-origin');
      t.equal(answer.headers.get('cache-control'), 'no-store', path);
      t.notOk(answer.headers.get('access-control-allow-origin'));
      await answer.body?.cancel();
    }
    t.match(
      answers.map(({ status }) => status),
      [200, 200, 404, 404, 405, 200, 400, 413, 200, 422, 401],
    );
  });

  await t.test('the page has the session of a signed-in user, whatever the name is', async (t) => {
    const name = '"><script>alert(1)</script>&#34;';
    const member = await operator.invited(accountId, name);
    const sessionIn = async (client: ConsoleClient): Promise<string | undefined> =>
      /<meta name="session"(?: content="([^"]*)")? \/>\s*<title>/.exec(
        await (await client.ask('/')).text(),
      )?.[1];
    const content = (await sessionIn(member)) ?? '';
    t.notMatch(content, '<');
    const decoded = content.replaceAll(/&#(\d+);/g, (_, code: string) => String.fromCharCode(Number(code)));
    t.same(JSON.parse(decoded), await member.call('session', {}));
    const stolen = new ConsoleClient(consolePort);
    for (const [cookie, value] of member.cookies) stolen.cookies.set(cookie, value);
    await member.call('signOut', { everywhere: false });
    for (const client of [new ConsoleClient(consolePort), member, stolen])
      t.equal(await sessionIn(client), undefined, 'nobody is signed in');
  });

  await t.test('the head of a stream leaves room for audio in its first write', async (t) => {
    const raw = await RawClient.open(consolePort);
    const body = JSON.stringify({ text: 'Yes.', voice: 'wren' });
    raw.send(
      `POST ${speakPath} HTTP/1.1\r\nhost: 127.0.0.1\r\ncookie: ${operator.cookie}\r\ncontent-type: application/json\r\n` +
        `content-length: ${body.length}\r\n\r\n${body}`,
    );
    const { headers, status } = await raw.response();
    t.equal(status, 200);
    const headBytes = headers.reduce((sum, [name, value]) => sum + name.length + value.length + 4, 0);
    // The library collects one write in 16 KiB; the status line and a chunk's size come on top.
    t.ok(headBytes + 64 < 16_384 - (limits.writeBytesMax - HEAD_BYTES_MAX), `${headBytes} bytes`);
    raw.destroy();
  });

  await t.test('a request of another site is refused, whatever it asks', async (t) => {
    const wrongs: Readonly<Record<string, string>>[] = [
      { origin: 'http://evil.example' },
      { origin: 'null' },
      { origin: `http://127.0.0.1:${service.port}` },
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site' },
    ];
    for (const headers of wrongs) {
      const named = JSON.stringify(headers);
      const call = await operator.post('/api/createAccount', { name: 'evil', credits: null }, { headers });
      t.equal(call.status, 403, named);
      t.match(await call.json(), { code: 'forbidden' });
      t.equal((await operator.post(speakPath, {}, { headers })).status, 403);
      for (const path of ['/api/live', '/api/sample?voice=wren', '/api/usage.csv?fromMs=0&toMs=1&step=day'])
        t.equal((await operator.ask(path, { headers })).status, 403, `${path} ${named}`);
      await t.rejects(
        openWs(consolePort, '', {
          path: `/api/socket?accountId=${accountId}`,
          headers: { cookie: operator.cookie, ...headers },
        }),
        /403/,
      );
    }
    t.notOk((await operator.call('accounts', {})).some(({ name }) => name === 'evil'));
    const form = await operator.post('/api/createAccount', 'a=b', {
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
    });
    t.equal(form.status, 400);
    const plain = await operator.post('/api/session', {}, { headers: { 'content-type': 'text/plain' } });
    t.equal(plain.status, 400, 'a type that other sites may send without asking');
  });

  await t.test('a name that points here is refused, also for the page', async (t) => {
    for (const path of ['/', '/api/live']) {
      const raw = await RawClient.open(consolePort);
      raw.send(
        `GET ${path} HTTP/1.1\r\nhost: evil.example:${consolePort}\r\ncookie: ${operator.cookie}\r\n\r\n`,
      );
      const { body, status } = await raw.response();
      t.equal(status, 403, path);
      t.match(body.toString(), `http://127.0.0.1:${consolePort}`);
      raw.destroy();
    }
  });

  await t.test('bad bodies are answered with what is wrong', async (t) => {
    for (const [body, message] of [
      ['', /not valid JSON/],
      ['{', /not valid JSON/],
      ['[]', /^accountId must be/],
      ['null', /not valid JSON/],
      ['['.repeat(500), /not valid JSON/],
      ['{"accountId":1,"x":2}', /^x must be absent/],
      ['{"accountId":"1"}', /^accountId must be a whole number/],
      ['{"accountId":-1}', /^accountId must be/],
      ['{"accountId":1e999}', /not valid JSON/],
    ] as const) {
      const answer = await operator.post('/api/keys', body);
      t.equal(answer.status, 400, body);
      t.match(await answer.json(), { code: 'badRequest', message });
    }
    const short = await operator.post('/api/changePassword', { current: 'x', password: 'short' });
    t.match(await short.json(), {
      code: 'badRequest',
      field: 'password',
      message: 'password must be a text of at least 10 characters.',
    });
    const deep = await operator.post('/api/createKey', { accountId, properties: { name: 'x'.repeat(65) } });
    t.match(await deep.json(), { field: 'properties.name', message: /at most 64 characters/ });
  });

  await t.test(
    'cookies: kept from scripts and other sites, and worth nothing after the sign-out',
    async (t) => {
      const browser = new ConsoleClient(consolePort);
      const answer = await browser.post('/api/signIn', { name: 'OLGA', password: PASSWORD });
      t.equal(answer.status, 200);
      const cookies = answer.headers.getSetCookie();
      t.equal(cookies.length, 2);
      for (const cookie of cookies)
        t.match(
          cookie,
          /^syrinx-(?:session|device)=[\w-]{43}; Max-Age=\d+; HttpOnly; SameSite=Strict; Path=\/$/,
        );
      const stolen = new ConsoleClient(consolePort);
      for (const [name, value] of browser.cookies) stolen.cookies.set(name, value);
      t.equal((await stolen.call('session', {})).user?.name, 'olga');
      const out = await browser.post('/api/signOut', { everywhere: false });
      t.match(out.headers.getSetCookie(), [/^syrinx-session=; Max-Age=0;/]);
      t.equal((await stolen.call('session', {})).user, null);
      t.equal((await stolen.post('/api/accounts', {})).status, 401);
      t.equal((await operator.call('session', {})).user?.name, 'olga', 'another browser stays signed in');
    },
  );

  await t.test('a spent link claims nothing', async (t) => {
    const before = operator.cookies.get('syrinx-session');
    await t.rejects(ConsoleClient.claim(service, 'second'), /claim: (?:404|409|403)/);
    t.equal(operator.cookies.get('syrinx-session'), before);
  });

  await t.test('guesses are slowed down, and a browser that is known is let in', async (t) => {
    const guesser = new ConsoleClient(consolePort);
    const statuses: number[] = [];
    for (let i = 0; i < limits.consoleAttemptsAtOnceMax + 2; i++) {
      const answer = await guesser.post('/api/signIn', { name: 'olga', password: 'wrong password' });
      statuses.push(answer.status);
      if (answer.status === 429) {
        t.ok(Number(answer.headers.get('retry-after')) >= 1);
        t.match(await answer.json(), { code: 'tooManyAttempts', retryAfterMs: Number });
      }
    }
    t.ok(statuses.includes(403) && statuses.at(-1) === 429, statuses.join());
    const right = await guesser.post('/api/signIn', { name: 'olga', password: PASSWORD });
    t.equal(right.status, 429, 'the right password from there must wait too');
    const known = new ConsoleClient(consolePort);
    known.cookies.set('syrinx-device', operator.cookies.get('syrinx-device')!);
    t.equal((await known.call('signIn', { name: 'olga', password: PASSWORD })).user?.name, 'olga');
  });

  await t.test('the public port knows nothing of the console', async (t) => {
    for (const path of ['/api/session', '/api/v1/tts/stream', '/api/socket', '/accounts', '/'])
      t.equal((await fetch(service.url + path, { headers: { cookie: operator.cookie } })).status, 404, path);
    const answer = await fetch(`${service.url}/healthz`);
    t.notOk(answer.headers.get('content-security-policy'));
  });

  t.notMatch(service.stdout, PASSWORD);
  for (const value of operator.cookies.values()) t.notMatch(service.stdout, value);
});
