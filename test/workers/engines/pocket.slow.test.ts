/** Pocket TTS with graphs that echo their inputs: the audio shows the tokens and states. */
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import t, { type Test } from 'tap';
import { echo } from '../../../scripts/voices/fixtures/pocket-echo.js';
import { makeOneGraph } from '../../../scripts/voices/fixtures/pocket-one.js';
import { makeFiveGraphs } from '../../../scripts/voices/fixtures/pocket.js';
import { pocketTokeniser } from '../../../scripts/voices/fixtures/pocket-tokeniser.js';
import { ipaPlace } from '../../../src/text/replacements.js';
import { closeFiles } from '../../../src/threads/voices.js';
import type { LoadedVoices } from '../../../workers/engines/engine.js';
import { bytesOf, stateAfter } from '../../../workers/engines/pocket/states.js';
import { floatTensor } from '../../../workers/engines/tensors.js';
import { Tokeniser, parseSentencePiece, parseVocabulary } from '../../../workers/engines/pocket/tokeniser.js';
import { readPacks } from '../../../workers/engines/registry.js';
import { cacheDir, joinPcm, loadFrom, requestOf, speak } from '../../support/voices.js';

t.test('a vocabulary far larger than that of any voice is refused', (t) => {
  // Each piece is a field without content.
  const pieces = (count: number) => Buffer.from('0a00'.repeat(count), 'hex');
  t.equal(parseSentencePiece('tokenizer.model', pieces(100_000)).pieces.length, 100_000);
  t.throws(() => parseSentencePiece('tokenizer.model', pieces(200_000)), /more than 100000 pieces/);
  const numbered = Object.fromEntries(Array.from({ length: 100_001 }, (_, id) => [`piece ${id}`, id]));
  t.throws(() => parseVocabulary('vocab.json', numbered, {}), /more than 100000 pieces/);
  t.end();
});

const tokeniser = new Tokeniser(parseSentencePiece('tokenizer.model', pocketTokeniser()));

/** Puts two packs into a folder: `five`, of five graphs, and `one`. */
const packsIn = async (t: Test): Promise<string> => {
  const folder = t.testdir();
  await makeFiveGraphs(join(folder, 'five'));
  await makeOneGraph(join(folder, 'one.onnx'));
  return folder;
};

interface Frame {
  readonly memory: readonly number[];
  /** The other values, by their places. */
  readonly at: (place: number) => number;
}

const framesOf = (pcm: Int16Array): Frame[] => {
  const frames: Frame[] = [];
  for (let from = 0; from < pcm.length; from += echo.frameSamples) {
    const samples = pcm.subarray(from, from + echo.frameSamples);
    frames.push({ memory: [...samples.subarray(0, echo.memoryValues)], at: (place) => samples[place]! });
  }
  return frames;
};

/** What the model's memory held before speech began: the voice and the tokens. */
const promptOf = (frames: readonly Frame[]): number[] => {
  const memory = frames.flatMap((frame) => frame.memory);
  return memory.slice(0, memory.indexOf(echo.begin));
};

const repeat = (value: number, times: number): number[] => new Array<number>(times).fill(value);
const albaPrompt = [echo.beforeVoice, ...repeat(-100, echo.voiceFrames)];
const speakIn = async (voices: LoadedVoices, voiceId: string, text: string, seed = 1) => {
  const spoken = await speak(voices, text, { voiceId, seed, utteranceSeed: seed });
  return { ...spoken, frames: framesOf(spoken.pcm) };
};

let voices: LoadedVoices;
let folder: string;

t.before(async () => {
  folder = await packsIn(t);
  voices = await loadFrom(folder);
});

t.test('packs are recognised by their files, with language, rate and limits', async (t) => {
  const { packs, findings, files } = await readPacks({ modelsDir: folder, cacheDir });
  closeFiles(files);
  t.strictSame(findings, []);
  t.strictSame(
    packs.map(({ engine, voices: [voice], voices: all }) => [
      engine,
      all.map(({ id }) => id),
      voice?.language,
    ]),
    [
      ['pocket', ['five-eponine', 'five-alba', 'five-marius'], 'en-US'],
      ['pocket', ['one-alba', 'one-marius'], 'de-DE'],
    ],
  );
  for (const { stateBytes, notes, voices: all } of packs) {
    t.ok(stateBytes! > 100_000, 'what its segments keep is counted');
    t.match(notes, [/word times are estimates/, /speed/]);
    t.equal(all[0]!.sampleRateHz, 24_000);
  }
});

