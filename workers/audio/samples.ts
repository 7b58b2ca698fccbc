/** Encodings whose payload is the samples, signed 16-bit little-endian. They differ only in headers. */
import { endianness } from 'node:os';
import { DirectEncoder, NOTHING } from './encoder.js';

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
  override encode(samples: Int16Array): Uint8Array {
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
