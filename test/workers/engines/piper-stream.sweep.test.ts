import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { InferenceSession, Tensor } from 'onnxruntime-node';
import t from 'tap';
import { mediumShape, piperModel, smallShape } from '../../../scripts/voices/fixtures/piper.js';
import { sumOf } from '../../../scripts/rig/statistics.js';
import type { Model } from '../../../workers/engines/graph/model.js';
import { readModel } from '../../../workers/engines/graph/read.js';
import { lastInput } from '../../../workers/engines/graph/streams.js';
import { extract, inner } from '../../../workers/engines/graph/surgery.js';
import { modelMessage, writeModels } from '../../../workers/engines/graph/write.js';
import type { Sessions } from '../../../workers/engines/onnx.js';
import { type PartName, cutPiper } from '../../../workers/engines/piper/cut.js';
import { PiperGraphs } from '../../../workers/engines/piper/graphs.js';
import { nextPiece, runWindows, sizesOf, windowsOf } from '../../../workers/engines/piper/pieces.js';
import { SentenceReading } from '../../../workers/engines/piper/reading.js';
import { gaussian, randomAt } from '../../../workers/engines/random.js';
import { type Feeds, windowOf } from '../../../workers/engines/windows.js';
import { echoModel } from '../../support/piper-echo.js';

const style = { speaker: 1, noiseScale: 0.667, lengthScale: 1.1, durationNoiseScale: 0.8 };
const seed = 5;
const idsOf = (count: number) => Array.from({ length: count }, (_, i) => (i % 2 === 0 ? (i * 37) % 150 : 0));

const noiseOf = (kind: number, count: number): number[] => {
  const random = randomAt(seed, kind, 0);
  return Array.from({ length: count }, () => gaussian(random));
};

/** The threads of a session of several would spin. */
const alone = { intraOpNumThreads: 1, interOpNumThreads: 1 } as const;

interface Case {
  readonly model: Model;
  readonly graphs: PiperGraphs;
  readonly run: Sessions['run'];
  readonly whole: InferenceSession;
  readonly noises: readonly string[];
}

const prepare = async (folder: string, built: Model): Promise<Case> => {
  await mkdir(folder, { recursive: true });
  const path = join(folder, 'voice.onnx');
  await writeFile(path, modelMessage(built));
  const model = readModel({ path, openPath: path });
  const { plan, models } = cutPiper(model);
  await writeModels(folder, models);
  const run: Record<PartName, Sessions['run'][PartName]> = {};
  for (const name of Object.keys(models)) {
    const session = await InferenceSession.create(join(folder, `${name}.onnx`), alone);
    run[name] = (feeds) => session.run(feeds);
  }
  const random = model.nodes.filter(({ op }) => op === 'RandomNormalLike');
  const noises = random.map(({ outputs }) => outputs[0]!);
  const wholePath = join(folder, 'whole');
  await mkdir(wholePath);
  const given = extract(
    { ...model, nodes: model.nodes.filter((node) => !random.includes(node)) },
    { inputs: [...model.inputs, ...noises.map((name) => inner(name))], outputs: model.outputs },
  );
  await writeModels(wholePath, { whole: given });
  const whole = await InferenceSession.create(join(wholePath, 'whole.onnx'), alone);
  return {
    model,
    graphs: new PiperGraphs({ run }, plan),
    run,
    whole,
    noises,
  };
};

const readAll = async (graphs: PiperGraphs, ids: readonly number[], stepWork: number) => {
  const words = ids.map(() => -1);
  const sizes = sizesOf(graphs.plan, stepWork);
  const reading = new SentenceReading(graphs, { ids, words }, style, { seed, place: 0, sizes });
  const pieces: Float32Array[] = [];
  do {
    const { pcm } = await reading.advance();
    if (pcm !== null) pieces.push(pcm);
  } while (!reading.isOver);
  return { pieces, samples: pieces.flatMap((piece) => [...piece]), end: reading.sampleOf(ids.length) };
};

const readWhole = async ({ graphs, whole, noises }: Case, ids: readonly number[], samples: number) => {
  const { channels, generator } = graphs.plan;
  const frames = samples / generator.rate;
  const frameNoise = noiseOf(2, channels * frames);
  const turned = Float32Array.from({ length: channels * frames }, (_, i) => {
    const [channel, frame] = [Math.floor(i / frames), i % frames];
    return frameNoise[frame * channels + channel]!;
  });
  const feeds: Record<string, Tensor> = {
    input: new Tensor('int64', BigInt64Array.from(ids, BigInt), [1, ids.length]),
    input_lengths: new Tensor('int64', BigInt64Array.of(BigInt(ids.length)), [1]),
    scales: new Tensor(
      'float32',
      Float32Array.of(style.noiseScale, style.lengthScale, style.durationNoiseScale),
      [3],
    ),
    sid: new Tensor('int64', BigInt64Array.of(1n), [1]),
  };
  if (noises.length > 1)
    feeds[noises[0]!] = new Tensor('float32', Float32Array.from(noiseOf(1, 2 * ids.length)), [
      1,
      2,
      ids.length,
    ]);
  feeds[noises.at(-1)!] = new Tensor('float32', turned, [1, channels, frames]);
  const names = new Set(whole.inputNames);
  const made = await whole.run(Object.fromEntries(Object.entries(feeds).filter(([name]) => names.has(name))));
  return made['output']!.data as Float32Array;
};

