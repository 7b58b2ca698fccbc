/** The pages of voices and keys, in a browser: each voice once, and how to use a new key. */
import t from 'tap';
import { until } from '../support/service.js';
import { enterPlayground } from './playground-ears.js';

const { ada, page, rig } = await enterPlayground(t);

const cards = page.getByRole('main').getByRole('listitem');
const shown = async (): Promise<string[]> => page.getByRole('main').locator('li h2').allInnerTexts();

t.test('each voice is listed once, with its variant, and is found by what it is', async (t) => {
  await page.goto('/voices');
  await page.getByText('6 voices', { exact: true }).waitFor();
  t.strictSame(await shown(), ['wren', 'lark', 'rook', 'heron', 'finch', 'jay']);
  const lark = cards.filter({ hasText: 'Bright soprano' });
  t.match(
    await lark.innerText(),
    /English, female, 24,000 Hz\n+[\d,.]+ times as fast as speech here, on one core/,
  );
  t.match(await lark.innerText(), /lark\n+Pace 0\.96 ×[^]*lark_conv\n+Pace 1\.03 ×/);
  await ada.field('Sex').selectOption('male');
  await page.getByText('4 of 6 voices').waitFor();
  await ada.field('Name or description').fill('tenor');
  await page.getByText('2 of 6 voices').waitFor();
  t.strictSame(await shown(), ['finch', 'jay']);
  await ada.field('Name or description').fill('contralto');
  await ada.button('Show all').click();
  t.equal((await shown()).length, 6);
});

t.test('a voice is heard, its id is copied, and it can be tried', async (t) => {
  await ada.button('Sample of lark_conv').click();
  await ada.button('Stop of lark_conv').waitFor();
  await ada.button('Sample of lark_conv').waitFor();
  t.equal(await page.getByRole('alert').count(), 0);
  await ada.button('Copy id of lark_conv').click();
  t.ok(await until(async () => (await page.evaluate('navigator.clipboard.readText()')) === 'lark_conv'));
  await page.getByRole('link', { name: 'Try it with lark_conv' }).click();
  await ada.sees('Playground');
  t.equal(await ada.field('Voice').inputValue(), 'lark_conv');
});

t.test('an operator finds Keys in the navigation, and a new key comes with how to connect', async (t) => {
  await page.getByRole('navigation').getByRole('link', { name: 'Keys' }).click();
  await ada.sees('Keys');
  await ada.button('Create key').first().click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Name').fill('Phone line');
  await dialog.getByRole('button', { name: 'Create key' }).click();
  const key = await dialog.getByLabel('Key', { exact: true }).innerText();
  const shownLines = () => dialog.locator('pre').nth(1).innerText();
  t.ok((await shownLines()).includes(key), 'curl');
  await dialog.getByText('WebSocket', { exact: true }).click();
  t.match(await shownLines(), `new WebSocket("ws://127.0.0.1:${rig.service.port}/v1/tts/ws"`);
  t.ok((await shownLines()).includes(key), 'WebSocket');
  await dialog.getByText('LiveKit Agents', { exact: true }).click();
  t.match(await dialog.getByText('The port for this is off.').innerText(), 'ELEVENLABS_PORT=8082');
  t.strictSame(await ada.violations(), []);
  await ada.button('I have copied the key').click();
  await page.getByRole('rowheader', { name: /^Phone line/ }).waitFor();
  t.strictSame(ada.complaints, []);
});
