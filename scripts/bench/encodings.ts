/** What each encoding costs: the service's throughput and its CPU time by thread, against the encoder alone. */
import type { AudioFormat } from '../../src/api/formats.js';
import { resolveFormat } from '../../src/api/formats.js';
import { limits } from '../../src/limits.js';
import { BareLoop, type BareFigures } from './bare.js';
import { type CpuTimes, type ThreadRole, cpuShares, cpuTimesOf } from '../rig/process-facts.js';
import type { Service } from '../rig/service.js';
import { median } from '../rig/statistics.js';
import { throughputText } from '../rig/texts.js';
import type { Load } from './load.js';
import { row, type Row } from './report.js';
import type { Target } from './streams.js';
import { samplesOf } from './throughput.js';

const encodings = ['pcm', 'mulaw', 'mp3', 'opus'] as const;
const runs = 3;
const bareMs = 1_000;
const serviceMs = 3_000;
const connections = 16;

/** The format of a request that names only the encoding. */
export const defaultFormat = (encoding: string): AudioFormat => {
  const result = resolveFormat({ encoding }, limits);
  if (!result.ok) throw new Error(`there is no encoding ${encoding}`);
  return result.format;
};

export const describeFormat = (format: AudioFormat): string => {
  const bitrate = 'bitrateKbps' in format ? `, ${format.bitrateKbps} kbps` : '';
  return `${format.encoding} at ${format.sampleRateHz} Hz${bitrate}`;
};

/** Speech at the rate of the engine. */
const speak = async (target: Target, sampleRateHz: number): Promise<SharedArrayBuffer> => {
  const bytes = await samplesOf(target, target.keys[0]!, throughputText, sampleRateHz);
  const speech = new SharedArrayBuffer(bytes.length);
  new Uint8Array(speech).set(bytes);
  return speech;
};

interface Measured {
  readonly format: AudioFormat;
  readonly bare: BareFigures[];
  readonly service: number[];
  readonly shares: CpuTimes[];
}

/** Alternates between the encoder alone and the service, and between encodings, so that a slow minute affects all. */
const measureInTurns = async (
  load: Load,
  target: Target,
  service: Service,
  bare: BareLoop,
): Promise<Measured[]> => {
  const measured = encodings.map((encoding): Measured => ({
    format: defaultFormat(encoding),
    bare: [],
    service: [],
    shares: [],
  }));
  for (const { format } of measured) await bare.measure(bareMs / 4, format);
  for (let run = 0; run < runs; run++) {
    for (const { format, ...figures } of measured) {
      figures.bare.push(await bare.measure(bareMs, format));
      const before = cpuTimesOf(service.pid);
      const order = { target: { ...target, format }, text: throughputText, connections };
      figures.service.push(await load.call('throughput', { ...order, durationMs: serviceMs }));
      figures.shares.push(cpuShares(before, cpuTimesOf(service.pid)));
    }
  }
  return measured;
};

const sharesText = (shares: readonly CpuTimes[]): string => {
  const percent = (role: ThreadRole) => `${(median(shares.map((times) => times[role])) * 100).toFixed(0)} %`;
  // Not every system reports it.
  if (Number.isNaN(shares[0]!.front)) return '';
  return `; CPU: front ${percent('front')}, actors ${percent('actor')}, synthesis ${percent('synthesis')}`;
};

/** @param engineSampleRateHz the rate of the samples that encoders get */
export const measureEncodings = async (
  load: Load,
  target: Target,
  service: Service,
  engineSampleRateHz: number,
  actorThreads: number,
): Promise<Row[]> => {
  const speech = await speak(target, engineSampleRateHz);
  const bare = await BareLoop.start(actorThreads, { speech, sampleRateHz: engineSampleRateHz });
  try {
    const measured = await measureInTurns(load, target, service, bare);
    return measured.map(({ format, ...figures }) => {
      const made = median(figures.service);
      const alone = median(figures.bare.map(({ throughput }) => throughput));
      const cpuMs = median(figures.bare.map((bareFigures) => bareFigures.cpuMs));
      const against = `encoder alone ${alone.toFixed(0)} (${(made / alone).toFixed(2)} x, ${cpuMs.toFixed(1)} ms of CPU for each)`;
      return row(
        `Throughput, ${describeFormat(format)}`,
        `${made.toFixed(0)} s of speech a second, ${against}${sharesText(figures.shares)}`,
      );
    });
  } finally {
    await bare.close();
  }
};
