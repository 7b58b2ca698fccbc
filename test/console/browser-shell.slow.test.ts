/**
 * What users find in every page: why a request failed, filters that stay, colours, ways out of dead ends, words and alerts. And
 * the live page: charts of the past, and what it shows while the service goes away and comes back.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import type { Answer } from '../../src/console/contract.js';
import { freePort, SCRIPTED, spawnService, speech, until } from '../support/service.js';
import { ask, noBrowser, password, startConsole } from './browser-rig.js';

t.test('a user finds and keeps what the page shows, live and of the past', { skip: noBrowser }, async (t) => {
  const env = { CONSOLE_PORT: String(await freePort()) };
  const rig = await startConsole(t, env);
  const ada = await rig.arrive({ dark: true });
  await ada.join(rig.claimLink, 'Ada', 'Claim this console');
  const { page } = ada;
  const { dataDir } = rig.service;
  const startAgain = async () => {
    const service = spawnService(t, { ...env, DATA_DIR: dataDir }, SCRIPTED);
    await service.listening();
    return service;
  };

  await t.test('a page that is opened now shows the past, with values under the pointer', async (t) => {
    await (await rig.service.post('/v1/tts', speech('Hello.'))).arrayBuffer();
    await (await rig.service.post('/v1/tts', speech('Hello.'), { key: 'svc_sk_wrong' })).arrayBuffer();
    const hasPoints = async () => {
      const { atMs, p50Ms, refusals } = await ask(ada.page, 'history', { range: 'hour' });
      return atMs.length > 1 && p50Ms.some((ms) => ms !== null) && refusals.some((count) => count === 1);
    };
    t.ok(await until(hasPoints), 'a point each ten seconds');

    await ada.page.goto('/live');
    const chart = (name: string) => ada.page.getByRole('img', { name });
    await chart('First audio, last hour').locator('svg').waitFor();
    t.equal(await ada.page.locator('.plot svg').count(), 4);
    t.match(
      await chart('First audio').getAttribute('aria-label'),
      /\. Until \d\d:\d\d:\d\d\. .*p95: .*, [\d,]+ ms at most/,
      'it says of which time its last values are',
    );
    // A point is longer than ten seconds where the service had no time.
    const { refusals, seconds } = await ask(ada.page, 'history', { range: 'hour' });
    const most = Math.max(...refusals.map((count, index) => (count ?? 0) / (seconds[index] ?? 1)));
    t.match(
      await chart('Refusals and errors').getAttribute('aria-label'),
      `, ${Math.round(most * 100) / 100}/s at most. Errors a second`,
    );
    await ada.page.getByText('All since the service started: 1 key unknown.').waitFor();
    t.equal(await ada.page.getByText('Threads', { exact: true }).count(), 1, 'threads once');

    const figure = ada.page.locator('figure', { has: chart('Capacity in use') });
    t.match(await figure.innerText(), /Above 100% new speech is refused/);
    const over = figure.locator('.plot svg');
    const { height = 0 } = (await over.boundingBox()) ?? {};
    await over.hover({ position: { x: 2, y: height / 2 } });
    const [firstMs] = (await ask(ada.page, 'history', { range: 'hour' })).atMs;
    const first = new Date(firstMs!).toISOString().slice(11, 19);
    const shown = ada.page.getByText(`Until ${first}`, { exact: true });
    t.ok(
      await until(async () => (await shown.count()) === 4),
      'the time under the pointer, in all charts at once',
    );
    t.notMatch(
      await ada.page.getByRole('main').innerText(),
      /chunk|actor|generation/i,
      'no words of the code',
    );

    await ada.page.getByText('Last week').click();
    await chart('Streams, last week').waitFor();
    await ada.page.waitForURL(/range=week/);
    // Of today, and of yesterday where a day has just ended.
    const days = await ada.page.getByRole('table', { name: 'Figures of each day' }).locator('tbody tr').all();
    const cells = await Promise.all(days.map((day) => day.locator('th, td').allInnerTexts()));
    const sum = (column: number) => cells.reduce((total, day) => total + (Number(day[column]) || 0), 0);
    t.strictSame([sum(4), sum(5), sum(6)], [2, 1, 0], 'requests, refused, errors');
    t.ok(
      cells.some((day) => day.slice(1, 4).every((cell) => /^[\d,]+ ms$/.test(cell))),
      'p50, p95 and p99',
    );
    await ada.page.getByRole('link', { name: 'Refused requests' }).click();
    await ada.sees('Requests');
    await ada.page.getByText('Key unknown').waitFor();
    await ada.page.waitForURL(/\/requests\?status=refused$/);
    t.strictSame(ada.complaints, []);
  });

  let service = rig.service;
  await t.test('it says when the connection is lost, and recovers', async (t) => {
    await ada.page.goto('/live');
    const state = (label: string) => ada.page.getByText(label, { exact: true });
    await state('Live').last().waitFor();
    await (await rig.service.post('/v1/tts', speech('Hello.'), { key: 'svc_sk_wrong' })).arrayBuffer();
    await ada.page.getByText('All since the service started: 2 key unknown.').waitFor();

    await rig.service.kill();
    await state('Connection lost, trying again').waitFor();
    t.equal(await ada.page.getByText('2 key unknown').count(), 1, 'the last figures stay');

    service = await startAgain();
    await ada.page.locator('.badge.good').waitFor();
    await ada.page.getByText('Nothing was refused since the service started.').waitFor();
    t.equal(await ada.heading('Live').count(), 1, 'the session survives the restart');
  });

  // Of the lost connections.
  ada.complaints.length = 0;
  await ada.changesTo({});

  await t.test(
    'a request that was refused is found by its key and status, with its id and why',
    async (t) => {
      await ada.createAccount('Tea Shop');
      const key = await ada.createKey('Phone line');
      const other = await ada.createKey('Website');
      const post = async (body: object, withKey: string) => {
        const answer = await service.post('/v1/tts', body, { key: withKey });
        await answer.arrayBuffer();
        return answer.headers.get('x-request-id') ?? '';
      };
      for (let index = 0; index < 60; index++) await post(speech('Hello.'), other);
      const id = await post({ text: 'A secret text.', voice: 'nobody' }, key);
      await post(speech('Hello.'), key);

      await ada.page.getByRole('link', { name: 'Requests' }).last().click();
      const table = ada.page.getByRole('table', { name: 'Requests, the newest first' });
      const rows = table.locator('tbody tr');
      const hasRows = (count: number) => until(async () => (await rows.count()) === count);
      await rows.first().waitFor();
      t.equal(await rows.count(), 50, 'a page');
      await ada.button('Show more').click();
      await ada.page.getByText('No older ones.').waitFor();
      t.equal(await rows.count(), 62);

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

  await t.test('the pages that only a sweep opens are there', async () => {
    for (const heading of ['Usage', 'Operators']) {
      await page.goto(`/${heading.toLowerCase()}`);
      await ada.sees(heading);
    }
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
  await t.test('after a restart it shows the p95 of yesterday', async (t) => {
    t.strictSame(ada.complaints, [], 'nothing on the browser’s console');
    await service.stop();
    const file = join(dataDir, 'history.json');
    const kept = JSON.parse(readFileSync(file, 'utf8')) as { days: { points: object[] } };
    const midnightMs = Math.floor(Date.now() / 86_400_000) * 86_400_000;
    const day = {
      seconds: 86_000,
      streams: 7,
      capacityRatio: 0.5,
      requests: 1_234,
      refusals: 5,
      failures: 0,
    };
    kept.days.points = [{ ...day, atMs: midnightMs, p50Ms: 21, p95Ms: 47.3, p99Ms: 88 }];
    writeFileSync(file, JSON.stringify(kept));
    await startAgain();
    ada.complaints.length = 0;
    await ada.changesTo({ dark: true });
    // The page's day does not end, even if that of the service does.
    await ada.page.clock.setFixedTime(midnightMs + 43_200_000);
    await ada.page.goto('/live');
    const more = ada.button(/^Show \d+ more$/);
    await ada.page.getByRole('row', { name: /^Today/ }).waitFor();
    if ((await more.count()) > 0) await more.click();
    const yesterday = ada.page.getByRole('row', { name: /^Yesterday/ });
    await yesterday.waitFor();
    t.strictSame((await yesterday.innerText()).split(/\s{2,}|\t|\n/).filter(Boolean), [
      ...['Yesterday', '21 ms', '47 ms', '88 ms', '1,234', '5', '0', '7'],
    ]);
    t.strictSame(await ada.violations(), []);
    t.strictSame(ada.complaints, []);
  });
});
