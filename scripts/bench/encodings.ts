/** What each encoding costs: the service's throughput and where its CPU time goes, against the encoder alone. */
import type { AudioFormat } from '../../src/api/formats.js';
import { resolveFormat } from '../../src/api/formats.js';
import { type BareEncoder, startBareEncoder } from './bare.js';
import type { Load } from './load.js';
import type { Target } from './protocol.js';
import { type Row, row } from './report.js';
import type { Service } from '../rig-old/service.js';
import { median } from '../rig-old/statistics.js';
import { throughputText } from '../rig-old/texts.js';
import { type CpuTimes, type ThreadRole, cpuShares } from '../rig-old/threads.js';

const encodings = ['pcm', 'mulaw', 'mp3', 'opus'] as const;
const runs = 3;
const bareMs = 1_000;
const serviceMs = 3_000;
const connections = 16;

/** What a request gets that names the encoding alone. */
const defaultFormat = (encoding: string): AudioFormat => {
  const result = resolveFormat({ encoding });
  if (!result.ok) throw new Error(`there is no encoding ${encoding}`);
  return result.format;
};

export const describeFormat = (format: AudioFormat): string => {
  const bitrate = 'bitrateKbps' in format ? `, ${String(format.bitrateKbps)} kbps` : '';
  return `${format.encoding} at ${String(format.sampleRateHz)} Hz${bitrate}`;
};

/** Speech as the engine makes it, at the rate of its own. */
const speak = async (target: Target, sampleRateHz: number): Promise<SharedArrayBuffer> => {
  const response = await fetch(`http://127.0.0.1:${String(target.port)}/v1/tts`, {
    method: 'POST',
    headers: { 'x-api-key': target.keys[0]!, 'content-type': 'application/json' },
    body: JSON.stringify({
      text: throughputText,
      voice: target.voice,
      response_format: { encoding: 'pcm', sample_rate: sampleRateHz },
    }),
  });
  if (!response.ok) throw new Error(`the service answered ${String(response.status)}`);
  const bytes = Buffer.from(((await response.json()) as { audio: string }).audio, 'base64');
  const speech = new SharedArrayBuffer(bytes.length);
  new Uint8Array(speech).set(bytes);
  return speech;
};

interface Measured {
  readonly format: AudioFormat;
  readonly bare: number[];
  readonly service: number[];
  readonly shares: CpuTimes[];
}

/** The encoder alone and the service by turns, and encoding after encoding, so that a slow minute meets them all. */
const measureInTurns = async (
  load: Load,
  target: Target,
  service: Service,
  bare: BareEncoder,
): Promise<Measured[]> => {
  const measured = encodings.map((encoding): Measured => ({
    format: defaultFormat(encoding),
    bare: [],
    service: [],
    shares: [],
  }));
  for (const { format } of measured) await bare.throughput(bareMs / 4, format);
  for (let run = 0; run < runs; run++) {
    for (const { format, ...figures } of measured) {
      figures.bare.push(await bare.throughput(bareMs, format));
      const before = service.cpuTimes();
      const { audioMs, durationMs } = await load.run({
        type: 'throughput',
        target: { ...target, format },
        text: throughputText,
        connections,
        durationMs: serviceMs,
      });
      const after = service.cpuTimes();
      figures.service.push(audioMs / durationMs);
      if (before !== null && after !== null) figures.shares.push(cpuShares(before, after));
    }
  }
  return measured;
};

const sharesText = (shares: readonly CpuTimes[]): string => {
  if (shares.length === 0) return '';
  const percent = (role: ThreadRole) => `${(median(shares.map((times) => times[role])) * 100).toFixed(0)} %`;
  return `; CPU: front ${percent('front')}, actors ${percent('actor')}, synthesis ${percent('synthesis')}`;
};

/** @param engineSampleRateHz the rate that encoders are fed from */
export const measureEncodings = async (
  load: Load,
  target: Target,
  service: Service,
  engineSampleRateHz: number,
  actorThreads: number,
): Promise<Row[]> => {
  const speech = await speak(target, engineSampleRateHz);
  const bare = await startBareEncoder(actorThreads, { speech, sampleRateHz: engineSampleRateHz });
  try {
    const measured = await measureInTurns(load, target, service, bare);
    return measured.map(({ format, ...figures }) => {
      const [made, alone] = [median(figures.service), median(figures.bare)];
      const against = `encoder alone ${alone.toFixed(0)} (${(made / alone).toFixed(2)} x)`;
      return row(
        `Throughput, ${describeFormat(format)}`,
        `${made.toFixed(0)} s of speech a second, ${against}${sharesText(figures.shares)}`,
      );
    });
  } finally {
    await bare.close();
  }
};
