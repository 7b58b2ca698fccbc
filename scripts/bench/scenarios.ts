/** Measurements over HTTP, and their bars. Bars are for 2 cores, load included. */
import type { BareLoop } from './bare.js';
import { defaultFormat, describeFormat } from './encodings.js';
import type { Load } from './load.js';
import { ms, row, spread, type Row } from './report.js';
import type { Spoken, Target } from './streams.js';
import { type FirstAudio, decoderOf } from '../rig/first-audio.js';
import { pssMiB } from '../rig/process-facts.js';
import { type ServiceOptions, withService } from '../rig/service.js';
import { median, percentile } from '../rig/statistics.js';
import * as texts from '../rig/texts.js';

export const bars = {
  firstAudioMsMax: 12,
  /** Of one sentence, alone: the first sample that is heard. */
  audibleMsMax: 12,
  /** First audio of any text, compared with that of a sentence. */
  firstAudioRatioMax: 1.5,
  throughputRatioMin: 0.9,
  listenersFirstAudioMsMax: 60,
} as const;

const listenerCount = 100;
/** A key has nine slots. */
export const keysNeeded = Math.ceil(listenerCount / 8);

/** First bytes, with their spread; then what a decoder makes of them. */
const figuresText = (figures: readonly FirstAudio[]): string => {
  const bytes = figures.map(({ byteMs }) => byteMs);
  const decodedMs = median(figures.map((figure) => figure.decodedMs));
  const audibleMs = median(figures.map((figure) => figure.audibleMs));
  return `${spread(bytes)}; decoded p50 ${ms(decodedMs)}, audible p50 ${ms(audibleMs)}`;
};

const byteMs = (figures: readonly FirstAudio[]): number => median(figures.map((figure) => figure.byteMs));

const audibleRow = (alone: readonly FirstAudio[]): Row => {
  const audibleMs = alone.map((figure) => figure.audibleMs);
  return row(
    'First audible sample, one sentence, alone',
    `${spread(audibleMs)} (first byte p50 ${ms(byteMs(alone))})`,
    `p50 at most ${bars.audibleMsMax} ms`,
    median(audibleMs) <= bars.audibleMsMax,
  );
};

const rounds = { warmUp: 5, measured: 60 } as const;

/** First audio of one sentence, so many times. */
const sentenceAlone = async (load: Load, target: Target, times: number): Promise<FirstAudio[]> => {
  const [figures = []] = await load.call('firstAudio', { target, texts: [texts.sentence], rounds: times });
  return figures;
};

/** Milliseconds to the first byte of each. */
export const firstBytes = async (load: Load, target: Target, times: number): Promise<number[]> =>
  (await sentenceAlone(load, target, times)).map((figure) => figure.byteMs);

export const measureAudible = async (load: Load, target: Target): Promise<Row[]> => {
  await sentenceAlone(load, target, rounds.warmUp);
  return [audibleRow(await sentenceAlone(load, target, rounds.measured))];
};

/** Of long texts, the bars are for the first byte. */
export const measureFirstAudio = async (load: Load, target: Target): Promise<Row[]> => {
  const order = { target, texts: [texts.sentence, texts.longText, texts.unpunctuatedText] };
  await load.call('firstAudio', { ...order, rounds: rounds.warmUp });
  const [alone = [], long = [], unpunctuated = []] = await load.call('firstAudio', {
    ...order,
    rounds: rounds.measured,
  });
  const base = byteMs(alone);
  const length = texts.longTextCharacters.toLocaleString('en');
  const { firstAudioMsMax, firstAudioRatioMax } = bars;
  const ratioRow = (what: string, figures: readonly FirstAudio[]) =>
    row(
      what,
      `${figuresText(figures)} (${(byteMs(figures) / base).toFixed(2)} x)`,
      `p50 at most ${firstAudioRatioMax} x that of a sentence`,
      byteMs(figures) <= base * firstAudioRatioMax,
    );
  const codecRows: Row[] = [];
  for (const format of [defaultFormat('mp3'), defaultFormat('opus')]) {
    if (decoderOf(format) === null) continue;
    const figures = await sentenceAlone(load, { ...target, format }, 20);
    codecRows.push(row(`First audio, one sentence, ${describeFormat(format)}`, figuresText(figures)));
  }
  return [
    row(
      'First audio, one sentence, alone',
      figuresText(alone),
      `p50 at most ${firstAudioMsMax} ms`,
      base <= firstAudioMsMax,
    ),
    audibleRow(alone),
    ratioRow(`First audio, ${length} characters`, long),
    ratioRow(`First audio, ${length} characters without punctuation`, unpunctuated),
    ...codecRows,
  ];
};

