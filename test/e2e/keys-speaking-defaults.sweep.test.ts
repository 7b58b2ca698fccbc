/** Speaking defaults of keys and accounts, over every transport of a service that runs. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { keys as keysProgram } from '../../scripts/keys.js';
import { ConsoleClient } from '../support/console-client.js';
import { ASKED, heardFrom } from '../support/heard.js';
import { runner } from '../support/run-command.js';
import { SCRIPTED, startService, until } from '../support/service.js';

const dialects = { ELEVENLABS_PORT: '0', OPENAI_PORT: '0', WYOMING_PORT: '0', WYOMING_ACCOUNT: 'default' };
const service = await startService(
  t,
  { ...dialects, SYNTHESIS_THREADS: '1', ACTOR_THREADS: '1', CONSOLE_PORT: '0' },
  SCRIPTED,
);
const { dataDir, key } = service;
const heard = heardFrom(service);
const keys = runner(keysProgram, dataDir);
const set = async (...args: string[]): Promise<void> => {
  const { status, stderr } = await keys('set', ...args);
  if (status !== 0) throw new Error(stderr);
};
const create = async (...args: string[]) => (await keys('create', ...args)).stdout.trim();

const written = 'false 1';
const normalised = 'true 1 forty two';

t.test('a key that sets nothing speaks as the specification says, and as each dialect does', async (t) => {
  t.equal(await heard.whole(key), written);
  t.equal(await heard.stream(key), written);
  t.equal(await heard.webhook(key), written);
  t.equal(await heard.client(key), written);
  t.equal(await heard.stream(key, { normalize_text: true }), normalised);
  t.equal(await heard.elevenLabs(key), normalised);
  t.equal(await heard.elevenLabsSocket(key), normalised);
  t.equal(await heard.openAi(key), normalised);
  t.equal(await heard.wyoming(), normalised);
});

t.test('what a key sets holds on every transport, and a field of a request wins', async (t) => {
  const key = await create('--account', 'shop', '--normalize', 'on', '--speed', '1.5');
  const own = 'true 1.5 forty two';
  for (const transport of ['whole', 'stream', 'webhook', 'client', 'elevenLabs', 'openAi'] as const)
    t.equal(await heard[transport](key), own, transport);
  t.equal(await heard.elevenLabsSocket(key), own);
  t.equal(await heard.whole(key, { normalize_text: false }), 'false 1.5');
  t.equal(await heard.stream(key, { normalize_text: false }), 'false 1.5');
  t.equal(await heard.openAi(key, { speed: 1 }), normalised);
  t.equal(await heard.openAi(key, { speed: 0.5 }), 'true 0.5 forty two');
  const settings = { voice_settings: { speed: 1.2 } };
  t.equal(await heard.elevenLabs(key, { ...settings, apply_text_normalization: 'off' }), 'false 1.2');
  t.equal(await heard.elevenLabsSocket(key, '&apply_text_normalization=off', settings), 'false 1.2');

  await set(key, '--normalize', 'off', '--speed', 'default');
  for (const transport of ['whole', 'webhook', 'client', 'elevenLabs', 'openAi'] as const)
    t.equal(await heard[transport](key), written, `${transport}, at once`);
  t.equal(await heard.elevenLabsSocket(key), written);
  t.equal(await heard.elevenLabs(key, { apply_text_normalization: 'auto' }), written, 'left to the service');
  t.equal(await heard.elevenLabs(key, { apply_text_normalization: 'on' }), normalised);
  t.equal(await heard.stream(key, { normalize_text: true }), normalised);
});

t.test('an account sets what its keys do not, and Wyoming has that of its account', async (t) => {
  const [plain, strict] = [await create('--account', 'bell'), await create('--account', 'bell')];
  await set('bell', '--normalize', 'on', '--speed', '0.8');
  await set(strict, '--normalize', 'off');
  t.equal(await heard.webhook(plain), 'true 0.8 forty two');
  t.equal(await heard.webhook(strict), 'false 0.8');
  t.equal(await heard.webhook(key), written, 'another account');
  await set('default', '--normalize', 'off', '--speed', '1.1');
  t.equal(await heard.wyoming(), 'false 1.1');
  await set('default', '--normalize', 'default', '--speed', 'default');
  t.equal(await heard.wyoming(), normalised);
});

t.test('an open context of a WebSocket follows within a second, with a whole utterance', async (t) => {
  const key = await create('--account', 'shop');
  const { client, next } = await heard.context(key);
  t.teardown(() => client.close());
  t.equal(await next(), written);
  await set(key, '--normalize', 'on', '--speed', '2');
  t.ok(await until(async () => (await next()) === 'true 2 forty two'));
  // The second sentence comes when the key has changed, in the same utterance.
  client.text('a', `${ASKED} And then we`);
  await set(key, '--speed', '0.5');
  const other = await heard.context(key);
  t.teardown(() => other.client.close());
  t.equal(await other.next(), 'true 0.5 forty two', 'the service knows it');
  t.equal(await next(` walked. ${ASKED}`), 'true 2 forty twoAnd then we walked. true 2 forty two');
  t.equal(await next(), 'true 0.5 forty two');
});

t.test('a key names a lexicon, whose words come first', async (t) => {
  const folder = join(dataDir, 'lexicons');
  for (const name of ['named/tea', 'accounts/shop']) mkdirSync(join(folder, name), { recursive: true });
  writeFileSync(join(folder, 'named/tea/words.txt'), 'kettle = teapot\n');
  writeFileSync(join(folder, 'accounts/shop/words.txt'), 'kettle = samovar\n');
  const key = await create('--account', 'shop', '--lexicon', 'tea');
  t.equal(await heard.webhook(key), written, 'it is not read yet');
  t.match(
    await service.untilLogged(
      'a key names a lexicon that was not there, or had no words, when the lexicons were read',
    ),
    { lexicon: join(folder, 'named/tea') },
  );
  service.signal('SIGHUP');
  await service.untilLogged('lexicons read');
  t.equal(await heard.webhook(key), 'false 1 teapot.');
  t.equal(await heard.client(key), 'false 1 teapot.');
  t.equal(await heard.openAi(key, { speed: 1 }), 'true 1 forty two teapot.');
  await set(key, '--lexicon', 'default');
  t.equal(await heard.webhook(key), 'false 1 samovar.');
});

t.test('the console sets the same: members for their keys, operators for accounts', async (t) => {
  const operator = await ConsoleClient.claim(service);
  const { accountId } = await operator.call('createAccount', { name: 'radio', credits: null });
  const member = await operator.invited(accountId, 'mia');
  const properties = { speed: 1.25, lexiconId: 'tea' };
  const { key, view } = await member.call('createKey', { accountId, properties });
  t.match(view, { ...properties, normalizeText: null });
  t.equal(await heard.webhook(key), 'false 1.25 teapot.');
  await member.call('changeKey', { keyId: view.keyId, changes: { normalizeText: true, speed: null } });
  t.equal(await heard.webhook(key), 'true 1 forty two teapot.');
  await t.rejects(member.call('changeAccount', { accountId, changes: { speed: 1 } }), /403 forbidden/);
  t.match(await operator.call('changeAccount', { accountId, changes: { speed: 0.75 } }), { speed: 0.75 });
  t.equal(await heard.webhook(key), 'true 0.75 forty two teapot.');
  t.match(await member.call('account', { accountId }), { speed: 0.75 });
  t.strictSame(await member.call('lexicons', {}), ['tea']);
  for (const changes of [{ lexiconId: 'planes' }, { speed: 3 }])
    await t.rejects(member.call('changeKey', { keyId: view.keyId, changes }), /400 badRequest/);
  t.match(await operator.call('audit', { beforeId: null }), [
    { actor: 'olga', action: 'account.change', subject: 'radio', details: 'speed 0.75' },
    { actor: 'mia', action: 'key.change', details: 'account "radio"; normalize on; speed not set' },
    { actor: 'mia', action: 'key.create', details: 'account "radio"; speed 1.25; lexicon "tea"' },
  ]);
});
