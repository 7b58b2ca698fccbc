/** Pronunciation lexicons in the data folder: SIGHUP reads them, and the voices, while streams go on. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { openStream, prose, readStream, speech, startService } from '../support/service.js';

const format = { encoding: 'pcm', sample_rate: 24_000 };
const written = ['Say', 'syrinx,', 'please.'];

void t.test('a word is spoken as a lexicon says, and reported as it is written', async (t) => {
  const service = await startService(t, { SYNTHESIS_THREADS: '1' });
  /** Seconds that the second word takes. */
  const secondsOf = async (): Promise<number> => {
    const body = speech(written.join(' '), { response_format: format, timestamps: true });
    const { words } = await readStream(await service.post('/v1/tts/stream', body));
    t.strictSame(
      words.map(({ word }) => word),
      written,
    );
    return words[1]!.end - words[1]!.start;
  };
  let readings = 0;
  const hangUp = async () => {
    service.signal('SIGHUP');
    return service.untilLogged('lexicons read', ++readings);
  };
  const plain = await secondsOf();
  const stream = await openStream(service, prose(2));

  const folder = join(service.dataDir, 'lexicons');
  mkdirSync(join(folder, 'accounts', 'default'), { recursive: true });
  writeFileSync(join(folder, 'names.txt'), 'syrinx\ta word that takes very much longer\n');
  t.match(await hangUp(), { files: 1, entries: 1 });
  t.match(await service.untilLogged('voices reloaded'), { generation: 2, added: [], removed: [] });
  const ofService = await secondsOf();
  t.ok(ofService > 2 * plain, `${ofService} s after ${plain} s`);

  writeFileSync(join(folder, 'accounts', 'default', 'names.txt'), 'syrinx\t/ˈsɪks/\nno columns\n');
  t.match(await hangUp(), { files: 2, entries: 2, faults: 1 });
  const ofAccount = await secondsOf();
  t.ok(ofAccount < ofService / 2, `${ofAccount} s after ${ofService} s`);
  t.match(service.logged('lexicon'), [{ file: /names\.txt:2$/, fault: /two columns/ }]);

  t.ok((await stream.rest()) > 100_000, 'a stream that was open goes on');
  t.match(await service.stop(), { code: 0 });
});
