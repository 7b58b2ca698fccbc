/**
 * Copies of graphs as onnxruntime runs them on this machine: optimised, with the weights in the order that its kernels
 * want, in files that all threads map. A copy loads in a third of the time, and no session has weights of its own.
 */
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { open, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { cpus } from 'node:os';
import { dirname, join } from 'node:path';
import { env, InferenceSession } from 'onnxruntime-node';
import type { NativeGuard } from '../../src/threads/vitals.js';
import { madeWhole } from './graph/derived.js';
import { checkRoom, externalBytesMin, WeightsFile } from './graph/write.js';
import type { HeldFile } from './pack.js';
import { bufferSource, fieldsOf, MessageWriter, textOf } from './graph/wire.js';

/**
 * onnxruntime writes packed weights directly after the weights themselves, and maps the file. Its kernels read packed weights
 * with vector instructions that end the process (SIGSEGV) unless the address is a multiple of 64 bytes. So the weights move
 * to such addresses.
 */
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
const alignWeights = async (folder: string, name: string): Promise<void> => {
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
    await checkRoom(folder, target.bytes);
    await using source = await open(weightsPath, 'r');
    for (const { from, size, to } of moves) await target.copy(source, from, size, to);
    await writeFile(modelPath, model);
  } finally {
    await target.close();
  }
  await rename(`${weightsPath}.aligned`, weightsPath);
};

type Graphs = Readonly<Record<string, HeldFile>>;

/** Change it when the copies change. */
const version = 2;

/** Everything that the order of the weights depends on. */
const surroundings = (): string => {
  let features = '';
  try {
    features = /^(?:flags|Features)\s*:.*$/m.exec(readFileSync('/proc/cpuinfo', 'utf8'))?.[0] ?? '';
  } catch {
    // Another system: the name of the processor has to do.
  }
  return [version, env.versions.node, process.platform, process.arch, cpus()[0]?.model, features].join('\n');
};

/** Another one on another machine, or with another onnxruntime. */
export const copiesName = `optimised-${createHash('sha256').update(surroundings()).digest('hex').slice(0, 16)}`;

/**
 * The memory that loaded graphs may take, for so many bytes of their files, and so the room for their copies. Weights of 16
 * bits become ones of 32, and kernels pack those; the rest is the library's code and the graphs themselves. A graph that
 * unfolds large constants takes more.
 */
export const loadedBytesMax = (fileBytes: number): number => 4 * fileBytes + 64 * 1024 * 1024;

/** onnxruntime does not wait for the disk. */
const syncFiles = async (folder: string): Promise<void> => {
  for (const name of await readdir(folder)) {
    await using file = await open(join(folder, name), 'r');
    await file.sync();
  }
};

/** @param copiesIn a folder of derived files: the copies are removed together with it */
export const copiesFolder = (copiesIn: string): string => join(copiesIn, copiesName);

/**
 * Makes the copies, unless they exist. Several threads or processes may make them at the same time.
 *
 * @param copiesIn as above
 * @param options of the sessions of the graphs
 * @throws if onnxruntime does not load a graph, if the folder cannot be written, or if the disk has no room
 */
export const optimisedCopies = async (
  graphs: Graphs,
  copiesIn: string,
  options: InferenceSession.SessionOptions,
  native: NativeGuard,
): Promise<Graphs> => {
  const folder = copiesFolder(copiesIn);
  if (!existsSync(folder)) {
    const bytes = Object.values(graphs).reduce((sum, graph) => sum + graph.bytes, 0);
    await checkRoom(copiesIn, loadedBytesMax(bytes));
    await madeWhole(folder, join(dirname(copiesIn), '.new-'), async (unfinished) => {
      for (const [name, { openPath }] of Object.entries(graphs)) {
        const session = await native(() =>
          InferenceSession.create(openPath, {
            ...options,
            optimizedModelFilePath: join(unfinished, `${name}.onnx`),
            extra: {
              session: {
                save_external_prepacked_constant_initializers: '1',
                optimized_model_external_initializers_file_name: `${name}.bin`,
                optimized_model_external_initializers_min_size_in_bytes: String(externalBytesMin),
              },
            },
          }),
        );
        await native(() => session.release());
        await alignWeights(unfinished, name);
      }
      await syncFiles(unfinished);
    });
  }
  return Object.fromEntries(
    Object.entries(graphs).map(([name, file]) => [name, { ...file, openPath: join(folder, `${name}.onnx`) }]),
  );
};
