/** Engines in batches, on a GPU and on the CPU, against single segments on the CPU, without a service. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { Config } from '../../src/config.js';
import { isSoftware } from '../../src/threads/device.js';
import { deviceFor } from '../device.js';
import { inScratch } from '../rig/machine.js';
import { mediumShape, piperModel, smallShape, writePiper } from '../voices/fixtures/piper.js';
import type { GpuLine, GpuOrder } from './gpu-process.js';
import { measureNets } from './nets.js';
import { type Row, row } from './report.js';

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

const round = (value: number) => (value >= 100 ? value.toFixed(0) : value.toPrecision(2));

const nameOf = (size: number) => (size === 1 ? 'one alone' : `batches of ${size}`);

/** On the CPU a batch must pay for what it delays: without it, the first of its segments has audio after one step. */
const cpuFigure = ({ size, single, batched }: GpuLine & { type: 'measured' }): string => {
  const cost = single.throughput / batched.throughput;
  const meanMs = ((size + 1) / 2) * single.firstAudioMs;
  return `${cost.toFixed(2)} of the CPU time of single steps; first audio of all after ${round(batched.firstAudioMs)} ms of CPU (one by one after ${round(meanMs)} ms in the mean)`;
};

const rowsOf = async (title: string, order: GpuOrder): Promise<Row[]> => {
  const entry = fileURLToPath(new URL('./gpu-process.js', import.meta.url));
  const child = spawn(process.execPath, [entry, JSON.stringify(order)], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, ORT_DISABLE_TELEMETRY: '1' },
  });
  const ended = once(child, 'close') as Promise<[number | null, NodeJS.Signals | null]>;
  const rows: Row[] = [];
  for await (const text of createInterface(child.stdout)) {
    const line = JSON.parse(text) as GpuLine;
    if (line.type === 'loaded') {
      if (order.device === 'cpu') continue;
      const count = line.graphs.filter((place) => place === 'GPU').length;
      rows.push(
        row(
          `${title}: load on the GPU, with each size of a batch`,
          `${(line.loadMs / 1_000).toFixed(1)} s; ${count} of ${line.graphs.length} graphs on it`,
        ),
      );
      continue;
    }
    if (line.type === 'copied') {
      const { emptyMs, mebibyteMs } = line;
      rows.push(
        row(
          'A copy of a MiB to the device and back',
          `${round(Math.max(0, mebibyteMs - emptyMs))} ms more than with four bytes (${round(emptyMs)} ms)`,
        ),
      );
      continue;
    }
    const { size, single, batched } = line;
    const figure = (of: keyof typeof batched, unit: string) =>
      `${round(batched[of])} ${unit} (one CPU thread ${round(single[of])})`;
    if (order.device === 'cpu') {
      rows.push(row(`${title}, on the CPU: ${nameOf(size)}`, cpuFigure(line)));
      continue;
    }
    rows.push(
      row(
        `${title}: ${size === 1 ? 'one alone' : `batches of ${size}`}`,
        `${figure('throughput', 'audio s/s')}, which is as many listeners at most; first audio of all after ${figure('firstAudioMs', 'ms')}`,
      ),
    );
  }
  const [code, signal] = await ended;
  if (code !== 0)
    rows.push(row(title, `the process that measured it ended with ${signal ?? `code ${code}`}`));
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
    const order = { ...how, text, durationMs, cacheDir: join(folder, 'cache') };
    const copies = how.device === 'gpu';
    const rows = await rowsOf('Our voice', { ...order, modelsDir, voice, copies });
    const models = join(folder, 'models');
    await writePiper(join(models, 'piper'), 'piper', piperModel(piper.shape));
    const title = `A Piper voice of ${piper.size}`;
    return [
      ...rows,
      ...(await rowsOf(title, { ...order, modelsDir: models, voice: 'piper', copies: false })),
    ];
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
export const measureCpuBatches = async (config: Config, voice: string): Promise<Row[]> => [
  ...(await measureVoices(config, voice, measures.real, { device: 'cpu', batchMax: cpuBatchMax })),
  ...(await measureNets()),
];
