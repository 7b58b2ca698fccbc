import { Worker } from 'node:worker_threads';
import { Tensor } from 'onnxruntime-node';
import t, { type Test } from 'tap';
import { GpuBusyError, GpuState } from '../../../src/threads/gpu.js';
import { unguarded } from '../../../src/threads/vitals.js';
import type { Placement } from '../../../workers/engines/engine.js';
import { type PlacedParts, PlacedSessions, type Run } from '../../../workers/engines/placed.js';
import type { Feeds } from '../../../workers/engines/windows.js';

const feeds = { x: new Tensor('float32', Float32Array.of(1, 2), [2]) };
const result = (...values: number[]) => ({
  y: new Tensor('float32', Float32Array.from(values), [values.length]),
});

/** A graph `y = 2 x`. */
const doubling =
  (error = 0): Run =>
  async ({ x }) =>
    result(...Array.from(x!.data as Float32Array, (value) => 2 * value + error));

const onlyGraph = 'pack/net';

interface Setup extends Partial<PlacedParts> {
  readonly gpu?: Run;
  readonly cpu?: Run;
}

const setUp = ({ gpu = doubling(), cpu = doubling(), ...more }: Setup = {}) => {
  const warnings: unknown[] = [];
  const released: string[] = [];
  const release = (device: string) => () => Promise.resolve(void released.push(device));
  const parts: PlacedParts = {
    ...{ pack: 'pack', state: new GpuState(), native: unguarded, graphs: 'all', batchMax: 1 },
    log: { debug: () => undefined, warn: (...line: unknown[]) => void warnings.push(line) },
    placements: new Map<string, Placement>(),
    isForGpu: () => true,
    createGpu: () => Promise.resolve({ run: gpu, release: release('gpu') }),
    createCpu: () => Promise.resolve({ run: { net: cpu }, release: release('cpu') }),
    ...more,
  };
  const load = async () => {
    const sessions = await PlacedSessions.load(['net'], parts);
    const run = async (own: Feeds) => madeOf((await sessions.runAll('net', [own]))[0]!);
    return { sessions, run };
  };
  return { ...parts, load, warnings, released };
};

const madeOf = <Made>(made: Made | Error): Made => {
  if (made instanceof Error) throw made;
  return made;
};

const valuesOf = async (made: ReturnType<Run>) => Array.from((await made)['y']!.data as Float32Array);

/** The same graph with a batch dimension, for [batch, 2]. It writes down the sizes of its batches. */
const batching =
  (sizes: number[]): Run =>
  async ({ x }) => {
    sizes.push(x!.dims[0]!);
    return {
      y: new Tensor(
        'float32',
        (x!.data as Float32Array).map((value) => 2 * value),
        x!.dims,
      ),
    };
  };

const batchOn = (run: Run): Setup => ({
  batchMax: 16,
  createGpu: () =>
    Promise.resolve({ run, release: () => Promise.resolve(), windows: { shared: [], rates: [] } }),
});

t.test('a batch has the next size, and is cut if there are more', async (t) => {
  const sizes: number[] = [];
  const { load, state } = setUp({ ...batchOn(batching(sizes)), batchMax: 4 });
  const { sessions, run } = await load();
  await run(feeds);
  sessions.settle();
  t.same(sizes.splice(0), [1, 2, 4], 'the load runs a window at each size');
  t.equal(sessions.batchMax, 4);
  const items = [1, 2, 3, 4, 5, 6, 7].map((x) => ({ x: new Tensor('float32', Float32Array.of(x, 0), [2]) }));
  const made = await sessions.runAll('net', items);
  t.same(sizes, [4, 4]);
  t.same(
    made.map((own) => Array.from(madeOf(own)['y']!.data as Float32Array)),
    [1, 2, 3, 4, 5, 6, 7].map((x) => [2 * x, 0]),
  );
  state.lose();
  t.equal(sessions.batchMax, 1, 'the CPU runs one at a time');
  t.same((await sessions.runAll('net', items)).length, 7);
});

t.test('after the load the GPU runs the windows of the load, and the CPU all others', async (t) => {
  const sizes: number[] = [];
  const fit = ({ x }: Feeds) => {
    const count = x!.dims[0]!;
    const length = [2, 4].find((known) => known >= count);
    return length === undefined
      ? null
      : { length, count, from: 0, axes: { x: 0 }, surplus: { y: { axis: 0, count: length - count } } };
  };
  const windows = { shared: [], rates: [], fit };
  const run = batching(sizes);
  const { load, warnings } = setUp({
    batchMax: 2,
    createGpu: () => Promise.resolve({ run, release: () => Promise.resolve(), windows }),
  });
  const { sessions, run: runOne } = await load();
  const of = (...values: number[]) => ({
    x: new Tensor('float32', Float32Array.from(values), [values.length]),
  });
  await runOne(of(1, 2));
  await runOne(of(3));
  t.same(sizes.splice(0), [1, 2], 'a window of the load runs once');
  sessions.settle();
  t.same(
    await valuesOf(runOne(of(5))),
    [10],
    'an item is brought to the window, and its part of the result taken',
  );
  t.same(sizes.splice(0), [1]);
  t.same(await valuesOf(runOne(of(1, 2, 3, 4, 5))), [2, 4, 6, 8, 10]);
  t.same(warnings, [], 'the engine knows that it fits none');
  t.same(await valuesOf(runOne(of(1, 2, 3))), [2, 4, 6]);
  t.same(await valuesOf(runOne(of(1, 2, 3))), [2, 4, 6]);
  t.match(
    warnings,
    [[{ graph: onlyGraph, window: '4' }, /did not run/]],
    'the load should have run it: one warning',
  );
  t.same(sizes, []);
});

