/** Writes models. Large weights of all models of a folder go to one file, which all threads map. */
import { type FileHandle, open, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { type Attribute, type Model, type Node, sizeOf, type Tensor, type ValueInfo } from './model.js';
import { FileBytes, MessageWriter } from './wire.js';

/** Tensors of fewer bytes stay in the graph: shapes must, and a mapping for each small tensor would take a page. */
export const externalBytesMin = 1024;
/** Weights start at a multiple of this in their file: vector instructions read them fastest, and some read no others. */
const alignment = 64;
const MiB = 1024 * 1024;
const copiedBytes = MiB;

const weightsName = 'weights.bin';

/** A new file of weights. */
export class WeightsFile {
  readonly #file: FileHandle;
  readonly #piece = Buffer.allocUnsafe(copiedBytes);
  /** Its size so far. */
  bytes = 0;

  private constructor(file: FileHandle) {
    this.#file = file;
  }

  static async create(path: string): Promise<WeightsFile> {
    return new WeightsFile(await open(path, 'wx'));
  }

  /** @returns where these weights will be */
  place(size: number): number {
    const offset = Math.ceil(this.bytes / alignment) * alignment;
    this.bytes = offset + size;
    return offset;
  }

  /** Writes weights, from memory or from their file. */
  async add(tensor: Tensor, offset: number): Promise<void> {
    if ('held' in tensor.data) {
      const { held } = tensor.data;
      await this.#file.write(held, 0, held.length, offset);
      return;
    }
    await using source = await open(tensor.data.file, 'r');
    await this.copy(source, tensor.data.offset, sizeOf(tensor), offset);
  }

  /** Copies from another file, in pieces. */
  async copy(source: FileHandle, from: number, size: number, offset: number): Promise<void> {
    for (let at = 0; at < size;) {
      const { bytesRead } = await source.read(this.#piece, 0, Math.min(copiedBytes, size - at), from + at);
      if (bytesRead === 0) throw new RangeError('a file of weights became shorter');
      await this.#file.write(this.#piece, 0, bytesRead, offset + at);
      at += bytesRead;
    }
  }

  sync(): Promise<void> {
    return this.#file.sync();
  }

  close(): Promise<void> {
    return this.#file.close();
  }
}

const attributeTypes = { float: 1, int: 2, string: 3, tensor: 4, floats: 6, ints: 7 } as const;

interface Place {
  readonly location: string;
  readonly offset: number;
}

type PlaceOf = (tensor: Tensor) => Place | undefined;

const pair = (key: string, value: string) => new MessageWriter().text(1, key).text(2, value).finish();

const tensorMessage = (tensor: Tensor, placeOf: PlaceOf): Buffer => {
  const writer = new MessageWriter().integers(1, tensor.dims).integer(2, tensor.type).text(8, tensor.name);
  const place = placeOf(tensor);
  if (place !== undefined)
    return writer
      .bytes(13, pair('location', place.location))
      .bytes(13, pair('offset', String(place.offset)))
      .bytes(13, pair('length', String(sizeOf(tensor))))
      .integer(14, 1)
      .finish();
  if (!('held' in tensor.data)) throw new RangeError(`the weights "${tensor.name}" have no place`);
  return writer.bytes(9, tensor.data.held).finish();
};

const attributeMessage = (name: string, attribute: Attribute): Buffer => {
  if (attribute.type === 'other') return attribute.bytes;
  const writer = new MessageWriter().text(1, name).integer(20, attributeTypes[attribute.type]);
  if (attribute.type === 'float') writer.float(2, attribute.value);
  else if (attribute.type === 'int') writer.integer(3, attribute.value);
  else if (attribute.type === 'string') writer.text(4, attribute.value);
  else if (attribute.type === 'tensor')
    writer.bytes(
      5,
      tensorMessage(attribute.value, () => undefined),
    );
  else if (attribute.type === 'floats') for (const value of attribute.value) writer.float(7, value);
  else writer.integers(8, attribute.value);
  return writer.finish();
};

const nodeMessage = (node: Node): Buffer => {
  const writer = new MessageWriter();
  for (const name of node.inputs) writer.text(1, name);
  for (const name of node.outputs) writer.text(2, name);
  writer.text(3, node.name).text(4, node.op);
  for (const [name, attribute] of node.attributes) writer.bytes(5, attributeMessage(name, attribute));
  if (node.domain !== '') writer.text(7, node.domain);
  return writer.finish();
};

const valueMessage = ({ name, type, dims }: ValueInfo): Buffer => {
  const tensor = new MessageWriter().integer(1, type);
  if (dims.length > 0) {
    const shape = new MessageWriter();
    for (const dim of dims) {
      const size = new MessageWriter();
      if (typeof dim === 'number') size.integer(1, dim);
      else if (dim !== null) size.text(2, dim);
      shape.bytes(1, size.finish());
    }
    tensor.bytes(2, shape.finish());
  }
  const kind = new MessageWriter().bytes(1, tensor.finish()).finish();
  return new MessageWriter().text(1, name).bytes(2, kind).finish();
};

/** The bytes of a model whose weights are all held in memory, or have a place in another file. */
export const modelMessage = (model: Model, placeOf: PlaceOf = () => undefined): Buffer => {
  const graph = new MessageWriter();
  for (const node of model.nodes) graph.bytes(1, nodeMessage(node));
  graph.text(2, 'graph');
  for (const tensor of model.initialisers.values()) graph.bytes(5, tensorMessage(tensor, placeOf));
  for (const value of model.inputs) graph.bytes(11, valueMessage(value));
  for (const value of model.outputs) graph.bytes(12, valueMessage(value));
  for (const value of model.values ?? []) graph.bytes(13, valueMessage(value));
  const writer = new MessageWriter().integer(1, model.irVersion).bytes(7, graph.finish());
  for (const [domain, version] of model.opsets)
    writer.bytes(8, new MessageWriter().text(1, domain).integer(2, version).finish());
  for (const [key, value] of model.metadata) writer.bytes(14, pair(key, value));
  for (const bytes of model.functions) writer.bytes(25, bytes);
  return writer.finish();
};

/** The model with its weights in memory. */
export const withWeights = (model: Model): Model => {
  const files = new Map<string, FileBytes>();
  const held = (tensor: Tensor): Tensor => {
    if ('held' in tensor.data) return tensor;
    const { file, offset, bytes } = tensor.data;
    const source = files.get(file) ?? new FileBytes(file);
    files.set(file, source);
    return { ...tensor, data: { held: Buffer.from(source.peek(offset, offset + bytes)) } };
  };
  try {
    return {
      ...model,
      initialisers: new Map([...model.initialisers].map(([name, tensor]) => [name, held(tensor)])),
    };
  } finally {
    for (const source of files.values()) source[Symbol.dispose]();
  }
};

/** Tensors with the same key, in one model file or in one buffer, are written once. */
const keyOf = ({ data }: Tensor): Buffer | string =>
  'held' in data ? data.held : `${data.file}:${data.offset}:${data.bytes}`;

/** The weights of models may be so many times their sources, and a MiB: they are aligned, and some are added. */
const sourceFactor = 1.25;

/**
 * Writes models to a folder as `NAME.onnx`, and the weights of all of them to one file beside. Weights are copied in
 * pieces.
 *
 * @param sourceBytes of the files that the models were read from
 * @throws if the weights are far more, or if the disk has no room
 */
export const writeModels = async (
  folder: string,
  models: Readonly<Record<string, Model>>,
  sourceBytes = Infinity,
): Promise<void> => {
  const places = new Map<Buffer | string, Place>();
  const placed: { readonly tensor: Tensor; readonly offset: number }[] = [];
  const weights = await WeightsFile.create(join(folder, weightsName));
  try {
    for (const model of Object.values(models))
      for (const tensor of model.initialisers.values()) {
        const size = sizeOf(tensor);
        if (size < externalBytesMin && 'held' in tensor.data) continue;
        if (places.has(keyOf(tensor))) continue;
        const offset = weights.place(size);
        places.set(keyOf(tensor), { location: weightsName, offset });
        placed.push({ tensor, offset });
      }
    if (weights.bytes > sourceFactor * sourceBytes + MiB)
      throw new RangeError(`its weights have ${weights.bytes} bytes, its files only ${sourceBytes}`);
    await checkRoom(folder, weights.bytes);
    for (const { tensor, offset } of placed) await weights.add(tensor, offset);
    await weights.sync();
  } finally {
    await weights.close();
  }
  for (const [name, model] of Object.entries(models)) {
    await using file = await open(join(folder, `${name}.onnx`), 'wx');
    await file.writeFile(modelMessage(model, (tensor) => places.get(keyOf(tensor))));
    await file.sync();
  }
};

/** What must stay free on the disk, which has the store too: as much as spooled results leave (`resultSpoolFreeBytesMin`). */
const bytesFreeMin = 256 * MiB;
const partFreeMin = 1 / 20;

/** @throws unless there is room for so many bytes more */
export const checkRoom = async (folder: string, bytes: number): Promise<void> => {
  const { bavail, blocks, bsize } = await statfs(folder);
  const needed = bytes + Math.min(bytesFreeMin, partFreeMin * blocks * bsize);
  if (bavail * bsize < needed)
    throw new Error(`the disk of ${folder} has less than ${Math.ceil(needed / MiB)} MiB of room: free some`);
};
