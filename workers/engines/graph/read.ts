/** Reads a model file, but not its weights. */
import { type Stats, realpathSync, statSync } from 'node:fs';
import { dirname, isAbsolute, join, sep } from 'node:path';
import { VoicePackError } from '../../../src/threads/voices.js';
import {
  type Attribute,
  type ElementType,
  type Model,
  type ModelFile,
  type Node,
  type Tensor,
  type TensorData,
  type ValueInfo,
  elementBytes,
  elementTypes,
  sizeOf,
} from './model.js';
import { GraphError, ordered } from './surgery.js';
import {
  type ByteSource,
  type Field,
  FileBytes,
  WireError,
  bufferSource,
  copyOf,
  fieldsOf,
  integersOf,
  textOf,
} from './wire.js';

/** Tensors up to this size are held in memory: shapes and the like, but not weights. */
const heldBytesMax = 4 * 1024;
/** Bytes of everything but weights: a graph of a thousand nodes has 200 KiB. */
const graphBytesMax = 64 * 1024 * 1024;
/**
 * Fields and numbers of everything but weights: a graph of a thousand nodes has 10,000. Each becomes a value in JavaScript, and
 * V8 ends the whole process, not only the thread, when one list grows far beyond the heap.
 */
const valuesMax = 512 * 1024;
/** Bytes of a name, or of a text of the metadata, which may be a manifest. */
const textBytesMax = 1024 * 1024;

const elementTypeOf = (number: number): ElementType => {
  if (!(number in elementBytes)) throw new WireError(`element type ${number} is not supported`);
  return number as ElementType;
};

/** Bytes of weights in a file beside the model. */
interface ExternalRange {
  readonly name: string;
  readonly path: string;
  readonly inode: number;
  readonly from: number;
  readonly to: number;
}

/** Reads the parts of one model file. The numbers of fields are those of onnx.proto. */
class Reader {
  readonly #source: ByteSource;
  readonly #file: ModelFile;
  readonly #ranges: ExternalRange[] = [];
  #graphBytes = 0;
  #values = 0;

  constructor(source: ByteSource, file: ModelFile) {
    this.#source = source;
    this.#file = file;
  }

