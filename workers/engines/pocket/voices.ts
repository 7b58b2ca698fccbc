/**
 * Voices of Pocket TTS: what the model hears before it speaks. A prompt is either a list of vectors, or the state of the
 * model after it has read them.
 */
import typia, { type tags } from 'typia';
import { VoicePackError } from '../../../src/threads/voices.js';
import { product } from '../graph/model.js';
import { FileBytes } from '../graph/wire.js';
import { type FloatArray, readNpy } from '../numpy.js';
import { checked, type HeldFile } from '../pack.js';
import { type Corner, type StateSpec, type StateType, stateTypes } from './states.js';

/** Vectors: frames x width. Shared by all threads. */
export interface Embedding {
  readonly kind: 'embedding';
  readonly frames: number;
  readonly values: Float32Array;
}

interface StoredTensor {
  readonly name: string;
  readonly type: string;
  readonly dims: readonly number[];
  /** In the file. */
  readonly from: number;
  readonly to: number;
}

/** A state in a file, which a thread reads when it needs the voice. */
export interface StoredState {
  readonly kind: 'state';
  readonly file: HeldFile;
  readonly tensors: readonly StoredTensor[];
}

export type VoicePrompt = Embedding | StoredState;

/** The most frames of a prompt, which are 80 seconds: longer ones would fill the model's memory. */
const framesMax = 1_000;
const headerBytesMax = 1024 * 1024;
const nameBytes = 32;

const embeddingOf = (frames: number, width: number, valueAt: (place: number) => number): Embedding => {
  const values = new Float32Array(new SharedArrayBuffer(4 * frames * width));
  for (let place = 0; place < values.length; place++) values[place] = valueAt(place);
  return { kind: 'embedding', frames, values };
};

const halfToFloat = (half: number): number => {
  const sign = half & 0x8000 ? -1 : 1;
  const exponent = (half >> 10) & 0x1f;
  const fraction = half & 0x3ff;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 31) return fraction === 0 ? sign * Infinity : Number.NaN;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
};

/** Numbers of 16 bits, as the metadata of a model has them. */
export const halfEmbedding = (bytes: Buffer, width: number): Embedding | null => {
  const frames = bytes.length / 2 / width;
  if (!Number.isInteger(frames) || frames < 1 || frames > framesMax) return null;
  return embeddingOf(frames, width, (place) => halfToFloat(bytes.readUInt16LE(2 * place)));
};

/** A table: count; then, for each, a name of 32 bytes, frames, width, numbers. @throws {VoicePackError} */
export const parseVoiceTable = (path: string, bytes: Buffer, width: number): Map<string, Embedding> => {
  const voices = new Map<string, Embedding>();
  const wrong = (): VoicePackError =>
    new VoicePackError(
      `${path}: not a table of voices of width ${width}, or a part of one: download it again`,
    );
  if (bytes.length < 4) throw wrong();
  let at = 4;
  for (let rest = bytes.readUInt32LE(0); rest > 0; rest--) {
    if (bytes.length < at + nameBytes + 8) throw wrong();
    const name = bytes.toString('utf8', at, at + nameBytes).replace(/\0.*/s, '');
    const frames = bytes.readUInt32LE(at + nameBytes);
    const found = bytes.readUInt32LE(at + nameBytes + 4);
    at += nameBytes + 8;
    if (found !== width || frames < 1 || frames > framesMax || bytes.length < at + 4 * frames * width)
      throw wrong();
    const from = at;
    voices.set(
      name,
      embeddingOf(frames, width, (place) => bytes.readFloatLE(from + 4 * place)),
    );
    at += 4 * frames * width;
  }
  if (at !== bytes.length || voices.size === 0) throw wrong();
  return voices;
};

/** @returns the vectors of a NumPy file; `null` if it is not an array of 32-bit floats of this width */
export const parseNumpy = (bytes: Buffer, width: number): Embedding | null => {
  let array: FloatArray;
  try {
    array = readNpy('', bytes);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return null;
  }
  const frames = array.values.length / width;
  if (array.shape.at(-1) !== width || frames < 1 || frames > framesMax) return null;
  return embeddingOf(frames, width, (place) => array.values[place]!);
};

type Size = number & tags.Type<'uint64'>;
interface Header {
  readonly [name: string]: {
    readonly dtype: string;
    readonly shape: readonly Size[];
    readonly data_offsets: readonly [Size, Size];
  };
}

const validate = typia.createValidate<Header>();

/**
 * A file of Safetensors: a state by names such as `layer/cache`, or one array of vectors.
 *
 * @param bytesMax of the vectors
 * @throws {VoicePackError}
 */