const largestDifference = (a: readonly number[], b: Float32Array) =>
  a.reduce((most, sample, i) => Math.max(most, Math.abs(sample - b[i]!)), 0);

const voices: readonly (readonly [string, Model])[] = [
  ['a voice', piperModel(smallShape)],
  ['a voice of several speakers', piperModel({ ...smallShape, speakers: 4 })],
  ['the echo', echoModel()],
];
/** Ids of a sentence, and frames of a step. */
const readings = [
  [1, 1],
  [1, 1_000],
  [7, 1],
  [7, 20],
  [61, 3],
  [61, 40],
  [61, 1_000],
] as const;
for (const [name, built] of voices)
  t.test(`${name}: the pieces of a sentence are what the whole graph makes of it`, async (t) => {
    const found = await prepare(t.testdir(), built);
    const { flow, generator } = found.graphs.plan;
    for (const [length, framesAStep] of readings) {
      const ids = idsOf(length);
      const { samples, pieces, end } = await readAll(found.graphs, ids, framesAStep * generator.work);
      t.equal(samples.length, end, 'as many samples as the durations say');
      const whole = await readWhole(found, ids, samples.length);
      t.equal(samples.length, whole.length);
      t.ok(largestDifference(samples, whole) < 1e-4, `${length} ids, ${framesAStep} frames a step`);
      if (length === 61 && framesAStep === 3) t.ok(pieces.length > 10, 'in many pieces');
      t.ok(
        whole.some((sample) => Math.abs(sample) > 0.01),
        'that are heard',
      );
    }
    t.ok(flow.lookahead < 40 && generator.lookahead < 14);
  });

t.test('the load runs the windows of sentences of any length', async (t) => {
  const { graphs, run } = await prepare(t.testdir(), piperModel(smallShape));
  const { plan } = graphs;
  for (const framesAStep of [3, 28, 50, 1_000]) {
    const sizes = sizesOf(plan, framesAStep * plan.generator.work);
    const windows = windowsOf(plan, sizes);
    let seen = new Set<string | null>();
    const made = new Map<string, ReturnType<Sessions['run'][PartName]>>();
    /** A window depends on shapes only: so inputs of one shape run once. */
    const runOnce = (part: PartName, feeds: Feeds) => {
      const shapes = Object.entries(feeds).map(([name, { dims, data }]) => [
        name,
        name === lastInput ? String(data) : dims.join(),
      ]);
      const key = `${part} ${JSON.stringify(shapes)}`;
      const known = made.get(key) ?? run[part]!(feeds);
      made.set(key, known);
      return known;
    };
    const watched = Object.fromEntries(
      (['flow', 'generator'] as const).map((part) => [
        part,
        (feeds: Feeds) => {
          seen.add(`${part} ${windowOf(feeds, windows[part])}`);
          return runOnce(part, feeds);
        },
      ]),
    );
    const watching = new PiperGraphs({ run: watched }, plan);
    await runWindows(watching, sizes, 0);
    const known = seen;
    seen = new Set();
    for (const part of ['flow', 'generator'] as const)
      for (let frames = 1; frames < 100; frames++) {
        const stream = watching.open(part, 0);
        for (let [piece, left] = [0, frames]; left > 0; piece++) {
          const count = nextPiece(sizes[part], piece, left);
          left -= count;
          await stream(new Float32Array(plan.channels * count), count, left === 0);
        }
      }
    t.strictSame(
      [...seen].filter((window) => !known.has(window)),
      [],
      `${framesAStep} frames a step`,
    );
    t.ok(seen.size > 4 && ![...seen].some((window) => window?.endsWith('null')));
  }
});

const { plan: medium } = cutPiper(piperModel(mediumShape));

t.test('a piece is made in half of the time that its listener has in hand', (t) => {
  const { flow, generator } = medium;
  const workPerMs = 25_000_000;
  const sizes = sizesOf(medium, 25 * workPerMs);
  const frameMs = (1_000 * generator.rate) / 22_050;
  let inHandMs = (sizes.generator[0]! - generator.lookahead) * frameMs;
  for (const [place, frames] of sizes.generator.entries()) {
    if (place === 0) continue;
    const workMs = (flow.work * sizes.flow[place]! + generator.work * frames) / workPerMs;
    t.ok(workMs < inHandMs / 2, `piece ${place}: ${workMs} ms, ${inHandMs} ms in hand`);
    inHandMs += frames * frameMs - workMs;
  }
  t.ok(sizes.generator.length > 2);
  t.end();
});

t.test('the encoder is cut into parts of equal work', async (t) => {
  const { parts } = medium.encoder;
  const all = sumOf(parts.map(({ work }) => work));
  t.equal(parts.length, 3);
  for (const { work } of parts)
    t.ok(Math.abs(work / all - 1 / 3) < 0.1, `${Math.round((100 * work) / all)} %`);
});