  model(): Model {
    let irVersion = 0;
    const opsets = new Map<string, number>();
    const metadata = new Map<string, string>();
    const functions: Buffer[] = [];
    let graph: Field | undefined;
    for (const field of this.#fields(this.#source)) {
      if (field.number === 1) irVersion = field.value;
      else if (field.number === 7) graph = field;
      else if (field.number === 8) {
        const [domain = '', version = 0] = this.#pair(field);
        opsets.set(String(domain), Number(version));
      } else if (field.number === 14) {
        const [key = '', value = ''] = this.#pair(field);
        metadata.set(String(key), String(value));
      } else if (field.number === 25) functions.push(this.#copy(field));
    }
    if (graph === undefined || irVersion < 1) throw new WireError('it has no graph');
    const model = { irVersion, opsets, metadata, functions, ...this.#graph(graph) };
    this.#refuseOverlaps();
    return model;
  }

  #graph(graph: Field): Pick<Model, 'nodes' | 'inputs' | 'outputs' | 'initialisers'> {
    const nodes: Node[] = [];
    const inputs: ValueInfo[] = [];
    const outputs: ValueInfo[] = [];
    const initialisers = new Map<string, Tensor>();
    for (const field of this.#fields(this.#source, graph)) {
      if (field.number === 1) nodes.push(this.#node(field));
      else if (field.number === 5) {
        const tensor = this.#tensor(this.#source, field);
        initialisers.set(tensor.name, tensor);
      } else if (field.number === 11) inputs.push(this.#valueInfo(field));
      else if (field.number === 12) outputs.push(this.#valueInfo(field));
      else if (field.number === 15) throw new WireError('sparse weights are not supported');
    }
    const given = [...inputs.map(({ name }) => name), ...initialisers.keys()];
    return {
      nodes: ordered(nodes, given),
      // Old exporters list weights as inputs, too.
      inputs: inputs.filter(({ name }) => !initialisers.has(name)),
      outputs,
      initialisers,
    };
  }

  #node(field: Field): Node {
    const source = bufferSource(this.#copy(field));
    let name = '';
    let op = '';
    let domain = '';
    const inputs: string[] = [];
    const outputs: string[] = [];
    const attributes = new Map<string, Attribute>();
    for (const part of this.#fields(source)) {
      if (part.number === 1) inputs.push(this.#text(source, part));
      else if (part.number === 2) outputs.push(this.#text(source, part));
      else if (part.number === 3) name = this.#text(source, part);
      else if (part.number === 4) op = this.#text(source, part);
      else if (part.number === 7) domain = this.#text(source, part);
      else if (part.number === 5) attributes.set(...this.#attribute(source, part));
    }
    return { name, op, domain, inputs, outputs, attributes };
  }

  #attribute(source: ByteSource, field: Field): [string, Attribute] {
    let name = '';
    let type = 0;
    let found: Attribute | undefined;
    const ints: number[] = [];
    const floats: number[] = [];
    const uses: string[] = [];
    for (const part of this.#fields(source, field)) {
      if (part.number === 1) name = this.#text(source, part);
      else if (part.number === 20) type = part.value;
      else if (part.number === 2)
        found = { type: 'float', value: source.peek(part.from, part.to).readFloatLE() };
      else if (part.number === 3) found = { type: 'int', value: part.value };
      else if (part.number === 4) found = { type: 'string', value: this.#text(source, part) };
      else if (part.number === 5) found = { type: 'tensor', value: this.#tensor(source, part) };
      else if (part.number === 7)
        for (let at = part.from; at < part.to; at += 4) {
          this.#countValue();
          floats.push(source.peek(at, at + 4).readFloatLE());
        }
      else if (part.number === 8) this.#readIntegers(source, part, ints);
      else if (part.number === 6 || part.number === 11)
        for (const use of this.#usesOf(source, part)) uses.push(use);
    }
    if (type === 6) return [name, { type: 'floats', value: floats }];
    if (type === 7) return [name, { type: 'ints', value: ints }];
    if (found !== undefined && type >= 1 && type <= 4) return [name, found];
    return [name, { type: 'other', bytes: copyOf(source, field), uses }];
  }

  #valueInfo(field: Field): ValueInfo {
    const source = bufferSource(this.#copy(field));
    let name = '';
    let type: ElementType = elementTypes.float32;
    const dims: (number | string | null)[] = [];
    const walk = (part: Field, path: string): void => {
      for (const inner of this.#fields(source, part)) {
        const at = `${path}.${inner.number}`;
        if (at === '2.1.1') type = elementTypeOf(inner.value);
        else if (at === '2.1.2.1') dims.push(this.#dim(source, inner));
        else if (['2.1', '2.1.2'].includes(at)) walk(inner, at);
      }
    };
    for (const part of this.#fields(source)) {
      if (part.number === 1) name = this.#text(source, part);
      else if (part.number === 2) walk(part, '2');
    }
    return { name, type, dims };
  }

  #tensor(source: ByteSource, field: Field): Tensor {
    let name = '';
    let type = 0;
    let raw: Field | undefined;
    let isExternal = false;
    const dims: number[] = [];
    const external = new Map<string, string>();
    for (const part of this.#fields(source, field)) {
      if (part.number === 1) this.#readIntegers(source, part, dims);
      else if (part.number === 2) type = part.value;
      else if (part.number === 8) name = this.#text(source, part);
      else if (part.number === 9) raw = part;
      else if (part.number === 13) {
        const entry = [...this.#fields(source, part)].map((inner) => this.#text(source, inner));
        external.set(entry[0] ?? '', entry[1] ?? '');
      } else if (part.number === 14) isExternal = part.value === 1;
    }
    const tensor = { name, dims, type: elementTypeOf(type) };
    const bytes = sizeOf(tensor);
    if (dims.some((size) => size < 0) || !Number.isSafeInteger(bytes))
      throw new WireError(`"${name}" has an impossible shape`);
    let data: TensorData;
    if (isExternal) data = this.#external(name, external, bytes);
    else if (raw === undefined) data = { held: this.#elements(source, field, tensor, bytes) };
    else if (source === this.#source && raw.to - raw.from > heldBytesMax)
      data = { file: this.#file.openPath, offset: raw.from, bytes: raw.to - raw.from };
    else data = { held: this.#copyOf(source, raw) };
    const found = 'held' in data ? data.held.length : data.bytes;
    if (found !== bytes) throw new WireError(`"${name}" has ${found} bytes, its shape needs ${bytes}`);
    return { ...tensor, data };
  }

  /** The elements of a tensor that has them as numbers. There may be millions, so they never become a list. */
  #elements(source: ByteSource, field: Field, { name, type }: Omit<Tensor, 'data'>, bytes: number): Buffer {
    this.#count({ from: 0, to: bytes });
    const held = Buffer.alloc(bytes);
    const width = elementBytes[type];
    let at = 0;
    const end = (size: number): number => {
      if (at + size > bytes) throw new WireError(`"${name}" has more than the ${bytes} bytes of its shape`);
      return at + size;
    };
    for (const part of fieldsOf(source, field.from, field.to))
      if (part.number === 4 || part.number === 10) {
        const to = end(part.to - part.from);
        source.peek(part.from, part.to).copy(held, at);
        at = to;
      } else if (part.number === 5 || part.number === 7 || part.number === 11)
        for (const number of integersOf(source, part)) {
          const to = end(width);
          if (width === 8) held.writeBigInt64LE(BigInt(number), at);
          else held.writeUIntLE(number < 0 ? number + 2 ** (8 * width) : number, at, width);
          at = to;
        }
    return held.subarray(0, at);
  }

  /** Weights in a file beside the model. */
  #external(name: string, entry: ReadonlyMap<string, string>, bytes: number): TensorData {
    const location = entry.get('location') ?? '';
    const folder = dirname(this.#file.path);
    if (location === '' || isAbsolute(location) || location.split(/[/\\]/).includes('..'))
      throw new WireError(`"${name}" is in "${location}", outside the model's folder`);
    const path = join(folder, location);
    let stats: Stats;
    try {
      if (!realpathSync(path).startsWith(realpathSync(folder) + sep))
        throw new WireError(`"${name}" is in "${location}", outside the model's folder`);
      stats = statSync(path);
    } catch (error) {
      if (error instanceof WireError) throw error;
      throw new WireError(`"${location}", which has its weights, is missing: copy it to the same folder`);
    }
    const offset = Number(entry.get('offset') ?? 0);
    const length = Number(entry.get('length') ?? bytes);
    if (!(offset >= 0 && length >= 0 && offset + length <= stats.size && stats.isFile()))
      throw new WireError(`"${location}", which has its weights, is too short: copy it again`);
    if (length > 0) this.#ranges.push({ name, path, inode: stats.ino, from: offset, to: offset + length });
    return { file: path, offset, bytes: length };
  }

  /** Each range is copied: weights that overlap would be more than their files, as often as there are names. */
  #refuseOverlaps(): void {
    const ranges = this.#ranges.toSorted((a, b) => a.inode - b.inode || a.from - b.from || a.to - b.to);
    for (const [place, { name, path, inode, from, to }] of ranges.entries()) {
      const before = ranges[place - 1];
      if (before?.inode !== inode || from >= before.to) continue;
      if (path !== before.path || from !== before.from || to !== before.to)
        throw new WireError(`"${before.name}" and "${name}" overlap in the file of their weights`);
    }
  }

  /** The two values of a small message: a key and its value, or a domain and its version. */
  #pair(field: Field): (string | number | undefined)[] {
    const source = bufferSource(this.#copy(field));
    const values: (string | number | undefined)[] = [];
    for (const part of this.#fields(source))
      values[part.number - 1] = part.isVarint ? part.value : this.#text(source, part);
    return values;
  }

  #copy(field: Field): Buffer {
    return this.#copyOf(this.#source, field);
  }

  #copyOf(source: ByteSource, field: Field): Buffer {
    this.#count(field);
    return copyOf(source, field);
  }

  /** Counts bytes that stay in memory. */
  #count({ from, to }: Pick<Field, 'from' | 'to'>): void {
    this.#graphBytes += to - from;
    if (this.#graphBytes > graphBytesMax)
      throw new WireError(`more than ${graphBytesMax} bytes of it are not weights as raw data`);
  }

  #countValue(): void {
    this.#values++;
    if (this.#values > valuesMax)
      throw new WireError(`more than ${valuesMax} fields and numbers of it are not weights`);
  }

  *#fields(source: ByteSource, { from, to } = { from: 0, to: source.length }): Generator<Field> {
    for (const field of fieldsOf(source, from, to)) {
      this.#countValue();
      yield field;
    }
  }

  #readIntegers(source: ByteSource, field: Field, into: number[]): void {
    for (const number of integersOf(source, field)) {
      this.#countValue();
      into.push(number);
    }
  }

  #text(source: ByteSource, field: Field): string {
    if (field.to - field.from > textBytesMax)
      throw new WireError(`a text of it has more than ${textBytesMax} bytes`);
    this.#count(field);
    return textOf(source, field);
  }

  #dim(source: ByteSource, dim: Field): number | string | null {
    for (const part of this.#fields(source, dim)) {
      if (part.number === 1) return part.value;
      if (part.number === 2) return this.#text(source, part);
    }
    return null;
  }

  /** Names that a subgraph takes from outside. */
  #usesOf(source: ByteSource, graph: Field): string[] {
    const uses = new Set<string>();
    const own = new Set<string>();
    const addNames = (field: Field, number: number, to: Set<string>): void => {
      for (const part of this.#fields(source, field))
        if (part.number === number) to.add(this.#text(source, part));
    };
    for (const field of this.#fields(source, graph)) {
      // An output can be an outer value, too.
      if (field.number === 12) addNames(field, 1, uses);
      if (field.number === 11) addNames(field, 1, own);
      if (field.number === 5) addNames(field, 8, own);
      if (field.number !== 1) continue;
      for (const part of this.#fields(source, field)) {
        if (part.number === 1) uses.add(this.#text(source, part));
        else if (part.number === 2) own.add(this.#text(source, part));
        else if (part.number === 5)
          for (const inner of this.#fields(source, part))
            if (inner.number === 6 || inner.number === 11)
              for (const name of this.#usesOf(source, inner)) uses.add(name);
      }
    }
    return [...uses].filter((name) => name !== '' && !own.has(name));
  }
}

/**
 * Reads a model, but not its weights.
 * @throws {VoicePackError} if the file is not a whole ONNX model
 */
export const readModel = (file: ModelFile): Model => {
  using source = new FileBytes(file.openPath);
  try {
    return new Reader(source, file).model();
  } catch (error) {
    if (!(error instanceof WireError || error instanceof GraphError || error instanceof RangeError))
      throw error;
    throw new VoicePackError(`${file.path}: not a whole ONNX model (${error.message}): download it again`);
  }
};
