/** Engines in batches, on a GPU and on the CPU, against single segments on the CPU, without a service. */
import { join } from 'node:path';
import type { Config } from '../../src/config.js';
import { isSoftware } from '../../src/threads/device.js';
import { sizesTo } from '../../workers/engines/windows.js';
import { deviceFor } from '../device.js';
import { LoadProcess } from '../rig/load-process.js';
import { inScratch } from '../rig/machine.js';
import { mediumShape, piperModel, smallShape, writePiper } from '../voices/fixtures/piper.js';
import type { GpuOrder, GpuProcess, Measured } from './gpu-process.js';
import { row, type Row } from './report.js';

/** On the CPU. */
const cpuBatchMax = 8;

/** A software device takes seconds for a run: it shows only that the path works. */
const measures = {
  real: {
    text: 'When the evening came we were all sitting near the window, and the rain began to fall.',
    durationMs: 5_000,
    piper: { size: '62 MB', shape: mediumShape },
  },
  software: { text: 'Yes.', durationMs: 0, piper: { size: '0.3 MB', shape: smallShape } },
} as const;
const softwareBatchMax = 2;

const round = (value: number): string => (value >= 100 ? value.toFixed(0) : value.toPrecision(2));

/** On the CPU a batch must pay for what it delays: without it, the first of its segments has audio after one step. */
const cpuFigure = (size: number, { batched, single }: Measured): string => {
  const cost = single.throughput / batched.throughput;
  const meanMs = ((size + 1) / 2) * single.firstAudioMs;
  return `${cost.toFixed(2)} of the CPU time of single steps; first audio of all after ${round(batched.firstAudioMs)} ms of CPU (one by one after ${round(meanMs)} ms in the mean)`;
};

const gpuFigure = ({ batched, single }: Measured): string => {
  const figure = (of: keyof typeof batched, unit: string) =>
    `${round(batched[of])} ${unit} (one CPU thread ${round(single[of])})`;
  return `${figure('throughput', 'audio s/s')}, which is as many listeners at most; first audio of all after ${figure('firstAudioMs', 'ms')}`;
};

/** @param copies whether it measures copies to the device, too */
const rowsOf = async (
  title: string,
  order: GpuOrder,
  durationMs: number,
  copies: boolean,
): Promise<Row[]> => {
  const engine: GpuProcess = new LoadProcess(new URL('./gpu-process.js', import.meta.url));
  const onGpu = order.device === 'gpu';
  const rows: Row[] = [];
  try {
    const { graphs, loadMs } = await engine.call('load', order);
    const placed = graphs.filter((place) => place === 'GPU').length;
    if (onGpu)
      rows.push(
        row(
          `${title}: load on the GPU, with each size of a batch`,
          `${(loadMs / 1_000).toFixed(1)} s; ${placed} of ${graphs.length} graphs on it`,
        ),
      );
    for (const size of sizesTo(order.batchMax)) {
      const measured = await engine.call('measure', { size, durationMs });
      const what = `${title}${onGpu ? '' : ', on the CPU'}: ${size === 1 ? 'one alone' : `batches of ${size}`}`;
      rows.push(row(what, onGpu ? gpuFigure(measured) : cpuFigure(size, measured)));
    }
    if (copies) {
      const { emptyMs, mebibyteMs } = await engine.call('copies');
      rows.push(
        row(
          'A copy of a MiB to the device and back',
          `${round(Math.max(0, mebibyteMs - emptyMs))} ms more than with four bytes (${round(emptyMs)} ms)`,
        ),
      );
    }
  } catch (error) {
    const [first = '', ...stack] = (error as Error).message.split('\n');
    rows.push(row(title, `not measured: ${first}`));
    process.stderr.write(stack.map((line) => `${line}\n`).join(''));
  } finally {
    engine.close();
  }
  return rows;
};

/** Our voice and one of Piper's shape. @param voice of the default pack */
const measureVoices = (
  { modelsDir }: Pick<Config, 'modelsDir'>,
  voice: string,
  { text, durationMs, piper }: (typeof measures)[keyof typeof measures],
  how: Pick<GpuOrder, 'device' | 'batchMax'>,
): Promise<Row[]> =>
  inScratch(async (folder) => {
    const order = { ...how, text, cacheDir: join(folder, 'cache') };
    const onGpu = how.device === 'gpu';
    const rows = await rowsOf('Our voice', { ...order, modelsDir, voice }, durationMs, onGpu);
    const models = join(folder, 'models');
    await writePiper(join(models, 'piper'), 'piper', piperModel(piper.shape));
    const ofPiper = { ...order, modelsDir: models, voice: 'piper' };
    return [...rows, ...(await rowsOf(`A Piper voice of ${piper.size}`, ofPiper, durationMs, false))];
  });

/** @param voice of the default pack */
export const measureGpu = async (config: Config, voice: string): Promise<Row[]> => {
  const device = await deviceFor({ ...config, executionProvider: 'webgpu' });
  if (device.provider !== 'webgpu') return [row('GPU', `none: ${device.reason}`)];
  const software = device.name === null || isSoftware(device.name);
  const named = row(
    'GPU',
    `${device.name ?? 'not named'}${software ? ', a software device: its speed says nothing' : ''}`,
  );
  const batchMax = software ? softwareBatchMax : config.gpu.batchMax;
  const length = measures[software ? 'software' : 'real'];
  return [named, ...(await measureVoices(config, voice, length, { device: 'gpu', batchMax }))];
};

/** Whether batches pay on the CPU. */
export const measureCpuBatches = (config: Config, voice: string): Promise<Row[]> =>
  measureVoices(config, voice, measures.real, { device: 'cpu', batchMax: cpuBatchMax });
