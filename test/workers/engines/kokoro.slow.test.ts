/** Kokoro and KittenTTS in all forms that people download, with graphs that echo their inputs. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import type { KokoroData } from '../../../workers/engines/kokoro/engine.js';
import { elementTypes } from '../../../workers/engines/graph/model.js';
import { soundOf } from '../../../workers/engines/kokoro/segment.js';
import { kokoroVocabulary } from '../../../workers/engines/kokoro/symbols.js';
import { heardIn, load, npzOf, rawTable, readPack, type PackFiles } from '../../support/kokoro.js';
import { packageRoot } from '../../support/package-root.js';
import { requestOf, speak } from '../../support/voices.js';

interface Expected {
  readonly language: string;
  readonly text: string;
  readonly ids: readonly number[];
}

const expected = JSON.parse(
  readFileSync(join(packageRoot, 'test/workers/engines/kokoro-ids.json'), 'utf8'),
) as Record<'kokoro' | 'kitten', readonly Expected[]>;
const hello = expected.kokoro.find(({ text }) => text === 'Hello, world.')!;

const vocabulary = Object.fromEntries(kokoroVocabulary);
const tokensFile = [...kokoroVocabulary].map(([symbol, id]) => `${symbol} ${id}\n`).join('');
const names = ['af_heart', 'bf_emma'];
const json = (voices: Record<string, number>) =>
  JSON.stringify(
    Object.fromEntries(
      Object.entries(voices).map(([name, voice]) => {
        const values = Array.from(new Float32Array(rawTable(voice).buffer));
        return [name, Array.from({ length: 510 }, (_, row) => [values.slice(row * 256, (row + 1) * 256)])];
      }),
    ),
  );
const onnxVoices = { 'voices/af_heart.bin': rawTable(0), 'voices/bf_emma.bin': rawTable(1) };

/** Each as it is published. */
const exports: Readonly<Record<string, PackFiles>> = {
  'the script of hexgrad: whole speeds': {
    'kokoro.onnx': { speedType: elementTypes.int32, durations: 'output' },
    'config.json': JSON.stringify({ vocab: vocabulary, plbert: {} }),
    ...onnxVoices,
  },
  'sherpa-onnx: all voices in one file': {
    'model.onnx': {
      ...{ idsName: 'tokens', audioName: 'audio' },
      metadata: { model_type: 'kokoro', speaker_names: names.join(), style_dim: '510,1,256' },
    },
    'voices.bin': Buffer.concat([rawTable(0), rawTable(1)]),
    'tokens.txt': tokensFile,
  },
  'kokoro-onnx: configuration in the model, voices in an archive': {
    'kokoro-v1.0.onnx': {
      ...{ idsName: 'tokens', audioName: 'audio', durations: 'output' },
      metadata: { kokoro_config: JSON.stringify({ vocab: vocabulary }) },
    },
    'voices-v1.0.bin': npzOf(names, [510, 1, 256]),
  },
  'onnx-community: several models, a file for each voice': {
    'onnx/model.onnx': {},
    'onnx/model_fp16.onnx': { isSilent: true },
    'tokenizer.json': JSON.stringify({ model: { vocab: vocabulary } }),
    'README.md': '---\nlicense: apache-2.0\nlibrary_name: x\n---\nKokoro',
    ...onnxVoices,
  },
  'version 0.19: voices as JSON': {
    'kokoro-v0_19.onnx': { audioRank: 2 },
    'voices.json': json({ af_heart: 0, bf_emma: 1 }),
  },
  'a speed of 64 bits': { 'model.onnx': { speedType: elementTypes.float64 }, ...onnxVoices },
  'a speed of 16 bits': { 'model.onnx': { speedType: elementTypes.float16 }, ...onnxVoices },
  'a whole speed of 64 bits': { 'model.onnx': { speedType: elementTypes.int64 }, ...onnxVoices },
};

