/** "What will be said" of the playground, in a browser. */
import t from 'tap';
import { until } from '../support/service.js';
import { enterPlayground } from './playground-ears.js';

const { ada, page } = await enterPlayground(t);

t.test('the page shows what will be said, and a word that is added is said at once', async (t) => {
  const panel = page.getByRole('tabpanel', { name: 'Request' });
  const rows = () => panel.getByRole('table').getByRole('row').allInnerTexts();
  await ada.field('Text').fill('The kettle costs $20.');
  await page.getByText('What will be said', { exact: true }).click();
  t.ok(
    await until(async () => (await rows()).some((row) => /\$20\..*twˈɛnti dˈɑːlɚz.*rule: money/s.test(row))),
  );
  t.equal(await panel.locator('details .pg-text').innerText(), 'The kettle costs twenty dollars.');

  await ada.button('Say it otherwise: kettle').click();
  t.equal(await ada.field('Word').inputValue(), 'kettle');
  await ada.field('Say it as').fill('/№/');
  await ada.button('Add to the lexicon').click();
  t.ok(
    await until(async () => /not a sign of the IPA/.test(await panel.locator('.field-problem').innerText())),
  );
  await ada.field('Say it as').fill('teapot');
  await ada.button('Add to the lexicon').click();
  t.ok(
    await until(async () =>
      (await rows()).some((row) => /kettle.*tˈiːpɑːt.*lexicon \(account .*\): kettle/s.test(row)),
    ),
  );
  t.equal(await panel.locator('details .pg-text').innerText(), 'The teapot costs twenty dollars.');

  await ada.field('Text').fill('Good kettle');
  t.ok(await until(async () => (await rows()).length === 3), 'it follows the text');
  t.strictSame(await ada.violations(), []);
  t.strictSame(ada.complaints, []);
});