t.test('the model hears voice, tokens and its own latents, in this order and nothing else', async (t) => {
  const text = 'The kettle is on, and the kitchen smells of toast.';
  const tokens = tokeniser.encode(text);
  for (const [voiceId, voice, after] of [
    ['five-alba', albaPrompt, 3],
    ['five-eponine', repeat(echo.state.value, echo.state.frames), 3],
    ['one-alba', repeat(-100, echo.voiceFrames), 2],
    ['one-marius', repeat(-200, echo.voiceFrames), 2],
  ] as const) {
    const { frames, pcm, chunks } = await speakIn(voices, voiceId, text);
    t.strictSame(promptOf(frames), [...voice, ...tokens], voiceId);
    t.equal(pcm.length % echo.frameSamples, 0);
    t.equal(
      frames.length,
      tokens.length - 1 + after,
      'speech ends so many frames after the sign for its end',
    );
    t.equal(chunks.filter(({ length }) => length === 0).length, 1, 'the prompt is a step of its own');
    t.ok(
      chunks.every(({ length }) => length === 0 || length === echo.frameSamples),
      'then a frame a step',
    );
    for (const [i, frame] of frames.entries()) {
      t.equal(frame.at(echo.frame), i);
      t.equal(frame.at(echo.decoderFrames), i, 'the state of the decoder goes on');
      t.equal(frame.at(echo.decoderIsNew), i === 0 ? 1 : 0, 'and begins as the export says');
      const before = i === 0 ? 0 : frames[i - 1]!.at(echo.noise);
      t.ok(Math.abs(frame.at(echo.decoderBefore) - before) <= 1);
      t.ok(Math.abs(frame.at(echo.fed) - (i === 0 ? echo.begin : before)) <= 1, 'each latent is fed back');
    }
    const noise = frames.map((frame) => frame.at(echo.noise));
    t.ok(new Set(noise).size > noise.length / 2, 'noise differs from frame to frame');
    t.ok(noise.every((value) => Math.abs(value) <= 3 * Math.sqrt(0.7) * echo.noiseScale));
  }
});

t.test('contexts that speak at once keep their own states, and equal seeds give equal audio', async (t) => {
  const texts = ['What is in the kettle?', 'Shall we sit by the window and talk?', 'Good morning.', 'Yes.'];
  for (const pack of ['five', 'one']) {
    const alone = [];
    for (const [i, text] of texts.entries())
      alone.push(await speakIn(voices, `${pack}-${i % 2 === 0 ? 'alba' : 'marius'}`, text, i));
    const together = texts.map((text, i) => {
      const voiceId = `${pack}-${i % 2 === 0 ? 'alba' : 'marius'}`;
      return {
        segment: voices.open(requestOf(text, { voiceId, seed: i, utteranceSeed: i })),
        pcm: [] as Int16Array[],
      };
    });
    // Step by step, in turns: a state that leaked would change what another one says.
    for (let running = together.length; running > 0;) {
      running = 0;
      for (const { segment, pcm } of together) {
        const chunk = await segment.step();
        if (chunk === null) continue;
        pcm.push(chunk.pcm);
        running++;
      }
    }
    for (const [i, { pcm }] of together.entries())
      t.ok(isDeepStrictEqual(joinPcm(pcm), alone[i]!.pcm), `${pack}: ${texts[i]}`);
    const again = await speakIn(voices, `${pack}-alba`, texts[0]!, 0);
    t.ok(isDeepStrictEqual(again.pcm, alone[0]!.pcm), 'again');
    const other = await speakIn(voices, `${pack}-alba`, texts[0]!, 7);
    t.notOk(isDeepStrictEqual(other.pcm, alone[0]!.pcm), 'another seed');
  }
});

t.test('a long text is read in pieces, each from the voice on', async (t) => {
  const sentence = 'We were all in the garden when the news of it came over the long wall.';
  const text = `${sentence} ${sentence} ${sentence}`;
  const each = tokeniser.encode(sentence);
  t.ok(each.length <= 50 && 2 * each.length > 50);
  const { frames, words, spans, pcm } = await speakIn(voices, 'five-marius', text);
  const begins = frames.flatMap((frame, i) => (frame.at(echo.frame) === 0 ? [i] : []));
  t.equal(begins.length, 3);
  for (const [place, from] of begins.entries()) {
    const piece = frames.slice(from, begins[place + 1]);
    t.strictSame(promptOf(piece), [echo.beforeVoice, ...repeat(-200, echo.voiceFrames), ...each]);
    t.equal(piece[0]!.at(echo.decoderIsNew), 1, 'the decoder begins again, too');
  }
  t.strictSame(
    words.map(({ word }) => word),
    spans.map((_, word) => word),
    'every word has a time, in order',
  );
  let at = 0;
  for (const { startSample, endSample } of words) {
    t.ok(startSample >= at && endSample >= startSample && endSample <= pcm.length);
    at = endSample;
  }
  // No sentence, no clause and no space to cut at.
  const { frames: endless } = await speakIn(voices, 'five-alba', 'x'.repeat(120));
  t.ok(endless.length > 0);
});

