/** Encodings that turn each sample into bytes by itself: pcm, wav and linear16 (signed 16-bit little-endian), and G.711. */
import { endianness } from 'node:os';
import { BaseEncoder, NOTHING } from './encoder.js';

/** They hold nothing back and add no delay. */
abstract class DirectEncoder extends BaseEncoder {
  encode(samples: Int16Array): Uint8Array {
    this.decodableSamples += samples.length;
    return this.bytesOf(samples);
  }

  protected abstract bytesOf(samples: Int16Array): Uint8Array;
}

const littleEndian = endianness() === 'LE';

const WAV_HEADER_BYTES = 44;

/** Sizes in a stream's header, sent before the length is known: readers take them as "until the end". */
const UNKNOWN_BYTES = 0xffff_ffff;

/**
 * The RIFF header of signed 16-bit mono. Source: Multimedia Programming Interface and Data Specifications 1.0.
 *
 * @param dataBytes size of the samples, or `UNKNOWN_BYTES`; a size that does not fit 32 bits becomes unknown
 */
const wavHeader = (sampleRateHz: number, dataBytes: number): Uint8Array => {
  const header = Buffer.alloc(WAV_HEADER_BYTES);
  const known = dataBytes + WAV_HEADER_BYTES - 8 < UNKNOWN_BYTES;
  header.write('RIFF', 0, 'latin1');
  header.writeUInt32LE(known ? dataBytes + WAV_HEADER_BYTES - 8 : UNKNOWN_BYTES, 4);
  header.write('WAVEfmt ', 8, 'latin1');
  header.writeUInt32LE(16, 16);
  header.writeUInt16LE(1, 20);
  header.writeUInt16LE(1, 22);
  header.writeUInt32LE(sampleRateHz, 24);
  header.writeUInt32LE(sampleRateHz * 2, 28);
  header.writeUInt16LE(2, 32);
  header.writeUInt16LE(16, 34);
  header.write('data', 36, 'latin1');
  header.writeUInt32LE(known ? dataBytes : UNKNOWN_BYTES, 40);
  return header;
};

/** Headerless. */
export class PcmEncoder extends DirectEncoder {
  protected override bytesOf(samples: Int16Array): Uint8Array {
    const bytes = Buffer.from(samples.buffer, samples.byteOffset, samples.byteLength);
    return littleEndian ? bytes : Buffer.from(bytes).swap16();
  }
}

/** One RIFF header per file; the header of a stream has unknown sizes. */
export class WavEncoder extends PcmEncoder {
  override chunkHeader(_payloadBytes: number, first: boolean): Uint8Array {
    return first ? wavHeader(this.sampleRateHz, UNKNOWN_BYTES) : NOTHING;
  }

  override fileHeader(payloadBytes: number): Uint8Array {
    return wavHeader(this.sampleRateHz, payloadBytes);
  }
}

/** Every chunk of a stream is a file of its own. */
export class Linear16Encoder extends WavEncoder {
  override chunkHeader(payloadBytes: number, _first: boolean): Uint8Array {
    return wavHeader(this.sampleRateHz, payloadBytes);
  }
}

/**
 * G.711: 8 bits per sample on a logarithmic scale, after the tables of ITU-T Recommendation G.711. A sample lies in the
 * interval between two decision values. A sample equal to a decision value is rounded up, as in the ITU's own software
 * tools (G.191), so that a negative one belongs to the interval nearer to zero. This is its only rate.
 */
const G711_HZ = 8_000;

/** The upper 14 bits of a sample, as an unsigned index, give its byte. */
const muLawTable = Uint8Array.from({ length: 1 << 14 }, (_, index) => {
  const value = (index << 18) >> 18;
  // One's complement of a negative value, then the bias that makes each segment twice as long as the previous one.
  const biased = Math.min((value < 0 ? ~value : value) + 33, 0x1fff);
  const segment = 26 - Math.clz32(biased);
  const code = (segment << 4) | ((biased >> (segment + 1)) & 0x0f);
  return ~(value < 0 ? 0x80 | code : code) & 0xff;
});

/** The upper 12 bits of a sample give its byte: all decision values of the Recommendation's 13 bits are even. */
const aLawTable = Uint8Array.from({ length: 1 << 12 }, (_, index) => {
  const value = (index << 20) >> 20;
  const magnitude = value < 0 ? ~value : value;
  const segment = Math.max(0, 28 - Math.clz32(magnitude));
  const code = segment === 0 ? magnitude : (segment << 4) | ((magnitude >> (segment - 1)) & 0x0f);
  // The sign is 1 for positive values, and every even bit is inverted.
  return (value < 0 ? code : 0x80 | code) ^ 0x55;
});

const companded = (samples: Int16Array, table: Uint8Array, droppedBits: number): Uint8Array => {
  const mask = table.length - 1;
  const bytes = new Uint8Array(samples.length);
  for (let i = 0; i < samples.length; i++) bytes[i] = table[((samples[i] ?? 0) >> droppedBits) & mask] ?? 0;
  return bytes;
};

export class MuLawEncoder extends DirectEncoder {
  constructor() {
    super(G711_HZ);
  }

  protected override bytesOf(samples: Int16Array): Uint8Array {
    return companded(samples, muLawTable, 2);
  }
}

export class ALawEncoder extends DirectEncoder {
  constructor() {
    super(G711_HZ);
  }

  protected override bytesOf(samples: Int16Array): Uint8Array {
    return companded(samples, aLawTable, 4);
  }
}