for (const [title, files] of Object.entries(exports))
  t.test(`Kokoro speaks as it is published: ${title}`, async (t) => {
    const pack = await readPack(t, files, 'kokoro');
    t.match(pack.voices, [
      { id: 'kokoro-af_heart', language: 'en-US', sampleRateHz: 24_000 },
      { id: 'kokoro-bf_emma', language: 'en-GB' },
    ]);
    t.equal(pack.licence, 'README.md' in files ? 'apache-2.0' : undefined);
    const voices = await load(pack);
    const { pcm, words } = await speak(voices, hello.text);
    const heard = heardIn(pcm);
    t.same(heard.ids, hello.ids);
    t.match(heard, { row: hello.ids.length - 2, voice: 0, speed: 1 });
    // The comma and the space after the first word belong to none.
    const [first, second] = words;
    t.equal(first!.startSample, heard.starts[1]);
    t.equal(first!.endSample, heard.starts[7]);
    t.equal(second!.startSample, heard.starts[9]);
    t.equal(second!.endSample, heard.starts[15]);
    t.match(heardIn((await speak(voices, hello.text, { voiceId: 'kokoro-bf_emma' })).pcm), { voice: 1 });
  });

// The references misread "lives" in one sentence. Its ids are those of the right reading.
t.test('the ids of 50 sentences are those of the public references', async (t) => {
  const voices = {
    'en-US': 'af_a',
    'en-GB': 'bf_a',
    'es-ES': 'ef_a',
    'fr-FR': 'ff_a',
    'it-IT': 'if_a',
    'pt-BR': 'pf_a',
  };
  const kokoro = await readPack(t, {
    'model.onnx': {},
    ...Object.fromEntries(Object.values(voices).map((name) => [`voices/${name}.bin`, rawTable(0)])),
  });
  const kitten = await readPack(t, {
    'model.onnx': { tailSamples: 5_000 },
    'voices.npz': npzOf(['a'], [400, 256]),
  });
  for (const [family, pack] of [
    ['kokoro', kokoro],
    ['kitten', kitten],
  ] as const) {
    const engine = await load(pack);
    t.equal(expected[family].length, 50);
    for (const { language, text, ids } of expected[family]) {
      const voiceId = family === 'kokoro' ? `pack-${voices[language as keyof typeof voices]}` : 'pack';
      t.same(heardIn((await speak(engine, text, { voiceId })).pcm).ids, ids, text);
    }
  }
});

t.test('KittenTTS before 0.8 has no end mark; later, its voices have names and paces', async (t) => {
  const model = { audioRank: 2, durations: 'output', tailSamples: 5_000 } as const;
  const config = { type: 'ONNX1', model_file: 'kitten.onnx', voices: 'voices.npz' };
  const text = 'Hello, world.';
  const ids = expected.kitten.find((row) => row.text === text)!.ids;
  const old = await readPack(t, {
    'kitten.onnx': model,
    'config.json': JSON.stringify(config),
    'voices.npz': npzOf(['expr-voice-2-m', 'expr-voice-2-f'], [1, 256]),
  });
  t.same(
    old.voices.map(({ id, language, sex }) => [id, language, sex]),
    [
      ['pack-expr-voice-2-m', 'en-US', 'male'],
      ['pack-expr-voice-2-f', 'en-US', 'female'],
    ],
  );
  const heardOld = heardIn((await speak(await load(old), text)).pcm);
  t.same(heardOld.ids, [...ids.slice(0, -2), 0], 'before 0.8 a text has no end mark');
  t.equal(heardOld.row, 0);
  const recent = await readPack(t, {
    'kitten.onnx': model,
    'config.json': JSON.stringify({
      ...config,
      speed_priors: { 'expr-voice-2-m': 0.8 },
      voice_aliases: { Jasper: 'expr-voice-2-m' },
    }),
    'voices.npz': npzOf(['expr-voice-2-m', 'expr-voice-2-f'], [400, 256]),
  });
  t.same(
    recent.voices.map(({ id }) => id),
    ['pack-Jasper', 'pack-expr-voice-2-f'],
  );
  const engine = await load(recent);
  const other = heardIn((await speak(engine, text, { voiceId: 'pack-expr-voice-2-f' })).pcm);
  t.match(other, { ids, row: text.length, speed: 1 });
  t.equal(heardIn((await speak(engine, text)).pcm).speed, 0.8, 'each voice has its pace');
});

