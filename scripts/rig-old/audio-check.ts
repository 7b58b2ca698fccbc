/** Follows the audio of one stream, in any format: that it is well formed, and how long it plays. */
import type { AudioFormat } from '../../src/api/formats.js';
import { Mp3File } from './mp3-file.js';
import { MpegFrames } from './mpeg-frames.js';
import { OggPages } from './ogg-pages.js';

export interface AudioCheck {
  /** @returns what is wrong with it, `null` when nothing is */
  push(bytes: Buffer): string | null;
  /** From its beginning to the end of what came. */
  readonly durationMs: number;
  /** It may end here. */
  readonly isComplete: boolean;
}

const wavHeaderBytes = 44;

const wavFault = (header: Buffer, sampleRateHz: number): string | null => {
  if (header.length < wavHeaderBytes) return 'a WAV header is cut';
  if (header.toString('latin1', 0, 4) !== 'RIFF' || header.toString('latin1', 8, 16) !== 'WAVEfmt ')
    return 'a WAV header is missing';
  return header.readUInt32LE(24) === sampleRateHz ? null : 'a WAV header has another rate';
};

/** Bytes for each millisecond, and nothing else. */
class Samples implements AudioCheck {
  readonly #bytesPerMs: number;
  readonly #sampleBytes: number;
  #bytes = 0;

  constructor(sampleRateHz: number, sampleBytes: number) {
    this.#bytesPerMs = (sampleRateHz * sampleBytes) / 1000;
    this.#sampleBytes = sampleBytes;
  }

  get durationMs(): number {
    return this.#bytes / this.#bytesPerMs;
  }

  get isComplete(): boolean {
    return this.#bytes % this.#sampleBytes === 0;
  }

  push(bytes: Buffer): string | null {
    this.#bytes += bytes.length;
    if (bytes.length === 0) return 'a chunk is empty';
    return bytes.length % this.#sampleBytes === 0 ? null : 'a chunk ends within a sample';
  }
}

/** Samples behind a header: before the first chunk, or before each. */
class WavSamples implements AudioCheck {
  readonly #sampleRateHz: number;
  readonly #everyChunk: boolean;
  readonly #samples: Samples;
  #isBegun = false;

  constructor(sampleRateHz: number, everyChunk: boolean) {
    this.#sampleRateHz = sampleRateHz;
    this.#everyChunk = everyChunk;
    this.#samples = new Samples(sampleRateHz, 2);
  }

  get durationMs(): number {
    return this.#samples.durationMs;
  }

  get isComplete(): boolean {
    return this.#samples.isComplete;
  }

  push(bytes: Buffer): string | null {
    if (this.#isBegun && !this.#everyChunk) {
      if (bytes.toString('latin1', 0, 4) === 'RIFF') return 'a WAV header is repeated';
      return this.#samples.push(bytes);
    }
    this.#isBegun = true;
    const fault = wavFault(bytes, this.#sampleRateHz);
    if (fault !== null) return fault;
    if (this.#everyChunk && bytes.readUInt32LE(40) !== bytes.length - wavHeaderBytes)
      return 'a WAV header tells another length than its chunk has';
    return this.#samples.push(bytes.subarray(wavHeaderBytes));
  }
}

export const createAudioCheck = (format: AudioFormat): AudioCheck => {
  switch (format.encoding) {
    case 'pcm':
      return new Samples(format.sampleRateHz, 2);
    case 'mulaw':
    case 'alaw':
      return new Samples(format.sampleRateHz, 1);
    case 'wav':
      return new WavSamples(format.sampleRateHz, false);
    case 'linear16':
      return new WavSamples(format.sampleRateHz, true);
    case 'mp3':
      return new MpegFrames();
    case 'opus':
      return new OggPages();
  }
};

/** Of a whole file, which is pushed at once. */
export const createFileCheck = (format: AudioFormat): AudioCheck => {
  switch (format.encoding) {
    case 'wav':
    case 'linear16':
      // Its header tells the length.
      return new WavSamples(format.sampleRateHz, true);
    case 'mp3':
      return new Mp3File();
    case 'pcm':
    case 'mulaw':
    case 'alaw':
    case 'opus':
      return createAudioCheck(format);
  }
};
