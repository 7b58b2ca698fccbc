/**
 * Protobuf's wire format. A file is read piece by piece: the weights of a model stay in the file, and a model of hundreds
 * of megabytes takes a few megabytes of memory. The libraries for protobuf need the whole message in memory.
 */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';

/** Bytes that are read from a file at a time. */
const pageBytes = 64 * 1024;

/** The bytes are not a message of the expected type. */
export class WireError extends Error {
  override readonly name = 'WireError';
}

/** Bytes that are read where they are needed. */
export interface ByteSource {
  readonly length: number;
  /** The bytes from `from` to `to`, which are within the source and fit into memory. Valid until the next call. */
  peek(from: number, to: number): Buffer;
}

export class FileBytes implements ByteSource {
  readonly length: number;
  readonly #file: number;
  readonly #page = Buffer.allocUnsafe(pageBytes);
  #pageFrom = 0;
  #pageTo = 0;

  constructor(path: string) {
    this.#file = openSync(path, 'r');
    this.length = fstatSync(this.#file).size;
  }

  peek(from: number, to: number): Buffer {
    if (to > this.length) throw new WireError('the file ends early');
    if (to - from > pageBytes) return this.#read(Buffer.allocUnsafe(to - from), from);
    if (from < this.#pageFrom || to > this.#pageTo) {
      const page = this.#read(this.#page.subarray(0, Math.min(pageBytes, this.length - from)), from);
      this.#pageFrom = from;
      this.#pageTo = from + page.length;
    }
    return this.#page.subarray(from - this.#pageFrom, to - this.#pageFrom);
  }

  #read(into: Buffer, from: number): Buffer {
    for (let at = 0; at < into.length;) {
      const bytes = readSync(this.#file, into, at, into.length - at, from + at);
      if (bytes === 0) throw new WireError('the file became shorter');
      at += bytes;
    }
    return into;
  }

  [Symbol.dispose](): void {
    closeSync(this.#file);
  }
}

/** One field of a message. */
export interface Field {
  readonly number: number;
  /** Of a varint: its value as a signed number. Of other fields: 0. */
  readonly value: number;
  /** Where the content is: the bytes of a string, message or packed list; 4 or 8 bytes of a fixed number. */
  readonly from: number;
  readonly to: number;
  /** The content is a varint. */
  readonly isVarint: boolean;
}

const varintBytes = 10;

const readVarint = (source: ByteSource, from: number, end: number): { value: number; to: number } => {
  const bytes = source.peek(from, Math.min(end, from + varintBytes));
  let low = 0;
  let high = 0;
  for (const [i, byte] of bytes.entries()) {
    const bits = byte & 0x7f;
    const shift = 7 * i;
    if (shift < 28) low += bits * 2 ** shift;
    else if (shift === 28) {
      low += (bits & 0xf) * 2 ** 28;
      high += bits >> 4;
    } else high += bits * 2 ** (shift - 32);
    // The tenth byte has one bit: the sign.
    if (byte < 0x80) return { value: ((high % 2 ** 32) | 0) * 2 ** 32 + low, to: from + i + 1 };
  }
  throw new WireError('a number has no end');
};

/** The fields of a message, in order. Contents are not read. */
export function* fieldsOf(source: ByteSource, from = 0, to = source.length): Generator<Field> {
  for (let at = from; at < to;) {
    const tag = readVarint(source, at, to);
    const number = Math.floor(tag.value / 8);
    const wireType = tag.value & 7;
    if (number < 1) throw new WireError(`field ${number} is unknown`);
    let field: Field;
    if (wireType === 0) {
      const { value, to: end } = readVarint(source, tag.to, to);
      field = { number, value, from: tag.to, to: end, isVarint: true };
    } else {
      let begin = tag.to;
      let length = wireType === 5 ? 4 : 8;
      if (wireType === 2) {
        const read = readVarint(source, tag.to, to);
        begin = read.to;
        length = read.value;
      } else if (wireType !== 1 && wireType !== 5) throw new WireError(`wire type ${wireType} is unknown`);
      if (length < 0 || begin + length > to) throw new WireError('a field ends beyond its message');
      field = { number, value: 0, from: begin, to: begin + length, isVarint: false };
    }
    yield field;
    at = field.to;
  }
}

export const copyOf = (source: ByteSource, { from, to }: Pick<Field, 'from' | 'to'>): Buffer =>
  Buffer.from(source.peek(from, to));

export const textOf = (source: ByteSource, { from, to }: Field): string =>
  source.peek(from, to).toString('utf8');

/** The number of a field, or all of a packed list, which may have millions. */
export function* integersOf(source: ByteSource, field: Field): Generator<number> {
  if (field.isVarint) yield field.value;
  else
    for (let at = field.from; at < field.to;) {
      const { value, to } = readVarint(source, at, field.to);
      yield value;
      at = to;
    }
}

export const bufferSource = (bytes: Buffer): ByteSource => ({
  length: bytes.length,
  peek: (from, to) => bytes.subarray(from, to),
});

const varint = (value: number): Buffer => {
  const bytes: number[] = [];
  let rest = BigInt.asUintN(64, BigInt(value));
  for (; rest > 0x7fn; rest >>= 7n) bytes.push(Number(rest & 0x7fn) | 0x80);
  bytes.push(Number(rest));
  return Buffer.from(bytes);
};

/** Writes a message: its fields, one after the other. */
export class MessageWriter {
  readonly #pieces: Buffer[] = [];

  integer(number: number, value: number): this {
    this.#pieces.push(varint(number * 8), varint(value));
    return this;
  }

  integers(number: number, values: readonly number[]): this {
    for (const value of values) this.integer(number, value);
    return this;
  }

  float(number: number, value: number): this {
    const bytes = Buffer.alloc(4);
    bytes.writeFloatLE(value);
    this.#pieces.push(varint(number * 8 + 5), bytes);
    return this;
  }

  bytes(number: number, bytes: Buffer): this {
    this.#pieces.push(varint(number * 8 + 2), varint(bytes.length), bytes);
    return this;
  }

  /** Fields that are in this format already. */
  written(fields: Buffer): this {
    this.#pieces.push(fields);
    return this;
  }

  text(number: number, text: string): this {
    return this.bytes(number, Buffer.from(text, 'utf8'));
  }

  finish(): Buffer {
    return Buffer.concat(this.#pieces);
  }
}
