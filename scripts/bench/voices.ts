/** What voices of 62 MB cost: the memory of threads that share the weights, and the time to load one again. */
import { join } from 'node:path';
import type { AudioFormat } from '../../src/api/formats.js';
import { sumOf } from '../rig/exposition.js';
import { inScratch } from '../rig/machine.js';
import { type ServiceOptions, withService } from '../rig/service.js';
import { median } from '../rig/statistics.js';
import { linkShippedPack } from '../voices/fixtures/mixed.js';
import { mediumShape, piperModel, writePiper } from '../voices/fixtures/piper.js';
import type { Load } from './load.js';
import { row, type Row } from './report.js';
import { firstBytes, memoryAfterLoad } from './scenarios.js';

const voiceBars = { memoryRatioMax: 1.7, loadMsMax: 200 } as const;

const pcm: AudioFormat = { encoding: 'pcm', sampleRateHz: 22_050 };
const rounds = 6;

/** Runs `use` with a folder of the default pack and these voices, of 62 MB each, and a data folder for several starts. */
const withVoices = (
  names: readonly string[],
  use: (env: Readonly<Record<string, string>>, dataDir: string) => Promise<Row[]>,
): Promise<Row[]> =>
  inScratch(async (folder) => {
    const models = join(folder, 'models');
    for (const [seed, name] of names.entries())
      await writePiper(join(models, name), name, piperModel(mediumShape, seed + 1));
    linkShippedPack(models);
    return use({ MODELS_DIR: models }, join(folder, 'data'));
  });

export const measureSharing = (load: Load, options: ServiceOptions): Promise<Row[]> =>
  withVoices(['medium'], async (env, dataDir) => {
    const measure = (synthesisThreads: number): Promise<number> =>
      memoryAfterLoad(
        load,
        { voice: 'medium', format: pcm },
        { ...options, dataDir, synthesisThreads, env: { ...options.env, ...env } },
        10_000,
      );
    const [one, four] = [await measure(1), await measure(4)];
    const { memoryRatioMax } = voiceBars;
    return [
      row('Memory (PSS) of one thread with a voice of 62 MB, after load', `${one.toFixed(0)} MiB`),
      row(
        'Memory (PSS) of four threads',
        `${four.toFixed(0)} MiB (${(four / one).toFixed(2)} x)`,
        `at most ${memoryRatioMax} x that of one`,
        four <= memoryRatioMax * one,
      ),
    ];
  });

export const measureLoading = (load: Load, options: ServiceOptions): Promise<Row[]> =>
  withVoices(['one', 'two'], (env, dataDir) =>
    withService(
      {
        ...{ ...options, dataDir, synthesisThreads: 1 },
        env: { ...options.env, ...env, PACKS_LOADED_MAX: '2' },
      },
      async (service) => {
        const waits: Record<'loaded' | 'unloaded', number[]> = { loaded: [], unloaded: [] };
        const target = { port: service.port, keys: await service.makeKeys(3), format: pcm };
        for (let round = 0; round < rounds; round++)
          // Each voice is asked for twice: first unloaded, because the other one took its room.
          for (const voice of ['two', 'one'])
            for (const state of ['unloaded', 'loaded'] as const)
              waits[state].push(...(await firstBytes(load, { ...target, voice }, 1)));
        const samples = await service.metrics();
        const loads = sumOf(samples, 'syrinx_voice_pack_loads_total') ?? 0;
        const seconds = sumOf(samples, 'syrinx_voice_pack_load_seconds_total') ?? Number.NaN;
        const loadMs = (1000 * seconds) / loads;
        const { loadMsMax } = voiceBars;
        return [
          row(
            'Load of a voice of 62 MB that was unloaded',
            `${loadMs.toFixed(0)} ms (mean of ${loads})`,
            `at most ${loadMsMax} ms`,
            loadMs <= loadMsMax,
          ),
          row(
            'First audio of that voice, alone',
            `${median(waits.loaded).toFixed(0)} ms loaded, ${median(waits.unloaded).toFixed(0)} ms unloaded`,
          ),
        ];
      },
    ),
  );
