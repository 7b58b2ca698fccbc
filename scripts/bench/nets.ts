/** What a batch costs on one CPU thread: nets with random weights, in the shapes of voices whose exports run one item. */
import { InferenceSession, Tensor } from 'onnxruntime-node';
import { type Model, elementTypes } from '../../workers/engines/graph/model.js';
import { modelMessage } from '../../workers/engines/graph/write.js';
import { cpuTimeMs } from '../rig/process-facts.js';
import { median } from '../rig/statistics.js';
import { kokoroNet, pocketNet } from '../voices/fixtures/nets.js';
import { row, type Row } from './report.js';

const sizes = [2, 3, 5] as const;
/** Milliseconds of CPU time for each size. */
const durationMs = 5_000;
/** Every value is so much: neither zeros nor numbers so small that they are slow. */
const fill = 0.1;
/** A place in the middle of an answer. */
const pocketPlace = 300n;

interface Net {
  readonly title: string;
  /** For batches of a size. */
  readonly make: (items: number) => Model;
  /** Sizes of dimensions that have a name. */
  readonly dims: (items: number) => Readonly<Record<string, number>>;
}

/** A second of speech. */
const second = { places: 15, frames: 80 } as const;

const nets: readonly Net[] = [
  ...(
    [
      ["Kokoro's recurrent layers and generator, a second of speech", 512],
      ['The same with half as many channels, for KittenTTS', 256],
    ] as const
  ).map(([title, width]): Net => {
    const model = kokoroNet(width);
    return { title, make: () => model, dims: (items) => ({ ...second, items }) };
  }),
  ...(
    [
      ['A step of Pocket TTS without its decoder, in 32 bits', false],
      ['A step of Pocket TTS without its decoder, in 8 bits', true],
    ] as const
  ).map(([title, isInt8]): Net => ({
    title,
    make: (items) => pocketNet(items, isInt8),
    dims: () => ({}),
  })),
];

const feedsOf = ({ inputs }: Model, sizesOf: Readonly<Record<string, number>>): Record<string, Tensor> =>
  Object.fromEntries(
    inputs.map(({ name, type, dims: named }) => {
      const dims = named.map((size) => (typeof size === 'number' ? size : sizesOf[size!]!));
      const count = dims.reduce((product, size) => product * size, 1);
      return [
        name,
        type === elementTypes.int64
          ? new Tensor('int64', new BigInt64Array(count).fill(pocketPlace), dims)
          : new Tensor('float32', new Float32Array(count).fill(fill), dims),
      ];
    }),
  );

const loaded = async ({ make, dims }: Net, items: number) => {
  const model = make(items);
  const session = await InferenceSession.create(modelMessage(model), {
    ...{ executionProviders: ['cpu'], intraOpNumThreads: 1, interOpNumThreads: 1 },
  });
  const feeds = feedsOf(model, dims(items));
  /** @returns milliseconds of CPU time, which depend little on other work of the machine */
  const run = async (): Promise<number> => {
    const startedMs = cpuTimeMs();
    await session.run(feeds);
    return cpuTimeMs() - startedMs;
  };
  // The first run takes memory.
  await run();
  return { run, release: () => session.release() };
};

const measureNet = async (net: Net): Promise<Row> => {
  const single = await loaded(net, 1);
  const figures: string[] = [];
  const all: number[] = [];
  for (const size of sizes) {
    const batch = await loaded(net, size);
    const [singleMs, batchMs]: [number[], number[]] = [[], []];
    const begunMs = cpuTimeMs();
    do {
      singleMs.push(await single.run());
      batchMs.push(await batch.run());
    } while (cpuTimeMs() - begunMs < durationMs);
    await batch.release();
    all.push(...singleMs);
    figures.push(`${(median(batchMs) / median(singleMs)).toFixed(2)} (of ${size})`);
  }
  await single.release();
  return row(
    `${net.title}, on the CPU`,
    `${median(all).toFixed(0)} ms of CPU; a batch takes so many times as long: ${figures.join(', ')}`,
  );
};

export const measureNets = async (): Promise<Row[]> => {
  const rows: Row[] = [];
  for (const net of nets) rows.push(await measureNet(net));
  return rows;
};
