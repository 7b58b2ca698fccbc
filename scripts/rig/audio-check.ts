/** Checks the audio of one stream in any format: whether it is well formed, and how long it plays. */
import type { AudioFormat } from '../../src/api/formats.js';

export interface AudioCheck {
  /** @returns what is wrong with the bytes; `null` when nothing is */
  push(bytes: Buffer): string | null;
  /** Milliseconds of audio so far. */
  readonly durationMs: number;
  /** The stream may end here. */
  readonly isComplete: boolean;
}

const wavHeaderBytes = 44;

const wavFault = (header: Buffer, sampleRateHz: number): string | null => {
  if (header.length < wavHeaderBytes) return 'a WAV header is cut';
  if (header.toString('latin1', 0, 4) !== 'RIFF' || header.toString('latin1', 8, 16) !== 'WAVEfmt ')
    return 'a WAV header is missing';
  return header.readUInt32LE(24) === sampleRateHz ? null : 'a WAV header has another rate';
};

/** Samples without any framing. */
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

/** Samples behind a WAV header: one before the first chunk, or one before each. */
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
      return 'the length in a WAV header is not that of its chunk';
    return this.#samples.push(bytes.subarray(wavHeaderBytes));
  }
}

const mpegHeadBytes = 4;
const mpegBitratesKbps = [
  [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
  [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
] as const;
const mpegRatesHz = [
  [44_100, 48_000, 32_000],
  [22_050, 24_000, 16_000],
] as const;
/** Layer III: MPEG-1 has two granules a frame, MPEG-2 one. */
const mpegFrameSamples = [1152, 576] as const;

/** Frames of an mp3 stream, each chunk of which has whole ones. */
class MpegFrames implements AudioCheck {
  #durationMs = 0;
  #frames = 0;
  readonly isComplete = true;

  get durationMs(): number {
    return this.#durationMs;
  }

  /** Frames so far. */
  get frames(): number {
    return this.#frames;
  }

  push(bytes: Buffer): string | null {
    if (bytes.length === 0) return 'a chunk is empty';
    let at = 0;
    while (at < bytes.length) {
      if (at + mpegHeadBytes > bytes.length || bytes[at] !== 0xff || (bytes[at + 1]! & 0xe6) !== 0xe2)
        return 'audio is not where an MPEG frame must begin';
      const version = (bytes[at + 1]! & 0x18) === 0x18 ? 0 : 1;
      const bitrate = mpegBitratesKbps[version][bytes[at + 2]! >> 4];
      const rateHz = mpegRatesHz[version][(bytes[at + 2]! >> 2) & 3];
      if (bitrate === undefined || bitrate === 0 || rateHz === undefined)
        return 'an MPEG frame has a wrong head';
      const padding = (bytes[at + 2]! >> 1) & 1;
      at += Math.floor((mpegFrameSamples[version] * bitrate * 125) / rateHz) + padding;
      this.#frames++;
      this.#durationMs += (mpegFrameSamples[version] * 1000) / rateHz;
    }
    return at === bytes.length ? null : 'a chunk ends within an MPEG frame';
  }
}

const adtsHeadBytes = 7;
const adtsFrameSamples = 1_024;
const adtsRatesHz = [
  ...[96_000, 88_200, 64_000, 48_000, 44_100, 32_000],
  ...[24_000, 22_050, 16_000, 12_000, 11_025, 8_000],
] as const;

/** ADTS frames of AAC. Each chunk has whole frames. */
class AdtsFrames implements AudioCheck {
  readonly #sampleRateHz: number;
  #frames = 0;
  readonly isComplete = true;

  constructor(sampleRateHz: number) {
    this.#sampleRateHz = sampleRateHz;
  }

  get durationMs(): number {
    return (this.#frames * adtsFrameSamples * 1000) / this.#sampleRateHz;
  }

  push(bytes: Buffer): string | null {
    if (bytes.length === 0) return 'a chunk is empty';
    let at = 0;
    while (at < bytes.length) {
      if (at + adtsHeadBytes > bytes.length || (bytes.readUInt16BE(at) & 0xfff6) !== 0xfff0)
        return 'audio is not where an ADTS frame must begin';
      if (adtsRatesHz[(bytes[at + 2]! >> 2) & 0xf] !== this.#sampleRateHz)
        return 'an ADTS frame has another rate';
      const frameBytes = (bytes.readUInt32BE(at + 3) >>> 13) & 0x1fff;
      if (frameBytes < adtsHeadBytes) return 'an ADTS frame has a wrong length';
      at += frameBytes;
      this.#frames++;
    }
    return at === bytes.length ? null : 'a chunk ends within an ADTS frame';
  }
}

const tagHeaderBytes = 10;
/** A tag's size has seven bits a byte. */
const tagSize = (bytes: Buffer): number =>
  [6, 7, 8, 9].reduce((size, at) => size * 128 + (bytes[at]! & 0x7f), 0);
/** The Info frame has its name within these bytes. */
const infoBytesMax = 64;

/** An mp3 file: a tag, an Info frame with the number of frames, and the frames. */
class Mp3File implements AudioCheck {
  readonly #frames = new MpegFrames();
  #isComplete = false;

  /** Without the Info frame, which is not played. */
  get durationMs(): number {
    const { durationMs, frames } = this.#frames;
    return frames === 0 ? 0 : (durationMs * (frames - 1)) / frames;
  }

  get isComplete(): boolean {
    return this.#isComplete;
  }

  /** @param bytes the whole file */
  push(bytes: Buffer): string | null {
    if (this.#isComplete) return 'audio comes after the file';
    if (bytes.length < tagHeaderBytes || bytes.toString('latin1', 0, 3) !== 'ID3')
      return 'an ID3 tag is missing';
    const sound = bytes.subarray(tagHeaderBytes + tagSize(bytes));
    const fault = this.#frames.push(sound);
    if (fault !== null) return fault;
    const info = sound.subarray(0, infoBytesMax).indexOf('Info', 0, 'latin1');
    if (info < 0) return 'the Info frame is missing';
    const expected = sound.readUInt32BE(info + 8);
    this.#isComplete = expected === this.#frames.frames - 1;
    return this.#isComplete
      ? null
      : `${this.#frames.frames - 1} MPEG frames, and the Info frame says ${expected}`;
  }
}

const pageHeadBytes = 27;
const pageAt = { type: 5, granule: 6, serial: 14, sequence: 18, segments: 26 } as const;
const LAST_PAGE = 4;
const granulesPerMs = 48;

/** Pages of one Ogg stream. They are numbered, so a page that is lost, doubled or out of place shows. */
export class OggPages implements AudioCheck {
  #rest: Buffer = Buffer.alloc(0);
  #serial: number | null = null;
  #pages = 0;
  #granule = 0;
  #isOver = false;

  get durationMs(): number {
    return this.#granule / granulesPerMs;
  }

  get isComplete(): boolean {
    return this.#isOver && this.#rest.length === 0;
  }

  push(bytes: Buffer): string | null {
    this.#rest = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes]);
    for (;;) {
      const length = this.#pageLength();
      if (length === null) return null;
      const fault = this.#readPage();
      if (fault !== null) return fault;
      this.#rest = this.#rest.subarray(length);
    }
  }

  /** Of the page at the beginning of the rest; `null` until the page is whole. */
  #pageLength(): number | null {
    const rest = this.#rest;
    if (rest.length < pageHeadBytes) return null;
    const segments = rest[pageAt.segments]!;
    if (rest.length < pageHeadBytes + segments) return null;
    let length = pageHeadBytes + segments;
    for (let i = 0; i < segments; i++) length += rest[pageHeadBytes + i]!;
    return rest.length < length ? null : length;
  }

  #readPage(): string | null {
    const page = this.#rest;
    if (page.toString('latin1', 0, 4) !== 'OggS') return 'audio is not where a page must begin';
    if (this.#isOver) return 'a page comes after the last';
    const serial = page.readUInt32LE(pageAt.serial);
    this.#serial ??= serial;
    if (serial !== this.#serial) return 'a page belongs to another stream';
    const sequence = page.readUInt32LE(pageAt.sequence);
    if (sequence !== this.#pages) return `page ${sequence} instead of ${this.#pages}`;
    const granule = Number(page.readBigInt64LE(pageAt.granule));
    if (granule < this.#granule) return 'time runs backwards';
    this.#granule = granule;
    this.#pages++;
    this.#isOver = (page[pageAt.type]! & LAST_PAGE) !== 0;
    return null;
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
    case 'aac':
      return new AdtsFrames(format.sampleRateHz);
    case 'flac':
      throw new Error('FLAC is not checked');
  }
};

/** For a whole file, which is pushed in one piece. */
export const createFileCheck = (format: AudioFormat): AudioCheck => {
  switch (format.encoding) {
    case 'wav':
    case 'linear16':
      // The header of a file has its length.
      return new WavSamples(format.sampleRateHz, true);
    case 'mp3':
      return new Mp3File();
    case 'pcm':
    case 'mulaw':
    case 'alaw':
    case 'opus':
    case 'flac':
    case 'aac':
      return createAudioCheck(format);
  }
};
