/** Engines on a GPU against the CPU, by the size of a batch, without a service. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { Config } from '../../src/config.js';
import { isSoftware } from '../../src/threads/device.js';
import { deviceFor } from '../device.js';
import { mediumShape, piperModel, smallShape, writePiper } from '../voices/fixtures/piper.js';
import type { GpuLine, GpuOrder } from './gpu-process.js';
import { type Row, row } from './report.js';

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
      const graphs = Object.values(line.placements).filter(({ device }) => device === 'gpu');
      const windows = graphs.reduce((sum, graph) => sum + graph.windows.length, 0);
      const counts = `${graphs.length} of ${Object.keys(line.placements).length} graphs on it, with ${windows} windows`;
      rows.push(
        row(
          `${title}: load on the GPU, with each size of a batch`,
          `${(line.loadMs / 1_000).toFixed(1)} s; ${counts}`,
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
    const { size, cpu, gpu } = line;
    const figure = (of: keyof typeof gpu, unit: string) =>
      `${round(gpu[of])} ${unit} (one CPU thread ${round(cpu[of])})`;
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
  const { piper, ...length } = measures[software ? 'software' : 'real'];
  const folder = mkdtempSync(join(tmpdir(), 'syrinx-gpu-'));
  try {
    const cacheDir = join(folder, 'cache');
    const order = { ...length, cacheDir, batchMax };
    const own = { ...order, modelsDir: config.modelsDir, voice, copies: true };
    const rows = await rowsOf('Our voice', own);
    const modelsDir = join(folder, 'models');
    await writePiper(join(modelsDir, 'piper'), 'piper', piperModel(piper.shape));
    return [
      named,
      ...rows,
      ...(await rowsOf(`A Piper voice of ${piper.size}`, {
        ...order,
        modelsDir,
        voice: 'piper',
        copies: false,
      })),
    ];
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};
