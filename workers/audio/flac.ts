/**
 * FLAC (RFC 9639), mono with 16 bits: fixed predictors and Rice codes, in blocks of one size. A decoder restores the exact
 * samples. Speech takes about 60 % of the bytes of pcm.
 */
import { checksumBy } from './checksum.js';
import { BaseEncoder, Blocks, type Flushed, NOTHING } from './encoder.js';

/** 48 ms at 24 kHz: a client gets no sample before its block is full. */
const BLOCK_SAMPLES = 1_152;
/** The code of this size in a frame's head; another size follows the head. */
const BLOCK_CODE = 0b0011;
const OTHER_SIZE_CODE = 0b0111;
const ORDER_MAX = 4;
/** 2 to the power of this many parts of a block have a Rice parameter each. */
const PARTITION_ORDER = 3;
const RICE_MAX = 14;
const SAMPLE_BITS = 16;
/** Code of 16 bits in a frame's head. */
const SAMPLE_BITS_CODE = 0b100;
const STREAM_INFO_BYTES = 34;

const crc8 = checksumBy(8, 0x07);
const crc16 = checksumBy(16, 0x8005);

/** Bits, the highest first. */
class BitWriter {
  #bytes: Buffer;
  #length = 0;
  /** Bits that fill no byte yet. */
  #held = 0;
  #heldBits = 0;

  constructor(bytesMax: number) {
    this.#bytes = Buffer.allocUnsafe(bytesMax);
  }

  /** @param bits at most 24 */
  put(value: number, bits: number): void {
    this.#held = (this.#held << bits) | (value & ((1 << bits) - 1));
    this.#heldBits += bits;
    while (this.#heldBits >= 8) {
      this.#heldBits -= 8;
      this.#bytes[this.#length++] = this.#held >>> this.#heldBits;
    }
    this.#held &= (1 << this.#heldBits) - 1;
  }

  /** This many zeros, then a one. */
  unary(zeros: number): void {
    for (let left = zeros; ; left -= 16) {
      if (left < 16) {
        this.put(1, left + 1);
        return;
      }
      this.put(0, 16);
    }
  }

