/** A service that runs the graphs of a voice on a software device, and loses it. */
import { missingGpu, softwareGpuEnv } from '../support/software-gpu.js';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { piperModel, smallShape, writePiper } from '../../scripts/voices/fixtures/piper.js';
import { isNight } from '../fuzz/check.js';
import { packageRoot } from '../support/package-root.js';
import { startService } from '../support/service.js';

t.setTimeout(300_000);

const text = 'The kettle is on, and the kitchen smells of toast.';
const format = { encoding: 'pcm', sample_rate: 22_050 };
const failed = /the GPU failed, and the CPU runs all models/;
const oneThread = 'SYNTHESIS_THREADS counts as 1: two threads that use WebGPU at once would end the process';

/** The alert fires while this metric is above 0. */
const alertMetric = (): string => {
  const rules = readFileSync(join(packageRoot, 'scripts/deploy/prometheus/alerts.yml'), 'utf8');
  return /alert: SyrinxGpuLost\n\s+expr: (\w+)\{job="syrinx"\} > 0\n/.exec(rules)![1]!;
};

/** Of a Piper voice, part of which the CPU runs. */
const start = async (t: Test) => {
  const models = join(t.testdir(), 'models');
  const fault = join(t.testdirName, 'fault');
  await writePiper(join(models, 'piper'), 'piper', piperModel(smallShape));
  const service = await startService(
    t,
    {
      ...{ MODELS_DIR: models, SYNTHESIS_THREADS: '2', EXECUTION_PROVIDER: 'webgpu', GPU_FAULT_FILE: fault },
      ...softwareGpuEnv,
      ...{ GPU_GRAPHS: 'piper/flow', GPU_BATCH_MAX: '2' },
    },
    'test/support/gpu-service.js',
    // The system shares the processor among sessions. Beside other tests, the niced threads would take minutes to load.
    ['setsid'],
  );
  const speak = async (): Promise<number> => {
    const response = await service.post('/v1/tts/stream', { text, voice: 'piper', response_format: format });
    return response.status === 200 ? (await response.arrayBuffer()).byteLength : 0;
  };
  const warnings = async (): Promise<string> => {
    const response = await fetch(`http://127.0.0.1:${service.opsPort}/readyz`);
    t.equal(response.status, 200, 'traffic may come here');
    return response.text();
  };
  const reload = async () => {
    const count = service.logged('voices reloaded').length + 1;
    service.signal('SIGHUP');
    await service.untilLogged('voices reloaded', count);
  };
  return { service, fault, speak, warnings, reload };
};

t.test('a service speaks on a GPU, and goes on without it', { skip: missingGpu }, async (t) => {
  const { service, fault, speak, warnings, reload } = await start(t);
  const isLost = async () => (await service.metric(alertMetric())) > 0;
  const speakAtOnce = async (count: number) => Promise.all(Array.from({ length: count }, speak));
  t.match(service.logged('the device that runs the models'), [
    { executionProvider: 'webgpu', device: /SwiftShader/, reason: /EXECUTION_PROVIDER is webgpu/ },
  ]);
  t.equal(service.logged(oneThread).length, 1);
  const onGpu = { 'piper/encoder_0': 'CPU', 'piper/flow': 'GPU' };
  t.match(service.logged('where the graphs run'), [{ generation: 1, graphs: onGpu }]);
  t.match(service.logged('listening'), [{ executionProviders: ['webgpu'] }]);

  t.ok((await speakAtOnce(3)).every((bytes) => bytes > 20_000));
  t.notMatch(await warnings(), failed);
  t.notOk(await isLost());

  writeFileSync(fault, 'lost');
  const startedMs = performance.now();
  t.ok(
    (await speakAtOnce(3)).every((bytes) => bytes > 20_000),
    'no sentence is lost with the device',
  );
  t.comment(`three sentences and the fall-back took ${Math.round(performance.now() - startedMs)} ms`);
  const lost = await service.untilLogged(
    'the GPU failed: the CPU runs all graphs until the service is restarted',
  );
  t.match(lost, { reason: 'WebGPU device lost' });
  t.match(await warnings(), failed);
  t.ok(await isLost(), 'the alert fires');

  rmSync(fault);
  await reload();
  t.match(service.logged('where the graphs run').at(-1), { generation: 2, graphs: { 'piper/flow': 'CPU' } });
  t.ok((await speak()) > 20_000, 'a reload does not try the device again');
  t.match(await warnings(), failed);
});

const hangs = async (t: Test): Promise<void> => {
  const { fault, speak, warnings, reload } = await start(t);
  // Two generations take turns on the GPU.
  const during = Promise.all(Array.from({ length: 6 }, speak));
  await reload();
  t.ok((await during).every((bytes) => bytes > 20_000));
  t.notMatch(await warnings(), failed);

  writeFileSync(fault, 'hangs');
  const outcomes = await Promise.allSettled(Array.from({ length: 6 }, speak));
  const whole = outcomes.filter((made) => made.status === 'fulfilled' && made.value > 20_000).length;
  t.ok(whole >= 4 && whole < 6, `${whole} of 6 are whole: only the batch of the run that hangs fails`);
  t.match(await warnings(), /hang inside a model run/);
  t.match(await warnings(), failed);
  t.ok((await speak()) > 20_000);
  await reload();
  t.ok((await speak()) > 20_000);
};

// Its threads wait for the time limit of a hang.
if (isNight) t.test('a service goes on when a run on its GPU hangs', { skip: missingGpu }, hangs);
