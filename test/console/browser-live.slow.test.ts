/** The live page while the service goes away and comes back. */
import t from 'tap';
import { freePort, SCRIPTED, spawnService, speech } from '../support/service.js';
import { noBrowser, startConsole } from './browser-rig.js';

t.test('the live page says when the connection is lost, and recovers', { skip: noBrowser }, async (t) => {
  const env = { CONSOLE_PORT: String(await freePort()) };
  const rig = await startConsole(t, env);
  const ada = await rig.arrive();
  await ada.join(rig.claimLink, 'Ada', 'Claim this console');
  await ada.page.goto('/live');
  const state = (label: string) => ada.page.getByText(label, { exact: true });
  await state('Live').last().waitFor();

  await (await rig.service.post('/v1/tts', speech('Hello.'), { key: 'svc_sk_wrong' })).arrayBuffer();
  await ada.page.getByRole('table', { name: 'Last refusals' }).getByText('Key unknown').waitFor();

  await rig.service.kill();
  await state('Connection lost, trying again').waitFor();
  t.equal(await ada.page.getByRole('table', { name: 'Last refusals' }).count(), 1, 'the last figures stay');

  const next = spawnService(t, { ...env, DATA_DIR: rig.service.dataDir }, SCRIPTED);
  await next.listening();
  await ada.page.locator('.badge.good').waitFor();
  t.equal(await ada.heading('Live').count(), 1, 'the session survives the restart');
});