  /** The bytes so far; an incomplete one is filled with zeros. */
  get bytes(): Buffer {
    if (this.#heldBits > 0) this.put(0, 8 - this.#heldBits);
    return this.#bytes.subarray(0, this.#length);
  }
}

/** The differences of this order: what is left when a polynomial through the samples before predicts each sample. */
const residualsOf = (samples: Int16Array): readonly Int32Array[] => {
  const orders = [Int32Array.from(samples)];
  for (let order = 1; order <= Math.min(ORDER_MAX, samples.length - 1); order++) {
    const before = orders[order - 1]!;
    // The first ones have no sample before them: samples are written in their place.
    orders.push(before.map((value, i) => (i < order ? 0 : value - before[i - 1]!)));
  }
  return orders;
};

const magnitude = (values: Int32Array): number => {
  let sum = 0;
  for (const value of values) sum += value < 0 ? ~value : value;
  return sum;
};

/** Positive and negative numbers in turn: small ones of either sign become small. */
const folded = (value: number): number => (value << 1) ^ (value >> 31);

interface Part {
  readonly from: number;
  readonly to: number;
  readonly parameter: number;
}

const partOf = (residuals: Int32Array, from: number, to: number): Part & { readonly bits: number } => {
  let sum = 0;
  for (let i = from; i < to; i++) sum += folded(residuals[i]!);
  const count = to - from;
  let parameter = 0;
  while (parameter < RICE_MAX && count * 2 ** (parameter + 1) <= sum) parameter++;
  let bits = PARAMETER_BITS + count * (parameter + 1);
  for (let i = from; i < to; i++) bits += folded(residuals[i]!) >> parameter;
  return { from, to, parameter, bits };
};

/** Kinds of subframes, as their first byte: samples as they are, and a fixed predictor, to which its order is added. */
const VERBATIM = 0b0_000001_0;
const FIXED = 0b0_001000_0;
/** Bits of a Rice parameter. */
const PARAMETER_BITS = 4;
/** Bits of the coding method, which is 0 for parameters of 4 bits, and of the partition order. */
const METHOD_AND_ORDER_BITS = 6;

/** One block as a subframe: predicted, or as it is if that takes fewer bits. */
const putSubframe = (writer: BitWriter, samples: Int16Array): void => {
  const orders = residualsOf(samples);
  const sums = orders.map(magnitude);
  const order = sums.indexOf(Math.min(...sums));
  const residuals = orders[order]!;
  const partitionOrder = samples.length === BLOCK_SAMPLES ? PARTITION_ORDER : 0;
  const partSamples = samples.length >> partitionOrder;
  const parts = Array.from({ length: 1 << partitionOrder }, (_, i) =>
    partOf(residuals, Math.max(order, i * partSamples), (i + 1) * partSamples),
  );
  const bits = parts.reduce((sum, part) => sum + part.bits, order * SAMPLE_BITS);
  if (bits > samples.length * SAMPLE_BITS) {
    writer.put(VERBATIM, 8);
    for (const sample of samples) writer.put(sample, SAMPLE_BITS);
    return;
  }
  writer.put(FIXED | (order << 1), 8);
  for (const sample of samples.subarray(0, order)) writer.put(sample, SAMPLE_BITS);
  writer.put(partitionOrder, METHOD_AND_ORDER_BITS);
  for (const { from, to, parameter } of parts) {
    writer.put(parameter, PARAMETER_BITS);
    for (let i = from; i < to; i++) {
      const value = folded(residuals[i]!);
      writer.unary(value >> parameter);
      writer.put(value, parameter);
    }
  }
};

/** A frame's number, coded like a character in UTF-8. */
const codedNumber = (number: number): readonly number[] => {
  if (number < 0x80) return [number];
  const tail: number[] = [];
  let rest = number;
  // The first byte has one bit less for the number with each further byte.
  while (rest >= 1 << (6 - tail.length)) {
    tail.unshift(0x80 | (rest & 0x3f));
    rest >>>= 6;
  }
  return [((0xff00 >> (tail.length + 1)) & 0xff) | rest, ...tail];
};

const frameOf = (samples: Int16Array, number: number): Buffer => {
  const isWhole = samples.length === BLOCK_SAMPLES;
  const head = [
    0xff,
    0xf8,
    // The rate is that of the stream.
    (isWhole ? BLOCK_CODE : OTHER_SIZE_CODE) << 4,
    SAMPLE_BITS_CODE << 1,
    ...codedNumber(number),
    ...(isWhole ? [] : [(samples.length - 1) >> 8, (samples.length - 1) & 0xff]),
  ];
  const writer = new BitWriter(head.length + 8 + samples.length * 3);
  for (const byte of [...head, crc8(Uint8Array.from(head))]) writer.put(byte, 8);
  putSubframe(writer, samples);
  writer.put(crc16(writer.bytes), 16);
  return writer.bytes;
};

/** @param samples of the stream; 0: not known */
const header = (sampleRateHz: number, samples: number): Buffer => {
  const bytes = Buffer.alloc(8 + STREAM_INFO_BYTES);
  bytes.write('fLaC', 0, 'latin1');
  // The only block of metadata. The checksum of the samples and the sizes of the frames stay unknown.
  bytes.writeUInt32BE(0x8000_0000 + STREAM_INFO_BYTES, 4);
  bytes.writeUInt16BE(BLOCK_SAMPLES, 8);
  bytes.writeUInt16BE(BLOCK_SAMPLES, 10);
  const shape =
    (BigInt(sampleRateHz) << 44n) | (BigInt(SAMPLE_BITS - 1) << 36n) | BigInt.asUintN(36, BigInt(samples));
  bytes.writeBigUInt64BE(shape, 18);
  return bytes;
};

export class FlacEncoder extends BaseEncoder {
  readonly #blocks = new Blocks(BLOCK_SAMPLES);
  #frames = 0;

  encode(samples: Int16Array): Uint8Array {
    const frames: Uint8Array[] = [];
    for (const block of this.#blocks.push(samples)) frames.push(this.#frame(block));
    return Buffer.concat(frames);
  }

  /** Only the last block of a stream may be shorter. */
  override flush(): Flushed {
    const silenceSamples = (BLOCK_SAMPLES - this.#blocks.rest.length) % BLOCK_SAMPLES;
    return { payload: this.encode(new Int16Array(silenceSamples)), silenceSamples };
  }

  override finish(): Uint8Array {
    const { rest } = this.#blocks;
    return rest.length === 0 ? NOTHING : this.#frame(rest);
  }

  override chunkHeader(_payloadBytes: number, first: boolean): Uint8Array {
    return first ? header(this.sampleRateHz, 0) : NOTHING;
  }

  override fileHeader(): Uint8Array {
    return header(this.sampleRateHz, this.decodableSamples);
  }

  #frame(samples: Int16Array): Uint8Array {
    this.decodableSamples += samples.length;
    return frameOf(samples, this.#frames++);
  }
}
