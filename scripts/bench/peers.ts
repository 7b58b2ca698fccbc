/**
 * Other speech servers beside the service: the same voice, the same text, the same client, in turn. Each runs in a process
 * of its own. The packages of the others are in `peers`, with a lock file of their own.
 */
import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import type { AudioFormat } from '../../src/api/formats.js';
import { inScratch } from '../rig/machine.js';
import { type CpuTimes, cpuBetween, cpuTimesOf, pssMiB, totalCpu } from '../rig/process-facts.js';
import { NodeProcess, type ServiceOptions, withService } from '../rig/service.js';
import { median, percentile, sumOf } from '../rig/statistics.js';
import * as texts from '../rig/texts.js';
import { isInstalled } from '../say/sinks.js';
import { linkShippedPack } from '../voices/fixtures/mixed.js';
import { mediumShape, piperModel, writePiper } from '../voices/fixtures/piper.js';
import type { ClosedLoopFigures } from './throughput.js';
import type { Load } from './load.js';
import { ms, row, spread, type Row } from './report.js';
import { firstBytes } from './scenarios.js';
import type { Target } from './streams.js';

const peerBars = {
  aloneRatioMin: 5,
  loopRatioMin: 10,
  listenersRatioMin: 5,
  throughputRatioMin: 0.9,
  memoryRatioMax: 0.75,
} as const;

const voiceName = 'piper-medium';
/** The rate of the voices, so that no server resamples. */
const pcm: AudioFormat = { encoding: 'pcm', sampleRateHz: 22_050 };
const loopClients = 8;
/** The bars are for 32. They need 32 s of speech a second, which two cores may not make. */
const listenerCounts = [16, 32] as const;
/** Listeners whose speech is this part of what the machine makes: the bars for them say the same on any machine. */
const busyPart = 0.9;
const keysNeeded = 5;
const espeakFolders = [
  '/usr/lib/x86_64-linux-gnu',
  '/usr/lib/aarch64-linux-gnu',
  '/usr/share',
  '/usr/local/share',
];

const sourceFolder = new URL('../../../scripts/bench/peers/', import.meta.url);

/** A server, and the process that it is. */
interface Server {
  readonly target: Target;
  readonly pid: number;
}

/** Runs `use` with another server, which reports its port when it listens. */
const withPeer = async <T>(args: readonly string[], use: (peer: Server) => Promise<T>): Promise<T> => {
  const listening = Promise.withResolvers<number>();
  const peer = new NodeProcess({
    ...{ entry: new URL('server.mjs', sourceFolder), args, showsErrors: true },
    onLine: (line) => {
      if (line.startsWith('{"port"')) listening.resolve((JSON.parse(line) as { port: number }).port);
    },
  });
  peer.exited.then(
    ({ code }) => listening.reject(new Error(`${args[0]} ended with ${code}`)),
    (error: unknown) => listening.reject(error),
  );
  try {
    const target = { port: await listening.promise, keys: ['none'], voice: voiceName, format: pcm };
    return await use({ target, pid: peer.pid });
  } finally {
    peer.signal('SIGTERM');
    await peer.exited;
  }
};

type Waits = readonly [number[], number[]];

/** First audio of one client alone, of both in turns. */
const waitsInTurns = async (
  load: Load,
  targets: readonly [Target, Target],
  rounds: number,
): Promise<Waits> => {
  const waits: Waits = [[], []];
  for (let turn = 0; turn < 4; turn++)
    for (const [i, target] of targets.entries()) waits[i]!.push(...(await firstBytes(load, target, rounds)));
  return waits;
};

const listen = (load: Load, target: Target, listeners: number) =>
  load.call('listen', {
    ...{ target, text: texts.replyText, transport: 'http', listeners, spreadMs: 8_000, durationMs: 12_000 },
  });

/** Our figure and that of the other, by how many times the latter is longer. */
const ratioRow = (
  what: string,
  ours: readonly number[],
  theirs: readonly number[],
  share: number,
  ratioMin: number,
): Row => {
  const ratio = percentile(theirs, share) / percentile(ours, share);
  return row(
    what,
    `${spread(ours, 0)}; sherpa-onnx ${spread(theirs, 0)} (${ratio.toFixed(1)} x)`,
    `p${share * 100} at least ${ratioMin} x sooner`,
    ratio >= ratioMin,
  );
};

interface LoopFigures extends ClosedLoopFigures {
  /** Milliseconds that the server's threads used meanwhile. */
  readonly cpu: CpuTimes;
}

const loopOn = async (load: Load, { target, pid }: Server): Promise<LoopFigures> => {
  const before = cpuTimesOf(pid);
  const order = { target, text: texts.sentence, connections: loopClients, durationMs: 6_000 };
  const figures = await load.call('closedLoop', order);
  return { ...figures, cpu: cpuBetween(before, cpuTimesOf(pid), 1) };
};

/** The CPU time that a second of speech takes: other load on the machine hardly changes it. */
const cpuRow = ([ours, theirs]: readonly [readonly LoopFigures[], readonly LoopFigures[]]): Row => {
  const perSecond = (rounds: readonly LoopFigures[], cpuOf: (cpu: CpuTimes) => number) =>
    (1_000 * sumOf(rounds.map(({ cpu }) => cpuOf(cpu)))) /
    sumOf(rounds.map(({ allSpeechMs }) => allSpeechMs));
  const [all, theirAll] = [perSecond(ours, totalCpu), perSecond(theirs, totalCpu)];
  const synthesis = perSecond(ours, (cpu) => cpu.synthesis);
  return row(
    'CPU time of a second of speech meanwhile',
    `${ms(all, 0)} (synthesis ${ms(synthesis, 0)}); sherpa-onnx ${ms(theirAll, 0)} (${(all / theirAll).toFixed(2)} x)`,
  );
};

