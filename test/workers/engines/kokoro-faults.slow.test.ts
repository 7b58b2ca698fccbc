/** Packs of Kokoro and KittenTTS that cannot work: each is refused with its reason and a remedy. */
import t from 'tap';
import { elementTypes } from '../../../workers/engines/graph/model.js';
import { modelMessage } from '../../../workers/engines/graph/write.js';
import { kokoroVocabulary } from '../../../workers/engines/kokoro/symbols.js';
import { readNpy, readNpz } from '../../../workers/engines/numpy.js';
import { echoModel } from '../../../scripts/voices/fixtures/kokoro.js';
import { load, npyWith, npzOf, rawTable, readPack, type PackFiles } from '../../support/kokoro.js';

const voice = { 'voices/af_heart.bin': rawTable(0) };
const model = modelMessage(echoModel());
const pointer = 'version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 325532387\n';
const archive = npzOf(['af_heart', 'bf_emma'], [510, 1, 256]);
const sherpa = { model_type: 'kokoro', speaker_names: 'af_heart,bf_emma', style_dim: '510,1,256' };

/** Its second file is the first one once more, under another name. */
const shared = Buffer.from(archive);
const second = archive.readUInt32LE(archive.length - 6) + 46 + 'af_heart.npy'.length;
archive.copy(shared, second + 10, second - 46 - 12 + 10, second - 46 - 12 + 28);
shared.writeUInt32LE(0, second + 42);

const faults: Readonly<Record<string, readonly [PackFiles, RegExp]>> = {
  'voices for PyTorch': [
    { 'model.onnx': {}, 'voices/af_heart.pt': 'PK' },
    /voices\/af_heart\.pt: a voice for PyTorch cannot be read: download voices\/af_heart\.bin/,
  ],
  'a pointer in the place of the model': [
    { 'model.onnx': pointer, ...voice },
    /model\.onnx: .*Git LFS pointer.*git lfs pull/,
  ],
  'a pointer in the place of a voice': [
    { 'model.onnx': {}, 'voices/af_heart.bin': pointer },
    /af_heart\.bin: .*Git LFS pointer.*git lfs pull/,
  ],
  'a truncated model': [
    { 'model.onnx': model.subarray(0, model.length / 2), ...voice },
    /model\.onnx: .*download it again/,
  ],
  'a file that is no model': [{ 'model.onnx': 'hello', ...voice }, /model\.onnx: .*download it again/],
  'a truncated voice': [
    { 'model.onnx': {}, 'voices/af_heart.bin': rawTable(0).subarray(0, 1_000_001 / 2) },
    /af_heart\.bin: \d+ bytes are not rows of 256 floats: download it again/,
  ],
  'rows of another release': [
    { 'model.onnx': {}, 'config.json': '{"plbert": {}}', 'voices/af_heart.bin': rawTable(0, 400) },
    /"af_heart" has 400 rows, one of Kokoro has 510 to 511: download the voices of the same release/,
  ],
  'voices and model swapped between releases': [
    { 'model.onnx': { metadata: sherpa }, 'voices.bin': rawTable(0) },
    /voices\.bin: it has 510 rows, but the model names 2 voices of 510/,
  ],
  'voices without names': [
    { 'model.onnx': {}, 'voices.bin': rawTable(0, 1_020) },
    /voices\.bin: all its voices are in one file, and the model does not name them/,
  ],
  'a truncated archive': [
    { 'model.onnx': {}, 'voices.npz': archive.subarray(0, archive.length - 30) },
    /voices\.npz: .*no directory.*download it again/,
  ],
  'an archive with one file under two names': [
    { 'model.onnx': {}, 'voices.npz': shared },
    /voices\.npz: "bf_emma\.npy" goes beyond the end of the archive, or into another file of it/,
  ],
  'an archive of something else': [
    { 'model.onnx': {}, 'voices.npz': npzOf(['af_heart'], [510, 2, 128]) },
    /voices\.npz: "af_heart" has the shape 510 x 2 x 128: rows of 256 numbers are needed/,
  ],
  'JSON of something else': [
    { 'model.onnx': {}, 'voices.json': '{"af_heart": [1, "two"]}' },
    /voices\.json: "af_heart" is not a table/,
  ],
  'JSON of very many lists': [
    { 'model.onnx': {}, 'voices.json': `{"af_heart": [${'[],'.repeat(20_000)}[]]}` },
    /voices\.json: it has other things than tables of rows of 256 numbers, or too many/,
  ],
  'values that are no numbers in a voice': [
    { 'model.onnx': {}, 'voices/af_heart.bin': Buffer.alloc(522_240, 0xff) },
    /af_heart\.bin: "af_heart" has values that are not numbers/,
  ],
  'a model of another kind': [
    { 'model.onnx': modelMessage({ ...echoModel(), inputs: echoModel().inputs.slice(0, 1) }), ...voice },
    /model\.onnx: a model of Kokoro or KittenTTS takes .* this one takes input_ids/,
  ],
  'a speed that is no number': [
    { 'model.onnx': { speedType: elementTypes.bool }, ...voice },
    /its speed is not a number/,
  ],
  'only voices that need another phonemiser': [
    { 'model.onnx': {}, 'voices/zf_xiaobei.bin': rawTable(0) },
    /no voice can be used: left out: zf_xiaobei: Japanese and Chinese/,
  ],
  'a blend of a voice that is not there': [
    { 'model.onnx': {}, ...voice, 'syrinx.json': '{"blends": {"warm": "af_heart+bf_emma"}}' },
    /syrinx\.json: the blend "warm" has the unknown voice "bf_emma"/,
  ],
  'a blend that is written wrongly': [
    { 'model.onnx': {}, ...voice, 'syrinx.json': '{"blends": {"warm": "af_heart:two"}}' },
    /syrinx\.json: the blend "warm" must be at most 100 voices with weights, like af_heart:2\+bf_emma:1/,
  ],
  'a blend of an infinite weight': [
    {
      ...{ 'model.onnx': {}, ...voice },
      'syrinx.json': JSON.stringify({ blends: { warm: `af_heart:${'9'.repeat(400)}` } }),
    },
    /syrinx\.json: the blend "warm" must be at most 100 voices with weights/,
  ],
  'a language of which a list would be too wide': [
    { 'model.onnx': {}, ...voice, 'syrinx.json': `{"language": "en${'-Latn'.repeat(100)}"}` },
    /syrinx\.json: syrinx\.json\.language must be/,
  ],
  'a blend of more voices than are allowed': [
    {
      ...{ 'model.onnx': {}, ...voice },
      'syrinx.json': JSON.stringify({ blends: { warm: Array(101).fill('af_heart').join('+') } }),
    },
    /syrinx\.json: the blend "warm" must be at most 100 voices/,
  ],
  'a name of which a message would be too long': [
    {
      ...{ 'model.onnx': {}, ...voice },
      'syrinx.json': JSON.stringify({ blends: { ['w'.repeat(400_000)]: 'af_heart' } }),
    },
    /^.{700} … .{280,290}digits, _ and -$/,
  ],
  'a setting that does not exist': [
    { 'model.onnx': {}, ...voice, 'syrinx.json': '{"blend": {}}' },
    /syrinx\.json: syrinx\.json\.blend must be undefined/,
  ],
  'more blends than are allowed': [
    {
      ...{ 'model.onnx': {}, ...voice },
      'syrinx.json': JSON.stringify({
        blends: Object.fromEntries(Array.from({ length: 101 }, (_, i) => [`b${i}`, 'af_heart'])),
      }),
    },
    /syrinx\.json: it has 101 blends, and at most 100 are allowed/,
  ],
  'metadata that are cut': [
    { 'model.onnx': { metadata: { kokoro_config: '{"vocab": {' } }, ...voice },
    /pack: kokoro_config in the metadata of its model: not valid JSON$/,
  ],
  'a file of tokens that is none': [
    { 'model.onnx': {}, ...voice, 'tokens.txt': 'a\nb\n' },
    /tokens\.txt: "a" is not a symbol with its id/,
  ],
};

