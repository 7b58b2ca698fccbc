/** MP3 by LAME, at a constant bitrate. A stream consists of frames; a whole file has an ID3 tag and an info frame first. */
import { type CodecFormat, defaultCodecFormat } from '../../src/api/formats.js';
import { type Encoder, type EncoderFactory, type Flushed, NOTHING } from './encoder.js';
import type { Lame } from './lame.js';
import { Mp3Pool } from './mp3-pool.js';
import { FrameCutter, frameShape, HEADER_BYTES, type MpegFormat, nearestMpegFormat } from './mpeg.js';

/** Headers of a whole mp3 file: an ID3 tag and an info frame. */
const TAG_HEADER_BYTES = 10;
const FRAME_HEADER_BYTES = 10;

/**
 * The shortest ID3v2.3 tag: one text frame, since a tag needs at least one. Source: id3.org, ID3 2.3.0.
 *
 * @param software name of the encoder, in Latin-1, under 100 characters
 */
const id3Tag = (software: string): Uint8Array => {
  const frameBytes = 1 + software.length;
  const tag = Buffer.alloc(TAG_HEADER_BYTES + FRAME_HEADER_BYTES + frameBytes);
  tag.write('ID3', 0, 'latin1');
  tag[3] = 3;
  // Sizes of a tag have 7 bits per byte; this size fits the last byte.
  tag[9] = FRAME_HEADER_BYTES + frameBytes;
  tag.write('TSSE', TAG_HEADER_BYTES, 'latin1');
  tag.writeUInt32BE(frameBytes, TAG_HEADER_BYTES + 4);
  tag.write(software, TAG_HEADER_BYTES + FRAME_HEADER_BYTES + 1, 'latin1');
  return tag;
};

/** Name, flags, frames, bytes. There is no table of contents: all frames have the same length. */
const XING_BYTES = 16;
const FRAMES_AND_BYTES_GIVEN = 0x03;
const LAME_BYTES = 36;
const CONSTANT_BITRATE = 1;

/** CRC-16 of polynomial 0x8005, reflected. */
const crcTable = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >> 1) ^ 0xa001 : crc >> 1;
  return crc;
});

/** @param crc of the bytes before, 0 at the start */
export const crc16 = (bytes: Uint8Array, crc: number): number => {
  let value = crc;
  for (const byte of bytes) value = (value >> 8) ^ (crcTable[(value ^ byte) & 0xff] ?? 0);
  return value;
};

interface Mp3Audio {
  readonly frames: number;
  readonly bytes: number;
  /** `crc16` of the frames. */
  readonly crc: number;
  /** Samples that the encoder put before the audio, without those that every decoder adds. */
  readonly delaySamples: number;
  /** Samples after the audio that fill the last frame. */
  readonly paddingSamples: number;
}

/**
 * The first frame of an mp3 file: a silent one whose bytes give the length of the audio and the samples to skip at either
 * end, so that players play exactly what was spoken. Its length depends on the format alone. Source:
 * gabriel.mp3-tech.org, Mp3 Info Tag rev 1.
 */
const infoFrame = (format: MpegFormat, encoder: string, audio: Mp3Audio): Uint8Array => {
  const { header, frameBytes, sideInfoBytes } = frameShape(format);
  const frame = Buffer.alloc(frameBytes);
  frame.set(header);
  const xing = HEADER_BYTES + sideInfoBytes;
  frame.write('Info', xing, 'latin1');
  frame.writeUInt32BE(FRAMES_AND_BYTES_GIVEN, xing + 4);
  frame.writeUInt32BE(audio.frames, xing + 8);
  const bytes = Math.min(frameBytes + audio.bytes, 0xffff_ffff);
  frame.writeUInt32BE(bytes, xing + 12);
  const lame = xing + XING_BYTES;
  frame.write(encoder, lame, 9, 'latin1');
  frame[lame + 9] = CONSTANT_BITRATE;
  frame[lame + 20] = Math.min(format.bitrateKbps, 0xff);
  // Twelve bits each.
  frame.writeUIntBE((audio.delaySamples << 12) | Math.min(audio.paddingSamples, 0xfff), lame + 21, 3);
  const rateClass = format.sampleRateHz === 48_000 ? 2 : format.sampleRateHz === 44_100 ? 1 : 0;
  frame[lame + 24] = rateClass << 6;
  frame.writeUInt32BE(bytes, lame + 28);
  frame.writeUInt16BE(audio.crc, lame + 32);
  frame.writeUInt16BE(crc16(frame.subarray(0, lame + LAME_BYTES - 2), 0), lame + LAME_BYTES - 2);
  return frame;
};

const SOFTWARE = 'LAME3.100';
/** Samples of silence that LAME puts before the audio. */
const ENCODER_DELAY_SAMPLES = 576;
/** Samples that the filters of every decoder add. */
const DECODER_DELAY_SAMPLES = 529;
/** More than LAME's buffers and bit reservoir can hold back, at the shortest frames. */
const FLUSH_FRAMES_MAX = 24;