const compareClosedLoop = async (
  load: Load,
  ours: Server,
  theirs: Server,
): Promise<{ readonly rows: Row[]; readonly rate: number }> => {
  const figures: [LoopFigures[], LoopFigures[]] = [[], []];
  for (let round = 0; round < 3; round++)
    for (const [i, server] of [ours, theirs].entries()) figures[i]!.push(await loopOn(load, server));
  const [waits = [], theirWaits = []] = figures.map((rounds) => rounds.flatMap((round) => round.waits));
  const [rate = 0, theirRate = 0] = figures.map((rounds) =>
    median(rounds.map(({ speechRatio }) => speechRatio)),
  );
  const who = `${loopClients} clients that ask again at once`;
  const rows = [
    ratioRow(`First audio, ${who}`, waits, theirWaits, 0.5, peerBars.loopRatioMin),
    row(
      `Throughput, ${who}`,
      `${rate.toFixed(1)} s of speech a second; sherpa-onnx ${theirRate.toFixed(1)} (${(rate / theirRate).toFixed(2)} x)`,
      `at least ${peerBars.throughputRatioMin} x`,
      rate >= peerBars.throughputRatioMin * theirRate,
    ),
    cpuRow(figures),
  ];
  return { rows, rate };
};

/** @param rate seconds of speech that the service makes in a second */
const compareListeners = async (
  load: Load,
  ours: Target,
  theirs: Target,
  { count, rate }: { readonly count: number; readonly rate: number },
): Promise<Row[]> => {
  const [heard, theirHeard] = [await listen(load, ours, count), await listen(load, theirs, count)];
  const who = `${count} listeners at real time (${(count / rate).toFixed(1)} x what this machine makes)`;
  return [
    ratioRow(
      `First audio among ${who}`,
      heard.firstAudioMs,
      theirHeard.firstAudioMs,
      0.95,
      peerBars.listenersRatioMin,
    ),
    row(
      `Of ${who}, how many ever ran dry`,
      `${heard.dry}; sherpa-onnx ${theirHeard.dry}`,
      'none',
      heard.dry === 0,
    ),
  ];
};

const compareMemory = (pid: number, theirPid: number): Row => {
  const [memory, theirMemory] = [pssMiB(pid), pssMiB(theirPid)];
  return row(
    'Memory after that (PSS)',
    `${memory.toFixed(0)} MiB; sherpa-onnx ${theirMemory.toFixed(0)} MiB (${(memory / theirMemory).toFixed(2)} x)`,
    `at most ${peerBars.memoryRatioMax} x`,
    memory <= peerBars.memoryRatioMax * theirMemory,
  );
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
  return inScratch(async (folder) => {
    await writePiper(join(folder, voiceName), voiceName, piperModel(mediumShape));
    linkShippedPack(folder);
    const withSherpa = <T>(threads: number, use: (peer: Server) => Promise<T>) =>
      withPeer(['sherpa', join(folder, voiceName), voiceName, espeakData, String(threads)], use);
    const env = { ...options.env, MODELS_DIR: folder };
    return withService({ ...options, env }, async (service) => {
      const keys = await service.makeKeys(keysNeeded);
      const ours: Server = {
        target: { port: service.port, keys, voice: voiceName, format: pcm },
        pid: service.pid,
      };
      // All cores for one sentence answer one client soonest; a core for each sentence serves most clients.
      const alone = await withSherpa(availableParallelism(), async (theirs) => {
        const targets = [ours.target, theirs.target] as const;
        for (const target of targets) await firstBytes(load, target, 3);
        const waits = await waitsInTurns(load, targets, 8);
        return ratioRow('First audio, one sentence, alone', ...waits, 0.5, peerBars.aloneRatioMin);
      });
      return withSherpa(1, async (theirs) => {
        const { rate, rows } = await compareClosedLoop(load, ours, theirs);
        rows.unshift(alone);
        const counts = new Set([...listenerCounts, Math.floor(busyPart * rate)]);
        for (const count of [...counts].toSorted((a, b) => a - b))
          rows.push(...(await compareListeners(load, ours.target, theirs.target, { count, rate })));
        return [...rows, compareMemory(ours.pid, theirs.pid)];
      });
    });
  });
};

/** Programs that speak to their standard output. */
const programs: Readonly<Record<string, readonly string[]>> = {
  'espeak-ng': ['espeak-ng', '-v', 'en-us', '--stdout'],
  // It opens a file by its name, which a socket, as node gives it, does not have.
  flite: ['sh', '-c', 'flite -o /dev/stdout -t "$1" | cat', 'sh'],
};

/** Programs with small voices, started for each request as many servers do. */
export const measureSmallPeers = (load: Load, options: ServiceOptions, voice: string): Promise<Row[]> =>
  withService(options, async (service) => {
    const ours = { port: service.port, keys: await service.makeKeys(1), voice, format: pcm };
    const rows: Row[] = [];
    await firstBytes(load, ours, 3);
    for (const [program, args] of Object.entries(programs)) {
      const what = `First audio, our voice and ${program} started for each request`;
      if (!isInstalled(program)) {
        rows.push(row(what, `not installed: apt install ${program}`));
        continue;
      }
      await withPeer(['program', ...args], async ({ target }) => {
        await firstBytes(load, target, 3);
        const [waits, theirWaits] = await waitsInTurns(load, [ours, target], 6);
        rows.push(row(what, `${spread(waits, 0)}; ${program} ${spread(theirWaits, 0)}`));
      });
    }
    return rows;
  });
