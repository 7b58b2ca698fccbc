/** A person finds out why a request failed. */
import t from 'tap';
import type { Answer } from '../../src/console/contract.js';
import { speech, until } from '../support/service.js';
import { noBrowser, startConsole } from './browser-rig.js';

t.test(
  'a request that was refused is found by its key and status, with its id and why',
  { skip: noBrowser },
  async (t) => {
    const rig = await startConsole(t);
    const ada = await rig.arrive();
    await ada.join(rig.claimLink, 'Ada', 'Claim this console');
    await ada.createAccount('Harbour Radio');
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
    t.match(ada.page.url(), /\/requests\?key=\d+&status=refused$/);
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
    t.strictSame(ada.complaints, []);

    const max = await rig.arrive({ phone: true });
    await ada.page.getByRole('link', { name: 'Users' }).last().click();
    await ada.button('Invite a user').first().click();
    const link = await ada.page.getByRole('dialog').locator('pre').innerText();
    await max.join(link.trim(), 'Max', 'Join');
    await max.button('Menu').click();
    await max.page.getByRole('link', { name: 'Requests' }).click();
    await max.sees('Requests');
    await max.page.locator('.requests tbody tr').first().waitFor();
    t.equal((await max.layout()).overflowPx, 0);
    await max.page.goto('/requests');
    await max.sees('There is no such page');
    t.strictSame(max.complaints, []);
  },
);
