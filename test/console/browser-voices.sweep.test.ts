/**
 * Voices and keys, what will be said, the playground over plain HTTP, and a conversation over a WebSocket that is cut at last: in
 * a browser, with a service that speaks.
 */
import { execFile } from 'node:child_process';
import { readdirSync, statSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import t from 'tap';
import { until } from '../support/service.js';
import { Ears, enterPlayground, SILENT_MS_MAX } from './playground-ears.js';
import { packageRoot } from '../support/package-root.js';
import { ask, Person } from './browser-rig.js';

const { ada, ears, page, rig } = await enterPlayground(t);

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
  t.ok(await until(async () => (await shown()).length === 6));
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
  const lines = dialog.locator('pre').nth(1);
  t.ok((await lines.innerText()).includes(key), 'curl');
  await dialog.getByText('WebSocket', { exact: true }).click();
  await lines.getByText(`new WebSocket("ws://127.0.0.1:${rig.service.port}/v1/tts/ws"`).waitFor();
  t.ok((await lines.innerText()).includes(key), 'WebSocket');
  await dialog.getByText('LiveKit Agents', { exact: true }).click();
  t.match(await dialog.getByText('The port for this is off.').innerText(), 'ELEVENLABS_PORT=8082');
  t.strictSame(await ada.violations(), []);
  await ada.button('I have copied the key').click();
  await page.getByRole('rowheader', { name: /^Phone line/ }).waitFor();
  t.strictSame(ada.complaints, []);
});

