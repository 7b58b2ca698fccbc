/** People at the console of a running service: they claim it, invite, make keys, revoke them and sign out. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { pause, speech, until } from '../support/service.js';
import { openWs } from '../support/socket-client.js';
import { ask, noBrowser, password, type Person, startConsole, type Rig } from './browser-rig.js';

/** @returns the status of a request with this key */
const speakWith = async ({ service }: Rig, key: string): Promise<number> => {
  const response = await service.post('/v1/tts', speech('Hello there.'), { key });
  await response.arrayBuffer();
  return response.status;
};

const complainsOfNothing = (t: Test, person: Person) =>
  t.strictSame(person.complaints, [], 'nothing on the browser’s console');

t.test('people use the console from the claim to the last sign-out', { skip: noBrowser }, async (t) => {
  const rig = await startConsole(t);
  const ada = await rig.arrive();
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