/**
 * Takes LAME at the first sound. Silence before it needs none: the speech of an empty text is free, and making an encoder costs
 * more than all else of it.
 */
class Mp3Encoder implements Encoder {
  readonly sampleRateHz: number;
  readonly streamDelaySamples = ENCODER_DELAY_SAMPLES + DECODER_DELAY_SAMPLES;
  readonly #format: MpegFormat;
  readonly #samplesPerFrame: number;
  readonly #cutter = new FrameCutter();
  readonly #pool: Mp3Pool;
  #lame: Lame | undefined;
  #isOver = false;
  #fedSamples = 0;
  #bytes = 0;
  #crc = 0;

  constructor(pool: Mp3Pool, format: MpegFormat) {
    this.#pool = pool;
    this.#format = format;
    this.sampleRateHz = format.sampleRateHz;
    this.#samplesPerFrame = frameShape(format).samplesPerFrame;
  }

  /**
   * The bits of a frame lie in it and in the frames before it, so with a frame a decoder has its samples. But it takes bytes
   * for mp3 only when it sees two frames in a row.
   */
  get decodableSamples(): number {
    return this.#cutter.frames < 2 ? 0 : this.#encodedSamples;
  }

  encode(samples: Int16Array): Uint8Array {
    const isSilence = this.#lame === undefined && samples.every((sample) => sample === 0);
    const before = this.#fedSamples;
    this.#fedSamples += samples.length;
    if (isSilence) return this.#silence(Math.floor(this.#fedSamples / this.#samplesPerFrame));
    const unframed = this.#lame === undefined ? before - this.#encodedSamples : 0;
    if (unframed === 0) return this.#take((lame) => lame.encode(samples));
    const all = new Int16Array(unframed + samples.length);
    all.set(samples, unframed);
    return this.#take((lame) => lame.encode(all));
  }

  flush(): Flushed {
    const fed = this.#fedSamples;
    const silence = new Int16Array(this.#samplesPerFrame);
    const parts: Uint8Array[] = [];
    while (this.#encodedSamples < fed + this.streamDelaySamples) {
      if (parts.push(this.encode(silence)) > FLUSH_FRAMES_MAX) throw new Error('LAME holds back its input');
    }
    return { payload: Buffer.concat(parts), silenceSamples: this.#fedSamples - fed };
  }

  finish(): Uint8Array {
    if (this.#lame !== undefined) return this.#take((lame) => lame.finalize());
    return this.#silence(Math.ceil((this.#fedSamples + this.streamDelaySamples) / this.#samplesPerFrame));
  }

  chunkHeader(): Uint8Array {
    return NOTHING;
  }

  fileHeader(): Uint8Array {
    const info = infoFrame(this.#format, SOFTWARE, {
      frames: this.#cutter.frames,
      bytes: this.#bytes,
      crc: this.#crc,
      delaySamples: ENCODER_DELAY_SAMPLES,
      paddingSamples: Math.max(0, this.#encodedSamples - ENCODER_DELAY_SAMPLES - this.#fedSamples),
    });
    return Buffer.concat([id3Tag(SOFTWARE), info]);
  }

  dispose(): void {
    const lame = this.#lame;
    this.#lame = undefined;
    this.#isOver = true;
    if (lame !== undefined) this.#pool.give(lame, this.#format);
  }

  get #encodedSamples(): number {
    return this.#cutter.frames * this.#samplesPerFrame;
  }

  #take(encode: (lame: Lame) => Uint8Array): Uint8Array {
    if (this.#isOver) throw new Error('the encoder was disposed of');
    const lame = this.#lame ?? this.#pool.take(this.#format);
    // A failed encoder is not given back.
    this.#lame = undefined;
    const bytes = encode(lame);
    this.#lame = lame;
    return this.#count(bytes);
  }

  /** @param frames so many in all */
  #silence(frames: number): Uint8Array {
    const { frameBytes, header } = frameShape(this.#format);
    const bytes = Buffer.alloc(Math.max(0, frames - this.#cutter.frames) * frameBytes);
    for (let start = 0; start < bytes.length; start += frameBytes) bytes.set(header, start);
    return this.#count(bytes);
  }

  #count(bytes: Uint8Array): Uint8Array {
    const frames = this.#cutter.push(bytes);
    this.#bytes += frames.length;
    this.#crc = crc16(frames, this.#crc);
    return frames;
  }
}

let pool: Mp3Pool | undefined;

export const mp3: EncoderFactory<CodecFormat> = {
  /** Makes encoders for the default format in advance. */
  async load(bounds) {
    const { sampleRateHz, bitrateKbps } = defaultCodecFormat('mp3');
    pool ??= await Mp3Pool.create(nearestMpegFormat(sampleRateHz, bitrateKbps), bounds);
  },

  open({ sampleRateHz, bitrateKbps }) {
    const lames = pool;
    if (lames === undefined) throw new Error('load() must resolve before open()');
    return new Mp3Encoder(lames, nearestMpegFormat(sampleRateHz, bitrateKbps));
  },
};
