/** The shipped voices, loaded as a synthesis thread loads them, and measurements of their speech. */
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { SpeechSettings } from '../../src/api/speech-settings.js';
import { limits } from '../../src/limits.js';
import type { SegmentRequest, WordTime } from '../../src/threads/messages.js';
import { unguarded } from '../../src/threads/vitals.js';
import { closeFiles } from '../../src/threads/voices.js';
import { type Span, wordSpans } from '../../src/text/words.js';
import type { EngineMeans, LoadedVoices } from '../../workers/engines/engine.js';
import { loadPacks, readPacks } from '../../workers/engines/registry.js';
import { SyrinxEngine } from '../../workers/engines/syrinx/engine.js';
import type { SyrinxData } from '../../workers/engines/syrinx/manifest.js';
import { PhoneSet } from '../../workers/engines/syrinx/phones.js';
import { packageRoot } from './package-root.js';

export const modelsDir = join(packageRoot, 'models');
/** What is derived from packs, for all tests. */
export const cacheDir = join(tmpdir(), 'syrinx-test-voices');
const quiet = { debug: () => {}, warn: () => {} };
export const testMeans = { provider: 'cpu', native: unguarded, log: quiet, bounds: limits } as const;

/** @throws {VoicePackError} as at the start of the service */
export const loadFrom = async (folder: string, more: Partial<EngineMeans> = {}): Promise<LoadedVoices> => {
  const { packs, files } = await readPacks({ modelsDir: folder, cacheDir });
  try {
    return await loadPacks(packs, { ...testMeans, ...more });
  } finally {
    closeFiles(files);
  }
};

export const loadVoices = (): Promise<LoadedVoices> => loadFrom(modelsDir);

const defaultPack = async () => {
  const { packs, files } = await readPacks({ modelsDir, cacheDir });
  return { pack: packs[0]!, files };
};

/** The engine of the default pack, with the parts that the service does not use. */
export const loadDefaultPack = async (): Promise<SyrinxEngine> => {
  const { pack, files } = await defaultPack();
  const engine = await SyrinxEngine.load(pack, testMeans);
  closeFiles(files);
  return engine;
};

/** The phones of the default pack, and their names. */
export const loadPhones = async (): Promise<{ phones: PhoneSet; names: readonly string[] }> => {
  const { pack, files } = await defaultPack();
  closeFiles(files);
  const names = (pack.data as SyrinxData).manifest.phones;
  return { phones: new PhoneSet(names), names };
};

export interface Spoken {
  readonly pcm: Int16Array;
  readonly words: readonly WordTime[];
  readonly spans: readonly Span[];
  readonly chunks: readonly Int16Array[];
  /** The words that each chunk reported. */
  readonly wordsOfChunks: readonly (readonly WordTime[])[];
}

/** Parts of a request, with its settings beside them. */
export type RequestParts = Partial<Omit<SegmentRequest, 'settings'> & SpeechSettings>;

export const requestOf = (
  text: string,
  { voiceId = 'wren', temperature = 1, normalizeText = false, speed, ...more }: RequestParts = {},
): SegmentRequest => ({
  text,
  words: wordSpans(text),
  settings: { voiceId, temperature, normalizeText, ...(speed !== undefined && { speed }) },
  seed: 1,
  utteranceSeed: more.seed ?? 1,
  before: '',
  after: '',
  ...more,
});

export const joinPcm = (chunks: readonly Int16Array[]): Int16Array => {
  const pcm = new Int16Array(chunks.reduce((sum, chunk) => sum + chunk.length, 0));
  let at = 0;
  for (const chunk of chunks) {
    pcm.set(chunk, at);
    at += chunk.length;
  }
  return pcm;
};

/** Speaks a segment to its end. */
export const speak = async (voices: LoadedVoices, text: string, more: RequestParts = {}): Promise<Spoken> => {
  const request = requestOf(text, { voiceId: voices.voices[0]!.id, ...more });
  const segment = voices.open(request);
  const chunks: Int16Array[] = [];
  const wordsOfChunks: (readonly WordTime[])[] = [];
  for (;;) {
    const chunk = await segment.step();
    if (chunk === null) break;
    chunks.push(chunk.pcm);
    wordsOfChunks.push(chunk.words);
  }
  return { pcm: joinPcm(chunks), words: wordsOfChunks.flat(), spans: request.words, chunks, wordsOfChunks };
};

export const median = (values: readonly number[]): number =>
  [...values].sort((a, b) => a - b)[values.length >> 1]!;

/** Level of a stretch of samples, in dB of full scale. */
export const levelDb = (pcm: Int16Array, from = 0, to = pcm.length): number => {
  let power = 0;
  for (let i = from; i < to; i++) power += (pcm[i]! / 32_768) ** 2;
  return 10 * Math.log10(power / Math.max(1, to - from) + 1e-12);
};

/** F0 in Hz every 10 ms where the signal is loud and periodic. */
export const pitchOf = (pcm: Int16Array): number[] => pitchTrack(pcm).filter((hz) => hz > 0);

/** F0 in Hz every 10 ms, 0 where there is none: the first high peak of the normalised autocorrelation. */
export const pitchTrack = (pcm: Int16Array): number[] => {
  const rate = 8_000;
  const signal = Float32Array.from({ length: Math.floor(pcm.length / 3) }, (_, i) => pcm[3 * i]! / 32_768);
  const window = 360;
  const found: number[] = [];
  for (let at = 0; at + 2 * window < signal.length; at += rate / 100) {
    let energy = 0;
    for (let i = 0; i < window; i++) energy += signal[at + i]! ** 2;
    if (energy / window < 1e-3) {
      found.push(0);
      continue;
    }
    const correlations: number[] = [];
    const firstLag = Math.floor(rate / 400);
    let shifted = 1e-9;
    for (let i = 0; i < window; i++) shifted += signal[at + i + firstLag]! ** 2;
    for (let lag = firstLag; lag <= rate / 60; lag++) {
      let product = 0;
      for (let i = 0; i < window; i++) product += signal[at + i]! * signal[at + i + lag]!;
      correlations.push(product / Math.sqrt(energy * Math.max(1e-9, shifted)));
      shifted += (signal[at + lag + window] ?? 0) ** 2 - signal[at + lag]! ** 2;
    }
    const highest = Math.max(...correlations);
    const first = correlations.findIndex(
      (value, i) => value > 0.93 * highest && value >= (correlations[i + 1] ?? 0),
    );
    found.push(highest < 0.8 ? 0 : rate / (first + Math.floor(rate / 400)));
  }
  return found;
};
