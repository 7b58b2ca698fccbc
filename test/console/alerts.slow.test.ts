/** Alerts of an account, and its webhook, as its members and operators see them. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import t from 'tap';
import { createKeys } from '../../scripts/operator.js';
import { ConsoleClient } from '../support/console-client.js';
import { SCRIPTED, startService } from '../support/service.js';

t.test('a member sees the alerts and the words of its own account only', async (t) => {
  const messages: { type: string }[] = [];
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (piece: Buffer) => (body += piece.toString()));
    request.on('end', () => {
      messages.push(JSON.parse(body) as { type: string });
      response.end();
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  const { port } = server.address() as AddressInfo;
  const service = await startService(
    t,
    { SYNTHESIS_THREADS: '1', CONSOLE_PORT: '0', WEBHOOK_ALLOW: '127.0.0.1' },
    SCRIPTED,
  );
  const operator = await ConsoleClient.claim(service);
  const { accountId } = await operator.call('createAccount', { name: 'ada', credits: 0 });
  const other = await operator.call('createAccount', { name: 'bob', credits: 5_000 });
  const member = await operator.invited(accountId, 'max');
  const stranger = await operator.invited(other.accountId, 'eve');
  await member.call('createKey', {
    accountId,
    properties: { name: 'web', expiresAtMs: Date.now() + 3 * 86_400_000 },
  });
  await member.call('createKey', {
    accountId,
    properties: { name: 'later', expiresAtMs: Date.now() + 8 * 86_400_000 },
  });
  const expected = [
    { accountId, account: 'ada', cause: 'credit.out' },
    { accountId, account: 'ada', cause: 'keys.expiring', keys: [{ name: 'web' }] },
  ];
  t.match(await member.call('alerts', { accountId }), expected);
  t.match(await operator.call('alerts', { accountId: null }), expected);
  t.equal((await operator.call('alerts', { accountId: null })).length, 2);
  t.strictSame(await stranger.call('alerts', { accountId: other.accountId }), []);
  for (const question of [{ accountId }, { accountId: null }])
    await t.rejects(stranger.call('alerts', question), { message: /: 40[34] / });

  const text = 'All boats are back in the harbour.';
  const small = await operator.call('createAccount', { name: 'cyd', credits: 12 });
  const needy = await operator.call('createKey', { accountId: small.accountId, properties: { name: 'web' } });
  t.strictSame(await operator.call('alerts', { accountId: small.accountId }), []);
  t.equal((await service.post('/v1/tts', { text, voice: 'wren' }, { key: needy.key })).status, 402);
  t.match(await operator.call('alerts', { accountId: small.accountId }), [
    { account: 'cyd', cause: 'credit.out', balance: 12 },
  ]);
  const dry = await operator.call('createAccount', { name: 'dry', credits: 0 });
  const all = await operator.call('alerts', { accountId: null });
  t.strictSame(
    all.map(({ account, cause }) => `${account} ${cause}`),
    ['ada credit.out', 'cyd credit.out', 'dry credit.out', 'ada keys.expiring'],
    'what stops requests comes first',
  );
  await operator.call('deleteAccount', { accountId: dry.accountId });
  await operator.call('credit', { accountId: small.accountId, credits: 5_000 });
  t.strictSame(
    await operator.call('alerts', { accountId: small.accountId }),
    [],
    'there is enough for it now',
  );

  const url = `http://127.0.0.1:${port}/alerts`;
  const { secret } = await member.call('setWebhook', { accountId, url });
  t.match(secret, /^whsec_/);
  await t.rejects(member.call('setWebhook', { accountId, url: 'https://10.0.0.1/' }), {
    message: /internal/,
  });
  await t.rejects(stranger.call('webhook', { accountId }), { message: /: 404 / });
  await t.rejects(stranger.call('setWebhook', { accountId, url: null }), { message: /: 404 / });
  await t.rejects(stranger.call('testWebhook', { accountId }), { message: /: 404 / });
  t.strictSame(await member.call('testWebhook', { accountId }), {
    isDelivered: true,
    result: 'answered 200',
  });
  t.match(messages, [{ type: 'test', account: 'ada' }]);
  await t.rejects(operator.call('testWebhook', { accountId }), {
    message: /: 429 .* every 10 seconds\. Try again in \d+ seconds?/,
  });
  t.equal(messages.length, 1);
  t.match(await operator.call('webhook', { accountId }), { url, lastResult: 'answered 200' });
  const [test, act, ...others] = await operator.call('audit', {
    ...{ beforeId: null, kind: 'account', search: 'WEBHOOK' },
  });
  t.match(test, {
    actor: 'max',
    action: 'account.testWebhook',
    subject: 'ada',
    details: new URL(url).origin,
  });
  t.strictSame(others, [], 'a test that was refused is no act');
  t.match(act, { actor: 'max', action: 'account.webhook', subject: 'ada' });
  t.notMatch(act!.details, /alerts/, 'the path of the address may be a secret');
  t.strictSame(await operator.call('audit', { beforeId: null, kind: 'key', search: 'webhook' }), []);

  for (let change = 2; change <= 10; change++) await member.call('setWebhook', { accountId, url });
  await t.rejects(member.call('setWebhook', { accountId, url }), {
    message: /: 429 .*too often\. Try again in \d+ seconds/,
  });
  t.match(await stranger.call('setWebhook', { accountId: other.accountId, url }), { secret: /^whsec_/ });

  await member.call('addWord', { accountId, word: 'Syrinx', spoken: 'SEER inks' });
  t.match(await member.call('words', { accountId, search: 'seer' }), {
    words: [{ word: 'Syrinx', spoken: 'SEER inks', isOwn: true }],
    found: 1,
  });
  t.match(await stranger.call('words', { accountId: other.accountId, search: '' }), { found: 0 });
  await member.call('removeWord', { accountId, word: 'Syrinx' });
  t.match(await member.call('words', { accountId, search: '' }), { found: 0, own: 0 });
  await t.rejects(member.call('removeWord', { accountId, word: 'Syrinx' }), { message: /: 404 / });

  const csv = await (await operator.ask('/api/audit.csv?kind=lexicon')).text();
  t.match(csv, /^time,action,who,account,what,details\r\n.*lexicon\.remove,max,ada,ada,Syrinx\r\n/);
  t.equal(csv.trim().split('\r\n').length, 3);

  const accounts = Array.from({ length: 51 }, (_, index) => [`shop ${index}`, null] as const);
  await createKeys(service.dataDir, accounts);
  const shops = await (await operator.ask('/api/audit.csv?search=shop')).text();
  t.equal(shops.trim().split('\r\n').length, 103, 'more than a page of the table');
});
