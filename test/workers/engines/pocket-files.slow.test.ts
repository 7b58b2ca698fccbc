/** Files that stand beside the graphs of Pocket TTS: tokenisers and voices in all their forms, and ids by the reference. */
import { readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { echo, smallShape } from '../../../scripts/voices/fixtures/pocket-echo.js';
import { makeOneGraph } from '../../../scripts/voices/fixtures/pocket-one.js';
import { pocketPieces } from '../../../scripts/voices/fixtures/pocket-tokeniser.js';
import {
  type StateArray,
  mainStates,
  makeFiveGraphs,
  numpyOf,
  safetensors,
} from '../../../scripts/voices/fixtures/pocket.js';
import { closeFiles } from '../../../src/threads/voices.js';
import type { LoadedVoices } from '../../../workers/engines/engine.js';
import { loadPacks, readPacks } from '../../../workers/engines/registry.js';
import { packageRoot } from '../../support/package-root.js';
import { cacheDir, loadFrom, speak, testMeans } from '../../support/voices.js';

interface Piece {
  readonly text: string;
  readonly new: readonly (readonly number[])[];
  readonly old: readonly (readonly number[])[];
}

/** What the memory of the model held before each piece of speech. */
const promptsOf = (pcm: Int16Array): number[][] => {
  const pieces: number[][] = [];
  for (let from = 0; from < pcm.length; from += echo.frameSamples) {
    if (pcm[from + echo.frame] === 0) pieces.push([]);
    pieces.at(-1)!.push(...pcm.subarray(from, from + echo.memoryValues));
  }
  return pieces.map((memory) => memory.slice(0, memory.indexOf(echo.begin)));
};

const promptsIn = async (voices: LoadedVoices, voiceId: string, text: string) =>
  promptsOf((await speak(voices, text, { voiceId })).pcm);

/** The pack in five graphs, then changed. */
const changed = async (t: Test, change: (pack: string) => Promise<void>): Promise<LoadedVoices> => {
  const folder = t.testdir();
  await makeFiveGraphs(join(folder, 'five'));
  await change(join(folder, 'five'));
  const { packs, files } = await readPacks({ modelsDir: folder, cacheDir });
  // As in the service, a state is read from its file when its voice is used.
  t.teardown(() => closeFiles(files));
  return loadPacks(packs, testMeans);
};

t.test('ids of 50 texts are those of a second implementation, piece by piece', async (t) => {
  const path = join(packageRoot, 'test/workers/engines/pocket-ids.json');
  const rows = JSON.parse(await readFile(path, 'utf8')) as readonly Piece[];
  t.equal(rows.length, 50);
  const folder = t.testdir();
  await makeFiveGraphs(join(folder, 'five'));
  await makeOneGraph(join(folder, 'one.onnx'));
  const voices = await loadFrom(folder);
  for (const { text, new: newer, old } of rows) {
    const isToken = (value: number) => value >= 0;
    const idsOf = async (voiceId: string) =>
      (await promptsIn(voices, voiceId, text)).map((prompt) => prompt.filter(isToken));
    t.strictSame(await idsOf('five-alba'), newer, text);
    t.strictSame(await idsOf('one-alba'), old, `${text} (older rules)`);
  }
});

t.test('vocab.json and token_scores.json take the place of tokenizer.model', async (t) => {
  const pieces = pocketPieces();
  const vocabulary = Object.fromEntries(pieces.map(({ text }, id) => [text, id]));
  const text = 'The kettle is on, and Zoë talks.';
  const whole = await promptsIn(await changed(t, () => Promise.resolve()), 'five-alba', text);
  for (const [name, scores] of [
    ['by piece', Object.fromEntries(pieces.map(({ text, score }) => [text, score]))],
    ['in the order of ids', pieces.map(({ score }) => score)],
  ] as const)
    t.test(name, async (t) => {
      const voices = await changed(t, async (pack) => {
        await rm(join(pack, 'tokenizer.model'));
        await writeFile(join(pack, 'vocab.json'), JSON.stringify(vocabulary));
        await writeFile(join(pack, 'token_scores.json'), JSON.stringify(scores));
      });
      t.strictSame(await promptsIn(voices, 'five-alba', text), whole);
    });
  await t.rejects(
    changed(t, async (pack) => {
      await rm(join(pack, 'tokenizer.model'));
      await writeFile(join(pack, 'vocab.json'), '{"a": 0, "b": 2}');
      await writeFile(join(pack, 'token_scores.json'), '[]');
    }),
    { message: /vocab\.json: its numbers must be 0, 1, 2/ },
  );
});

t.test('the owner names the language that the files do not name', async (t) => {
  const modelsDir = t.testdir();
  const pack = join(modelsDir, 'five');
  await makeFiveGraphs(pack);
  // A voice in a file of states needs it.
  for (const file of ['bundle.json', `${echo.state.name}.safetensors`]) await rm(join(pack, file));
  const read = async () => {
    const { packs, files } = await readPacks({ modelsDir, cacheDir });
    closeFiles(files);
    return packs[0]!;
  };
  const unnamed = await read();
  t.equal(unnamed.voices[0]!.language, 'en-US');
  t.match(unnamed.notes!.at(-1), /spoken as English; set "language" in syrinx\.json$/);
  await writeFile(join(pack, 'syrinx.json'), '{"language": "pl-PL"}');
  const named = await read();
  t.equal(named.voices[0]!.language, 'pl-PL');
  t.equal(named.notes!.length, unnamed.notes!.length - 1);
  await writeFile(join(pack, 'syrinx.json'), '{"blends": {}}');
  await t.rejects(read(), { message: /syrinx\.json: syrinx\.json\.blends must be undefined/ });
});

t.test('rates that no voice has are refused', async (t) => {
  for (const [field, rate] of [
    ...[1, 7_999, 48_001, 100_000].map((rate) => ['sample_rate', rate] as const),
    ...[0.5, 101, 1e9].map((rate) => ['frame_rate', rate] as const),
  ])
    await t.rejects(
      changed(t, async (pack) => {
        const path = join(pack, 'bundle.json');
        const bundle = JSON.parse(await readFile(path, 'utf8')) as object;
        await writeFile(path, JSON.stringify({ ...bundle, [field]: rate }));
      }),
      { name: 'VoicePackError', message: new RegExp(`bundle\\.json: bundle\\.${field} must be`) },
      `${field} ${rate}`,
    );
});

const { width } = smallShape;
const frames = 4;
const value = -400;
const filled = (count: number) => new Float32Array(count).fill(value);

/** A state of an older file: other arrays than `step` hold the number of its steps. */
const olderState = (steps: Readonly<Record<string, StateArray>>) => {
  const arrays: Record<string, StateArray> = {};
  for (const { path, key, shape } of mainStates(smallShape)) {
    if (key === 'cache') {
      const dims = [2, 1, frames, ...shape.slice(3)];
      arrays[path] = ['F32', dims, filled(dims.reduce((product, size) => product * size, 1))];
    }
    if (key !== 'step') continue;
    for (const [name, array] of Object.entries(steps)) arrays[path.replace(/step$/, name)] = array;
  }
  return safetensors(arrays);
};

t.test('voices are read from files of every form', async (t) => {
  const vectors: StateArray = ['F32', [1, frames, width], filled(frames * width)];
  const voices = await changed(t, async (pack) => {
    await writeFile(join(pack, 'bare.safetensors'), safetensors({ embedding: vectors }));
    await writeFile(
      join(pack, 'offset.safetensors'),
      olderState({ offset: ['I64', [1], BigInt64Array.of(BigInt(frames))] }),
    );
    await writeFile(
      join(pack, 'ended.safetensors'),
      olderState({ current_end: ['F32', [frames], new Float32Array(frames)] }),
    );
    await writeFile(join(pack, 'voice-array.npy'), numpyOf(value, frames, width));
  });
  const heard = new Array<number>(frames).fill(value);
  for (const [name, expected] of [
    ['bare', [echo.beforeVoice, ...heard]],
    ['array', [echo.beforeVoice, ...heard]],
    ['offset', heard],
    ['ended', heard],
  ] as const) {
    const [prompt] = await promptsIn(voices, `five-${name}`, 'Yes.');
    t.strictSame(
      prompt!.filter((number) => number < 0),
      expected,
      name,
    );
  }
});

t.test('a state whose tensors are not those of the model is refused, before they are read', async (t) => {
  const [cache, , step] = mainStates(smallShape);
  const dims = [2, 1, frames, ...cache!.shape.slice(3)];
  const count = dims.reduce((product, size) => product * size, 1);
  const stateOf = (path: string, dtype: string, shape: readonly number[], bytes: number) => {
    const header = Buffer.from(JSON.stringify({ [path]: { dtype, shape, data_offsets: [0, bytes] } }));
    const length = Buffer.alloc(8);
    length.writeBigUInt64LE(BigInt(header.length));
    return { head: Buffer.concat([length, header]), bytes };
  };
  const large = 1_500_000_000;
  for (const [{ head, bytes }, expected] of [
    [stateOf(cache!.path, 'F32', dims, large), /cache" has 1500000000 bytes of F32 \[2, 1, 4, 2, 4\]/],
    [stateOf(cache!.path, 'F32', [2, 1, large / 64, 2, 4], large), /at most float32 \[2, 1, 160, 2, 4\]/],
    [stateOf(cache!.path, 'F16', dims, 2 * count), /of F16/],
    [
      stateOf(step!.path.replace('step', 'offset'), 'I64', [large / 8], large),
      /offset" has 1500000000 bytes/,
    ],
    [stateOf(cache!.path, 'F32', [-1], 4), /header.*shape\[0\] must be/],
  ] as const)
    await t.rejects(
      changed(t, async (pack) => {
        await writeFile(join(pack, 'sparse.safetensors'), head);
        await truncate(join(pack, 'sparse.safetensors'), head.length + bytes);
      }),
      { name: 'VoicePackError', message: new RegExp(`sparse\\.safetensors: .*${expected.source}`) },
    );
});

t.test('a file of voices that is none is refused with its name', async (t) => {
  for (const [name, bytes, expected] of [
    ['wide', safetensors({ embedding: ['F32', [1, 2, 3], new Float32Array(6)] }), /not a voice of width 64/],
    [
      'cut',
      safetensors({ a: ['F32', [1, 2, 64], new Float32Array(128)] }).subarray(0, 300),
      /a part of a file/,
    ],
    ['long', Buffer.alloc(64, 0xff), /header is too long/],
  ] as const)
    await t.rejects(
      changed(t, (pack) => writeFile(join(pack, `${name}.safetensors`), bytes)),
      { message: new RegExp(`${name}\\.safetensors: .*${expected.source}`) },
    );
});
