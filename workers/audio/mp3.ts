/**
 * MP3 by LAME, at a constant bitrate. A stream is its frames; a whole file has an ID3 tag and a frame of figures
 * before them.
 */
import { defaultCodecFormat, type CodecFormat } from '../../src/api/formats.js';
import type { Encoder, Flushed } from './encoder.js';
import { id3Tag } from './id3.js';
import { crc16, infoFrame } from './mp3-info.js';
import { Mp3Pool, type Lame, type Mp3Bounds } from './mp3-pool.js';
import { FrameCutter, frameShape, nearestMpegFormat, type MpegFormat } from './mpeg.js';

const NOTHING = new Uint8Array(0);
const SOFTWARE = 'LAME3.100';
/** Samples of silence that LAME puts first. */
const ENCODER_DELAY_SAMPLES = 576;
/** What the filters of every decoder add to it. */
const DECODER_DELAY_SAMPLES = 529;
/** More than LAME's buffers and its reservoir of bits can hold back, at the shortest frames. */
const FLUSH_FRAMES_MAX = 24;

/** LAME turns everything down a little, at low bitrates more; what it is fed is turned up as much. */
const lameGain = (bitrateKbps: number): number => {
  if (bitrateKbps >= 256) return 1;
  if (bitrateKbps >= 224) return 0.98;
  return bitrateKbps >= 192 ? 0.97 : 0.95;
};

let pool: Mp3Pool | undefined;

/** Loads LAME into this thread, with encoders ready for the default format. Idempotent. */
export const loadMp3 = async (bounds: Mp3Bounds): Promise<void> => {
  const { sampleRateHz, bitrateKbps } = defaultCodecFormat('mp3');
  pool ??= await Mp3Pool.create(nearestMpegFormat(sampleRateHz, bitrateKbps), bounds);
};

export class Mp3Encoder implements Encoder {
  readonly sampleRateHz: number;
  readonly streamDelaySamples = ENCODER_DELAY_SAMPLES + DECODER_DELAY_SAMPLES;
  readonly #format: MpegFormat;
  readonly #samplesPerFrame: number;
  /** From 16 bits to what LAME takes for full scale. */
  readonly #scale: number;
  readonly #cutter = new FrameCutter();
  readonly #pool: Mp3Pool;
  #lame: Lame | undefined;
  #fedSamples = 0;
  #bytes = 0;
  #crc = 0;

  private constructor(owner: Mp3Pool, lame: Lame, format: MpegFormat) {
    this.#pool = owner;
    this.#lame = lame;
    this.#format = format;
    this.sampleRateHz = format.sampleRateHz;
    this.#samplesPerFrame = frameShape(format).samplesPerFrame;
    this.#scale = 1 / (32_768 * lameGain(format.bitrateKbps));
  }

  /** `loadMp3` must have resolved. A promise only when all encoders are in use. */
  static open({ sampleRateHz, bitrateKbps }: CodecFormat): Mp3Encoder | Promise<Mp3Encoder> {
    const owner = pool;
    if (owner === undefined) throw new Error('loadMp3() must resolve before an Mp3Encoder is made');
    const format = nearestMpegFormat(sampleRateHz, bitrateKbps);
    const lame = owner.take(format);
    return lame instanceof Promise
      ? lame.then((made) => new Mp3Encoder(owner, made, format))
      : new Mp3Encoder(owner, lame, format);
  }

  encode(samples: Int16Array): Uint8Array {
    this.#fedSamples += samples.length;
    const floats = new Float32Array(samples.length);
    for (let i = 0; i < samples.length; i++) floats[i] = (samples[i] ?? 0) * this.#scale;
    return this.#take((lame) => lame.encode([floats]));
  }

  flush(): Flushed {
    const fed = this.#fedSamples;
    const silence = new Int16Array(this.#samplesPerFrame);
    const parts: Uint8Array[] = [];
    while (this.#cutter.frames * this.#samplesPerFrame < fed + this.streamDelaySamples) {
      if (parts.push(this.encode(silence)) > FLUSH_FRAMES_MAX) throw new Error('LAME keeps what it was fed');
    }
    return { payload: Buffer.concat(parts), silenceSamples: this.#fedSamples - fed };
  }

  finish(): Uint8Array {
    return this.#take((lame) => lame.finalize());
  }

  chunkHeader(): Uint8Array {
    return NOTHING;
  }

  fileHeader(): Uint8Array {
    const encodedSamples = this.#cutter.frames * this.#samplesPerFrame;
    const info = infoFrame(this.#format, SOFTWARE, {
      frames: this.#cutter.frames,
      bytes: this.#bytes,
      crc: this.#crc,
      delaySamples: ENCODER_DELAY_SAMPLES,
      paddingSamples: Math.max(0, encodedSamples - ENCODER_DELAY_SAMPLES - this.#fedSamples),
    });
    return Buffer.concat([id3Tag(SOFTWARE), info]);
  }

  dispose(): void {
    const lame = this.#lame;
    this.#lame = undefined;
    if (lame !== undefined) this.#pool.give(lame, this.#format);
  }

  #take(encode: (lame: Lame) => Uint8Array): Uint8Array {
    const lame = this.#lame;
    if (lame === undefined) throw new Error('the encoder was disposed of');
    // One that fails is not given back.
    this.#lame = undefined;
    // The bytes are LAME's own memory: the cutter copies them.
    const frames = this.#cutter.push(encode(lame));
    this.#lame = lame;
    this.#bytes += frames.length;
    this.#crc = crc16(frames, this.#crc);
    return frames;
  }
}
