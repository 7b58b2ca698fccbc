/**
 * People at the console of a running service: they claim it, read the API and try it, connect programs, invite, make keys and
 * tokens, revoke them and sign out.
 */
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Locator } from 'playwright-core';
import t, { type Test } from 'tap';
import { freeDialectPorts } from '../../scripts/rig/service.js';
import { openApiDocument } from '../../src/api/openapi.js';
import { operations } from '../../src/api/operations.js';
import { limits } from '../../src/limits.js';
import { pause, speech, until } from '../support/service.js';
import { openWs } from '../support/socket-client.js';
import { missingTool } from '../support/tools.js';
import { ask, noBrowser, password, type Person, startConsole, type Rig } from './browser-rig.js';

const skip = missingTool('curl', 'python3');

/** @returns the status of a request with this key */
const speakWith = async ({ service }: Rig, key: string): Promise<number> => {
  const response = await service.post('/v1/tts', speech('Hello there.'), { key });
  await response.arrayBuffer();
  return response.status;
};

const complainsOfNothing = (t: Test, person: Person) =>
  t.strictSame(person.complaints, [], 'nothing on the browser’s console');

t.test('people use the console from the claim to the last sign-out', { skip: noBrowser }, async (t) => {
  const rig = await startConsole(t, freeDialectPorts);
  const ada = await rig.arrive();
  const { page } = ada;
  const mia = await rig.arrive({ phone: true, dark: true });
  let accountId = 0;
  let invitation = '';

  await t.test('before the claim, the page says where the link is', async (t) => {
    await mia.page.goto('/');
    await mia.sees('Not claimed yet');
    t.match(await mia.page.getByRole('main').innerText(), /npm run console -- link/);
  });

  await t.test('the operator claims the console with the link of the first start', async (t) => {
    await ada.page.goto(rig.claimLink);
    await ada.sees('Welcome');
    await ada.field('Your name').fill('Ada');
    await ada.field('Password').fill('short');
    await ada.button('Claim this console').click();
    await ada.page.locator('input[name=password]:invalid:focus').waitFor();
    t.equal(await ada.heading('Welcome').count(), 1, 'a short password is not sent');
    await ada.join(rig.claimLink, 'Ada', 'Claim this console');
    const hash = () => ada.page.evaluate('location.hash');
    t.ok(await until(async () => (await hash()) === ''), 'the token is gone from the address');
  });

  await t.test('the spent link is refused', async (t) => {
    await mia.page.goto(rig.claimLink);
    await mia.field('Your name').fill('Mallory');
    await mia.field('Password').fill(password);
    await mia.button('Set password').click();
    t.match(await mia.alert(), /link/i);
  });

  const article = (path: string): Locator =>
    page.locator('article').filter({ has: page.getByText(path, { exact: true }) });
  const tryIt = async (
    path: string,
    body?: string,
  ): Promise<{ readonly status: string; readonly shown: Locator }> => {
    const shown = article(path);
    await shown.getByText('Try it', { exact: true }).click();
    if (body !== undefined) await shown.getByLabel('Body', { exact: true }).fill(body);
    await shown.getByRole('button', { name: 'Send' }).click();
    const answer = shown.getByRole('status');
    await answer.waitFor();
    return { status: (await answer.locator('.badge').first().innerText()).slice(0, 3), shown: answer };
  };

  await t.test('every operation, field, status and example of the document is on the page', async (t) => {
    await page.goto('/docs');
    await ada.sees('API');
    await article('/v1/tts').waitFor();
    for (const { path } of Object.values(operations)) t.equal(await article(path).count(), 1, path);
    for (const summary of await page.getByText(/^(?:Request|Answers)$/).all()) {
      await summary.click();
      // The event that draws it comes later.
      await summary.locator('xpath=following-sibling::div').waitFor();
    }
    const text = await page.getByRole('main').innerText();
    const document = openApiDocument(['wren'], limits) as {
      paths: Record<string, Record<string, { responses: object }>>;
      components: { schemas: Record<string, { properties?: object }> };
    };
    for (const { properties = {} } of Object.values(document.components.schemas))
      for (const field of Object.keys(properties)) t.match(text, field, field);
    for (const methods of Object.values(document.paths))
      for (const { responses } of Object.values(methods))
        for (const status of Object.keys(responses)) t.match(text, status, status);
    t.match(text, 'from 0.5 to 3');
    t.match(text, 'The 3rd train leaves at 9:45.');
    t.strictSame(await ada.violations(), [], 'axe, with all of it open');
    t.equal((await ada.layout()).overflowPx, 0);
  });

  await t.test('each operation is tried with the hidden key of the account', async (t) => {
    const whole = await tryIt('/v1/tts');
    t.equal(whole.status, '200');
    const audio = whole.shown.locator('audio');
    // The policy of the page forbids what `waitForFunction` does with a text.
    const isHeard = `(({ readyState, duration }) => readyState >= 1 && duration > 0.3)(document.querySelector('article audio'))`;
    t.ok(await until(() => page.evaluate<boolean>(isHeard)), 'the answer is heard');
    t.equal(await audio.count(), 1);
    const streamed = await tryIt('/v1/tts/stream', '{"text": "One two three.", "voice": "lark"}');
    t.equal(streamed.status, '200');
    t.match(await streamed.shown.innerText(), /data: \{"type":"audio".*x?/);
    t.match(await streamed.shown.innerText(), /x-request-id [\da-f-]{36}/);
    const wrong = await tryIt('/v1/tts/integrations/voiceplatform', '{"message": {"type": "voice-request"}}');
    t.equal(wrong.status, '422');
    t.match(await wrong.shown.innerText(), /"loc":\["body","message","text"\]/);
    t.match(await (await tryIt('/v1/tts/speakers')).shown.innerText(), /"wren"/);
    t.match(await (await tryIt('/readyz')).shown.innerText(), /"ready"/);
    t.match(await (await tryIt('/openapi.json')).shown.innerText(), /"openapi":"3\.1\.0"/);
    await page.goto('/accounts/1/usage');
    await page.getByText('Playground').nth(1).waitFor();
  });

  await t.test('the calls of administration are described', async (t) => {
    await page.goto('/docs');
    await page.getByRole('tab', { name: 'Administration' }).click();
    await article('/api/browserToken').waitFor();
    await article('/api/createKey').getByText('Request', { exact: true }).click();
    await article('/api/createKey').getByText('properties.creditLimit').first().waitFor();
    t.equal(await article('/api/createKey').getByText('Try it').count(), 0);
    t.strictSame(await ada.violations(), []);
  });

  const lines = (label: string): Promise<string> => page.getByLabel(label, { exact: true }).innerText();
  const folder = mkdtempSync(join(tmpdir(), 'connect-'));
  t.teardown(() => rmSync(folder, { recursive: true }));

  await page.goto('/connect');
  await ada.sees('Connect');
  await ada.field('API key').fill(rig.service.key);

  await t.test('the lines for curl, Node and Python speak as they are copied', { skip }, async (t) => {
    for (const name of ['curl', 'Node', 'Python'])
      t.ok(await until(async () => (await lines(`With ${name}`)).includes(rig.service.key)));
    writeFileSync(join(folder, 'node.mjs'), await lines('With Node'));
    writeFileSync(join(folder, 'python.py'), await lines('With Python'));
    const programs = {
      curl: ['sh', '-c', await lines('With curl')],
      node: [process.execPath, 'node.mjs'],
      python: ['python3', 'python.py'],
    };
    for (const [name, [command = '', ...args]] of Object.entries(programs)) {
      rmSync(join(folder, 'speech.mp3'), { force: true });
      const { status, stderr } = spawnSync(command, args, { cwd: folder, encoding: 'utf8' });
      t.equal(status, 0, `${name} ${stderr}`);
      const audio = readFileSync(join(folder, 'speech.mp3'));
      t.ok(audio.length > 8_000 && audio[0] === 0xff, name);
    }
  });

  await t.test('the addresses for clients of other services answer', async (t) => {
    const { dialectPorts, key } = rig.service;
    const [, liveKit = ''] = /baseURL: '([^']+)'/.exec(await lines('With LiveKit Agents')) ?? [];
    t.equal(liveKit, `http://127.0.0.1:${dialectPorts['elevenlabs']}/v1`);
    t.equal((await fetch(`${liveKit}/voices`, { headers: { 'xi-api-key': key } })).status, 200);
    t.match(await lines('With Pipecat'), `url="ws://127.0.0.1:${dialectPorts['elevenlabs']}"`);
    const webUi = await lines('Address for Open WebUI');
    t.equal((await fetch(`${webUi}/audio/voices`)).status, 200);
    t.equal(await lines('Key for Open WebUI'), key);
    const socket = connect(
      Number(await lines('Port for Home Assistant')),
      await lines('Host for Home Assistant'),
    );
    socket.write('{"type":"describe"}\n');
    const [answer] = (await once(socket, 'data')) as [Buffer];
    t.match(answer.toString(), '"info"');
    socket.destroy();
    await ada.field('Host').fill('speech.example.com');
    const address = `http://speech.example.com:${rig.service.port}/v1/tts/stream`;
    t.ok(await until(async () => (await lines('With curl')).includes(address)));
    t.strictSame(await ada.violations(), []);
  });

  await t.test('a token is made, used and revoked', async (t) => {
    await page.goto('/profile');
    await ada.button('Create token').click();
    await page.getByRole('dialog').getByLabel('Name').fill('billing');
    await page.getByRole('dialog').getByRole('button', { name: 'Create token' }).click();
    const token = await lines('Token');
    await ada.button('I have copied the token').click();
    const status = async (): Promise<number> =>
      (
        await fetch(`${rig.url}/api/accounts`, {
          method: 'POST',
          headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
          body: '{}',
        })
      ).status;
    t.equal(await status(), 200);
    t.strictSame(await ada.violations(), []);
    await ada.button('Revoke billing').click();
    await ada.button('Revoke token').click();
    await page.getByRole('rowheader', { name: 'billing' }).waitFor({ state: 'detached' });
    t.equal(await status(), 401);
  });

  await t.test('an account gets a key, which speaks until it is revoked', async (t) => {
    accountId = await ada.createAccount('Harbour Radio');
    await ada.page.getByText('No keys yet').waitFor();
    const key = await ada.createKey('Phone line');
    t.equal(await speakWith(rig, key), 200);
    t.notOk((await ada.page.content()).includes(key), 'the key is no longer in the page');

    await ada.button('Revoke Phone line').click();
    await ada.button('Cancel').click();
    t.equal(await speakWith(rig, key), 200, 'until the operator confirms');
    await ada.button('Revoke Phone line').click();
    await ada.button('Revoke key').click();
    await ada.page.getByText('Key revoked.').waitFor();
    t.equal(await speakWith(rig, key), 401);
  });

  await t.test('a name that is taken is refused at its field', async (t) => {
    await ada.page.goto('/accounts');
    await ada.button('Create account').click();
    const name = ada.page.getByRole('dialog').getByLabel('Name');
    await name.fill('Harbour Radio');
    await ada.page.getByRole('dialog').getByRole('button', { name: 'Create account' }).click();
    await ada.page.locator('[aria-invalid=true]').waitFor();
    t.equal(await name.inputValue(), 'Harbour Radio', 'what was typed stays');
    await ada.page.locator('input[name=name]:focus').waitFor();
    await ada.page.keyboard.press('Escape');
    await ada.page.getByRole('dialog').waitFor({ state: 'detached' });
    const focused = () => ada.page.evaluate('document.activeElement.textContent');
    t.ok(await until(async () => (await focused()) === 'Create account'), 'the focus is back where it was');
  });

  await t.test('the keyboard alone creates a key, and copies it', async (t) => {
    const { keyboard } = ada.page;
    const focused = () => ada.page.evaluate<string>('document.activeElement.textContent');
    const tabTo = async (text: string) => {
      for (let count = 0; count < 40 && (await focused()) !== text; count++) await keyboard.press('Tab');
      t.equal(await focused(), text);
    };
    await ada.page.goto(`/accounts/${accountId}/keys`);
    await ada.page.getByText('1 revoked key').waitFor();
    await ada.page.locator('h1:focus').waitFor();
    await tabTo('Create key');
    await keyboard.press('Enter');
    await ada.page.locator('dialog input[name=name]:focus').waitFor();
    await keyboard.type('Keyboard');
    await keyboard.press('Enter');
    const key = (await ada.page.getByLabel('Key', { exact: true }).innerText()).trim();
    t.ok(await until(async () => (await focused()).trim() === key), 'the key has the focus, and is read out');
    await keyboard.press('Tab');
    await keyboard.press('Enter');
    await ada.page.getByText('Copied', { exact: true }).waitFor();
    t.equal(await ada.page.evaluate('navigator.clipboard.readText()'), key);
    await keyboard.press('Escape');
    await keyboard.press('Escape');
    t.equal(await ada.heading('Harbour Radio').count(), 1);
    t.equal(await ada.page.getByRole('dialog').count(), 1, 'Escape does not throw the key away');
    await tabTo('I have copied the key');
    await keyboard.press('Enter');
    await ada.page.getByRole('dialog').waitFor({ state: 'detached' });
    t.ok(
      await until(async () => (await focused()) === 'Harbour Radio'),
      'the button of the empty list is gone: the heading has the focus',
    );
  });

  await t.test('two people who change different things of a key do not undo each other', async (t) => {
    await ada.button('Change Keyboard').click();
    await ada.page.getByRole('dialog').getByLabel('Name').fill('Desk');
    const [key] = (await ask(ada.page, 'keys', { accountId })).filter(({ name }) => name === 'Keyboard');
    await ask(ada.page, 'changeKey', { keyId: key!.keyId, changes: { creditLimit: 77 } });
    await ada.button('Save').click();
    await ada.page.getByText('Key changed.').waitFor();
    const [changed] = (await ask(ada.page, 'keys', { accountId })).filter(({ name }) => name === 'Desk');
    t.match(changed, { keyId: key!.keyId, creditLimit: 77, voices: null });
  });

  await t.test('a key and its account get speaking defaults, which the lists show', async (t) => {
    const { service } = rig;
    const folder = join(service.dataDir, 'lexicons/named/boats');
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'words.txt'), 'quay = key\n');
    const readings = service.logged('lexicons read').length;
    service.signal('SIGHUP');
    await service.untilLogged('lexicons read', readings + 1);
    const dialog = ada.page.getByRole('dialog');
    await ada.button('Change Desk').click();
    await dialog.getByLabel('Numbers and dates').selectOption('Spoken as words');
    await dialog.getByLabel('Speed').fill('2.5');
    await dialog.getByLabel('Lexicon').selectOption('boats');
    await ada.button('Save').click();
    await dialog.locator('input[name=speed]:invalid:focus').waitFor();
    t.equal(await dialog.count(), 1, 'a speed beyond the range is not sent');
    await dialog.getByLabel('Speed').fill('1.25');
    await ada.button('Save').click();
    await dialog.waitFor({ state: 'detached' });
    for (const words of ['Numbers as words', 'Speed 1.25', 'Lexicon boats'])
      await ada.page.getByRole('row', { name: /Desk/ }).getByText(words).waitFor();

    await ada.page.goto(`/accounts/${accountId}/manage`);
    await ada.page.getByText('The account sets nothing for its keys.').waitFor();
    await ada.button('Change speech').click();
    await dialog.getByLabel('Numbers and dates').selectOption('As they are written');
    await dialog.getByLabel('Speed').fill('0.9');
    await ada.button('Save').click();
    await ada.page.getByText('Numbers as written, Speed 0.9').waitFor();
    t.match(await ask(ada.page, 'account', { accountId }), {
      ...{ normalizeText: false, speed: 0.9, lexiconId: null },
    });

    await ada.page.goto(`/accounts/${accountId}/keys`);
    await ada.page.getByText('Where a key sets nothing: Numbers as written, Speed 0.9.').waitFor();
    await ada.button('Change Desk').click();
    await dialog.getByLabel('Speed').fill('');
    await dialog.getByLabel('Lexicon').selectOption('As the account');
    await ada.button('Save').click();
    await dialog.waitFor({ state: 'detached' });
    const keys = await ask(ada.page, 'keys', { accountId });
    t.match(
      keys.find(({ name }) => name === 'Desk'),
      { normalizeText: true, speed: null, lexiconId: null },
      'an empty field leaves it to the account again',
    );
  });

  await t.test('a key that is revoked while it speaks: its WebSocket is closed', async (t) => {
    const key = await ada.createKey('Radio');
    const client = await openWs(rig.service.port, key);
    client.start('a', { voice_id: 'wren' });
    const heard = () => client.frames.filter(({ audio_chunk }) => audio_chunk !== undefined).length;
    const speak = async (): Promise<void> => {
      while (client.closed === null) {
        client.text('a', 'And one more. ');
        await pause(20);
      }
    };
    const speaking = speak();
    t.ok(await until(() => heard() > 3));
    await ada.button('Revoke Radio').click();
    const before = heard();
    t.ok(await until(() => heard() > before), 'it speaks until then');
    await ada.button('Revoke key').click();
    t.match(await client.closing(), { code: 1008, reason: 'INVALID_API_KEY' });
    await speaking;
  });

  await t.test('an account without a limit gets one, and loses it again', async (t) => {
    await ada.button('Limit credit').click();
    await ada.page.getByRole('dialog').getByLabel('Credits').fill('5000');
    await ada.page.getByRole('dialog').getByRole('button', { name: 'Limit credit' }).click();
    await ada.page.getByRole('dialog').waitFor({ state: 'hidden' });
    await ada.page.getByText('5,000 credits left').waitFor();
    await ada.button('Add credit').waitFor();
    await ada.page.goto(`/accounts/${accountId}/manage`);
    await ada.button('Remove limit').click();
    await ada.page.getByRole('dialog').getByRole('button', { name: 'Remove limit' }).click();
    await ada.button('Limit credit').waitFor();
    t.equal(await ada.button('Remove limit').count(), 0);
  });

  await t.test('an invited member sees its account and no other', async (t) => {
    await ada.page.goto(`/accounts/${accountId}/users`);
    await ada.button('Invite a user').click();
    invitation = (await ada.page.getByLabel('Link', { exact: true }).innerText()).trim();
    await mia.page.goto(invitation);
    await mia.page.getByText('Harbour Radio').waitFor();
    t.ok(await until(() => mia.page.locator('input[name=name]:focus').isVisible()), 'one can type at once');
    await mia.join(invitation, 'Mia', 'Join');
    for (const path of ['/accounts', '/live', '/audit', '/operators', '/usage']) {
      await mia.page.goto(path);
      await mia.sees('There is no such page');
    }
    await mia.page.goto('/accounts/1/keys');
    await mia.sees('There is no such account');
    t.equal(await mia.button('Create key').count(), 0);
  });

  await t.test('an invitation works once', async () => {
    const other = await rig.arrive();
    await other.page.goto(invitation);
    await other.sees('This invitation cannot be used');
    await other.leave();
  });

  await t.test('an open invitation is listed, and no longer works once it is withdrawn', async (t) => {
    await ada.page.goto(`/accounts/${accountId}/users`);
    await ada.page.getByText('Mia').waitFor();
    t.strictSame(await ask(ada.page, 'invitations', { accountId }), [], 'the spent one is not open');
    t.ok(await until(async () => (await ada.button('Withdraw').count()) === 0));
    await ada.button('Invite a user').click();
    const link = (await ada.page.getByLabel('Link', { exact: true }).innerText()).trim();
    await ada.button('Close').click();
    await ada.page.getByText('An invitation is open, to become').waitFor();
    await ada.button('Withdraw').click();
    await ada.button('Withdraw invitations').click();
    await ada.page.getByText('An invitation is open, to become').waitFor({ state: 'detached' });
    const other = await rig.arrive();
    await other.page.goto(link);
    await other.sees('This invitation cannot be used');
    await other.leave();
  });

  await t.test('a member makes a key on a phone, and signs out', async (t) => {
    await mia.page.goto('/');
    await mia.button('Menu').click();
    await mia.page.getByRole('link', { name: 'Keys', exact: true }).click();
    await mia.sees('Keys');
    t.equal(await speakWith(rig, await mia.createKey('Door')), 200);
    await mia.button('Menu').click();
    await mia.button('Sign out').click();
    await mia.sees('Sign in');
    await mia.page.goto(`/accounts/${accountId}/keys`);
    await mia.sees('Sign in');
    await mia.signIn('mia');
    await mia.sees('Keys');
    // Back where she wanted to go.
    await mia.page.waitForURL(`/accounts/${accountId}/keys`);
  });

  await t.test('a wrong password is refused in words that name no user', async (t) => {
    const other = await rig.arrive();
    await other.page.goto('/sign-in');
    await other.field('Name').fill('Ada');
    await other.field('Password').fill('wrong and wrong');
    await other.button('Sign in').click();
    t.match(
      await other.page.locator('.field-problem, [role=alert]').first().innerText(),
      /name or .*password/i,
    );
    await other.leave();
  });

  await t.test('sign out everywhere ends the other sessions', async (t) => {
    const elsewhere = await rig.arrive();
    await elsewhere.page.goto('/sign-in');
    await elsewhere.signIn('Ada');
    await elsewhere.sees('Playground');
    await ada.page.goto('/profile');
    await ada.button('Sign out everywhere').click();
    await ada.page.getByRole('dialog').getByRole('button', { name: 'Sign out everywhere' }).click();
    await ada.sees('Sign in');
    await elsewhere.page.getByRole('link', { name: 'Accounts', exact: true }).click();
    await elsewhere.sees('Sign in');
    complainsOfNothing(t, elsewhere);
    await elsewhere.leave();
  });

  await t.test('removing a user ends its session', async () => {
    await ada.signIn('ada');
    await ada.sees('Playground');
    await ada.page.goto(`/accounts/${accountId}/users`);
    await ada.button('Remove Mia').click();
    await ada.button('Remove user').click();
    await ada.page.getByText('No users yet').waitFor();
    await mia.page.reload();
    await mia.sees('Sign in');
  });

  await t.test('the audit page lists all of these acts', async (t) => {
    await ada.page.goto('/audit');
    await ada.page.getByRole('table').waitFor();
    const text = await ada.page.getByRole('table').innerText();
    for (const word of ['Harbour Radio', 'Ada', 'Mia', 'Key revoked', 'Key created']) t.match(text, word);
  });

  complainsOfNothing(t, ada);
  complainsOfNothing(t, mia);
});
