/** The playground over plain HTTP from another machine, where browsers have neither codecs for streams nor a clipboard. */
import { networkInterfaces } from 'node:os';
import t from 'tap';
import { until } from '../support/service.js';
import { noBrowser, Person, startConsole } from './browser-rig.js';
import { Ears } from './playground-ears.js';

const address = Object.values(networkInterfaces())
  .flatMap((found) => found ?? [])
  .find(({ family, internal }) => family === 'IPv4' && !internal)?.address;

const skip = noBrowser || (address === undefined && 'no network');

t.test('over plain HTTP, mp3 and Opus are heard once they are whole', { skip }, async (t) => {
  const rig = await startConsole(t, { SYNTHESIS_THREADS: '1', CONSOLE_HOST: '0.0.0.0' }, 'src/main.js');
  const url = `http://${address}:${rig.service.consolePort}`;
  const ada = await Person.arrive(rig.browser, url);
  const { page } = ada;
  const ears = await Ears.on(page);
  await ada.join(`/claim${new URL(rig.claimLink).hash}`, 'ada', 'Claim this console');
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
});
