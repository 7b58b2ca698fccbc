/** The console behind nginx, with the operator's configuration file, and over the service's own TLS. */
import { X509Certificate } from 'node:crypto';
import { copyFileSync, readFileSync } from 'node:fs';
import { request as httpsRequest } from 'node:https';
import { join } from 'node:path';
import { connect } from 'node:tls';
import t from 'tap';
import { makeCertificate } from '../support/certificates.js';
import { PASSWORD } from '../support/console-client.js';
import { ask, startProxy, textOf, type Answer } from '../support/proxy.js';
import { SCRIPTED, startService } from '../support/service.js';
import { openWs } from '../support/socket-client.js';
import { missingTool } from '../support/tools.js';

const ORIGIN = 'https://console.example.com';

/** The cookies of an answer, as the browser sends them back. */
const cookiesOf = (answer: Pick<Answer, 'headers'>): string =>
  (answer.headers['set-cookie'] ?? []).map((line) => line.split(';', 1)[0]).join('; ');

const tokenIn = (dataDir: string): string => readFileSync(join(dataDir, 'console-link'), 'utf8').trim();

t.test('the console works behind nginx', { skip: missingTool('nginx', 'openssl') }, async (t) => {
  const env = { SYNTHESIS_THREADS: '1', CONSOLE_PORT: '0', CONSOLE_ORIGIN: ORIGIN };
  const service = await startService(t, env, SCRIPTED);
  // Nothing listens on the second port, as always outside of an upgrade.
  const ports = [service.consolePort, 1] as const;
  const proxy = await startProxy(t, join(service.dataDir, 'nginx'), [service.port, 1], ports);
  const own = { host: 'console.example.com', origin: ORIGIN, 'sec-fetch-site': 'same-origin' };
  const post = (path: string, body: unknown, more: Readonly<Record<string, string>> = {}) =>
    ask({ ...proxy, port: proxy.consolePort }, { method: 'POST', path, body, headers: { ...own, ...more } });
  const get = (path: string, more: Readonly<Record<string, string>> = {}) =>
    ask({ ...proxy, port: proxy.consolePort }, { path, headers: { ...own, ...more } });

  const link = tokenIn(service.dataDir);
  t.ok(link.startsWith(`${ORIGIN}/claim#`), 'the link has the name of the proxy');
  const claimed = await post('/api/claim', {
    token: new URL(link).hash.slice(1),
    name: 'olga',
    password: PASSWORD,
  });
  t.equal(claimed.status, 200, await textOf(claimed));
  for (const cookie of claimed.headers['set-cookie'] ?? [])
    t.match(
      cookie,
      /^__Host-syrinx-(?:session|device)=[\w-]+; .*; HttpOnly; SameSite=Strict; Path=\/; Secure$/,
    );
  const many = Array.from({ length: 20 }, (_, i) => `c${i}=${'x'.repeat(300)}`).join('; ');
  const cookie = `${many}; ${cookiesOf(claimed)}`;

  const account = await post('/api/createAccount', { name: 'own', credits: 1_000 }, { cookie });
  t.equal(account.status, 200, 'the cookies of others do not matter');
  const { accountId } = JSON.parse(await textOf(account)) as { accountId: number };

  const page = await get('/accounts');
  t.equal(page.status, 200);
  t.match(page.headers['content-security-policy'], "default-src 'none'");
  await textOf(page);

  const spoken = await post(
    `/api/v1/tts/stream?accountId=${accountId}`,
    { text: 'Yes.', voice: 'wren' },
    { cookie },
  );
  t.equal(spoken.status, 200);
  t.match(await textOf(spoken), /^data: /);
  const made = await post('/api/createToken', { name: 'billing', days: 1 }, { cookie });
  const { token } = JSON.parse(await textOf(made)) as { token: string };
  const byProgram = await post('/api/accounts', {}, { authorization: `Bearer ${token}` });
  t.equal(byProgram.status, 200, 'the proxy passes on the token of a program');
  await textOf(byProgram);
  const live = await get('/api/live', { cookie });
  t.equal(live.status, 200);
  const first = await live.body.iterator({ destroyOnReturn: false }).next();
  t.match(String(first.value), /^data: \{/, 'the live view is not held back');
  live.body.destroy();
  const socket = await openWs(proxy.consolePort, '', {
    ca: proxy.certificate,
    path: `/api/socket?accountId=${accountId}`,
    headers: { ...own, cookie },
  });
  socket.start('one', { voice_id: 'wren' });
  socket.text('one', 'Said. ');
  socket.flush('one', 'done');
  await socket.frame(({ flush_id }) => flush_id === 'done');
  socket.close();

  for (const more of [{ origin: 'https://evil.example' }, { 'sec-fetch-site': 'cross-site' }])
    t.equal((await post('/api/accounts', {}, { cookie, ...more })).status, 403, JSON.stringify(more));
  t.equal((await fetch(`http://127.0.0.1:${service.consolePort}/`)).status, 403, 'not under another name');
  // The address of the client, which nginx reports, is the one that the audit table has.
  const audit = await textOf(await post('/api/audit', { beforeId: null }, { cookie }));
  t.match(audit, '127.0.0.1');
  t.notMatch(`${service.stdout}${proxy.errors()}`, new URL(link).hash.slice(1));
  t.match(await service.stop(), { code: 0 });
  const away = await post('/api/session', {});
  t.equal(away.status, 503);
  t.match(JSON.parse(await textOf(away)), { code: 'unavailable' });
});

t.test('the console works over TLS of the service', { skip: missingTool('openssl') }, async (t) => {
  const folder = t.testdir({});
  const { ca, certPath, keyPath } = makeCertificate(folder, 'console');
  const env = { SYNTHESIS_THREADS: '1', CONSOLE_PORT: '0', TLS_CERT: certPath, TLS_KEY: keyPath };
  const service = await startService(t, env, SCRIPTED);
  t.ok(tokenIn(service.dataDir).startsWith(`https://127.0.0.1:${service.consolePort}/claim#`));
  const body = JSON.stringify({
    token: new URL(tokenIn(service.dataDir)).hash.slice(1),
    name: 'olga',
    password: PASSWORD,
  });
  const cookies = await new Promise<string[]>((resolve, reject) => {
    const request = httpsRequest({
      ...{ host: 'localhost', port: service.consolePort, ca, method: 'POST', path: '/api/claim' },
      headers: { 'content-type': 'application/json', origin: `https://localhost:${service.consolePort}` },
    });
    request.once('error', reject);
    request.once('response', (response) => {
      response.resume();
      resolve(response.headers['set-cookie'] ?? []);
    });
    request.end(body);
  });
  t.equal(cookies.length, 2);
  for (const cookie of cookies) t.match(cookie, /^__Host-syrinx-.*; Secure$/);

  const next = makeCertificate(folder, 'next');
  const shown = () =>
    new Promise<string>((resolve, reject) => {
      const options = { host: '127.0.0.1', servername: 'localhost', port: service.consolePort };
      const socket = connect({ ...options, rejectUnauthorized: false }, () => {
        resolve(socket.getPeerX509Certificate()?.fingerprint256 ?? '');
        socket.destroy();
      }).once('error', reject);
    });
  t.equal(await shown(), new X509Certificate(ca).fingerprint256);
  copyFileSync(next.certPath, certPath);
  copyFileSync(next.keyPath, keyPath);
  service.signal('SIGHUP');
  await service.untilLogged('new connections get the new TLS certificate');
  t.equal(
    await shown(),
    new X509Certificate(next.ca).fingerprint256,
    'a renewed certificate, without a restart',
  );
});
