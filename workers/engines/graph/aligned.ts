/**
 * onnxruntime writes packed weights directly after the weights themselves, and maps the file. Its kernels read packed weights
 * with vector instructions that end the process (SIGSEGV) unless the address is a multiple of 64 bytes. So the weights move
 * to such addresses.
 */
import { open, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { MessageWriter, bufferSource, fieldsOf, textOf } from './wire.js';
import { WeightsFile } from './write.js';

type Kind = 'model' | 'graph' | 'node' | 'attribute' | 'tensor';

/** Fields that lead to weights, in each message. */
const inner: Readonly<Record<Kind, Readonly<Record<number, Kind>>>> = {
  model: { 7: 'graph' },
  graph: { 1: 'node', 5: 'tensor' },
  node: { 5: 'attribute' },
  attribute: { 6: 'graph', 11: 'graph' },
  tensor: {},
};
/** Of a tensor: where its bytes are. */
const placeField = 13;

/** @returns where these bytes will be */
type Move = (from: number, size: number) => number;

/** A key and its value: `offset`, `length`, or `prepacked_N` with `KERNEL|OFFSET;LENGTH;CHECKSUM|...`. */
const entryOf = (bytes: Buffer): readonly [key: string, value: string] => {
  const source = bufferSource(bytes);
  const [key = '', value = ''] = [...fieldsOf(source)].map((field) => textOf(source, field));
  return [key, value];
};

const movedEntry = (key: string, value: string, size: number, move: Move): string => {
  if (key === 'offset') return String(move(Number(value), size));
  if (!key.startsWith('prepacked')) return value;
  const [kernel, ...packed] = value.split('|');
  const moved = packed.map((place) => {
    const [from, bytes, checksum] = place.split(';');
    return [move(Number(from), Number(bytes)), bytes, checksum].join(';');
  });
  return [kernel, ...moved].join('|');
};

/** The message with other places; the rest stays as it is. */
const moved = (bytes: Buffer, kind: Kind, move: Move): Buffer => {
  const source = bufferSource(bytes);
  const fields = [...fieldsOf(source)];
  const contentOf = ({ from, to }: { from: number; to: number }) => bytes.subarray(from, to);
  const isPlace = ({ number }: { number: number }) => kind === 'tensor' && number === placeField;
  const entries = new Map(fields.filter(isPlace).map((field) => entryOf(contentOf(field))));
  const writer = new MessageWriter();
  let end = 0;
  for (const field of fields) {
    const next = inner[kind][field.number];
    if (next !== undefined) writer.bytes(field.number, moved(contentOf(field), next, move));
    else if (isPlace(field)) {
      const [key, value] = entryOf(contentOf(field));
      const place = movedEntry(key, value, Number(entries.get('length')), move);
      writer.bytes(field.number, new MessageWriter().text(1, key).text(2, place).finish());
    } else writer.written(bytes.subarray(end, field.to));
    end = field.to;
  }
  return writer.finish();
};

/** @param folder of `NAME.onnx`, and of its weights in `NAME.bin`, which is missing if all weights are small */
export const alignWeights = async (folder: string, name: string): Promise<void> => {
  const [modelPath, weightsPath] = [join(folder, `${name}.onnx`), join(folder, `${name}.bin`)];
  const moves: { readonly from: number; readonly size: number; readonly to: number }[] = [];
  const target = await WeightsFile.create(`${weightsPath}.aligned`);
  try {
    const model = moved(await readFile(modelPath), 'model', (from, size) => {
      const to = target.place(size);
      moves.push({ from, size, to });
      return to;
    });
    if (moves.length === 0) {
      await rm(`${weightsPath}.aligned`);
      return;
    }
    const source = await open(weightsPath, 'r');
    try {
      for (const { from, size, to } of moves) await target.copy(source, from, size, to);
    } finally {
      await source.close();
    }
    await writeFile(modelPath, model);
  } finally {
    await target.close();
  }
  await rename(`${weightsPath}.aligned`, weightsPath);
};
