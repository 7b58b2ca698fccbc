/** What is measured, and what it must come to. Bars are for 2 cores, load client included. */
import type { BareEngine } from './bare.js';
import { describeFormat } from './encodings.js';
import type { Load } from './load.js';
import type { Target } from './protocol.js';
import { type Row, barredRow, row } from './report.js';
import { Service, type ServiceOptions } from '../rig-old/service.js';
import { median, percentile } from '../rig-old/statistics.js';
import * as texts from '../rig-old/texts.js';

export const bars = {
  firstAudioMsMax: 12,
  /** First audio of any text against that of a sentence. */
  firstAudioRatioMax: 1.5,
  throughputRatioMin: 0.85,
  listenersFirstAudioMsMax: 60,
} as const;

const listenerCount = 100;
/** Of one key at most 9 are in flight. */
export const keysNeeded = Math.ceil(listenerCount / 8);

const ms = (value: number): string => `${value.toFixed(1)} ms`;

export const measureFirstAudio = async (load: Load, target: Target): Promise<Row[]> => {
  const command = {
    type: 'first-audio',
    target,
    texts: [texts.sentence, texts.longText, texts.unpunctuatedText],
  } as const;
  await load.run({ ...command, rounds: 5 });
  const { firstAudioMs } = await load.run({ ...command, rounds: 60 });
  const [alone = [], long = [], unpunctuated = []] = firstAudioMs;
  const base = median(alone);
  const length = texts.longTextCharacters.toLocaleString('en');
  const { firstAudioMsMax, firstAudioRatioMax } = bars;
  const spread = (values: readonly number[]) =>
    `p50 ${ms(median(values))}, p95 ${ms(percentile(values, 0.95))}`;
  const ratioRow = (what: string, values: readonly number[]) =>
    barredRow(
      what,
      `${spread(values)} (${(median(values) / base).toFixed(2)} x)`,
      `p50 at most ${String(firstAudioRatioMax)} x that of a sentence`,
      median(values) <= base * firstAudioRatioMax,
    );
  return [
    barredRow(
      'First audio, one sentence, alone',
      spread(alone),
      `p50 at most ${String(firstAudioMsMax)} ms`,
      base <= firstAudioMsMax,
    ),
    ratioRow(`First audio, ${length} characters`, long),
    ratioRow(`First audio, ${length} characters without punctuation`, unpunctuated),
  ];
};

/** The service and the bare engine by turns, so that a slow minute of the machine meets both. */
export const measureThroughput = async (load: Load, target: Target, bare: BareEngine): Promise<Row[]> => {
  const durationMs = 8_000;
  const bareRuns: number[] = [];
  const serviceRuns: number[] = [];
  await bare.throughput(1_000, 'run');
  for (let run = 0; run < 3; run++) {
    bareRuns.push(await bare.throughput(durationMs, 'run'));
    const command = {
      type: 'throughput',
      target,
      text: texts.throughputText,
      connections: 16,
      durationMs,
    } as const;
    const result = await load.run(command);
    serviceRuns.push(result.audioMs / result.durationMs);
  }
  const ratio = median(serviceRuns) / median(bareRuns);
  return [
    row('Engine alone, no service', `${median(bareRuns).toFixed(0)} s of speech a second`),
    barredRow(
      `Throughput, ${describeFormat(target.format)}, 16 requests at a time`,
      `${median(serviceRuns).toFixed(0)} s of speech a second (${ratio.toFixed(2)} x)`,
      `at least ${String(bars.throughputRatioMin)} x the engine alone`,
      ratio >= bars.throughputRatioMin,
    ),
  ];
};

export const measureListeners = async (load: Load, target: Target): Promise<Row[]> => {
  const { firstAudioMs, dry, dryMsMax } = await load.run({
    type: 'listeners',
    target,
    text: texts.turnText,
    transport: 'http',
    listeners: listenerCount,
    spreadMs: 8_000,
    durationMs: 30_000,
    watchedPid: null,
  });
  const [p50, p95] = [median(firstAudioMs), percentile(firstAudioMs, 0.95)];
  const driest = dry === 0 ? 'none' : `${String(dry)} (up to ${ms(dryMsMax)})`;
  return [
    barredRow(
      `First audio among ${String(listenerCount)} listeners at real time`,
      `p50 ${ms(p50)}, p95 ${ms(p95)} (${String(firstAudioMs.length)} requests)`,
      `p95 at most ${String(bars.listenersFirstAudioMsMax)} ms`,
      p95 <= bars.listenersFirstAudioMsMax,
    ),
    barredRow('Listeners that ever ran dry', driest, 'none', dry === 0),
  ];
};

/** From services of one thread and of three, both after work for all of them. */
export const measureMemory = async (load: Load, target: Target, options: ServiceOptions): Promise<Row[]> => {
  const measure = async (synthesisThreads: number): Promise<number | null> => {
    const service = await Service.start({ ...options, synthesisThreads });
    try {
      const { port, keys } = service;
      const command = {
        type: 'throughput',
        text: texts.throughputText,
        connections: 9,
        durationMs: 3_000,
      } as const;
      await load.run({ ...command, target: { ...target, port, keys } });
      return service.pssMiB();
    } finally {
      await service.stop();
    }
  };
  const [one, three] = [await measure(1), await measure(3)];
  if (one === null || three === null) return [row('Memory', 'not told by this system')];
  return [
    row('Memory (PSS) with one synthesis thread, after load', `${one.toFixed(0)} MiB`),
    row('Memory (PSS) of each further one', `${((three - one) / 2).toFixed(0)} MiB`),
  ];
};
