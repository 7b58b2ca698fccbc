/** The encodings whose payload is the samples themselves, signed 16-bit little-endian: they differ in headers only. */
import { endianness } from 'node:os';
import type { Encoder } from './encoder.js';
import { UNKNOWN_BYTES, wavHeader } from './wav-header.js';

const NOTHING = new Uint8Array(0);
const littleEndian = endianness() === 'LE';

/** Headerless. */
export class PcmEncoder implements Encoder {
  encode(samples: Int16Array): Uint8Array {
    const bytes = Buffer.from(samples.buffer, samples.byteOffset, samples.byteLength);
    return littleEndian ? bytes : Buffer.from(bytes).swap16();
  }

  finish(): Uint8Array {
    return NOTHING;
  }

  chunkHeader(_payloadBytes: number, _first: boolean): Uint8Array {
    return NOTHING;
  }

  fileHeader(_payloadBytes: number): Uint8Array {
    return NOTHING;
  }

  dispose(): void {
    // Holds nothing.
  }
}

/** One RIFF header a file; a stream's says that its sizes are unknown. */
export class WavEncoder extends PcmEncoder {
  readonly #sampleRateHz: number;

  constructor(sampleRateHz: number) {
    super();
    this.#sampleRateHz = sampleRateHz;
  }

  override chunkHeader(_payloadBytes: number, first: boolean): Uint8Array {
    return first ? wavHeader(this.#sampleRateHz, UNKNOWN_BYTES) : NOTHING;
  }

  override fileHeader(payloadBytes: number): Uint8Array {
    return wavHeader(this.#sampleRateHz, payloadBytes);
  }
}

/** Every chunk of a stream is a file of its own. */
export class Linear16Encoder extends WavEncoder {
  readonly #sampleRateHz: number;

  constructor(sampleRateHz: number) {
    super(sampleRateHz);
    this.#sampleRateHz = sampleRateHz;
  }

  override chunkHeader(payloadBytes: number, _first: boolean): Uint8Array {
    return wavHeader(this.#sampleRateHz, payloadBytes);
  }
}
