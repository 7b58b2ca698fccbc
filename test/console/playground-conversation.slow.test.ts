/** The playground in a browser: a conversation over a WebSocket, with several contexts, until it is cut. */
import { execFile } from 'node:child_process';
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import t from 'tap';
import { packageRoot } from '../support/package-root.js';
import { until } from '../support/service.js';
import { ask } from './browser-rig.js';
import { enterPlayground, SILENT_MS_MAX } from './playground-ears.js';

const { ada, ears, page, rig } = await enterPlayground(t);

const tab = page.getByRole('tabpanel', { name: 'Conversation' });
const contexts = tab.getByRole('region', { name: /^context-/ });
const frames = async (): Promise<{ from: string; frame: Record<string, unknown> }[]> =>
  (await tab.locator('.frames li').allInnerTexts()).map((line) => {
    const [, from = '', text = ''] = /(sent|received)\s+(\{.*\})$/s.exec(line) ?? [];
    return { from, frame: JSON.parse(text) as Record<string, unknown> };
  });
await page.getByRole('tab', { name: 'Conversation' }).click();

t.test('text is sent as it is typed, spoken, flushed and closed; all frames are listed', async (t) => {
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
    t.equal(await contexts.first().locator('[aria-current]').count(), 0);
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
  t.ok(await tab.getByLabel('Speak numbers, dates and money as words').isDisabled());
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
  await page.mouse.wheel(0, -200);
  await ada.button('Follow the newest').waitFor();
  const before = await top();
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
  t.match(await alert.innerText(), /suspended/);
  await ask(page, 'suspendAccount', { accountId, suspended: false });
  await ada.button('Open a context').click();
  t.ok(await until(() => tab.getByText('Connected.', { exact: true }).isVisible()));
  t.equal(await alert.count(), 0);
  rig.service.signal('SIGKILL');
  await alert.waitFor();
  t.match(await alert.innerText(), /^The connection was lost/);
});
