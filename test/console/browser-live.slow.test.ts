/** The live page: charts of the past, and what it shows while the service goes away and comes back. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { freePort, SCRIPTED, spawnService, speech, until } from '../support/service.js';
import { ask, noBrowser, startConsole } from './browser-rig.js';

t.test(
  'a page that is opened now shows the past, with values under the pointer',
  { skip: noBrowser },
  async (t) => {
    const rig = await startConsole(t);
    const ada = await rig.arrive({ dark: true });
    await ada.join(rig.claimLink, 'Ada', 'Claim this console');
    await (await rig.service.post('/v1/tts', speech('Hello.'))).arrayBuffer();
    await (await rig.service.post('/v1/tts', speech('Hello.'), { key: 'svc_sk_wrong' })).arrayBuffer();
    const hasPoints = async () => {
      const { atMs, p50Ms } = await ask(ada.page, 'history', { range: 'hour' });
      return atMs.length > 1 && p50Ms.some((ms) => ms !== null);
    };
    t.ok(await until(hasPoints), 'a point each ten seconds');

    await ada.page.goto('/live');
    const chart = (name: string) => ada.page.getByRole('img', { name });
    await chart('First audio, last hour').locator('canvas').waitFor();
    t.equal(await ada.page.locator('canvas').count(), 4);
    t.match(await chart('First audio').getAttribute('aria-label'), /p95: .* now, \d+ ms at most/);
    t.match(
      await chart('Refusals and errors').getAttribute('aria-label'),
      /Refused a second: .* now, 0.1\/s at most/,
    );
    await ada.page.getByText('All since the service started: 1 key unknown.').waitFor();
    t.equal(await ada.page.getByText('Threads', { exact: true }).count(), 1, 'threads once');

    const figure = ada.page.locator('figure', { has: chart('Capacity in use') });
    t.match(await figure.innerText(), /Above 100% new speech is refused/);
    const over = figure.locator('.u-over');
    const { width = 0, height = 0 } = (await over.boundingBox()) ?? {};
    await over.hover({ position: { x: width - 2, y: height / 2 } });
    await figure.getByText(/^\d+ \w+,? \d?\d:\d\d:\d\d$/).waitFor();
    t.match(await ada.page.locator('figure').first().innerText(), /\d?\d:\d\d:\d\d/, 'in all charts at once');

    await ada.page.getByText('Last week').click();
    await chart('Streams, last week').waitFor();
    t.match(ada.page.url(), /range=week/);
    const today = ada.page.getByRole('row', { name: /^Today/ });
    t.match(
      await today.innerText(),
      /Today\s+\d+ ms\s+\d+ ms\s+\d+ ms\s+2\s+1\s+0\s/,
      'p50, p95, p99 and counts',
    );
    await ada.page.getByRole('link', { name: 'Refused requests' }).click();
    await ada.sees('Requests');
    await ada.page.getByText('Key unknown').waitFor();
    t.match(ada.page.url(), /\/requests\?status=refused$/);
    t.strictSame(ada.complaints, []);
  },
);

t.test('after a restart the page shows the p95 of yesterday', { skip: noBrowser }, async (t) => {
  const service = spawnService(t, { CONSOLE_PORT: '0' }, SCRIPTED);
  await service.listening();
  const { dataDir } = service;
  await service.stop();
  const file = join(dataDir, 'history.json');
  const kept = JSON.parse(readFileSync(file, 'utf8')) as { days: { points: object[] } };
  const midnightMs = Math.floor(Date.now() / 86_400_000) * 86_400_000;
  const day = { seconds: 86_000, streams: 7, capacityRatio: 0.5, requests: 1_234, refusals: 5, failures: 0 };
  kept.days.points = [{ ...day, atMs: midnightMs, p50Ms: 21, p95Ms: 47.3, p99Ms: 88 }];
  writeFileSync(file, JSON.stringify(kept));

  const rig = await startConsole(t, { DATA_DIR: dataDir });
  const ada = await rig.arrive();
  await ada.join(rig.claimLink, 'Ada', 'Claim this console');
  await ada.page.goto('/live');
  const yesterday = ada.page.getByRole('row', { name: /^Yesterday/ });
  await yesterday.waitFor();
  t.strictSame((await yesterday.innerText()).split(/\s{2,}|\t|\n/).filter(Boolean), [
    ...['Yesterday', '21 ms', '47 ms', '88 ms', '1,234', '5', '0', '7'],
  ]);
  t.strictSame(await ada.violations(), []);
  t.strictSame(ada.complaints, []);
});

t.test('the live page says when the connection is lost, and recovers', { skip: noBrowser }, async (t) => {
  const env = { CONSOLE_PORT: String(await freePort()) };
  const rig = await startConsole(t, env);
  const ada = await rig.arrive();
  await ada.join(rig.claimLink, 'Ada', 'Claim this console');
  await ada.page.goto('/live');
  const state = (label: string) => ada.page.getByText(label, { exact: true });
  await state('Live').last().waitFor();

  await (await rig.service.post('/v1/tts', speech('Hello.'), { key: 'svc_sk_wrong' })).arrayBuffer();
  await ada.page.getByText('All since the service started: 1 key unknown.').waitFor();

  await rig.service.kill();
  await state('Connection lost, trying again').waitFor();
  t.equal(await ada.page.getByText('1 key unknown').count(), 1, 'the last figures stay');

  const next = spawnService(t, { ...env, DATA_DIR: rig.service.dataDir }, SCRIPTED);
  await next.listening();
  await ada.page.locator('.badge.good').waitFor();
  await ada.page.getByText('Nothing was refused since the service started.').waitFor();
  t.equal(await ada.heading('Live').count(), 1, 'the session survives the restart');
});