export const parseSafetensors = (held: HeldFile, width: number, bytesMax: number): VoicePrompt => {
  using source = new FileBytes(held.openPath);
  try {
    const length = Number(source.peek(0, 8).readBigUInt64LE());
    if (length > headerBytesMax) throw new RangeError('its header is too long');
    const header = JSON.parse(source.peek(8, 8 + length).toString('utf8')) as Record<string, unknown>;
    delete header['__metadata__'];
    const tensors = Object.entries(checked(held.path, 'header', validate(header))).map(
      ([
        name,
        {
          dtype,
          shape,
          data_offsets: [from, to],
        },
      ]) => {
        const stored = { name, type: dtype, dims: shape, from: 8 + length + from, to: 8 + length + to };
        if (!(to >= from && stored.to <= held.bytes)) throw new RangeError('it is a part of a file');
        return stored;
      },
    );
    const [first] = tensors;
    if (tensors.some(({ name }) => name.includes('/'))) return { kind: 'state', file: held, tensors };
    const frames = product(first?.dims ?? []) / width;
    if (tensors.length !== 1 || first!.type !== 'F32' || first!.dims.at(-1) !== width || frames > framesMax)
      throw new RangeError(`it is not a voice of width ${width} in 32 bits`);
    const bytes = 4 * frames * width;
    if (first!.to - first!.from !== bytes || bytes > bytesMax)
      throw new RangeError(`its vectors have ${bytes} bytes, and its header says other bytes, or too many`);
    const vectors = source.peek(first!.from, first!.to);
    return embeddingOf(frames, width, (place) => vectors.readFloatLE(4 * place));
  } catch (error) {
    if (error instanceof VoicePackError) throw error;
    const reason = error instanceof Error ? error.message : String(error);
    throw new VoicePackError(`${held.path}: not a voice that can be read: ${reason}`);
  }
};

/**
 * A thread reads the state into memory when it needs the voice, and the file may be sparse.
 *
 * @throws {VoicePackError} unless its tensors are those of the model, or a first part of them along one dimension
 */
export const checkState = ({ file, tensors }: StoredState, specs: readonly StateSpec[]): void => {
  for (const { name, type, dims, from, to } of tensors) {
    const spec = specs.find(({ path = '' }) => [path, path.replace(/\/step$/, '/offset')].includes(name));
    if (spec === undefined) continue;
    const { array, stored }: { array: { BYTES_PER_ELEMENT: number }; stored: readonly string[] } =
      stateTypes[spec.type];
    // A size of 0 stands for one that is open: the frames of the prompt.
    const fits =
      dims.length === spec.dims.length
        ? dims.every((size, i) => size <= (spec.dims[i] || framesMax)) &&
          dims.filter((size, i) => size !== spec.dims[i]).length <= 1
        : product(dims) === product(spec.dims);
    if (!fits || !stored.includes(type) || to - from !== array.BYTES_PER_ELEMENT * product(dims))
      throw new VoicePackError(
        `${file.path}: "${name}" has ${to - from} bytes of ${type} [${dims.join(', ')}], the model takes at most ` +
          `${spec.type} [${spec.dims.join(', ')}]: use a voice of this model`,
      );
  }
};

const valuesOf = ({ buffer, byteOffset, length }: Buffer, type: StateType): Corner['values'] =>
  new stateTypes[type].array(buffer.slice(byteOffset, byteOffset + length) as ArrayBuffer);

/** Reads those tensors of a voice's state that the model has too. */
export const readState = (
  { file, tensors }: StoredState,
  specs: readonly StateSpec[],
): Map<string, Corner> => {
  const byName = new Map(tensors.map((tensor) => [tensor.name, tensor]));
  using source = new FileBytes(file.openPath);
  const corners = new Map<string, Corner>();
  for (const { input, path = '', type } of specs) {
    const found = byName.get(path);
    const module = path.replace(/\/[^/]*$/, '');
    if (found !== undefined)
      corners.set(input, {
        dims: found.dims,
        values: valuesOf(source.peek(found.from, found.to), type),
      });
    else if (type === 'int64' && path.endsWith('/step')) {
      // Older files have the number of steps under another name, or as the length of an empty array.
      const offset = byName.get(`${module}/offset`);
      const end = byName.get(`${module}/current_end`)?.dims[0] ?? 0;
      const steps = offset === undefined ? BigInt(end) : source.peek(offset.from, offset.to).readBigInt64LE();
      corners.set(input, { dims: [1], values: BigInt64Array.of(steps) });
    }
  }
  return corners;
};
