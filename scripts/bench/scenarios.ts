/** Measurements over HTTP, and their bars. Bars are for 2 cores, load included. */
import type { BareEngine } from './bare.js';
import { describeFormat } from './encodings.js';
import type { Load } from './load.js';
import { type Row, barredRow, row } from './report.js';
import type { Target } from './streams.js';
import { readMemory } from '../rig/process-facts.js';
import { type ServiceOptions, withService } from '../rig/service.js';
import { median, percentile } from '../rig/statistics.js';
import * as texts from '../rig/texts.js';

export const bars = {
  firstAudioMsMax: 12,
  /** First audio of any text, compared with that of a sentence. */
  firstAudioRatioMax: 1.5,
  throughputRatioMin: 0.85,
  listenersFirstAudioMsMax: 60,
} as const;

const listenerCount = 100;
/** A key has nine slots. */
export const keysNeeded = Math.ceil(listenerCount / 8);

const ms = (value: number): string => `${value.toFixed(1)} ms`;

export const measureFirstAudio = async (load: Load, target: Target): Promise<Row[]> => {
  const order = { target, texts: [texts.sentence, texts.longText, texts.unpunctuatedText] };
  await load.call('firstAudio', { ...order, rounds: 5 });
  const [alone = [], long = [], unpunctuated = []] = await load.call('firstAudio', { ...order, rounds: 60 });
  const base = median(alone);
  const length = texts.longTextCharacters.toLocaleString('en');
  const { firstAudioMsMax, firstAudioRatioMax } = bars;
  const spread = (values: readonly number[]) =>
    `p50 ${ms(median(values))}, p95 ${ms(percentile(values, 0.95))}`;
  const ratioRow = (what: string, values: readonly number[]) =>
    barredRow(
      what,
      `${spread(values)} (${(median(values) / base).toFixed(2)} x)`,
      `p50 at most ${firstAudioRatioMax} x that of a sentence`,
      median(values) <= base * firstAudioRatioMax,
    );
  return [
    barredRow(
      'First audio, one sentence, alone',
      spread(alone),
      `p50 at most ${firstAudioMsMax} ms`,
      base <= firstAudioMsMax,
    ),
    ratioRow(`First audio, ${length} characters`, long),
    ratioRow(`First audio, ${length} characters without punctuation`, unpunctuated),
  ];
};

/** Alternates between the service and the bare engine, so that a slow minute affects both. */
export const measureThroughput = async (load: Load, target: Target, bare: BareEngine): Promise<Row[]> => {
  const durationMs = 8_000;
  const bareRuns: number[] = [];
  const serviceRuns: number[] = [];
  await bare.throughput(1_000, 'run');
  for (let run = 0; run < 3; run++) {
    bareRuns.push(await bare.throughput(durationMs, 'run'));
    const order = { target, text: texts.throughputText, connections: 16, durationMs };
    serviceRuns.push(await load.call('throughput', order));
  }
  const ratio = median(serviceRuns) / median(bareRuns);
  return [
    row('Engine alone, no service', `${median(bareRuns).toFixed(0)} s of speech a second`),
    barredRow(
      `Throughput, ${describeFormat(target.format)}, 16 requests at a time`,
      `${median(serviceRuns).toFixed(0)} s of speech a second (${ratio.toFixed(2)} x)`,
      `at least ${bars.throughputRatioMin} x the engine alone`,
      ratio >= bars.throughputRatioMin,
    ),
  ];
};

export const measureListeners = async (load: Load, target: Target): Promise<Row[]> => {
  const { firstAudioMs, dry, dryMsMax } = await load.call('listen', {
    target,
    text: texts.replyText,
    transport: 'http',
    listeners: listenerCount,
    spreadMs: 8_000,
    durationMs: 30_000,
    watchedPid: null,
  });
  const [p50, p95] = [median(firstAudioMs), percentile(firstAudioMs, 0.95)];
  const driest = dry === 0 ? 'none' : `${dry} (up to ${ms(dryMsMax)})`;
  return [
    barredRow(
      `First audio among ${listenerCount} listeners at real time`,
      `p50 ${ms(p50)}, p95 ${ms(p95)} (${firstAudioMs.length} requests)`,
      `p95 at most ${bars.listenersFirstAudioMsMax} ms`,
      p95 <= bars.listenersFirstAudioMsMax,
    ),
    barredRow('Listeners that ever ran dry', driest, 'none', dry === 0),
  ];
};

/** Services with one thread and with three, both after work for all their threads. */
export const measureMemory = async (load: Load, target: Target, options: ServiceOptions): Promise<Row[]> => {
  const pssMiB = (synthesisThreads: number): Promise<number | null> =>
    withService({ ...options, synthesisThreads }, async (service) => {
      await load.call('throughput', {
        target: { ...target, port: service.port, keys: await service.makeKeys(keysNeeded) },
        text: texts.throughputText,
        connections: 9,
        durationMs: 3_000,
      });
      const memory = readMemory(service.pid);
      return memory === null ? null : memory.pssBytes / 2 ** 20;
    });
  const [one, three] = [await pssMiB(1), await pssMiB(3)];
  if (one === null || three === null) return [row('Memory', 'not known on this system')];
  return [
    row('Memory (PSS) with one synthesis thread, after load', `${one.toFixed(0)} MiB`),
    row('Memory (PSS) of each further one', `${((three - one) / 2).toFixed(0)} MiB`),
  ];
};