t.test('of several precisions the whole model is taken, and one in 16 bits last', async (t) => {
  for (const models of [
    ['kokoro-v1.0.onnx', 'kokoro-v1.0.int8.onnx', 'kokoro-v1.0.fp16.onnx', 'kokoro-v1.0.fp16-gpu.onnx'],
    ['model.onnx', 'model_fp16.onnx', 'model_q4.onnx', 'model_quantized.onnx'],
    ['onnx/model_uint8.onnx', 'onnx/model_q4.onnx', 'onnx/model_q4f16.onnx', 'onnx/model_fp16.onnx'],
    ['model_q8f16.onnx', 'model_fp16.onnx'],
  ]) {
    const pack = await readPack(t, {
      ...Object.fromEntries(models.map((name) => [name, {}])),
      ...onnxVoices,
    });
    const { path } = (pack.data as KokoroData).model;
    t.ok(path.endsWith(`/${models[0]!}`), `${path} of ${models.join(', ')}`);
  }
});

t.test('a blend is a voice: the weighted mean of others', async (t) => {
  const pack = await readPack(t, {
    'model.onnx': {},
    ...onnxVoices,
    'syrinx.json': JSON.stringify({
      blends: { warm: 'af_heart:0.6666666666666666+bf_emma:0.3333333333333333', plain: 'bf_emma' },
    }),
  });
  const blends = pack.voices.filter(({ id }) => /warm|plain/.test(id));
  t.same(blends, [
    { id: 'pack-warm', sampleRateHz: 24_000, language: 'en-US', sex: 'female' },
    { id: 'pack-plain', sampleRateHz: 24_000, language: 'en-GB', sex: 'female' },
  ]);
  const { pcm } = await speak(await load(pack), hello.text, { voiceId: 'pack-warm' });
  t.match(heardIn(pcm), { ids: hello.ids, row: hello.ids.length - 2, voice: 0.33 });
});

t.test('voices of languages that need another phonemiser are left out, with a note', async (t) => {
  const pack = await readPack(t, {
    'model.onnx': { durations: 'none', speedType: elementTypes.int32 },
    ...onnxVoices,
    'voices/zf_xiaobei.bin': rawTable(2),
    'voices/jf_alpha.bin': rawTable(3),
    'voices/martin.bin': rawTable(4),
  });
  t.equal(pack.voices.length, 2);
  t.match(pack.notes, [
    /^left out: jf_alpha, zf_xiaobei: Japanese and Chinese need the phonemes of misaki/,
    /^left out: martin: .*set "language" in syrinx.json/,
    /word times are estimates/,
    /the pace can only be a whole number/,
  ]);
  const german = await readPack(t, {
    'model.onnx': {},
    'voices/martin.bin': rawTable(4),
    'syrinx.json': '{"language": "de-DE"}',
  });
  t.same(german.voices, [{ id: 'pack', sampleRateHz: 24_000, language: 'de-DE' }]);
});

t.test('without durations, words are spread over the sound by their phonemes', async (t) => {
  const voices = await load(await readPack(t, { 'model.onnx': { durations: 'none' }, ...onnxVoices }));
  const { pcm, words } = await speak(voices, 'A extraordinarily b.');
  const lengths = words.map(({ startSample, endSample }) => endSample - startSample);
  t.ok(lengths[1]! > 5 * lengths[0]! && lengths[0]! > 0, lengths.join());
  t.ok(words[2]!.endSample <= pcm.length);
});

const long =
  'When the evening came we were all sitting near the window and listening to the rain that fell on the old roof, ' +
  'and nobody said a word for a long time; then 123,456 birds flew over.';