t.test('a graph with other results on the GPU stays on the CPU', async (t) => {
  for (const gpu of [doubling(0.1), doubling(NaN)]) {
    const { load, state, placements, warnings, released } = setUp({ gpu });
    const { sessions, run } = await load();
    t.same(await valuesOf(run(feeds)), [2, 4], 'a run of the load has the results of the CPU');
    sessions.settle();
    t.equal(placements.get(onlyGraph)!.device, 'cpu');
    t.match(warnings, [[{ graph: onlyGraph }, /wrong results/]]);
    t.same(released, ['gpu'], 'the GPU keeps nothing for the CPU');
    t.same(await valuesOf(run(feeds)), [2, 4]);
    t.notOk(state.isLost, 'it runs other graphs');
    await load();
    t.same(released, ['gpu'], 'a later load does not try it again');
  }
});

t.test('a graph that draws random numbers may run on the GPU', async (t) => {
  let runs = 0;
  const { load, placements, warnings } = setUp({ cpu: (given) => doubling(++runs)(given) });
  const { sessions, run } = await load();
  t.same(await valuesOf(run(feeds)), [3, 5]);
  sessions.settle();
  t.match(placements.get(onlyGraph), { device: 'gpu' });
  t.same(await valuesOf(run(feeds)), [2, 4]);
  t.same(warnings, []);
});

t.test(
  'the configuration says what runs on the GPU, and a pack that is loaded again runs no windows',
  async (t) => {
    const fails = () => Promise.reject(new Error('must not load'));
    const chosen = setUp({ graphs: [onlyGraph] });
    const { sessions, run } = await chosen.load();
    t.same(await valuesOf(run(feeds)), [2, 4]);
    sessions.settle();
    t.match(chosen.placements.get(onlyGraph), { device: 'gpu' });
    const again = setUp({ placements: chosen.placements, cpu: fails });
    t.same(await valuesOf((await again.load()).run(feeds)), [2, 4]);
    const others = setUp({ graphs: ['pack/other'], createGpu: fails });
    t.same(await valuesOf((await others.load()).run(feeds)), [2, 4]);
    t.match(others.placements.get(onlyGraph), { device: 'cpu' });
  },
);

t.test('if a run on the GPU fails, the CPU runs it again, and everything after it', async (t) => {
  let runs = 0;
  const gpu: Run = (given) => (++runs > 1 ? Promise.reject(new Error('device lost\nat')) : doubling()(given));
  const { load, state, warnings, released } = setUp({ gpu });
  const { sessions, run } = await load();
  const other = await load();
  t.same(await valuesOf(run(feeds)), [2, 4]);
  sessions.settle();
  t.notOk(state.isLost);
  t.same(await valuesOf(run(feeds)), [2, 4], 'the listener misses nothing');
  t.ok(state.isLost);
  t.match(warnings, [[{ graph: onlyGraph, reason: 'device lost' }, /^the GPU failed/]]);
  t.same(await valuesOf(other.run(feeds)), [2, 4], 'another session leaves it too');
  t.same(released, ['gpu', 'gpu']);
  t.same(await valuesOf((await load()).run(feeds)), [2, 4], 'so does a later load');
  t.equal(runs, 2);
});

t.test('a GPU that fails to release a graph too is lost, and no sentence is', async (t) => {
  const fails = () => Promise.reject(new Error('device lost'));
  const { load, state, warnings } = setUp({
    createGpu: () => Promise.resolve({ run: fails, release: fails }),
  });
  const { sessions, run } = await load();
  t.same(await valuesOf(run(feeds)), [2, 4]);
  sessions.settle();
  t.ok(state.isLost);
  t.match(warnings, [
    [{ graph: onlyGraph }, /^the GPU failed/],
    [{ graph: onlyGraph, reason: 'device lost' }, /keeps the memory of a graph/],
  ]);
});

t.test('an input that fails on both devices is no fault of the GPU', async (t) => {
  const fails: Run = () => Promise.reject(new Error('a wrong input'));
  const { load, state } = setUp({ gpu: fails, cpu: fails });
  await t.rejects((await load()).run(feeds), /a wrong input/);
  t.notOk(state.isLost);
});

