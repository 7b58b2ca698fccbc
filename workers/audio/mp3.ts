/** MP3 by LAME, at a constant bitrate. A stream consists of frames; a whole file has an ID3 tag and an info frame first. */
import { defaultCodecFormat, type CodecFormat } from '../../src/api/formats.js';
import { NOTHING, type Encoder, type EncoderFactory, type Flushed } from './encoder.js';
import { crc16, id3Tag, infoFrame } from './mp3-header.js';
import { Mp3Pool, type Lame } from './mp3-pool.js';
import { FrameCutter, frameShape, nearestMpegFormat, type MpegFormat } from './mpeg.js';

const SOFTWARE = 'LAME3.100';
/** Samples of silence that LAME puts before the audio. */
const ENCODER_DELAY_SAMPLES = 576;
/** Samples that the filters of every decoder add. */
const DECODER_DELAY_SAMPLES = 529;
/** More than LAME's buffers and bit reservoir can hold back, at the shortest frames. */
const FLUSH_FRAMES_MAX = 24;

/** LAME lowers the volume a little, more at low bitrates; its input is raised by the same factor. */
const lameGain = (bitrateKbps: number): number => {
  if (bitrateKbps >= 256) return 1;
  if (bitrateKbps >= 224) return 0.98;
  return bitrateKbps >= 192 ? 0.97 : 0.95;
};

class Mp3Encoder implements Encoder {
  readonly sampleRateHz: number;
  readonly streamDelaySamples = ENCODER_DELAY_SAMPLES + DECODER_DELAY_SAMPLES;
  readonly #format: MpegFormat;
  readonly #samplesPerFrame: number;
  /** From 16-bit samples to LAME's full scale. */
  readonly #scale: number;
  readonly #cutter = new FrameCutter();
  readonly #pool: Mp3Pool;
  #lame: Lame | undefined;
  #fedSamples = 0;
  #bytes = 0;
  #crc = 0;

  constructor(pool: Mp3Pool, lame: Lame, format: MpegFormat) {
    this.#pool = pool;
    this.#lame = lame;
    this.#format = format;
    this.sampleRateHz = format.sampleRateHz;
    this.#samplesPerFrame = frameShape(format).samplesPerFrame;
    this.#scale = 1 / (32_768 * lameGain(format.bitrateKbps));
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
      if (parts.push(this.encode(silence)) > FLUSH_FRAMES_MAX) throw new Error('LAME holds back its input');
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
    // A failed encoder is not given back.
    this.#lame = undefined;
    // The bytes lie in LAME's own memory: the cutter copies them.
    const frames = this.#cutter.push(encode(lame));
    this.#lame = lame;
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

  /** @returns a promise only if all encoders are in use */
  open({ sampleRateHz, bitrateKbps }) {
    const lames = pool;
    if (lames === undefined) throw new Error('load() must resolve before open()');
    const format = nearestMpegFormat(sampleRateHz, bitrateKbps);
    const lame = lames.take(format);
    return lame instanceof Promise
      ? lame.then((made) => new Mp3Encoder(lames, made, format))
      : new Mp3Encoder(lames, lame, format);
  },
};
