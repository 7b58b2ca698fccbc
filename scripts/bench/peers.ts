/**
 * Other speech servers beside the service: the same voice, the same text, the same client, in turn. Each runs in a process
 * of its own. The packages of the others are in `peers`, with a lock file of their own.
 */
import { existsSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { AudioFormat } from '../../src/api/formats.js';
import { readMemory } from '../rig/process-facts.js';
import { NodeProcess, type ServiceOptions, withService } from '../rig/service.js';
import { median, percentile } from '../rig/statistics.js';
import * as texts from '../rig/texts.js';
import { mediumShape, piperModel, writePiper } from '../voices/fixtures/piper.js';
import type { Load } from './load.js';
import { type Row, barredRow, row } from './report.js';
import type { Target } from './streams.js';

export const peerBars = {
  aloneRatioMin: 5,
  crowdRatioMin: 10,
  listenersRatioMin: 5,
  throughputRatioMin: 0.9,
  memoryRatioMax: 0.75,
} as const;

const voiceName = 'piper-medium';
/** The rate of the voices, so that no server resamples. */
const pcm: AudioFormat = { encoding: 'pcm', sampleRateHz: 22_050 };
const crowdClients = 8;
const listenerCount = 32;
const keysNeeded = 5;
const espeakFolders = [
  '/usr/lib/x86_64-linux-gnu',
  '/usr/lib/aarch64-linux-gnu',
  '/usr/share',
  '/usr/local/share',
];

const sourceFolder = new URL('../../../scripts/bench/peers/', import.meta.url);
const modelsFolder = fileURLToPath(new URL('../../../models/', import.meta.url));

class Peer extends NodeProcess {
  readonly #port = Promise.withResolvers<number>();

  constructor(file: string, args: readonly string[]) {
    super({ entry: new URL(file, sourceFolder), args, showsErrors: true });
    this.#port.promise.catch(() => undefined);
    this.exited.then(
      ({ code }) => this.#port.reject(new Error(`${file} ended with ${code}`)),
      (error: unknown) => this.#port.reject(error),
    );
  }

  protected override onLine(line: string): void {
    if (line.startsWith('{"port"')) this.#port.resolve((JSON.parse(line) as { port: number }).port);
  }

  async target(): Promise<Target> {
    return { port: await this.#port.promise, keys: ['none'], voice: voiceName, format: pcm };
  }

  async close(): Promise<void> {
    this.signal('SIGTERM');
    await this.exited;
  }
}

const withPeer = async <T>(
  file: string,
  args: readonly string[],
  use: (target: Target, peer: Peer) => Promise<T>,
) => {
  const peer = new Peer(file, args);
  try {
    return await use(await peer.target(), peer);
  } finally {
    await peer.close();
  }
};

const ms = (value: number): string => `${value.toFixed(0)} ms`;
const spread = (waits: readonly number[]): string =>
  `p50 ${ms(median(waits))}, p95 ${ms(percentile(waits, 0.95))}`;

const aloneWaits = async (load: Load, target: Target, rounds: number): Promise<number[]> => {
  const [figures = []] = await load.call('firstAudio', { target, texts: [texts.sentence], rounds });
  return figures.map(({ byteMs }) => byteMs);
};

const listenersWaits = (load: Load, target: Target) =>
  load.call('listen', {
    target,
    text: texts.replyText,
    transport: 'http',
    listeners: listenerCount,
    spreadMs: 8_000,
    durationMs: 12_000,
    watchedPid: null,
  });

const pssMiB = (pid: number): number => (readMemory(pid)?.pssBytes ?? Number.NaN) / 2 ** 20;

/** Our figure and that of the other, by how many times the latter is longer. */
const ratioRow = (
  what: string,
  ours: readonly number[],
  theirs: readonly number[],
  share: number,
  ratioMin: number,
): Row => {
  const ratio = percentile(theirs, share) / percentile(ours, share);
  const bar = `p${share * 100} at least ${ratioMin} x sooner`;
  return barredRow(
    what,
    `${spread(ours)}; sherpa-onnx ${spread(theirs)} (${ratio.toFixed(1)} x)`,
    bar,
    ratio >= ratioMin,
  );
};

const compare = async (
  load: Load,
  ours: Target,
  theirs: Target,
  pids: readonly [number, number],
): Promise<Row[]> => {
  const alone: [number[], number[]] = [[], []];
  const crowd: [number[], number[]] = [[], []];
  const speed: [number[], number[]] = [[], []];
  const targets = [ours, theirs] as const;
  for (const target of targets) await aloneWaits(load, target, 2);
  for (let round = 0; round < 3; round++)
    for (const [i, target] of targets.entries()) {
      alone[i]!.push(...(await aloneWaits(load, target, 6)));
      const order = { target, text: texts.sentence, clients: crowdClients, rounds: 2 };
      crowd[i]!.push(...(await load.call('crowd', order)));
      const busy = { target, text: texts.throughputText, connections: crowdClients, durationMs: 5_000 };
      speed[i]!.push(await load.call('throughput', busy));
    }
  const heard = [await listenersWaits(load, ours), await listenersWaits(load, theirs)] as const;
  const [memory, theirMemory] = [pssMiB(pids[0]), pssMiB(pids[1])];
  const [rate, theirRate] = [median(speed[0]), median(speed[1])];
  const { aloneRatioMin, crowdRatioMin, listenersRatioMin, memoryRatioMax, throughputRatioMin } = peerBars;
  const among = `First audio among ${listenerCount} listeners at real time`;
  return [
    ratioRow('First audio, one sentence, alone', alone[0], alone[1], 0.5, aloneRatioMin),
    ratioRow(`First audio, ${crowdClients} clients at once`, crowd[0], crowd[1], 0.5, crowdRatioMin),
    ratioRow(among, heard[0].firstAudioMs, heard[1].firstAudioMs, 0.95, listenersRatioMin),
    barredRow(
      'Listeners that ever ran dry',
      `${heard[0].dry}; sherpa-onnx ${heard[1].dry}`,
      'none',
      heard[0].dry === 0,
    ),
    barredRow(
      `Throughput, ${crowdClients} requests at a time`,
      `${rate.toFixed(1)} s of speech a second; sherpa-onnx ${theirRate.toFixed(1)} (${(rate / theirRate).toFixed(2)} x)`,
      `at least ${throughputRatioMin} x`,
      rate >= throughputRatioMin * theirRate,
    ),
    barredRow(
      'Memory (PSS) after that',
      `${memory.toFixed(0)} MiB; sherpa-onnx ${theirMemory.toFixed(0)} MiB (${(memory / theirMemory).toFixed(2)} x)`,
      `at most ${memoryRatioMax} x`,
      memory <= memoryRatioMax * theirMemory,
    ),
  ];
};

/** A voice with the graph and the size of a Piper voice of medium quality (62 MB), here and in sherpa-onnx. */
export const measurePiperPeers = async (load: Load, options: ServiceOptions): Promise<Row[]> => {
  const espeakData = espeakFolders
    .map((folder) => join(folder, 'espeak-ng-data'))
    .find((path) => existsSync(path));
  if (!existsSync(new URL('node_modules/sherpa-onnx-node/', sourceFolder)) || espeakData === undefined)
    return [
      row('sherpa-onnx', 'not installed: npm ci --prefix scripts/bench/peers; apt install espeak-ng-data'),
    ];
  const folder = mkdtempSync(join(tmpdir(), 'syrinx-peers-'));
  try {
    await writePiper(join(folder, voiceName), voiceName, piperModel(mediumShape));
    symlinkSync(join(modelsFolder, 'syrinx-en'), join(folder, 'syrinx-en'));
    // Two threads for a run are slower than one on a machine of two cores that also has the client.
    const args = [
      join(folder, voiceName),
      voiceName,
      espeakData,
      String(Math.max(1, availableParallelism() >> 1)),
    ];
    const env = { ...options.env, MODELS_DIR: folder };
    return await withService({ ...options, env }, async (service) => {
      const ours = {
        port: service.port,
        keys: await service.makeKeys(keysNeeded),
        voice: voiceName,
        format: pcm,
      };
      return await withPeer('sherpa.mjs', args, (theirs, peer) =>
        compare(load, ours, theirs, [service.pid, peer.pid]),
      );
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};

const programs: readonly (readonly [string, readonly string[]])[] = [
  ['espeak-ng', ['-v', 'en-us', '--stdout']],
  ['flite', ['-o', '/dev/stdout', '-t']],
];

/** Programs with small voices, started for each request as many servers do. */
export const measureSmallPeers = (load: Load, options: ServiceOptions, voice: string): Promise<Row[]> =>
  withService(options, async (service) => {
    const ours = { port: service.port, keys: await service.makeKeys(1), voice, format: pcm };
    const rows: Row[] = [];
    await aloneWaits(load, ours, 3);
    for (const [program, args] of programs) {
      try {
        await withPeer('spawned.mjs', [program, ...args], async (theirs) => {
          await aloneWaits(load, theirs, 3);
          const waits = [await aloneWaits(load, ours, 20), await aloneWaits(load, theirs, 20)] as const;
          rows.push(
            row(
              `First audio, our voice and ${program} started for each request`,
              waits.map(spread).join('; '),
            ),
          );
        });
      } catch {
        rows.push(row(`First audio, ${program}`, 'not installed'));
      }
    }
    return rows;
  });