t.test('an input that fails on both devices ends its own step, and no other of its batch', async (t) => {
  const faulty =
    (run: Run): Run =>
    ({ x }) =>
      (x!.data as Float32Array).includes(7) ? Promise.reject(new Error('a wrong input')) : run({ x: x! });
  const { load, state, placements } = setUp({
    ...batchOn(faulty(batching([]))),
    ...{ cpu: faulty(doubling()), batchMax: 4 },
  });
  const { sessions, run } = await load();
  await run(feeds);
  sessions.settle();
  const items = [1, 7, 3].map((x) => ({ x: new Tensor('float32', Float32Array.of(x, 0), [2]) }));
  const made = await sessions.runAll('net', items);
  t.match(
    made.map((own) => (own instanceof Error ? own.message : Array.from(own['y']!.data as Float32Array))),
    [[2, 0], 'a wrong input', [6, 0]],
  );
  t.notOk(state.isLost);
  t.match(placements.get(onlyGraph), { device: 'gpu' });
});

t.test('a GPU that cannot load a graph is lost, and the CPU speaks', async (t) => {
  const createGpu = () => Promise.reject(new Error('out of memory'));
  const { load, state, warnings } = setUp({ createGpu });
  const { sessions, run } = await load();
  sessions.settle();
  t.same(await valuesOf(run(feeds)), [2, 4]);
  t.ok(state.isLost);
  t.match(warnings, [[{ reason: 'out of memory' }, /^the GPU failed/]]);
});

const nothing = () => Promise.resolve();

/** A thread that uses the GPU. @param code of a module with `state` and `port` */
const startHolder = async (t: Test, state: GpuState, code: string): Promise<Worker> => {
  const program = `
    const { workerData, parentPort: port } = require('node:worker_threads');
    import(workerData.module).then(({ GpuState }) => {
      const state = new GpuState(workerData.buffer);
      ${code}
    });
    port.on('message', () => undefined);`;
  const module = new URL('../../../src/threads/gpu.js', import.meta.url).href;
  const worker = new Worker(program, { eval: true, workerData: { module, buffer: state.buffer } });
  t.teardown(() => worker.terminate());
  await new Promise((resolve) => worker.once('message', resolve));
  return worker;
};

const hangs = "state.hold(() => new Promise(() => port.postMessage('held')));";

t.test('one call of the GPU at a time, and a thread that hangs in one makes it lost', async (t) => {
  const state = new GpuState(undefined, 500);
  await state.hold(async () => {
    await t.rejects(state.hold(nothing), /second call of the GPU/);
  });
  const { threadId } = await startHolder(t, state, hangs);
  await t.rejects(state.hold(nothing, true), GpuBusyError);
  const startMs = performance.now();
  for (let run = 0; run < 20; run++) await t.rejects(state.hold(nothing, true), GpuBusyError);
  t.ok(performance.now() - startMs < 20 * 500, 'the next runs of a step do not wait');
  t.notOk(state.isLost, 'the watchdog decides that');
  t.notOk(state.loseIfHeldBy(threadId + 1));
  t.notOk(state.isLost, 'a thread that hangs elsewhere is no fault of the GPU, which another one uses');
  t.ok(new GpuState(state.buffer).loseIfHeldBy(threadId));
  t.ok(state.isLost);
  await t.rejects(state.hold(nothing), GpuBusyError, 'no load waits for it');
});

t.test('a thread that is ended while it holds the GPU leaves it to the others', async (t) => {
  const state = new GpuState(undefined, 50);
  const worker = await startHolder(t, state, hangs);
  const { threadId } = worker;
  await worker.terminate();
  state.freeFrom(threadId + 1);
  await t.rejects(state.hold(nothing, true), GpuBusyError);
  state.freeFrom(threadId);
  await state.hold(nothing, true);
});

/** Holds the GPU for so long, again and again. */
const turns = (ms: number) => `
  const turn = async () => {
    await state.hold(async () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ${ms}));
    setImmediate(turn);
  };
  turn().then(() => port.postMessage('held'));`;

t.test('a load waits for its turn as long as it takes, beside a thread that speaks', async (t) => {
  const setup = setUp({ state: new GpuState(undefined, 20) });
  await startHolder(t, setup.state, turns(100));
  const { sessions, run } = await setup.load();
  t.same(await valuesOf(run(feeds)), [2, 4]);
  sessions.settle();
  t.match(setup.placements.get(onlyGraph), { device: 'gpu' });
  t.same(setup.warnings, []);
});

t.test('the CPU runs a graph while another thread uses the GPU for too long', async (t) => {
  let runs = 0;
  const gpu: Run = (given) => {
    runs++;
    return doubling()(given);
  };
  const setup = setUp({ gpu, state: new GpuState(undefined, 50) });
  const { sessions, run } = await setup.load();
  await run(feeds);
  sessions.settle();
  const holder = await startHolder(t, setup.state, hangs);
  t.same(await valuesOf(run(feeds)), [2, 4]);
  t.equal(runs, 1);
  t.notOk(setup.state.isLost);
  const { threadId } = holder;
  await holder.terminate();
  setup.state.freeFrom(threadId);
  t.same(await valuesOf(run(feeds)), [2, 4]);
  t.equal(runs, 2, 'then the GPU runs it again');
  t.same(setup.warnings, []);
});