for (const [title, [files, reason]] of Object.entries(faults))
  t.test(`a pack with ${title} is refused with its reason and a remedy`, (t) =>
    t.rejects(readPack(t, files), { name: 'VoicePackError', message: reason }),
  );

for (const [title, options, reason] of [
  [
    'values that are no numbers',
    { brokenId: 16 },
    /does not speak: .*not numbers, as some fp16 exports do: use the fp32/,
  ],
  ['silence', { isSilent: true }, /does not speak: it makes only silence/],
  [
    'far too many samples',
    { tailSamples: 1_500_000 },
    /does not speak: it makes 15\d{5} samples for \d+ sounds, more than a second for each/,
  ],
] as const)
  t.test(`a model that makes ${title} is refused when it is loaded`, async (t) => {
    const pack = await readPack(t, { 'model.onnx': options, ...voice });
    await t.rejects(load(pack), { name: 'VoicePackError', message: reason });
  });

t.test('the arrays of an archive are bounded together', (t) => {
  const arrayBytes = 4 * 510 * 256 + 128;
  t.equal(readNpz(archive, 2 * arrayBytes).size, 2);
  t.throws(() => readNpz(archive, 2 * arrayBytes - 1), {
    message: `its arrays have more than ${2 * arrayBytes - 1} bytes together`,
  });
  t.throws(() => readNpz(archive, arrayBytes - 1), /bytes together/, 'one that is stored');
  t.end();
});

t.test('the header of an array is bounded', (t) => {
  t.throws(() => readNpy('a', npyWith("'shape': (".repeat(200_000))), {
    message: '"a" has a header of 2000000 bytes: download it again',
  });
  t.end();
});

t.test('a pack with the vocabulary of another model is refused when it is loaded', async (t) => {
  const strange = JSON.stringify({ model: { vocab: { '\u4e00': 1, '\u4e8c': kokoroVocabulary.size } } });
  const pack = await readPack(t, { 'model.onnx': {}, 'tokenizer.json': strange, ...voice });
  await t.rejects(load(pack), { message: /knows none of the sounds of its language/ });
});