t.test('texts are prepared as the export says', async (t) => {
  const tokensOf = async (voiceId: string, text: string) =>
    promptOf((await speakIn(voices, voiceId, text)).frames).filter((value) => value >= 0);
  t.strictSame(await tokensOf('five-alba', 'good morning'), tokeniser.encode('Good morning.'));
  t.strictSame(await tokensOf('five-alba', ' One;  two\nthree '), tokeniser.encode('One; two three.'));
  t.strictSame(await tokensOf('one-alba', 'yes; no!'), tokeniser.encode(`${' '.repeat(8)}Yes, no!`));
  t.strictSame(
    await tokensOf('five-alba', 'Über 😀!'),
    tokeniser.encode('Über 😀!'),
    'bytes of unknown letters',
  );
  const spoken = [
    { first: 0, last: 1, spoken: `“${ipaPlace}”`, ipa: 'ˈwɪn ɪz' },
    { first: 2, last: 2, spoken: 'five.' },
  ];
  const segment = voices.open(requestOf('Nguyen is 5.', { voiceId: 'five-alba', spoken }));
  const pcm = [];
  for (let chunk = await segment.step(); chunk !== null; chunk = await segment.step()) pcm.push(chunk.pcm);
  t.strictSame(
    promptOf(framesOf(joinPcm(pcm))).filter((value) => value >= 0),
    tokeniser.encode('Nguyen is five.'),
    'another spelling is spoken, phonemes are not',
  );
  for (const text of ['', ' ', '…', '—!']) {
    const { chunks, words, spans } = await speakIn(voices, 'five-alba', text);
    t.equal(chunks.length, 1, 'nothing to say is a short silence');
    t.equal(words.length, spans.length);
  }
});

t.test('an error names what is missing or of another kind, and what to do', async (t) => {
  const cases: readonly (readonly [string, (pack: string) => void, RegExp])[] = [
    [
      'a graph',
      (pack) => rmSync(join(pack, 'mimi_decoder.onnx')),
      /mimi_decoder\.onnx: the file is missing$/,
    ],
    [
      'the tokeniser',
      (pack) => rmSync(join(pack, 'tokenizer.model')),
      /tokenizer\.model: the file is missing: it is the tokeniser/,
    ],
    [
      'voices',
      (pack) => {
        rmSync(join(pack, 'voices.bin'));
        rmSync(join(pack, 'eponine.safetensors'));
      },
      /there is no voice: put voices\.bin, or NAME\.safetensors/,
    ],
    [
      'swapped graphs',
      (pack) => {
        renameSync(join(pack, 'flow_lm_flow.onnx'), join(pack, 'x'));
        renameSync(join(pack, 'flow_lm_main.onnx'), join(pack, 'flow_lm_flow.onnx'));
        renameSync(join(pack, 'x'), join(pack, 'flow_lm_main.onnx'));
      },
      /flow_lm_main\.onnx: takes c, s, t, x and gives flow_dir: an export of Pocket TTS takes sequence, text_embeddings/,
    ],
    [
      'a table of voices that is cut',
      (pack) => {
        const path = join(pack, 'voices.bin');
        writeFileSync(path, readFileSync(path).subarray(0, 500));
      },
      /voices\.bin: not a table of voices of width 64, or a part of one/,
    ],
    [
      'a lie of the bundle',
      (pack) => writeFileSync(join(pack, 'bundle.json'), '{"sample_rate": "24k", "frame_rate": 12.5}'),
      /bundle\.json: bundle\.sample_rate must be /,
    ],
    [
      'the bundle',
      (pack) => rmSync(join(pack, 'bundle.json')),
      /bundle\.json: the file is missing: without it a voice in a file of states/,
    ],
    [
      'several languages',
      (pack) => {
        mkdirSync(join(pack, 'german'));
        writeFileSync(join(pack, 'german', 'flow_lm_main_int8.onnx'), '');
      },
      /several languages \(, german\/\): put each folder of them into MODELS_DIR by itself$/,
    ],
  ];
  for (const [name, damage, expected] of cases) {
    const models = t.testdir();
    await makeFiveGraphs(join(models, 'five'));
    damage(join(models, 'five'));
    await t.rejects(readPacks({ modelsDir: models, cacheDir }), { message: expected }, name);
  }
});

t.test('a frame has as many samples as the rates of the pack say', async (t) => {
  const models = t.testdir();
  await makeFiveGraphs(join(models, 'five'));
  const path = join(models, 'five', 'bundle.json');
  const bundle = JSON.parse(readFileSync(path, 'utf8')) as object;
  writeFileSync(path, JSON.stringify({ ...bundle, frame_rate: 25 }));
  await t.rejects(loadFrom(models), {
    name: 'VoicePackError',
    message: /audio_frame has 1920 values, not 960/,
  });
});

t.test('a state without a fixed size is bounded', (t) => {
  const spec = {
    input: 'state_0',
    output: 'out_state_0',
    type: 'float32',
    dims: [0],
    isOpen: true,
    fill: 0,
  } as const;
  const after = (count: number, dims: readonly number[] = [0]) =>
    stateAfter([{ ...spec, dims }], { out_state_0: floatTensor(new Float32Array(count), [count]) });
  t.equal(after(1_000)['state_0']!.data.length, 1_000);
  t.equal(after(100_000, [100_000])['state_0']!.data.length, 100_000, 'as many as it begins with');
  t.equal(bytesOf([{ ...spec, dims: [100_000] }]), 400_000);
  t.throws(() => after(100_000), /out_state_0 has 100000 values, and without a fixed size at most 16384/);
  t.end();
});