t.test('first audio waits for a short piece; where a text is cut depends on the text alone', async (t) => {
  const voices = await load(await readPack(t, { 'model.onnx': {}, ...onnxVoices }));
  const first = await speak(voices, long, { isFirst: true });
  const later = await speak(voices, long, { isFirst: false });
  const idsOf = (chunks: readonly Int16Array[]) => chunks.map((chunk) => heardIn(chunk).ids.slice(1, -1));
  const [pieces, whole] = [idsOf(first.chunks), idsOf(later.chunks)];
  t.ok(pieces.length > whole.length);
  t.ok(pieces[0]!.length <= 48 && pieces[0]!.length > 20, `${pieces[0]!.length} ids`);
  t.ok(pieces[1]!.length <= 80);
  t.ok(whole.every((ids) => ids.length <= 150));
  // A space is between pieces.
  t.same(
    pieces.flatMap((ids, i) => (i === 0 ? ids : [16, ...ids])),
    whole.flatMap((ids, i) => (i === 0 ? ids : [16, ...ids])),
  );
  t.same((await speak(voices, long, { isFirst: true })).chunks, first.chunks);
  for (const { words, spans, wordsOfChunks, chunks } of [first, later]) {
    t.same(
      words.map(({ word }) => word),
      spans.map((_, word) => word),
    );
    let end = 0;
    for (const { startSample, endSample } of words) {
      t.ok(startSample >= end && endSample >= startSample);
      end = endSample;
    }
    let made = 0;
    for (const [i, chunk] of chunks.entries()) {
      t.ok(wordsOfChunks[i]!.every(({ startSample }) => startSample >= made));
      made += chunk.length;
      t.ok(wordsOfChunks[i]!.every(({ endSample }) => endSample <= made));
    }
  }
  const short = await speak(voices, 'Well, I think so, too.', { isFirst: true });
  t.equal(short.chunks.length, 1, 'a short text stays whole');
  const clause = await speak(voices, `As you can see, ${long}`, { isFirst: true });
  t.equal(
    heardIn(clause.chunks[0]!).ids.at(-2),
    3,
    'it ends with its first clause, if that is enough to say',
  );
});

t.test('a text without a sound is silence, and a long word is cut into pieces', async (t) => {
  const voices = await load(await readPack(t, { 'model.onnx': {}, ...onnxVoices }));
  const blank = await speak(voices, '...');
  t.ok(blank.pcm.length > 0 && blank.pcm.every((sample) => sample === 0));
  t.same(blank.words, [{ word: 0, startSample: 0, endSample: 0 }]);
  const monster = await speak(voices, 'supercalifragilisticexpialidocious'.repeat(20));
  t.ok(monster.chunks.length > 3 && monster.chunks.every((chunk) => heardIn(chunk).ids.length <= 152));
  t.equal(monster.words.length, 1);
  const shouted = await speak(voices, `Hello${'?!'.repeat(80)} friend.`);
  t.equal(shouted.words.length, 2);
  t.ok(shouted.chunks.every((chunk) => heardIn(chunk).ids.length <= 152));
  const { pcm, words } = await speak(voices, 'It cost 42 now', {
    spoken: [{ first: 1, last: 2, spoken: 'cost forty two' }],
  });
  t.equal(words[1]!.endSample, words[2]!.startSample, 'words that are spoken as one share its time');
  t.ok(words[3]!.endSample <= pcm.length);
});

t.test('a sound keeps 10 ms before it and 30 ms after it', (t) => {
  const raw = new Float32Array(9_600).fill(0.5, 2_400, 4_800);
  const tokens = { ids: [1], tokenOf: [0] };
  t.equal(soundOf(raw, 0, tokens, null).pcm.length, 240 + 2_400 + 720);
  t.end();
});

t.test('durations that cannot be used count as none', async (t) => {
  const tokens = { ids: [1, 2], tokenOf: [0, 1] };
  const raw = new Float32Array(9_600).fill(0.5);
  t.same(soundOf(raw, 0, tokens, null).spans, [
    { start: 0, end: 4_800 },
    { start: 4_800, end: 9_600 },
  ]);
  const voices = await load(await readPack(t, { 'model.onnx': { durations: 'zero' }, ...onnxVoices }));
  const { words } = await speak(voices, hello.text);
  t.ok(words.every(({ startSample, endSample }) => endSample > startSample));
});

t.test('a model that fails while it speaks fails that segment only', async (t) => {
  const voices = await load(
    await readPack(t, { 'model.onnx': { brokenId: kokoroVocabulary.get('?')! }, ...onnxVoices }),
  );
  const segment = voices.open(requestOf('Is it?', { voiceId: voices.voices[0]!.id }));
  await t.rejects(segment.step(), { message: /values that are not numbers.*fp32/ });
  t.same(heardIn((await speak(voices, hello.text)).pcm).ids, hello.ids);
});
