/** MP3 by LAME, at a constant bitrate. A stream consists of frames; a whole file has an ID3 tag and an info frame first. */
import { defaultCodecFormat, type CodecFormat } from '../../src/api/formats.js';
import { NOTHING, type Encoder, type EncoderFactory, type Flushed } from './encoder.js';
import { crc16, id3Tag, infoFrame } from './mp3-header.js';
import type { Lame } from './lame.js';
import { Mp3Pool } from './mp3-pool.js';
import { FrameCutter, frameShape, nearestMpegFormat, type MpegFormat } from './mpeg.js';

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
