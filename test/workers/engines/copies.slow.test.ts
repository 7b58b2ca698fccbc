/** Optimised copies of graphs, whose weights all threads map. */
import { mkdir, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Tensor } from 'onnxruntime-node';
import t from 'tap';
import { closeFiles, type VoicePack } from '../../../src/threads/voices.js';
import { elementTypes, type Model, type Node } from '../../../workers/engines/graph/model.js';
import { modelMessage } from '../../../workers/engines/graph/write.js';
import { createSessions } from '../../../workers/engines/onnx.js';
import { loadPacks, readPacks } from '../../../workers/engines/registry.js';
import type { SyrinxData } from '../../../workers/engines/syrinx/manifest.js';
import { modelsDir, speak, testMeans } from '../../support/voices.js';

const float = elementTypes.float32;
const weightsOf = (name: string, dims: readonly [number, number]) => ({
  ...{ name, dims, type: float },
  data: { held: Buffer.from(Float32Array.from({ length: dims[0] * dims[1] }, (_, i) => Math.sin(i)).buffer) },
});
const product = (inputs: readonly string[], output: string): Node => ({
  ...{ name: output, op: 'MatMul', domain: '', inputs, outputs: [output], attributes: new Map() },
});

t.test('weights of any size are packed where the kernels can read them', async (t) => {
  // The first ends 16 bytes after a multiple of 64: the packed weights, and all that follow, must be moved.
  const shapes = { first: [180, 181], second: [181, 64] } as const;
  const model: Model = {
    ...{ irVersion: 8, opsets: new Map([['', 17]]), metadata: new Map(), functions: [] },
    nodes: [product(['x', 'first'], 'inner'), product(['inner', 'second'], 'y')],
    inputs: [{ name: 'x', type: float, dims: [1, null, 180] }],
    outputs: [{ name: 'y', type: float, dims: [1, null, 64] }],
    initialisers: new Map(Object.entries(shapes).map(([name, dims]) => [name, weightsOf(name, dims)])),
  };
  const folder = join(t.testdir(), 'set');
  await mkdir(folder);
  const path = join(folder, 'net.onnx');
  await writeFile(path, modelMessage(model));
  const graphs = { net: { path, openPath: path, bytes: 0 } };
  const outputs: unknown[] = [];
  for (const copiesIn of [undefined, folder]) {
    const { run, release } = await createSessions('pack', graphs, testMeans, { copiesIn });
    for (const rows of [1, 7, 40]) {
      const x = new Tensor(
        'float32',
        Float32Array.from({ length: rows * 180 }, (_, i) => Math.cos(i)),
        [1, rows, 180],
      );
      outputs.push((await run.net({ x }))['y']!.data);
    }
    await release();
  }
  t.strictSame(outputs.slice(3), outputs.slice(0, 3));
});

t.test('a graph with small weights only has a copy without a file of weights', async (t) => {
  const model: Model = {
    ...{ irVersion: 8, opsets: new Map([['', 17]]), metadata: new Map(), functions: [] },
    nodes: [product(['x', 'small'], 'y')],
    inputs: [{ name: 'x', type: float, dims: [1, null, 2] }],
    outputs: [{ name: 'y', type: float, dims: [1, null, 2] }],
    initialisers: new Map([['small', weightsOf('small', [2, 2])]]),
  };
  const folder = join(t.testdir(), 'set');
  await mkdir(folder);
  const path = join(folder, 'net.onnx');
  await writeFile(path, modelMessage(model));
  const warnings: unknown[] = [];
  const log = { ...testMeans.log, warn: (...given: unknown[]) => void warnings.push(given) };
  const graphs = { net: { path, openPath: path, bytes: 0 } };
  const { run, release } = await createSessions('pack', graphs, { ...testMeans, log }, { copiesIn: folder });
  const made = await run.net({ x: new Tensor('float32', Float32Array.of(1, 0), [1, 1, 2]) });
  t.strictSame([...(made['y']!.data as Float32Array)], [0, Math.fround(Math.sin(1))]);
  t.strictSame(warnings, []);
  await release();
});

const text = 'We were all in the garden.';

/** The default pack, and its voices as a thread loads them. */
const load = async (cacheDir: string, change: (data: SyrinxData) => SyrinxData = (data) => data) => {
  const { packs, files } = await readPacks({ modelsDir, cacheDir });
  const pack = packs[0]!;
  const changed: VoicePack = { ...pack, data: change(pack.data as SyrinxData) };
  const voices = await loadPacks([changed], testMeans);
  closeFiles(files);
  return voices;
};

t.test('our voices are loaded from copies, and sound the same without them', async (t) => {
  const cacheDir = t.testdir();
  const voices = await load(cacheDir);
  const files = await readdir(cacheDir, { recursive: true });
  for (const graph of ['encoder', 'frames', 'decoder'])
    t.ok(
      files.some((file) => new RegExp(`optimised-\\w+/${graph}\\.onnx$`).test(file)),
      graph,
    );
  const plain = await load(cacheDir, (data) => ({ ...data, copiesIn: undefined }));
  t.strictSame((await speak(voices, text)).pcm, (await speak(plain, text)).pcm);
});

t.test('our voices need no folder for copies', async (t) => {
  const cacheDir = join(t.testdir({ file: '' }), 'file');
  t.ok((await speak(await load(cacheDir), text)).pcm.length > 0);
});

t.test('copies that load and do not speak are made again by the next load', async (t) => {
  const cacheDir = t.testdir();
  const before = (await speak(await load(cacheDir), text)).pcm;
  const files = (await readdir(cacheDir, { recursive: true })).filter((file) =>
    /optimised-\w+\/.*\.bin$/.test(file),
  );
  t.ok(files.length > 0);
  for (const file of files) {
    const path = join(cacheDir, file);
    const { size } = await stat(path);
    // Another file: the voices above have mapped this one.
    await rm(path);
    await writeFile(path, Buffer.alloc(size));
  }
  await t.rejects(load(cacheDir), { name: 'VoicePackError' });
  t.strictSame((await speak(await load(cacheDir), text)).pcm, before);
});
