/** AAC-LC by FFmpeg, at a constant bitrate: ADTS frames (ISO/IEC 13818-7), which need no header before them. */
import type { CodecFormat } from '../../src/api/formats.js';
import { Blocks } from './blocks.js';
import { NOTHING, type Encoder, type EncoderFactory, type Flushed } from './encoder.js';
import { BLOCK_SAMPLES, LibavcodecAac } from './libavcodec.js';

/** By the index in a frame's head. */
const sampleRatesHz = [
  ...[96_000, 88_200, 64_000, 48_000, 44_100, 32_000],
  ...[24_000, 22_050, 16_000, 12_000, 11_025, 8_000],
];

/** Silence before the audio: a packet overlaps the one before it. */
const DELAY_SAMPLES = BLOCK_SAMPLES;
/** A packet comes when the block after it has gone in. */
const LOOKAHEAD_SAMPLES = BLOCK_SAMPLES;

const HEAD_BYTES = 7;

const frameOf = (packet: Uint8Array, sampleRateHz: number): Buffer => {
  const frame = Buffer.alloc(HEAD_BYTES + packet.length);
  // The mark of a frame, and that it has no checksum.
  frame.writeUInt16BE(0xfff1, 0);
  // The profile LC, the rate, and one channel, which is split over two bytes.
  frame[2] = 0x40 | (sampleRatesHz.indexOf(sampleRateHz) << 2);
  // The length has 13 bits. The fullness of the bit reservoir is not said: 11 ones.
  frame.writeUInt32BE(((0x40 << 24) | (frame.length << 13) | (0x7ff << 2)) >>> 0, 3);
  frame.set(packet, HEAD_BYTES);
  return frame;
};

class AacEncoder implements Encoder {
  readonly sampleRateHz: number;
  readonly streamDelaySamples = DELAY_SAMPLES;
  decodableSamples = 0;
  readonly #libavcodec: LibavcodecAac;
  readonly #blocks = new Blocks(BLOCK_SAMPLES);
  #fedSamples = 0;

  constructor(libavcodec: LibavcodecAac, sampleRateHz: number) {
    this.#libavcodec = libavcodec;
    this.sampleRateHz = sampleRateHz;
  }

  encode(samples: Int16Array): Uint8Array {
    const frames: Uint8Array[] = [];
    this.#fedSamples += samples.length;
    for (const block of this.#blocks.push(samples)) {
      const packet = this.#libavcodec.encode(block);
      if (packet.length === 0) continue;
      frames.push(frameOf(packet, this.sampleRateHz));
      this.decodableSamples += BLOCK_SAMPLES;
    }
    return Buffer.concat(frames);
  }

  flush(): Flushed {
    const samples = this.#fedSamples + DELAY_SAMPLES + LOOKAHEAD_SAMPLES;
    const silenceSamples = Math.ceil(samples / BLOCK_SAMPLES) * BLOCK_SAMPLES - this.#fedSamples;
    return { payload: this.encode(new Int16Array(silenceSamples)), silenceSamples };
  }

  finish(): Uint8Array {
    return this.#fedSamples === 0 ? NOTHING : this.flush().payload;
  }

  chunkHeader(): Uint8Array {
    return NOTHING;
  }

  fileHeader(): Uint8Array {
    return NOTHING;
  }

  dispose(): void {
    this.#libavcodec.close();
  }
}

export const aac: EncoderFactory<CodecFormat> = {
  async open({ sampleRateHz, bitrateKbps }) {
    return new AacEncoder(await LibavcodecAac.open(sampleRateHz, bitrateKbps), sampleRateHz);
  },
};
