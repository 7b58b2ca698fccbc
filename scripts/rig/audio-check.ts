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

/** Samples, without any framing or behind WAV headers: one before the first chunk, or one before each. */
class Samples implements AudioCheck {
  readonly #sampleRateHz: number;
  readonly #sampleBytes: number;
  readonly #headers: 'none' | 'first' | 'each';
  #bytes = 0;
  #isBegun = false;

  constructor(sampleRateHz: number, sampleBytes: number, headers: 'none' | 'first' | 'each' = 'none') {
    this.#sampleRateHz = sampleRateHz;
    this.#sampleBytes = sampleBytes;
    this.#headers = headers;
  }

  get durationMs(): number {
    return (this.#bytes * 1000) / (this.#sampleRateHz * this.#sampleBytes);
  }

  get isComplete(): boolean {
    return this.#bytes % this.#sampleBytes === 0;
  }

  push(bytes: Buffer): string | null {
    const hasHeader = this.#headers === 'each' || (this.#headers === 'first' && !this.#isBegun);
    this.#isBegun = true;
    if (!hasHeader) {
      const isRepeated = this.#headers === 'first' && bytes.toString('latin1', 0, 4) === 'RIFF';
      return isRepeated ? 'a WAV header is repeated' : this.#pushSamples(bytes);
    }
    const fault = wavFault(bytes, this.#sampleRateHz);
    if (fault !== null) return fault;
    if (this.#headers === 'each' && bytes.readUInt32LE(40) !== bytes.length - wavHeaderBytes)
      return 'the length in a WAV header is not that of its chunk';
    return this.#pushSamples(bytes.subarray(wavHeaderBytes));
  }

  #pushSamples(bytes: Buffer): string | null {
    this.#bytes += bytes.length;
    if (bytes.length === 0) return 'a chunk is empty';
    return bytes.length % this.#sampleBytes === 0 ? null : 'a chunk ends within a sample';
  }
}

/** Of the frame at the beginning of some bytes: its length and how long it plays, or what is wrong with its head. */
type FrameHead = { readonly bytes: number; readonly durationMs: number } | string;

/** Frames of a codec. Each chunk has whole ones. */
class Frames implements AudioCheck {
  readonly #codec: string;
  readonly #headOf: (bytes: Buffer) => FrameHead | null;
  durationMs = 0;
  /** So far. */
  count = 0;
  readonly isComplete = true;

  /** @param headOf `null` where no frame begins */
  constructor(codec: string, headOf: (bytes: Buffer) => FrameHead | null) {
    this.#codec = codec;
    this.#headOf = headOf;
  }

  push(bytes: Buffer): string | null {
    if (bytes.length === 0) return 'a chunk is empty';
    let at = 0;
    while (at < bytes.length) {
      const head = this.#headOf(bytes.subarray(at));
      if (head === null) return `audio is not where an ${this.#codec} frame must begin`;
      if (typeof head === 'string') return head;
      at += head.bytes;
      this.count++;
      this.durationMs += head.durationMs;
    }
    return at === bytes.length ? null : `a chunk ends within an ${this.#codec} frame`;
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

const mpegFrames = (): Frames =>
  new Frames('MPEG', (bytes) => {
    if (bytes.length < mpegHeadBytes || bytes[0] !== 0xff || (bytes[1]! & 0xe6) !== 0xe2) return null;
    const version = (bytes[1]! & 0x18) === 0x18 ? 0 : 1;
    const bitrate = mpegBitratesKbps[version][bytes[2]! >> 4];
    const rateHz = mpegRatesHz[version][(bytes[2]! >> 2) & 3];
    if (bitrate === undefined || bitrate === 0 || rateHz === undefined)
      return 'an MPEG frame has a wrong head';
    const padding = (bytes[2]! >> 1) & 1;
    return {
      bytes: Math.floor((mpegFrameSamples[version] * bitrate * 125) / rateHz) + padding,
      durationMs: (mpegFrameSamples[version] * 1000) / rateHz,
    };
  });

const adtsHeadBytes = 7;
const adtsFrameSamples = 1_024;
const adtsRatesHz = [
  ...[96_000, 88_200, 64_000, 48_000, 44_100, 32_000],
  ...[24_000, 22_050, 16_000, 12_000, 11_025, 8_000],
] as const;

const adtsFrames = (sampleRateHz: number): Frames =>
  new Frames('ADTS', (bytes) => {
    if (bytes.length < adtsHeadBytes || (bytes.readUInt16BE(0) & 0xfff6) !== 0xfff0) return null;
    if (adtsRatesHz[(bytes[2]! >> 2) & 0xf] !== sampleRateHz) return 'an ADTS frame has another rate';
    const frameBytes = (bytes.readUInt32BE(3) >>> 13) & 0x1fff;
    if (frameBytes < adtsHeadBytes) return 'an ADTS frame has a wrong length';
    return { bytes: frameBytes, durationMs: (adtsFrameSamples * 1000) / sampleRateHz };
  });

const tagHeaderBytes = 10;
/** A tag's size has seven bits a byte. */
const tagSize = (bytes: Buffer): number =>
  [6, 7, 8, 9].reduce((size, at) => size * 128 + (bytes[at]! & 0x7f), 0);
/** The Info frame has its name within these bytes. */
const infoBytesMax = 64;

/** An mp3 file: a tag, an Info frame with the number of frames, and the frames. */
class Mp3File implements AudioCheck {
  readonly #frames = mpegFrames();
  isComplete = false;

  /** Without the Info frame, which is not played. */
  get durationMs(): number {
    const { count, durationMs } = this.#frames;
    return count === 0 ? 0 : (durationMs * (count - 1)) / count;
  }

  /** @param bytes the whole file */
  push(bytes: Buffer): string | null {
    if (this.isComplete) return 'audio comes after the file';
    if (bytes.length < tagHeaderBytes || bytes.toString('latin1', 0, 3) !== 'ID3')
      return 'an ID3 tag is missing';
    const sound = bytes.subarray(tagHeaderBytes + tagSize(bytes));
    const fault = this.#frames.push(sound);
    if (fault !== null) return fault;
    const info = sound.subarray(0, infoBytesMax).indexOf('Info', 0, 'latin1');
    if (info < 0) return 'the Info frame is missing';
    const [found, expected] = [this.#frames.count - 1, sound.readUInt32BE(info + 8)];
    this.isComplete = expected === found;
    return this.isComplete ? null : `${found} MPEG frames, and the Info frame says ${expected}`;
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
      return new Samples(format.sampleRateHz, 2, 'first');
    case 'linear16':
      return new Samples(format.sampleRateHz, 2, 'each');
    case 'mp3':
      return mpegFrames();
    case 'opus':
      return new OggPages();
    case 'aac':
      return adtsFrames(format.sampleRateHz);
    case 'flac':
      throw new Error('FLAC is not checked');
  }
};

/** For a whole file, which is pushed in one piece. The header of a WAV file has its length. */
export const createFileCheck = (format: AudioFormat): AudioCheck => {
  if (format.encoding === 'mp3') return new Mp3File();
  return createAudioCheck(format.encoding === 'wav' ? { ...format, encoding: 'linear16' } : format);
};
