/** Arrays of floats in the files of NumPy: `.npy`, and `.npz`, a zip file with a `.npy` file for each array. */
import { inflateRawSync } from 'node:zlib';
import { product } from './graph/model.js';

export interface FloatArray {
  readonly shape: readonly number[];
  readonly values: Float32Array;
}

const localHeader = 0x0403_4b50;
const directoryHeader = 0x0201_4b50;
const directoryEnd = 0x0605_4b50;
/** The end of the directory, and the longest comment after it. */
const endBytes = 22;
const longestCommentBytes = 65_535;
/** Compression methods of zip. */
const stored = 0;
const deflated = 8;

const npyMagic = '\x93NUMPY';
/** NumPy itself reads 10,000 characters. */
const headerBytesMax = 64 * 1024;

export const isZip = (bytes: Buffer): boolean =>
  bytes.length >= endBytes && bytes.readUInt32LE(0) === localHeader;

const directoryOf = (bytes: Buffer): { entries: number; at: number } => {
  const first = Math.max(0, bytes.length - endBytes - longestCommentBytes);
  for (let at = bytes.length - endBytes; at >= first; at--)
    if (bytes.readUInt32LE(at) === directoryEnd)
      return { entries: bytes.readUInt16LE(at + 10), at: bytes.readUInt32LE(at + 16) };
  throw new RangeError('the archive has no directory, so a part is missing: download it again');
};

/** @returns `null` if there are more bytes */
const inflate = (packed: Buffer, bytesMax: number): Buffer | null => {
  try {
    return inflateRawSync(packed, { maxOutputLength: Math.max(1, bytesMax) });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') return null;
    throw error;
  }
};

/** @param bytesMax of all arrays together, unpacked */
function* filesOf(bytes: Buffer, bytesMax: number): Generator<readonly [name: string, content: Buffer]> {
  const directory = directoryOf(bytes);
  let { at } = directory;
  let rest = bytesMax;
  // Entries can have the same bytes.
  let packedRest = bytes.length;
  for (let entry = 0; entry < directory.entries; entry++) {
    if (bytes.readUInt32LE(at) !== directoryHeader)
      throw new RangeError('the directory of the archive is damaged');
    const method = bytes.readUInt16LE(at + 10);
    const packedBytes = bytes.readUInt32LE(at + 20);
    const nameBytes = bytes.readUInt16LE(at + 28);
    const name = bytes.toString('utf8', at + 46, at + 46 + nameBytes);
    const local = bytes.readUInt32LE(at + 42);
    const from = local + 30 + bytes.readUInt16LE(local + 26) + bytes.readUInt16LE(local + 28);
    packedRest -= packedBytes;
    if (from + packedBytes > bytes.length || packedRest < 0)
      throw new RangeError(`"${name}" goes beyond the end of the archive, or into another file of it`);
    const packed = bytes.subarray(from, from + packedBytes);
    if (method !== stored && method !== deflated)
      throw new RangeError(`"${name}" is packed in an unknown way`);
    const content = method === stored ? packed : inflate(packed, rest);
    rest -= content?.length ?? Infinity;
    if (content === null || rest < 0)
      throw new RangeError(`its arrays have more than ${bytesMax} bytes together`);
    yield [name, content];
    at += 46 + nameBytes + bytes.readUInt16LE(at + 30) + bytes.readUInt16LE(at + 32);
  }
}

/** Reads a `.npy` file of 32-bit floats. @param name for messages @throws {RangeError} if it is not such a file */
export const readNpy = (name: string, bytes: Buffer): FloatArray => {
  if (bytes.toString('latin1', 0, npyMagic.length) !== npyMagic)
    throw new RangeError(`"${name}" is not a NumPy array`);
  const isOld = bytes[6] === 1;
  const headerBytes = isOld ? bytes.readUInt16LE(8) : bytes.readUInt32LE(8);
  const from = (isOld ? 10 : 12) + headerBytes;
  if (headerBytes > headerBytesMax)
    throw new RangeError(`"${name}" has a header of ${headerBytes} bytes: download it again`);
  const header = bytes.toString('latin1', isOld ? 10 : 12, from);
  const type = /'descr': '([^']*)'/.exec(header)?.[1];
  const shape = /'shape': \(([\d, ]*)\)/.exec(header)?.[1];
  if (type !== '<f4' || shape === undefined || /'fortran_order': True/.test(header))
    throw new RangeError(`"${name}" is not an array of 32-bit floats by rows`);
  const sizes = shape
    .split(',')
    .filter((size) => size.trim() !== '')
    .map(Number);
  if (bytes.length - from !== 4 * product(sizes))
    throw new RangeError(`"${name}" does not have the size that its header says`);
  return { shape: sizes, values: floatsOf(bytes.subarray(from)) };
};

/** Copies little-endian floats, which may be at any place of a buffer. */
export const floatsOf = (bytes: Buffer): Float32Array => {
  const values = new Float32Array(bytes.length / 4);
  Buffer.from(values.buffer).set(bytes);
  return values;
};

/** @param bytesMax of all arrays together, unpacked @throws {RangeError} if it is not a whole archive of float arrays */
export const readNpz = (bytes: Buffer, bytesMax: number): Map<string, FloatArray> => {
  const arrays = new Map<string, FloatArray>();
  for (const [name, content] of filesOf(bytes, bytesMax))
    if (name.endsWith('.npy')) arrays.set(name.slice(0, -'.npy'.length), readNpy(name, content));
  return arrays;
};
