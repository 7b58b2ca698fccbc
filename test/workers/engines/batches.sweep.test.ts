/** Batches: several segments in one run of a graph. The CPU stands for the GPU. */
import { join } from 'node:path';
import { Tensor } from 'onnxruntime-node';
import t, { type Test } from 'tap';
import { piperConfig, piperModel, smallShape, writePiper } from '../../../scripts/voices/fixtures/piper.js';
import { GraphBuilder } from '../../../scripts/voices/fixtures/graph-builder.js';
import { limits } from '../../../src/limits.js';
import { GpuState } from '../../../src/threads/gpu.js';
import { unguarded } from '../../../src/threads/vitals.js';
import { batched } from '../../../workers/engines/graph/batched.js';
import { elementTypes } from '../../../workers/engines/graph/model.js';
import { GraphError } from '../../../workers/engines/graph/surgery.js';
import { PlacedSessions, type Run } from '../../../workers/engines/placed.js';
import type { Feeds, Made } from '../../../workers/engines/windows.js';
import { differenceOf, speakTogether, watchedMeans } from '../../support/batched-voices.js';
import { loadFrom, loadVoices, modelsDir, requestOf, speak } from '../../support/voices.js';

const floats = (values: readonly number[], dims = [values.length]) =>
  new Tensor('float32', Float32Array.from(values), dims) as Tensor;
const first = (made: Made) => (made['y']!.data as Float32Array)[0]!;

const names = ['alone', 'early', 'late'];

/** Its graphs make y = x on the GPU, and write down the runs there: the graph, and the x of each item. @param faulty an x */
const scripted = async (faulty?: number) => {
  const runs: [string, number[]][] = [];
  const echo: Run = async ({ x }) => {
    if ((x!.data as Float32Array).includes(faulty!)) throw new Error('a fault');
    return { y: x! };
  };
  const release = () => Promise.resolve();
  const log = { debug: () => undefined, warn: (...line: unknown[]) => t.fail(JSON.stringify(line)) };
  const known = { device: 'gpu', windows: new Set(['1 0', '2 0', '1 1']) } as const;
  const batches = await PlacedSessions.load(names, {
    ...{ pack: 'pack', state: new GpuState(), native: unguarded, log, graphs: 'all', batchMax: 4 },
    placements: new Map(names.map((name) => [`pack/${name}`, known])),
    isForGpu: () => true,
    createGpu: async (name) => {
      const run: Run = ({ x }) => {
        const values = x!.data as Float32Array;
        const [size] = name === 'alone' ? [1] : x!.dims;
        const width = values.length / size!;
        runs.push([name, Array.from({ length: size! }, (_, item) => values[item * width]!)]);
        return echo({ x: x! });
      };
      return { run, release, ...(name !== 'alone' && { windows: { shared: ['edge'], rates: [] } }) };
    },
    createCpu: async () => ({ run: Object.fromEntries(names.map((name) => [name, echo])), release }),
  });
  return { runs, batches };
};

const feeds = (value: number, length = 1, edge = 0): Feeds => ({
  x: floats([value, ...Array<number>(length - 1).fill(0)]),
  edge: floats([edge]),
});

t.test('runs with equal windows become one, the earlier graph first', async (t) => {
  const { runs, batches } = await scripted();
  const step =
    (value: number, graphs: readonly string[], length = 1) =>
    async () => {
      for (const graph of graphs) t.equal(first(await batches.run[graph]!(feeds(value, length))), value);
      return value;
    };
  const results = await batches.together([
    step(1, ['early', 'early', 'late']),
    step(2, ['late']),
    step(3, ['early', 'late'], 2),
    step(4, ['alone', 'late']),
    step(5, ['alone', 'early', 'late']),
  ]);
  t.same(
    results.map((result) => result.status === 'fulfilled' && result.value),
    [1, 2, 3, 4, 5],
  );
  t.same(runs, [
    ...[4, 5].map((value) => ['alone', [value]]),
    ...[
      ['early', [1, 5]],
      ['early', [3]],
      ['early', [1]],
    ],
    ...[
      ['late', [2, 4, 5, 1]],
      ['late', [3]],
    ],
  ]);
  t.equal(first(await batches.run['late']!(feeds(7))), 7, 'a step alone runs at once');
});

t.test('windows with other edges run apart, and an error ends its step only', async (t) => {
  const { runs, batches } = await scripted(2);
  const results = await batches.together(
    [feeds(1), feeds(2), feeds(3, 1, 1)].map((own) => () => batches.run['late']!(own)),
  );
  t.same(runs, [
    ['late', [1, 2]],
    ['late', [3]],
  ]);
  t.same(
    results.map(({ status }) => status),
    ['fulfilled', 'rejected', 'fulfilled'],
  );
  await t.rejects(batches.run['late']!(feeds(2)), /a fault/);
  const [one, two] = await Promise.allSettled([batches.together([]), batches.together([])]);
  t.same([one.status, two.status], ['fulfilled', 'rejected'], 'two batches at once are a mistake');
});

