/** The encodings whose payload is the samples themselves, signed 16-bit little-endian: they differ in headers only. */
import { endianness } from 'node:os';
import { DirectEncoder, NOTHING } from './direct.js';
import { UNKNOWN_BYTES, wavHeader } from './wav-header.js';

const littleEndian = endianness() === 'LE';

/** Headerless. */
export class PcmEncoder extends DirectEncoder {
  override encode(samples: Int16Array): Uint8Array {
    const bytes = Buffer.from(samples.buffer, samples.byteOffset, samples.byteLength);
    return littleEndian ? bytes : Buffer.from(bytes).swap16();
  }
}

/** One RIFF header a file; a stream's says that its sizes are unknown. */
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
