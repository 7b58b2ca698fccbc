/** What users find in every page: why a request failed, filters that stay, colours, ways out of dead ends, words and alerts. */
import t from 'tap';
import type { Answer } from '../../src/console/contract.js';
import { speech, until } from '../support/service.js';
import { ask, noBrowser, password, startConsole } from './browser-rig.js';

t.test('a user finds and keeps what the page shows', { skip: noBrowser }, async (t) => {
  const rig = await startConsole(t);
  const ada = await rig.arrive();
  const { page } = ada;
  await ada.join(rig.claimLink, 'Ada', 'Claim this console');

  await t.test(
    'a request that was refused is found by its key and status, with its id and why',
    async (t) => {
      await ada.createAccount('Tea Shop');
      const key = await ada.createKey('Phone line');
      const other = await ada.createKey('Website');
      const post = async (body: object, withKey: string) => {
        const answer = await rig.service.post('/v1/tts', body, { key: withKey });
        await answer.arrayBuffer();
        return answer.headers.get('x-request-id') ?? '';
      };
      for (let index = 0; index < 120; index++) await post(speech('Hello.'), other);
      const id = await post({ text: 'A secret text.', voice: 'nobody' }, key);
      await post(speech('Hello.'), key);

      await ada.page.getByRole('link', { name: 'Requests' }).last().click();
      const table = ada.page.getByRole('table', { name: 'Requests, the newest first' });
      const rows = table.locator('tbody tr');
      const hasRows = (count: number) => until(async () => (await rows.count()) === count);
      await rows.first().waitFor();
      t.equal(await rows.count(), 50, 'a page');
      await ada.button('Show more').click();
      t.ok(await hasRows(100));
      await ada.button('Show more').click();
      await ada.page.getByText('No older ones.').waitFor();
      t.equal(await rows.count(), 122);

      const keys = ada.page.getByRole('combobox', { name: 'Key' });
      await keys.selectOption(await keys.getByText(/^Phone line \(svc_sk_\w+\)$/).getAttribute('value'));
      t.ok(await hasRows(2));
      await ada.page.getByRole('combobox', { name: 'Status' }).selectOption({ label: 'Refused' });
      t.ok(await hasRows(1));
      await ada.page.waitForURL(/\/requests\?key=\d+&status=refused$/);
      t.match(await rows.first().innerText(), /Phone line[^]*\/v1\/tts[^]*Voice unknown[^]*422/);

      // Anywhere in the row.
      await rows.first().getByText('422').click();
      const dialog = ada.page.getByRole('dialog', { name: 'Voice unknown' });
      await dialog.getByText('The voice does not exist, or the key may not use it.').waitFor();
      await dialog.getByText(id).waitFor();
      t.strictSame(await ada.violations(), [], 'axe');
      await ada.page.keyboard.press('Escape');
      await dialog.waitFor({ state: 'detached' });

      await ada.page.reload();
      await rows.first().waitFor();
      t.equal(await rows.count(), 1, 'the address has the filters');
      await ada.page.getByRole('combobox', { name: 'Status' }).selectOption({ label: 'Failed' });
      await ada.page.getByText('No such request').waitFor();
      await ada.button('Show all').click();
      t.ok(await hasRows(50));
      t.notMatch(await ada.page.content(), /secret/);

      await ada.page.route('**/api/requests', async (route) => {
        const response = await route.fetch();
        const answer = (await response.json()) as Answer<'requests'>;
        const early = answer.rows.map((row) => ({ ...row, atMs: Date.UTC(2026, 0, 2, 0, 5, 9) }));
        await route.fulfill({ response, json: { ...answer, rows: early } });
      });
      await ada.page.setViewportSize({ width: 1_920, height: 1_080 });
      await ada.page.reload();
      await rows.first().waitFor();
      t.equal(
        (await rows.first().locator('th').innerText()).trim(),
        '00:05:09\n2 Jan 2026',
        'as British readers write it',
      );
      t.ok((await table.boundingBox())!.width > 1_200, 'the table has the room that the window has');
      t.ok((await rows.first().boundingBox())!.height < 80, 'no cell has more than its two lines');
      await ada.page.unroute('**/api/requests');
      await ada.changesTo({});

      const mia = await rig.arrive({ phone: true });
      await ada.page.getByRole('link', { name: 'Users' }).last().click();
      await ada.button('Invite a user').first().click();
      const link = await ada.page.getByRole('dialog').locator('pre').innerText();
      await mia.join(link.trim(), 'Mia', 'Join');
      await mia.button('Menu').click();
      await mia.page.getByRole('link', { name: 'Requests' }).click();
      await mia.sees('Requests');
      await mia.page.locator('.requests tbody tr').first().waitFor();
      t.equal((await mia.layout()).overflowPx, 0);
      await mia.page.goto('/requests');
      await mia.sees('There is no such page');
      t.strictSame(mia.complaints, []);
      await mia.leave();
      await page.goto('/playground');
    },
  );

  const { accountId } = await ask(page, 'createAccount', { name: 'Harbour Radio', credits: 0 });
  await ask(page, 'createAccount', { name: '=1+1', credits: null });
  const background = () => page.evaluate('getComputedStyle(document.documentElement).backgroundColor');

  await t.test('the chosen colours hold after a reload, from the first paint on', async (t) => {
    const light = await background();
    await page.getByText('Dark', { exact: true }).click();
    t.ok(await until(async () => (await background()) !== light));
    const dark = await background();
    await page.reload();
    t.equal(await background(), dark);
    const html = await page.evaluate<string>("fetch('/').then((response) => response.text())");
    t.match(html, /<meta name="color-scheme" content="dark" \/>/, 'the server writes them');
    await page.getByText('System', { exact: true }).click();
    t.ok(await until(async () => (await background()) === light));
  });

  await t.test('filters are in the address: a reload and the way back keep them', async (t) => {
    await page.goto('/accounts');
    await ada.field('Search accounts').fill('harb');
    await page.waitForURL(/search=harb/);
    await ada.field('State').selectOption('Out of credit');
    await page.waitForURL(/state=empty/);
    await page.reload();
    await page.getByRole('link', { name: 'Harbour Radio' }).click();
    await ada.sees('Harbour Radio');
    await page.goBack();
    await ada.sees('Accounts');
    t.equal(await ada.field('Search accounts').inputValue(), 'harb');
    t.ok(await until(async () => (await page.getByRole('row').count()) === 2));
    t.strictSame(await ada.violations(), []);
  });

  await t.test('the file of accounts has no formula', async (t) => {
    await page.goto('/accounts');
    await page.getByText('=1+1').waitFor();
    const [download] = await Promise.all([page.waitForEvent('download'), ada.button('CSV').click()]);
    const text = (await (await download.createReadStream()).toArray()).join('');
    t.match(text, /\r\n'=1\+1,active,/);
  });

  await t.test('changes are found by search and kind', async (t) => {
    await page.goto('/audit?kind=account&search=harbour');
    await page.getByText('Account created').first().waitFor();
    t.equal(await page.getByRole('row').count(), 2);
    t.match(
      await page.getByRole('link', { name: 'CSV' }).getAttribute('href'),
      /search=harbour&kind=account/,
    );
  });

  await t.test('amounts and times of changes are written as the browser writes them', async () => {
    await ask(page, 'createAccount', { name: 'Lighthouse', credits: 1_000 });
    await page.goto('/audit?search=lighthouse');
    await page.getByText('1,000 credits', { exact: true }).waitFor();
    await ask(page, 'createToken', { name: 'Billing', days: 7 });
    await page.goto('/audit?search=billing');
    await page.getByText(/^until \d+ \w+ \d{4}, \d\d:\d\d$/).waitFor();
  });

  await t.test('the pages after that of an account show this account', async (t) => {
    const shown = page.getByRole('combobox', { name: 'Account' });
    await page.goto(`/accounts/${accountId}/keys`);
    await ada.sees('Harbour Radio');
    for (const name of ['Playground', 'Lexicon', 'Keys']) {
      await page
        .getByRole('navigation', { name: 'Console' })
        .getByRole('link', { name, exact: true })
        .click();
      await ada.sees(name);
      t.equal(await shown.inputValue(), String(accountId), name);
      await page.reload();
      await ada.sees(name);
      t.equal(await shown.inputValue(), String(accountId), `${name}, after a reload`);
    }
  });

  await t.test('an account without credit gets some where it is missed', async () => {
    await page.goto(`/playground?account=${accountId}`);
    await page.getByText('has no credit left').waitFor();
    await ada.button('Add credit').click();
    await ada.field('Credits to add').fill('700');
    await page.getByRole('dialog').getByRole('button', { name: 'Add credit' }).click();
    await page.getByText('has no credit left').waitFor({ state: 'detached' });
  });

  await t.test('an account that is not there, and a spent invitation, have a way out', async (t) => {
    await page.goto('/accounts/4000/keys');
    await ada.sees('There is no such account');
    const { account, role, url } = await ask(page, 'invite', { accountId });
    t.strictSame({ account, role }, { account: 'Harbour Radio', role: 'member' });
    const max = await rig.arrive({ phone: true });
    await max.join(url, 'Max', 'Join');
    const late = await rig.arrive();
    await late.page.goto(url);
    await late.sees('This invitation cannot be used');
    t.strictSame(await late.violations(), []);
    await late.page.getByRole('link', { name: 'Sign in' }).click();
    await late.field('Name').fill('Max');
    await late.field('Password').fill(password);
    await late.button('Sign in').click();
    await late.sees('Playground');
  });

  await t.test('an empty period says so', async (t) => {
    await page.goto(`/accounts/${accountId}/usage?period=7+days`);
    await page.getByText('Nothing was spoken in the last 7 days').waitFor();
    t.strictSame(await ada.violations(), []);
  });

  await t.test('a word is heard, added, found and removed', async (t) => {
    await page.goto(`/lexicon?account=${accountId}`);
    await ada.field('Word').fill('Syrinx');
    await ada.field('Say it as').fill('SEER inks');
    const heard = page.waitForResponse(/api\/hear/);
    await ada.button('Hear it').click();
    t.equal((await heard).status(), 200);
    await ada.button('Add to the lexicon').click();
    await page.getByRole('rowheader', { name: 'Syrinx' }).waitFor();
    t.strictSame(await ada.violations(), []);
    await ada.button('Remove Syrinx').click();
    await ada.button('Remove word').click();
    await page.getByText('No words yet').waitFor();
  });

  await t.test('alerts are counted in the menu, and a webhook must be public', async (t) => {
    await ask(page, 'createAccount', { name: 'Empty', credits: 0 });
    await page.goto('/alerts');
    await page.getByText('Out of credit: Empty').waitFor();
    // The menu has an answer of its own.
    await page
      .getByRole('navigation')
      .getByRole('link', { name: /Alerts.*1/ })
      .waitFor();
    await page.goto(`/audit?search=${'a'.repeat(3_000)}`);
    await page.getByText('No change is like that').waitFor();
    await page.goto(`/accounts/${accountId}/alerts`);
    await ada.field('Address').fill('https://127.0.0.1/x');
    await ada.button('Set webhook').click();
    await page.locator('[aria-invalid=true]').waitFor();
    await ada.field('Address').fill('https://example.com/x');
    await ada.button('Set webhook').click();
    t.match(await ada.field('Secret').innerText(), /^whsec_/);
    t.strictSame(await ada.violations(), []);
  });
  t.strictSame(ada.complaints, [], 'nothing on the browser’s console');
});