/** Units of 16 bits. */
const tolerance = 1;
const texts = [
  'Yes, of course.',
  'When the evening came we were all sitting near the window, and the rain began to fall.',
  'It was late, so nobody spoke for a long time, until the old clock on the wall struck twelve.',
  'No.',
  'Four of them came back in the morning, as they had said they would.',
];

/** No run after the load has a shape that the load did not run: for a new one, a GPU may compile shaders. */
const checkWindows = (t: Test, { loaded, later, counts, warnings }: ReturnType<typeof watchedMeans>) => {
  t.comment(`${loaded.size} shapes at the load, ${later.size} of them in ${counts.gpu} runs later`);
  t.same(
    [...later].filter((shape) => !loaded.has(shape)),
    [],
  );
  t.ok(later.size > 0);
  t.same(warnings, []);
};

t.test('our voice sounds the same at every size of a batch', async (t) => {
  const watched = watchedMeans(4);
  const voices = await loadFrom(modelsDir, watched.means);
  t.match(Object.fromEntries(voices.graphs!), {
    'syrinx-en/encoder': 'GPU',
    'syrinx-en/frames': 'GPU',
    'syrinx-en/decoder': 'GPU',
  });
  watched.watch();
  const speakers = voices.voices.map(({ id }) => id);
  const requests = texts.map((text, i) => requestOf(text, { seed: i, voiceId: speakers[i % 3]! }));
  const cpu = await loadVoices();
  const alone: Int16Array[] = [];
  for (const [i, text] of texts.entries())
    alone.push((await speak(cpu, text, { seed: i, voiceId: speakers[i % 3]! })).pcm);
  for (const size of [1, 3]) {
    const { pcm, sizes } = await speakTogether(voices, requests, size);
    t.equal(Math.max(...sizes), size);
    const worst = Math.max(...pcm.map((own, i) => differenceOf(own, alone[i]!)));
    t.ok(worst <= tolerance, `batches of ${size}: the largest difference is ${worst} of 32,768`);
  }
  // What a text before cuts off, a clause that goes on, and other numbers of frames for a phone.
  const others = [0.5, 0.8, 1.4, 2].flatMap((speed, seed) => [
    requestOf('kitchen and talked about the journey ', {
      before: 'we sat down in the ',
      after: 'until it was dark',
      speed,
      seed,
    }),
    requestOf(texts[seed]!, { before: 'Yes, I know, ', speed, seed }),
  ]);
  await speakTogether(voices, others, 4);
  checkWindows(t, watched);
  t.equal(watched.counts.gpu, watched.counts.all, 'nothing runs on the CPU');
});

t.test('a Piper voice with two speakers sounds the same in batches', async (t) => {
  const folder = t.testdir();
  await writePiper(join(folder, 'echo'), 'echo', piperModel({ ...smallShape, speakers: 2 }), piperConfig(2));
  const watched = watchedMeans(4);
  // Pieces as short as those of a larger voice.
  const bounds = { ...limits, stepComputeMsTarget: 0.4 };
  const voices = await loadFrom(folder, { ...watched.means, bounds });
  t.match(Object.fromEntries(voices.graphs!), {
    'echo/encoder_0': 'CPU',
    'echo/flow': 'GPU',
    'echo/generator': 'GPU',
  });
  watched.watch();
  const cpu = await loadFrom(folder, { bounds });
  const voiceIds = voices.voices.map(({ id }) => id);
  t.equal(voiceIds.length, 2);
  const parts = texts.map((text, i) => ({ text, seed: i, voiceId: voiceIds[i % 2]! }));
  const { pcm, sizes } = await speakTogether(
    voices,
    parts.map(({ text, ...more }) => requestOf(text, more)),
    4,
  );
  t.equal(Math.max(...sizes), 4);
  for (const [i, { text, ...more }] of parts.entries()) {
    const worst = differenceOf(pcm[i]!, (await speak(cpu, text, more)).pcm);
    t.ok(worst <= tolerance, `the largest difference is ${worst} of 32,768`);
  }
  checkWindows(t, watched);
});

t.test('a graph whose shapes depend on its items makes no batches', (t) => {
  const graph = new GraphBuilder(1);
  const ids = graph.input('ids', elementTypes.int64, [1]);
  const range = graph.op('Range', [
    graph.ints([0], []),
    graph.op('Squeeze', [ids, graph.ints([0])]),
    graph.ints([1], []),
  ]);
  const model = graph.model([{ name: 'y', type: elementTypes.int64, dims: ['n'] }], [range], {});
  t.throws(() => batched(model, []), GraphError);
  const piper = piperModel(smallShape);
  t.throws(() => batched(piper, []), GraphError, 'a whole Piper voice: lengths are made within');
  t.end();
});
