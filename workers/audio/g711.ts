/**
 * G.711: 8 bits per sample on a logarithmic scale, after the tables of ITU-T Recommendation G.711. A sample lies in the
 * interval between two decision values. A sample equal to a decision value is rounded up, as in the ITU's own software
 * tools (G.191), so that a negative one belongs to the interval nearer to zero.
 */
import { DirectEncoder } from './encoder.js';

/** The only rate of the Recommendation. */
const RATE_HZ = 8_000;

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
    super(RATE_HZ);
  }

  override encode(samples: Int16Array): Uint8Array {
    return companded(samples, muLawTable, 2);
  }
}

export class ALawEncoder extends DirectEncoder {
  constructor() {
    super(RATE_HZ);
  }

  override encode(samples: Int16Array): Uint8Array {
    return companded(samples, aLawTable, 4);
  }
}