/** Each run of the service stands between two of the bare engine, so that a machine whose speed changes slows both. */
export const measureThroughput = async (load: Load, target: Target, bare: BareLoop): Promise<Row[]> => {
  const order = { target, text: texts.throughputText, connections: 16, durationMs: 4_000 };
  const measureBare = async (): Promise<number> => (await bare.measure(order.durationMs)).throughput;
  await bare.measure(1_000);
  const bareRuns = [await measureBare()];
  const beside = async (
    call: 'throughput' | 'wholeThroughput',
  ): Promise<{ speed: number; ratio: number }> => {
    const before = bareRuns.at(-1)!;
    const speed = await load.call(call, order);
    const after = await measureBare();
    bareRuns.push(after);
    return { speed, ratio: (2 * speed) / (before + after) };
  };
  type Runs = Awaited<ReturnType<typeof beside>>[];
  const streamRuns: Runs = [];
  const wholeRuns: Runs = [];
  for (let run = 0; run < 5; run++) {
    streamRuns.push(await beside('throughput'));
    wholeRuns.push(await beside('wholeThroughput'));
  }
  const ratioRow = (what: string, runs: Runs): Row => {
    const ratios = runs.map((run) => run.ratio);
    const ratio = median(ratios);
    const range = `${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)}`;
    return row(
      `Throughput, ${what}, ${describeFormat(target.format)}, 16 requests at a time`,
      `${median(runs.map((run) => run.speed)).toFixed(0)} s of speech a second (${ratio.toFixed(2)} x; single runs ${range} x)`,
      `at least ${bars.throughputRatioMin} x the engine alone`,
      ratio >= bars.throughputRatioMin,
    );
  };
  return [
    row('Engine alone, no service', `${median(bareRuns).toFixed(0)} s of speech a second`),
    ratioRow('streams', streamRuns),
    ratioRow('whole files', wholeRuns),
  ];
};

export const measureListeners = async (load: Load, target: Target): Promise<Row[]> => {
  const { firstAudio, dry, dryMsMax } = await load.call('listen', {
    target,
    text: texts.replyText,
    transport: 'http',
    listeners: listenerCount,
    spreadMs: 8_000,
    durationMs: 30_000,
  });
  const driest = dry === 0 ? 'none' : `${dry} (up to ${ms(dryMsMax)})`;
  return [
    row(
      `First audio among ${listenerCount} listeners at real time`,
      `${figuresText(firstAudio)} (${firstAudio.length} requests)`,
      `p95 at most ${bars.listenersFirstAudioMsMax} ms`,
      percentile(
        firstAudio.map(({ byteMs }) => byteMs),
        0.95,
      ) <= bars.listenersFirstAudioMsMax,
    ),
    row('Listeners that ever ran dry', driest, 'none', dry === 0),
  ];
};

/** Memory (PSS) of a service in MiB, after work for all its threads. */
export const memoryAfterLoad = (
  load: Load,
  spoken: Spoken,
  options: ServiceOptions,
  durationMs: number,
): Promise<number> =>
  withService(options, async (service) => {
    const target = { ...spoken, port: service.port, keys: await service.makeKeys(3) };
    await load.call('throughput', { target, text: texts.throughputText, connections: 9, durationMs });
    return pssMiB(service.pid);
  });

/** Services with one thread and with three. */
export const measureMemory = async (load: Load, spoken: Spoken, options: ServiceOptions): Promise<Row[]> => {
  const measure = (synthesisThreads: number): Promise<number> =>
    memoryAfterLoad(load, spoken, { ...options, synthesisThreads }, 3_000);
  const [one, three] = [await measure(1), await measure(3)];
  return [
    row('Memory (PSS) with one synthesis thread, after load', `${one.toFixed(0)} MiB`),
    row('Memory (PSS) of each further one', `${((three - one) / 2).toFixed(0)} MiB`),
  ];
};
