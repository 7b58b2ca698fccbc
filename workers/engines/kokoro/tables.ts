/**
 * Voice tables: a row of 256 numbers (a style) for each length of text. They are raw floats, one file for each voice or all
 * in one, an archive of NumPy, or JSON. The content decides, not the name of the file.
 */
import { VoicePackError } from '../../../src/threads/voices.js';
import { firstLine } from '../entries.js';
import type { PackFolder } from '../pack.js';
import { type FloatArray, floatsOf, isZip, readNpz } from '../numpy.js';

/** Numbers of a style. */
export const styleSize = 256;
/** Of a file, and of all tables of a pack: the largest file seen, with 103 voices, has 53 MB; as JSON, a voice has 3 MB. */
const tablesBytesMax = 256 * 1024 * 1024;
const styleBytes = styleSize * Float32Array.BYTES_PER_ELEMENT;

/** Styles by the name of their voice. */
export type Tables = ReadonlyMap<string, Float32Array>;

/** What is known of a file of several tables without names in it. */
export interface RawNames {
  readonly names: readonly string[];
  /** Rows of each. */
  readonly rows: number;
}

const isTable = (name: string): boolean =>
  /^voices\/[^/]+\.bin$/i.test(name) || /^voices[^/]*\.(?:bin|npz|json)$/i.test(name);
const isTorch = (name: string): boolean => /^(?:voices\/)?[^/]+\.pt$/i.test(name);

/** The files of voices in a pack, also those that cannot be read. */
export const tableFiles = (
  files: readonly string[],
): { readonly read: string[]; readonly torch: string[] } => ({
  read: files.filter(isTable),
  torch: files.filter(isTorch),
});

const baseName = (file: string): string => file.replace(/^.*\//, '').replace(/\.[^.]*$/, '');

const ofArray = (name: string, { shape, values }: FloatArray): Float32Array => {
  if (shape.at(-1) !== styleSize || values.length === 0)
    throw new RangeError(
      `"${name}" has the shape ${shape.join(' x ')}: rows of ${styleSize} numbers are needed`,
    );
  return values;
};

/** Bounds of a file in JSON. Real ones have 128 numbers for a list; lists and names take much more memory than their text. */
const numbersMax = 16 * 1024 * 1024;
const numbersOfListMin = 32;
const namesMax = 10_000;

const [quote, comma, list, object] = Buffer.from('",[{');

/** `JSON.parse` does not end at the bound of the heap, so what it would make is counted before. */
const refuseOtherJson = (bytes: Buffer): void => {
  let [numbers, lists, quotes] = [0, 0, 0];
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at];
    if (byte === comma) numbers++;
    else if (byte === list || byte === object) lists++;
    else if (byte === quote) quotes++;
  }
  if (numbers > numbersMax || quotes > 2 * namesMax || lists > namesMax + numbers / numbersOfListMin)
    throw new RangeError(`it has other things than tables of rows of ${styleSize} numbers, or too many`);
};

const ofJson = (bytes: Buffer): Map<string, Float32Array> => {
  refuseOtherJson(bytes);
  const parsed = JSON.parse(bytes.toString('utf8')) as unknown;
  const tables = new Map<string, Float32Array>();
  for (const [name, table] of Object.entries(parsed as Record<string, unknown>)) {
    const numbers: unknown[] = Array.isArray(table) ? table.flat(2) : [];
    if (
      numbers.length === 0 ||
      numbers.length % styleSize !== 0 ||
      numbers.some((value) => typeof value !== 'number')
    )
      throw new RangeError(`"${name}" is not a table of rows of ${styleSize} numbers`);
    tables.set(name, Float32Array.from(numbers as number[]));
  }
  return tables;
};

const ofRaw = (file: string, bytes: Buffer, raw: RawNames | null): Map<string, Float32Array> => {
  if (bytes.length === 0 || bytes.length % styleBytes !== 0)
    throw new RangeError(`${bytes.length} bytes are not rows of ${styleSize} floats: download it again`);
  const values = floatsOf(bytes);
  if (file.includes('/')) return new Map([[baseName(file), values]]);
  if (raw === null)
    throw new RangeError(
      'all its voices are in one file, and the model does not name them: use voices/NAME.bin files',
    );
  const size = raw.rows * styleSize;
  if (values.length !== size * raw.names.length)
    throw new RangeError(
      `it has ${values.length / styleSize} rows, but the model names ${raw.names.length} voices of ${raw.rows}: ` +
        'model and voices are of different releases',
    );
  return new Map(raw.names.map((name, place) => [name, values.slice(place * size, (place + 1) * size)]));
};

const tablesIn = (
  file: string,
  bytes: Buffer,
  raw: RawNames | null,
  bytesMax: number,
): Map<string, Float32Array> => {
  if (isZip(bytes)) {
    const arrays = readNpz(bytes, bytesMax);
    return new Map([...arrays].map(([name, array]) => [name, ofArray(name, array)]));
  }
  if (/^\s*\{/.test(bytes.toString('latin1', 0, 16))) return ofJson(bytes);
  return ofRaw(file, bytes, raw);
};

/**
 * Reads all voices of a pack.
 * @param raw names of tables without names, as the model has them
 * @throws {VoicePackError} in one line that names the file and the remedy
 */
export const readTables = async (folder: PackFolder, raw: RawNames | null): Promise<Tables> => {
  const { read, torch } = tableFiles(folder.files);
  const [first] = torch;
  if (read.length === 0 && first !== undefined)
    throw new VoicePackError(
      `${folder.pathOf(first)}: a voice for PyTorch cannot be read: download voices/${baseName(first)}.bin or ` +
        'voices-v1.0.bin of an ONNX release',
    );
  const tables = new Map<string, Float32Array>();
  let rest = tablesBytesMax;
  for (const file of read) {
    const bytes = await folder.bytes(file, tablesBytesMax);
    try {
      for (const [name, table] of tablesIn(file, bytes, raw, rest)) {
        rest -= table.byteLength;
        if (rest < 0) throw new RangeError(`the voices have more than ${tablesBytesMax} bytes together`);
        if (table.some((value) => !Number.isFinite(value)))
          throw new RangeError(`"${name}" has values that are not numbers`);
        tables.set(name, table);
      }
    } catch (error) {
      throw new VoicePackError(`${folder.pathOf(file)}: ${firstLine(error)}`);
    }
  }
  return tables;
};

/** The weighted mean of tables. */
export const blend = (
  parts: readonly { readonly table: Float32Array; readonly weight: number }[],
): Float32Array => {
  const total = parts.reduce((sum, { weight }) => sum + weight, 0);
  const mean = new Float32Array(parts[0]!.table.length);
  for (const { table, weight } of parts)
    for (let i = 0; i < mean.length; i++) mean[i]! += (table[i]! * weight) / total;
  return mean;
};
