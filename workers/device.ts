/** Entry of the process that tries a GPU: runs a small graph there and on the CPU, and answers in one line. */
import { InferenceSession, Tensor } from 'onnxruntime-node';
import type { DeviceTrial } from '../src/threads/device.js';
import { firstLine } from './engines/entries.js';
import { type Model, elementTypes } from './engines/graph/model.js';
import { modelMessage } from './engines/graph/write.js';
import { gpuOptionsOf } from './engines/onnx.js';

const channels = 4;
const frames = 16;
/** The most that the results may differ. */
const tolerance = 1e-3;

const wave = (length: number) => Float32Array.from({ length }, (_, i) => Math.sin(i));

/** A convolution. */
const model = (): Model => {
  const weights = wave(3 * channels ** 2);
  const held = Buffer.from(weights.buffer);
  const value = (name: string) => ({ name, type: elementTypes.float32, dims: [1, channels, frames] });
  const ints = (values: readonly number[]) => ({ type: 'ints', value: values }) as const;
  return {
    irVersion: 8,
    opsets: new Map([['', 15]]),
    metadata: new Map(),
    nodes: [
      {
        ...{ name: 'conv', op: 'Conv', domain: '', inputs: ['x', 'weights'], outputs: ['y'] },
        attributes: new Map([
          ['kernel_shape', ints([3])],
          ['pads', ints([1, 1])],
        ]),
      },
    ],
    inputs: [value('x')],
    outputs: [value('y')],
    initialisers: new Map([
      [
        'weights',
        { name: 'weights', dims: [channels, channels, 3], type: elementTypes.float32, data: { held } },
      ],
    ]),
    functions: [],
  };
};

const runOn = async (options: InferenceSession.SessionOptions): Promise<Float32Array> => {
  const session = await InferenceSession.create(modelMessage(model()), options);
  const { y } = await session.run({
    x: new Tensor('float32', wave(channels * frames), [1, channels, frames]),
  });
  await session.release();
  return y!.data as Float32Array;
};

const trial = async (provider: string, device: number): Promise<DeviceTrial> => {
  try {
    const expected = await runOn({ executionProviders: ['cpu'] });
    const made = await runOn(gpuOptionsOf(provider === 'cuda' ? 'cuda' : 'webgpu', device));
    const isEqual = expected.every((sample, i) => Math.abs(sample - made[i]!) <= tolerance);
    return { fault: isEqual ? null : 'its results are wrong' };
  } catch (error) {
    return { fault: firstLine(error) };
  }
};

const [, , provider = 'webgpu', device = '0'] = process.argv;
process.stdout.write(JSON.stringify(await trial(provider, Number(device))), () => process.exit(0));
