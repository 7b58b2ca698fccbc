/** The live page: charts of the past, and what it shows while the service goes away and comes back. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { freePort, SCRIPTED, spawnService, speech, until } from '../support/service.js';
import { ask, noBrowser, startConsole } from './browser-rig.js';

t.test('the live page', { skip: noBrowser }, async (t) => {
  const env = { CONSOLE_PORT: String(await freePort()) };
  const rig = await startConsole(t, env);
  const ada = await rig.arrive({ dark: true });
  await ada.join(rig.claimLink, 'Ada', 'Claim this console');
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
    await chart('First audio, last hour').locator('canvas').waitFor();
    t.ok(await until(async () => (await ada.page.locator('canvas').count()) === 4));
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
    const over = figure.locator('.u-over');
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

  await t.test('after a restart it shows the p95 of yesterday', async (t) => {
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

    // Of the lost connections.
    ada.complaints.length = 0;
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
