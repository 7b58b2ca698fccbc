/** The nets whose batches the benchmark measures: an item of a batch gives what it gives alone. */
import { InferenceSession, Tensor } from 'onnxruntime-node';
import t from 'tap';
import { seededRandom } from '../../scripts/rig/random.js';
import { kokoroNet, pocketNet } from '../../scripts/voices/fixtures/nets.js';
import { smallShape as echoShape } from '../../scripts/voices/fixtures/pocket-echo.js';
import { type Model, elementTypes } from '../../workers/engines/graph/model.js';
import { modelMessage } from '../../workers/engines/graph/write.js';
import { sizeOf } from '../../workers/engines/pocket/states.js';

const tolerance = 1e-4;
const shape = { ...echoShape, width: echoShape.heads * echoShape.headSize };

/** Values that differ from item to item. */
const feedsOf = ({ inputs }: Model, sizes: Readonly<Record<string, number>> = {}): Record<string, Tensor> => {
  const random = seededRandom(1);
  return Object.fromEntries(
    inputs.map(({ name, type, dims: named }) => {
      const dims = named.map((size) => (typeof size === 'number' ? size : sizes[size!]!));
      const count = sizeOf(dims);
      const tensor =
        type === elementTypes.int64
          ? new Tensor(
              'int64',
              BigInt64Array.from({ length: count }, () => BigInt(Math.floor(100 * random()))),
              dims,
            )
          : new Tensor(
              'float32',
              Float32Array.from({ length: count }, () => 2 * random() - 1),
              dims,
            );
      return [name, tensor];
    }),
  );
};

const run = async (model: Model, feeds: Record<string, Tensor>) => {
  const session = await InferenceSession.create(modelMessage(model), { intraOpNumThreads: 1 });
  const made = await session.run(feeds);
  await session.release();
  return made;
};

/** One item, of an axis of values. */
const itemOf = ({ type, data, dims }: Tensor, axis: number, item: number): Tensor => {
  const inner = sizeOf(dims.slice(axis + 1));
  const outer = inner * dims[axis]!;
  const own = (data as Float32Array).filter((_, i) => Math.floor((i % outer) / inner) === item);
  return new Tensor(type, own, dims.with(axis, 1));
};

const differenceOf = (a: Tensor, b: Tensor): number =>
  sizeOf(a.dims) === sizeOf(b.dims)
    ? Math.max(...Array.from(a.data as Float32Array, (value, i) => Math.abs(value - Number(b.data[i]))))
    : Infinity;

t.test('Pocket TTS: each item has its own state and place', async (t) => {
  const batch = pocketNet(3, false, shape);
  const feeds = feedsOf(batch);
  const made = await run(batch, feeds);
  const [first, second] = [0, 1].map((item) => itemOf(made['flow']!, 0, item));
  t.ok(differenceOf(first!, second!) > 100 * tolerance, 'items differ');
  const single = pocketNet(1, false, shape);
  for (const item of [0, 1, 2]) {
    const own = Object.entries(feeds).flatMap(([name, tensor]): [string, Tensor][] => {
      if (name === 'latents') return [[name, itemOf(tensor, 0, item)]];
      return name.endsWith(`_${item}`) ? [[name.replace(/_\d+$/, '_0'), tensor]] : [];
    });
    const alone = await run(single, Object.fromEntries(own));
    const off = differenceOf(alone['flow']!, itemOf(made['flow']!, 0, item));
    t.ok(off < tolerance, `item ${item}: ${off}`);
    const caches = Array.from({ length: shape.layers }, (_, layer) =>
      differenceOf(alone[`next_${layer}`]!, made[`next_${3 * layer + item}`]!),
    );
    t.ok(Math.max(...caches) < tolerance, `its states: ${caches.join(', ')}`);
  }
});

t.test('Kokoro: each item has its own sound', async (t) => {
  const model = kokoroNet(16);
  const sizes = { places: 4, frames: 6 };
  const feeds = feedsOf(model, { ...sizes, items: 2 });
  const made = await run(model, feeds);
  for (const item of [0, 1]) {
    const alone = await run(model, {
      places: itemOf(feeds['places']!, 1, item),
      frames: itemOf(feeds['frames']!, 0, item),
    });
    for (const [name, axis] of [
      ['read', 1],
      ['made', 0],
    ] as const) {
      const off = differenceOf(alone[name]!, itemOf(made[name]!, axis, item));
      t.ok(off < tolerance, `${name} of item ${item}: ${off}`);
    }
  }
});
