/** WebGPU on a software device: the same code as on a GPU, but no driver and no hardware. */
import { missingGpu } from '../../support/software-gpu.js';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { InferenceSession, Tensor } from 'onnxruntime-node';
import t from 'tap';
import { limits } from '../../../src/limits.js';
import { readConfig } from '../../../src/config.js';
import { chooseDevice } from '../../../src/threads/device.js';
import { GpuState } from '../../../src/threads/gpu.js';
import type { GpuMeans } from '../../../workers/engines/engine.js';
import { elementTypes } from '../../../workers/engines/graph/model.js';
import { modelMessage } from '../../../workers/engines/graph/write.js';
import { createSessions } from '../../../workers/engines/onnx.js';
import { GraphBuilder } from '../../../scripts/voices/fixtures/graph-builder.js';
import { gpuMeans } from '../../support/batched-voices.js';
import { testMeans } from '../../support/voices.js';

const entry = new URL('../../../workers/device.js', import.meta.url);
const choose = (env: Record<string, string>) => chooseDevice(readConfig(env), entry, limits.deviceTrialMsMax);

t.test('a software device is used only if it is asked for by name', { skip: missingGpu }, async (t) => {
  const device = await choose({ EXECUTION_PROVIDER: 'webgpu' });
  t.match(device, { provider: 'webgpu', name: /SwiftShader/, isFallback: false });
  const auto = readConfig({ EXECUTION_PROVIDER: 'auto', GPU_GRAPHS: 'all' });
  t.match(await chooseDevice(auto, entry, limits.deviceTrialMsMax, () => false), {
    ...{ provider: 'cpu', isFallback: false },
    reason: /there is no device file of a GPU/,
  });
  t.match(await chooseDevice(auto, entry, limits.deviceTrialMsMax, () => true), {
    ...{ provider: 'cpu', isFallback: false },
    // Its driver is left out.
    reason: /WebGPU cannot be used: .*adapter/,
  });
  t.match(await choose({ EXECUTION_PROVIDER: 'cpu' }), { provider: 'cpu', reason: /is cpu/ });
});

t.setTimeout(280_000);

/** Two convolutions, as in a generator. */
const writeNet = (folder: string): string => {
  const graph = new GraphBuilder(1);
  const x = graph.input('x', elementTypes.float32, ['n', 8, 'frames']);
  const inner = graph.op('LeakyRelu', [graph.conv(x, 8, 8, 3)], { alpha: 0.1 });
  const outputs = [{ name: 'y', type: elementTypes.float32, dims: ['n', 8, 'frames'] }];
  const path = join(folder, 'net.onnx');
  writeFileSync(path, modelMessage(graph.model(outputs, [graph.conv(inner, 8, 8, 3)], {})));
  return path;
};

const feedsOf = (frames: number) => ({
  x: new Tensor(
    'float32',
    Float32Array.from({ length: 8 * frames }, (_, i) => Math.sin(i)),
    [1, 8, frames],
  ),
});

t.test('a graph gives the results of the CPU, also when the GPU is lost', { skip: missingGpu }, async (t) => {
  const path = writeNet(t.testdir());
  const net = { path, openPath: path, bytes: 1 };
  const load = (gpu: Partial<GpuMeans> = {}) =>
    createSessions(
      'pack',
      { net },
      {
        ...testMeans,
        provider: 'webgpu',
        gpu: gpuMeans(1, gpu),
      },
    );
  const cpu = await createSessions('pack', { net }, testMeans);
  const state = new GpuState();
  let runs = 0;
  const gpu = await load({
    state,
    createSession: async (file, options) => {
      t.same(options.executionProviders, ['webgpu']);
      const session = await InferenceSession.create(String(file), options);
      return {
        run: (feeds: InferenceSession.FeedsType) =>
          ++runs > 3 ? Promise.reject(new Error('WebGPU device lost')) : session.run(feeds),
        release: () => session.release(),
      };
    },
  });
  for (const [frames, isLost] of [
    [20, false],
    [30, false],
    [21, false],
    [22, true],
    [31, true],
  ] as const) {
    const [expected, made] = await Promise.all(
      [cpu, gpu].map(async ({ run }) => (await run.net(feedsOf(frames)))['y']!.data as Float32Array),
    );
    const worst = Math.max(...expected!.map((value, i) => Math.abs(value - made![i]!)));
    t.ok(worst < 1e-5, `${frames} frames differ by ${worst}`);
    t.equal(state.isLost, isLost);
  }
  await gpu.release();
  await cpu.release();
});