t.test('the page shows what will be said, and a word that is added is said at once', async (t) => {
  await page.goto('/playground');
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
  await page.locator('input[name=spoken]:focus').waitFor();
  await ada.page.keyboard.type('/№/');
  t.equal(await ada.field('Say it as').inputValue(), '/№/', 'the field to fill in has the focus');
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

const tab = page.getByRole('tabpanel', { name: 'Conversation' });
const contexts = tab.getByRole('region', { name: /^context-/ });
const frames = async (): Promise<{ from: string; frame: Record<string, unknown> }[]> =>
  (await tab.locator('.frames li').allInnerTexts()).map((line) => {
    const [, from = '', text = ''] = /(sent|received)\s+(\{.*\})$/s.exec(line) ?? [];
    return { from, frame: JSON.parse(text) as Record<string, unknown> };
  });

t.test('text is sent as it is typed, spoken, flushed and closed; all frames are listed', async (t) => {
  await page.getByRole('tab', { name: 'Conversation' }).click();
  await ada.button('Open a context').click();
  const box = contexts.getByLabel('Text, sent as you type');
  await box.pressSequentially('Hello there. ');
  await box.press('Control+Enter');
  t.ok(await until(async () => (await frames()).some(({ frame }) => 'flush_completed' in frame)));
  await contexts.getByRole('button', { name: 'Close', exact: true }).click();
  t.ok(await until(async () => (await frames()).some(({ frame }) => 'context_closed' in frame)));
  const listed = await frames();
  const sent = listed.filter(({ from }) => from === 'sent').map(({ frame }) => frame);
  t.equal(sent.map(({ send_text: text = '' }) => text).join(''), 'Hello there. ');
  t.ok(sent.filter((frame) => 'send_text' in frame).length > 5, 'letter by letter');
  t.strictSame(
    sent.flatMap((frame) => Object.keys(frame).filter((key) => /^(?:start|flush$|close)/.test(key))),
    ['start_context', 'flush', 'close_context'],
  );
  const audio = listed.filter(({ frame }) => 'audio_chunk' in frame);
  t.ok(audio.length > 0);
  t.match(audio[0]?.frame['audio_chunk'], /^\d+ bytes, \d+ ms$/, 'audio is listed as its length');
  t.ok(await until(async () => (await ears.heard()).lit.length > 0), 'it is heard');
  await contexts.getByRole('button', { name: 'Remove' }).click();
});

t.test(
  'two contexts replay what a language model writes; one is interrupted, the other goes on',
  async (t) => {
    await tab.getByText('Replay as a language model writes').click();
    await tab.getByLabel('Speed of the language model').selectOption('100');
    for (const index of [0, 1]) {
      await ada.button('Open a context').click();
      await contexts.nth(index).getByRole('button', { name: 'Write' }).click();
    }
    const speaking = async (id: string) =>
      (await ears.heard()).lit.some(({ where }) => where?.startsWith(`${id},`));
    for (const id of ['context-2', 'context-3']) t.ok(await until(() => speaking(id)), `${id} is heard`);
    await contexts.first().getByRole('button', { name: 'Interrupt' }).click();
    await contexts.first().getByText('interrupted').waitFor();
    t.ok(await until(() => ears.isLoud()), 'the other goes on');
    const lit = contexts.first().locator('[aria-current]');
    t.ok(await until(async () => (await lit.count()) === 0), 'no word of the first stays lit');
    const silentMs = await ears.silentAfter('Interrupt');
    t.ok(silentMs < SILENT_MS_MAX, `silent after ${silentMs} ms`);
    t.ok(
      await until(async () => (await frames()).filter(({ frame }) => 'cancel_context' in frame).length === 2),
    );
  },
);

t.test('format and numbers are chosen; the list follows until its reader scrolls up', async (t) => {
  await page.reload();
  await page.getByRole('tab', { name: 'Conversation' }).click();
  await tab.getByLabel('Format').selectOption('mulaw');
  await tab.getByLabel('Speak numbers, dates and money as words').uncheck();
  const socket = page.waitForEvent('websocket');
  await ada.button('Open a context').click();
  t.match((await socket).url(), /accountId=\d+&normalize=false$/);
  t.ok(await until(() => tab.getByLabel('Speak numbers, dates and money as words').isDisabled()));
  const box = contexts.getByLabel('Text, sent as you type');
  await box.fill('It costs $12. That is all there is to say about the price of this ticket.');
  await box.press('Control+Enter');
  t.ok(await until(async () => (await frames()).some(({ frame }) => 'flush_completed' in frame)));
  const [started] = await frames();
  t.match(started?.frame, { start_context: { response_format: { encoding: 'mulaw', sample_rate: 8_000 } } });
  t.ok(await until(async () => (await ears.heard()).rate === 8_000), 'it is heard at its rate');

  const list = tab.locator('.frames');
  const top = () => page.evaluate<number>("document.querySelector('.frames').scrollTop");
  const below = async () =>
    (await page.evaluate<number>(
      "document.querySelector('.frames').scrollHeight - document.querySelector('.frames').clientHeight",
    )) - (await top());
  t.ok(await until(async () => (await below()) < 2), 'the newest is in view');
  await list.hover();
  const before = (await top()) - 200;
  await page.mouse.wheel(0, -200);
  await ada.button('Follow the newest').waitFor();
  t.ok(await until(async () => (await top()) === before), 'all of the turn of the wheel');
  await box.fill('One more.');
  await box.press('Control+Enter');
  t.ok(
    await until(async () => (await frames()).filter(({ frame }) => 'flush_completed' in frame).length === 2),
  );
  t.equal(await top(), before, 'it stays where its reader is');
  await ada.button('Follow the newest').click();
  t.ok(await until(async () => (await below()) < 2));
});

t.test('what was done is a script, which does it again', async (t) => {
  await contexts.getByRole('button', { name: 'Close', exact: true }).click();
  t.ok(await until(async () => (await frames()).some(({ frame }) => 'context_closed' in frame)));
  await tab.getByText('As a script').click();
  const code = await tab.getByLabel('The conversation as a script').innerText();
  const dir = t.testdir({ 'conversation.mjs': code.replace('YOUR_API_KEY', rig.service.key) });
  const node = join(packageRoot, 'node_modules', '.bin', 'node');
  const { stdout } = await promisify(execFile)(node, ['conversation.mjs'], { cwd: dir });
  t.match(stdout, /"context_started".*"timestamps".*"context_closed"/s);
  const [file = '', ...others] = readdirSync(dir).filter((name) => name.endsWith('.ulaw'));
  t.strictSame(others, [], 'one file for the context');
  t.ok(statSync(join(dir, file)).size > 8_000, 'more than a second of mu-law');
});

t.test('without credit the replay stops, and an alert stays until there is credit again', async (t) => {
  const poor = await ask(page, 'createAccount', { name: 'poor', credits: 60 });
  await page.reload();
  await ada.field('Account').selectOption(String(poor.accountId));
  await page.getByRole('tab', { name: 'Conversation' }).click();
  await tab.getByText('Replay as a language model writes').click();
  await ada.button('Open a context').click();
  const write = contexts.getByRole('button', { name: 'Write', exact: true });
  await write.click();
  const alert = contexts.getByRole('alert');
  await alert.waitFor();
  await write.waitFor();
  t.match(await alert.innerText(), /^The account has too little credit/);
  t.ok(await until(async () => (await ears.heard()).lit.length > 0), 'what was paid for is heard');
  t.ok(
    await until(() => page.getByText(/^[1-5]?\d credits? left$/).isVisible()),
    'the credit is brought up to date',
  );
  t.equal(await alert.count(), 1, 'it is still said');
  await ask(page, 'credit', { accountId: poor.accountId, credits: 1_000 });
  await write.click();
  await alert.waitFor({ state: 'detached' });
});

/** Over plain HTTP from another machine, browsers have neither codecs for streams nor a clipboard. */
const address = Object.values(networkInterfaces())
  .flatMap((found) => found ?? [])
  .find(({ family, internal }) => family === 'IPv4' && !internal)?.address;

t.test(
  'over plain HTTP, mp3 and Opus are heard once they are whole',
  { skip: address === undefined && 'no network' },
  async (t) => {
    const url = `http://${address}:${rig.service.consolePort}`;
    const ada = await Person.arrive(rig.browser, url);
    const { page } = ada;
    const ears = await Ears.on(page);
    await page.goto('/sign-in');
    await ada.signIn('ada');
    await ada.sees('Playground');
    t.equal(await page.evaluate('isSecureContext'), false);
    const request = page.getByRole('tabpanel', { name: 'Request' });
    for (const format of ['mp3', 'opus']) {
      await page.reload();
      await ada.field('Format').selectOption(format);
      await request
        .getByText(`Over plain HTTP from another machine, browsers play ${format} only when all`)
        .waitFor();
      await ada.field('Text').fill('A word in time.');
      await ada.button('Speak').click();
      t.ok(
        await until(async () => (await request.getByRole('status').innerText()) === 'Spoken to the end.'),
        format,
      );
      const { pcm, rate } = await ears.heard();
      t.ok(pcm.length / 2 / rate > 0.7, `${format}: ${pcm.length / 2 / rate} s are heard`);
    }
    await request.getByText('As code').click();
    await ada.button('Copy').first().click();
    await page.getByText('Select the text and copy it').waitFor();
    await ada.leave();
  },
);

t.test('alerts name a suspended account and a lost connection; the next context connects', async (t) => {
  const alert = tab.getByRole('alert');
  const { accountId } = (await ask(page, 'accounts', {}))[0]!;
  await ada.field('Account').selectOption(String(accountId));
  await page.getByRole('tab', { name: 'Conversation' }).click();
  await tab.getByText('Replay as a language model writes').click();
  await ada.button('Open a context').click();
  await contexts.last().getByRole('button', { name: 'Write' }).click();
  t.ok(await until(() => ears.isLoud()));
  await ask(page, 'suspendAccount', { accountId, suspended: true });
  await alert.waitFor();
  t.match(await alert.innerText(), /^The account is suspended/);
  const opening = page.waitForEvent('websocket');
  await ada.button('Open a context').click();
  const refused = await opening;
  t.ok(await until(() => refused.isClosed()));
  t.match(await alert.innerText(), /^The account is suspended/, 'another socket is refused');
  await ask(page, 'suspendAccount', { accountId, suspended: false });
  await ada.button('Open a context').click();
  t.ok(await until(() => tab.getByText('Connected.', { exact: true }).isVisible()));
  t.ok(await until(async () => (await alert.count()) === 0));
  rig.service.signal('SIGKILL');
  await alert.waitFor();
  t.match(await alert.innerText(), /^The connection was lost/);
});
