/** Licences as the files that people download with a voice state them. */
import { join } from 'node:path';
import t from 'tap';
import { makeKokoro } from '../../../scripts/voices/fixtures/kokoro.js';
import { piperModel, smallShape, writePiper } from '../../../scripts/voices/fixtures/piper.js';
import { makeFiveGraphs } from '../../../scripts/voices/fixtures/pocket.js';
import { closeFiles } from '../../../src/threads/voices.js';
import { licenceIn, PackFolder } from '../../../workers/engines/pack.js';
import { readPacks } from '../../../workers/engines/registry.js';

const card = (licence: string): string =>
  `# Model card for amy\n\n* Language: en_US\n\n## Dataset\n\n* URL: https://example.org/amy\n${licence}`;

const cases: readonly (readonly [string, Readonly<Record<string, string>>, string | undefined])[] = [
  ['front matter', { 'README.md': '---\nlanguage: en\nlicense: mit\n---\nlicense: gpl\n' }, 'mit'],
  ['lines of Windows', { 'README.md': '---\r\nlicense: "cc-by-4.0"\r\n---\r\n' }, 'cc-by-4.0'],
  ['an unlisted licence', { 'README.md': '---\nlicense: other\nlicense_name: my-own\n---\n' }, 'my-own'],
  ['a licence below the front matter', { 'README.md': '---\ntags: x\n---\nlicense: mit\n' }, undefined],
  ['a README without front matter', { 'README.md': '# Voice\n\nlicense: mit\n' }, undefined],
  ['a model card', { MODEL_CARD: card('* License: CC BY 4.0\r\n\r\n## Training\r\n') }, 'CC BY 4.0'],
  [
    'a model card with an address',
    { MODEL_CARD: card('* License: See URL\n') },
    'see https://example.org/amy',
  ],
  ['a model card without a licence', { MODEL_CARD: card('') }, undefined],
  ['a README first', { 'README.md': '---\nlicense: mit\n---\n', MODEL_CARD: card('* License: CC0') }, 'mit'],
  ['a README without, and a card', { 'README.md': '# Voice', MODEL_CARD: card('* License: CC0') }, 'CC0'],
  ['a line that is too long', { MODEL_CARD: card(`* License: ${'x'.repeat(200)}`) }, 'x'.repeat(80)],
  ['no document', { 'voice.onnx': '' }, undefined],
];

for (const [title, files, licence] of cases)
  t.test(`the licence of a pack with ${title}`, async (t) => {
    const folder = await PackFolder.open({ name: 'pack', path: t.testdir(files), files: null }, []);
    t.strictSame(await licenceIn(folder), licence === undefined ? {} : { licence });
  });

t.test('packs of each format have the licence of their documents', async (t) => {
  const modelsDir = t.testdir();
  makeKokoro(join(modelsDir, 'kokoro'));
  await writePiper(join(modelsDir, 'piper'), 'small', piperModel(smallShape));
  await makeFiveGraphs(join(modelsDir, 'pocket'));
  const { packs, files } = await readPacks({ modelsDir, cacheDir: join(modelsDir, '.cache') });
  closeFiles(files);
  t.strictSame(
    packs.map(({ name, licence }) => [name, licence]),
    [
      ['kokoro', 'apache-2.0'],
      ['piper', 'Apache-2.0'],
      ['pocket', 'apache-2.0'],
    ],
  );
});
