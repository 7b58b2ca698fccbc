import { Worker } from 'node:worker_threads';
import { Tensor } from 'onnxruntime-node';
import t, { type Test } from 'tap';
import { GpuBusyError, GpuLostError, GpuState, type Placement } from '../../../src/threads/gpu.js';
import { unguarded } from '../../../src/threads/vitals.js';
import { type PlacedParts, PlacedSessions, type Run } from '../../../workers/engines/placed.js';
import type { Feeds } from '../../../workers/engines/windows.js';

const feeds = { x: new Tensor('float32', Float32Array.of(1, 2), [2]) };
const result = (...values: number[]) => ({
  y: new Tensor('float32', Float32Array.from(values), [values.length]),
});

let nowMs = 0;

/** A graph `y = 2 x` that takes some time. */
const doubling =
  (ms: number, error = 0): Run =>
  async ({ x }) => {
    nowMs += ms;
    return result(...Array.from(x!.data as Float32Array, (value) => 2 * value + error));
  };

const onlyGraph = 'pack/net';

interface Setup extends Partial<PlacedParts> {
  readonly gpu?: Run;
  readonly cpu?: Run;
}

const setUp = ({ gpu = doubling(1), cpu = doubling(20), ...more }: Setup = {}) => {
  const warnings: unknown[] = [];
  const released: string[] = [];
  const release = (device: string) => () => Promise.resolve(void released.push(device));
  const parts: PlacedParts = {
    ...{
      pack: 'pack',
      state: new GpuState(),
      native: unguarded,
      graphs: 'measured',
      batchMax: 1,
      threads: 1,
    },
    clock: () => nowMs,
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

/** A call of the GPU that ends when the test says so. */
const holdFrom = (state: GpuState) => {
  let end!: () => void;
  const ended = new GpuState(state.buffer).hold(() => new Promise<void>((resolve) => (end = resolve)));
  return {
    end: () => {
      end();
      return ended;
    },
  };
};

const valuesOf = async (made: ReturnType<Run>) => Array.from((await made)['y']!.data as Float32Array);

/** The same graph with a batch dimension, for [batch, 2]: so long for a run, and for each item. */
const batching =
  (runMs: number, itemMs: number, sizes: number[]): Run =>
  async ({ x }) => {
    const [size = 1] = x!.dims;
    sizes.push(size);
    nowMs += runMs + itemMs * size;
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

t.test('each size of a batch runs at load, up to the largest that is worth it', async (t) => {
  for (const [runMs, itemMs, batch, device, runs] of [
    // 10.5 ms alone; 18 ms for 16.
    [10, 0.5, 16, 'gpu', [1, 1, 2, 2, 4, 4, 8, 8, 16, 16]],
    // Twice the items take nearly twice as long.
    [1, 9, 1, 'gpu', [1, 1, 2, 2]],
    // 16 take longer than a new listener should wait.
    [20, 3, 8, 'gpu', [1, 1, 2, 2, 4, 4, 8, 8, 16, 16]],
    [500, 1, 1, 'cpu', [1, 1, 2, 2]],
  ] as const) {
    const sizes: number[] = [];
    const { load, placements } = setUp(batchOn(batching(runMs, itemMs, sizes)));
    const { sessions, run } = await load();
    await run(feeds);
    await sessions.settle();
    t.same(sizes, runs);
    t.match(placements.get(onlyGraph), { device, batch });
    t.equal(sessions.batchMax, batch);
  }
});

t.test('a batch has the next size, and is cut if there are more', async (t) => {
  const sizes: number[] = [];
  const { load, state } = setUp({ ...batchOn(batching(1, 0, sizes)), graphs: 'all', batchMax: 4 });
  const { sessions, run } = await load();
  await run(feeds);
  await sessions.settle();
  t.same(sizes.splice(0), [1, 2, 4], 'chosen graphs are not measured, but run at each size');
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
  const run = batching(1, 0, sizes);
  const { load, warnings } = setUp({
    ...{ graphs: 'all', batchMax: 2 },
    createGpu: () => Promise.resolve({ run, release: () => Promise.resolve(), windows }),
  });
  const { sessions, run: runOne } = await load();
  const of = (...values: number[]) => ({
    x: new Tensor('float32', Float32Array.from(values), [values.length]),
  });
  await runOne(of(1, 2));
  await runOne(of(3));
  t.same(sizes.splice(0), [1, 2], 'a window of the load runs once');
  await sessions.settle();
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

t.test('threads that take turns on the GPU must be slower on the CPU together', async (t) => {
  for (const [threads, device] of [
    [4, 'gpu'],
    [16, 'cpu'],
  ] as const) {
    const { load, placements } = setUp({ gpu: doubling(2), cpu: doubling(20), threads });
    const { sessions, run } = await load();
    await run(feeds);
    await sessions.settle();
    t.match(placements.get(onlyGraph), { device });
  }
});

t.test('a graph runs where it is faster', async (t) => {
  for (const [gpuMs, cpuMs, device] of [
    [1, 20, 'gpu'],
    [20, 1, 'cpu'],
  ] as const) {
    const { load, placements, released } = setUp({ gpu: doubling(gpuMs), cpu: doubling(cpuMs) });
    const { sessions, run } = await load();
    t.same(await valuesOf(run(feeds)), [2, 4], 'a run of the load has its result');
    await sessions.settle();
    t.match(placements.get(onlyGraph), { device });
    t.same(released, device === 'gpu' ? [] : ['gpu'], 'the GPU keeps nothing for the CPU');
    t.same(await valuesOf(run(feeds)), [2, 4]);
    await sessions.release();
    t.same(released.length, 2);
  }
});

t.test('a graph whose results differ on the GPU stays on the CPU', async (t) => {
  const { load, placements, warnings } = setUp({ gpu: doubling(1, 0.1) });
  const { sessions, run } = await load();
  t.same(await valuesOf(run(feeds)), [2, 4]);
  await sessions.settle();
  t.match(placements.get(onlyGraph), { device: 'cpu', difference: Number });
  t.match(warnings, [[{ graph: onlyGraph }, /wrong results/]]);
});

t.test('the configuration and an earlier load decide without a measurement', async (t) => {
  const fails = () => Promise.reject(new Error('must not load'));
  const chosen = setUp({ graphs: [onlyGraph], cpu: fails });
  t.same(await valuesOf((await chosen.load()).run(feeds)), [2, 4]);
  const others = setUp({ graphs: ['pack/other'], createGpu: fails });
  t.same(await valuesOf((await others.load()).run(feeds)), [2, 4]);
  const placements = new Map([
    [onlyGraph, { device: 'gpu', batch: 1, windows: [], gpuMs: 1, itemMs: 1, cpuMs: 9 } as const],
  ]);
  const known = setUp({ placements, cpu: fails });
  t.same(await valuesOf((await known.load()).run(feeds)), [2, 4]);
});

t.test('if a run on the GPU fails, the CPU runs it again, and everything after it', async (t) => {
  let runs = 0;
  const gpu: Run = (given) =>
    ++runs > 1 ? Promise.reject(new Error('device lost\nat')) : doubling(1)(given);
  const setup = setUp({ gpu, graphs: 'all', state: new GpuState(undefined, 50) });
  const { load, state, placements, warnings } = setup;
  const { sessions, run } = await load();
  const other = await load();
  t.same(await valuesOf(run(feeds)), [2, 4]);
  await sessions.settle();
  t.notOk(state.isLost);
  t.same(await valuesOf(run(feeds)), [2, 4], 'the listener misses nothing');
  t.ok(state.isLost);
  t.match(placements.get(onlyGraph), { device: 'cpu' });
  t.match(warnings, [[{ graph: onlyGraph, reason: 'device lost' }, /^the GPU failed/]]);
  t.same(await valuesOf(other.run(feeds)), [2, 4], 'another session leaves it too');
  t.equal(runs, 2);
  state.restore();
  runs = 0;
  t.same(await valuesOf((await load()).run(feeds)), [2, 4]);
  t.equal(runs, 1, 'a later load tries it again');
  runs = 0;
  const idle = await load();
  await idle.run(feeds);
  await idle.sessions.settle();
  state.lose();
  state.restore();
  runs = 0;
  const holder = holdFrom(state);
  t.same(await valuesOf(idle.run(feeds)), [2, 4], 'it does not wait for others that use the GPU');
  await holder.end();
  t.same(await valuesOf(idle.run(feeds)), [2, 4]);
  t.equal(runs, 0, 'what was loaded before a loss does not use the GPU after it');
  t.notOk(state.isLost);
});

t.test('a session from before a loss does not lose the GPU that a reload tries', async (t) => {
  const { load, state, warnings } = setUp({
    graphs: 'all',
    gpu: () => {
      if (!state.isLost) {
        state.lose();
        state.restore();
      }
      return Promise.reject(new Error('device lost'));
    },
  });
  t.same(await valuesOf((await load()).run(feeds)), [2, 4]);
  t.notOk(state.isLost);
  t.same(warnings, []);
});

t.test('a GPU that fails to release a graph too is lost, and no sentence is', async (t) => {
  const fails = () => Promise.reject(new Error('device lost'));
  const kept = [{ graph: onlyGraph, reason: 'device lost' }, /keeps the memory of a graph/];
  const lost = setUp({ graphs: 'all', createGpu: () => Promise.resolve({ run: fails, release: fails }) });
  const { sessions, run } = await lost.load();
  await sessions.settle();
  t.same(await valuesOf(run(feeds)), [2, 4]);
  t.ok(lost.state.isLost);
  t.match(lost.placements.get(onlyGraph), { device: 'cpu' });
  t.match(lost.warnings, [[{ graph: onlyGraph }, /^the GPU failed/], kept]);
  const slow = setUp({ createGpu: () => Promise.resolve({ run: doubling(50), release: fails }) });
  const other = await slow.load();
  await other.run(feeds);
  await other.sessions.settle();
  t.same(await valuesOf(other.run(feeds)), [2, 4], 'a graph that is faster on the CPU');
  t.match(slow.warnings, [kept]);
});

t.test('an input that fails on both devices is no fault of the GPU', async (t) => {
  const fails: Run = () => Promise.reject(new Error('a wrong input'));
  const { load, state } = setUp({ gpu: fails, cpu: fails, graphs: 'all' });
  await t.rejects((await load()).run(feeds), /a wrong input/);
  t.notOk(state.isLost);
});

t.test('an input that fails on both devices ends its own step, and no other of its batch', async (t) => {
  const faulty =
    (run: Run): Run =>
    ({ x }) =>
      (x!.data as Float32Array).includes(7) ? Promise.reject(new Error('a wrong input')) : run({ x: x! });
  const { load, state, placements } = setUp({
    ...batchOn(faulty(batching(1, 0, []))),
    ...{ cpu: faulty(doubling(20)), graphs: 'all', batchMax: 4 },
  });
  const { sessions, run } = await load();
  await run(feeds);
  await sessions.settle();
  const items = [1, 7, 3].map((x) => ({ x: new Tensor('float32', Float32Array.of(x, 0), [2]) }));
  const made = await sessions.runAll('net', items);
  t.match(
    made.map((own) => (own instanceof Error ? own.message : Array.from(own['y']!.data as Float32Array))),
    [[2, 0], 'a wrong input', [6, 0]],
  );
  t.notOk(state.isLost);
  t.match(placements.get(onlyGraph), { device: 'gpu', batch: 4 });
});

t.test('a GPU that cannot load a graph is lost, and the CPU speaks', async (t) => {
  const createGpu = () => Promise.reject(new Error('out of memory'));
  const { load, state, warnings } = setUp({ createGpu });
  const { sessions, run } = await load();
  await sessions.settle();
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
  const state = new GpuState(undefined, 50);
  await state.hold(async () => {
    await t.rejects(state.hold(nothing), /second call of the GPU/);
  });
  const { threadId } = await startHolder(t, state, hangs);
  await t.rejects(state.hold(nothing), GpuBusyError);
  t.notOk(state.isLost, 'the watchdog decides that');
  t.notOk(state.loseIfHeldBy(threadId + 1));
  t.notOk(state.isLost, 'a thread that hangs elsewhere is no fault of the GPU, which another one uses');
  const waiting = state.whenFree(() => state.hold(nothing));
  t.ok(new GpuState(state.buffer).loseIfHeldBy(threadId));
  t.ok(state.isLost);
  await t.rejects(waiting, GpuLostError, 'no call waits for it any longer');
  state.restore();
  t.ok(state.isLost, 'a reload does not wait for the thread that hangs');
});

t.test('a thread that is ended while it holds the GPU leaves it to the others', async (t) => {
  const state = new GpuState(undefined, 50);
  const worker = await startHolder(t, state, hangs);
  const { threadId } = worker;
  await worker.terminate();
  state.freeFrom(threadId + 1);
  await t.rejects(state.hold(nothing), GpuBusyError);
  state.freeFrom(threadId);
  await state.hold(nothing);
  state.lose();
  await state.hold(() => {
    state.restore();
    return nothing();
  });
  t.notOk(state.isLost, 'a reload tries the GPU also while a thread uses it that does not hang');
});

t.test('threads that take turns for longer than a thread waits do not lose the GPU', async (t) => {
  const waitMsMax = 300;
  const state = new GpuState(undefined, waitMsMax);
  const turns = `
    const turn = async () => {
      await state.hold(async () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100)).catch(() => {});
      setImmediate(turn);
    };
    turn().then(() => port.postMessage('held'));`;
  await Promise.all([1, 2, 3, 4].map(() => startHolder(t, state, turns)));
  let waitedMs = 0;
  const startMs = performance.now();
  for (let run = 0; run < 20; run++) {
    const beginMs = performance.now();
    await state
      .hold(() => Promise.resolve(void (waitedMs += performance.now() - beginMs)))
      .catch((error: unknown) => {
        t.type(error, GpuBusyError);
        waitedMs += performance.now() - beginMs;
      });
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  t.notOk(state.isLost);
  const passedMs = performance.now() - startMs;
  t.ok(waitedMs > 50, `it waited ${Math.round(waitedMs)} ms of ${Math.round(passedMs)}`);
  t.ok(waitedMs <= waitMsMax + passedMs / 2 + 50, 'twenty runs wait hardly longer than one may');
});

t.test('the CPU runs a graph while another thread uses the GPU for too long', async (t) => {
  let runs = 0;
  const gpu: Run = (given) => {
    runs++;
    return doubling(1)(given);
  };
  const setup = setUp({ gpu, graphs: 'all', state: new GpuState(undefined, 50) });
  const { sessions, run } = await setup.load();
  await run(feeds);
  await sessions.settle();
  const holder = holdFrom(setup.state);
  t.same(await valuesOf(run(feeds)), [2, 4]);
  t.equal(runs, 1);
  t.notOk(setup.state.isLost);
  t.match(setup.placements.get(onlyGraph), { device: 'gpu' });
  await holder.end();
  t.same(await valuesOf(run(feeds)), [2, 4]);
  t.equal(runs, 2, 'then the GPU runs it again');
  t.same(setup.warnings, []);
});

t.test('a load waits until the GPU is free, and measures it', async (t) => {
  const setup = setUp({ state: new GpuState(undefined, 50) });
  const { sessions, run } = await setup.load();
  const holder = holdFrom(setup.state);
  const made = run(feeds);
  setTimeout(() => void holder.end(), 300);
  t.same(await valuesOf(made), [2, 4]);
  await sessions.settle();
  t.match(setup.placements.get(onlyGraph), { device: 'gpu' });
});
