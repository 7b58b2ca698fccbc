/** Piper graphs in other precisions, and graphs that differ from what their configuration says. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { piperConfig, piperModel, smallShape } from '../../../scripts/voices/fixtures/piper.js';
import { DerivedFiles } from '../../../workers/engines/graph/derived.js';
import { type Model, type Node, type Tensor, elementTypes } from '../../../workers/engines/graph/model.js';
import { modelMessage } from '../../../workers/engines/graph/write.js';
import { piper } from '../../../workers/engines/piper/format.js';
import { PiperGraphs } from '../../../workers/engines/piper/graphs.js';
import { readEntry } from '../../../workers/engines/registry.js';
import { floatTensor } from '../../../workers/engines/tensors.js';

const refuses = async (t: Test, model: Model, message: RegExp, config = piperConfig()): Promise<void> => {
  const folder = t.testdir();
  const path = join(folder, 'voice');
  await mkdir(path);
  await writeFile(join(path, 'voice.onnx'), modelMessage(model));
  await writeFile(join(path, 'voice.onnx.json'), JSON.stringify(config));
  const derived = new DerivedFiles(join(folder, 'derived'));
  const read = readEntry({ name: 'voice', path, files: null }, derived, [], [piper]);
  await t.rejects(read, { name: 'VoicePackError', message });
};

const bytesOf = (tensor: Tensor): Buffer => {
  if (!('held' in tensor.data)) throw new Error('the weights are not in memory');
  return tensor.data.held;
};

/** Weights as 16-bit numbers, as converters to fp16 write them. */
const halved = (model: Model): Model => ({
  ...model,
  initialisers: new Map(
    [...model.initialisers].map(([name, tensor]) => [
      name,
      tensor.type === elementTypes.float32
        ? {
            ...tensor,
            type: 10,
            data: { held: Buffer.alloc(bytesOf(tensor).length / 2) },
          }
        : tensor,
    ]),
  ),
});

/** Convolutions in 8-bit arithmetic, as dynamic quantisation writes them. */
const quantised = (model: Model): Model => ({
  ...model,
  nodes: model.nodes.map((node): Node => (node.op === 'Conv' ? { ...node, op: 'ConvInteger' } : node)),
});

t.test('a graph in 16 bits is refused, with what to take', (t) =>
  refuses(t, halved(piperModel(smallShape)), /voice\.onnx: .*16.*float32 model as it was published/),
);

t.test('a graph in 8-bit arithmetic is refused, with what to take', (t) =>
  refuses(t, quantised(piperModel(smallShape)), /voice\.onnx: .*float32 model as it was published/),
);

t.test('a configuration with speakers that the graph does not take is refused', (t) =>
  refuses(
    t,
    piperModel(smallShape),
    /voice\.onnx\.json: it says that the voice has 4 speakers, but the model takes no speaker/,
    piperConfig(4),
  ),
);

t.test('a graph may not make more sound than its frames have', async (t) => {
  const part = { name: 'generator', input: 'piece', inputs: [], output: 'sound' };
  const generator = { ...part, states: [], lookahead: 1, rate: 4, work: 1 };
  const encoder = { parts: [], noise: null, durations: '', means: '', logDeviations: '' };
  const made = [0, 12, 4, 9].map((length) => new Float32Array(length)).values();
  const tensorOf = (values: Float32Array) => floatTensor(values, [1, 1, 1, values.length]);
  const run = () => Promise.resolve({ sound: tensorOf(made.next().value!) });
  const plan = { encoder, flow: generator, generator, channels: 1 };
  const stream = new PiperGraphs({ run: { generator: run } }, plan).open('generator', 0);
  const push = (frames: number) => stream(new Float32Array(frames), frames, false);
  // It lags, and makes up for it.
  for (const frames of [1, 2, 1]) await push(frames);
  await t.rejects(push(2), { message: 'sound has more values than its frames make' });
});
