/**
 * The process that measures an engine in batches and one segment at a time, in turns: batches on a GPU or on the CPU, single
 * segments on the CPU. A driver may end it.
 */
import { InferenceSession, Tensor } from 'onnxruntime-node';
import { settingsOf } from '../../src/api/speech-settings.js';
import { limits } from '../../src/limits.js';
import { monotonicMs } from '../../src/monotonic.js';
import { Segmenter } from '../../src/text/segments.js';
import { GpuState } from '../../src/threads/gpu.js';
import { unguarded } from '../../src/threads/vitals.js';
import type {
  Engine,
  EngineMeans,
  GpuMeans,
  LoadedVoices,
  SegmentSynthesis,
} from '../../workers/engines/engine.js';
import { elementTypes } from '../../workers/engines/graph/model.js';
import { modelMessage } from '../../workers/engines/graph/write.js';
import { createSessionOf, gpuOptionsOf } from '../../workers/engines/onnx.js';
import { loadPacks, readPacks } from '../../workers/engines/registry.js';
import { cpuTimeMs } from '../rig/process-facts.js';
import { serveLoad, type LoadProcess } from '../rig/load-process.js';
import { median, sumOf } from '../rig/statistics.js';
import { GraphBuilder } from '../voices/fixtures/graph-builder.js';

export interface GpuOrder {
  readonly modelsDir: string;
  readonly cacheDir: string;
  readonly voice: string;
  readonly text: string;
  readonly batchMax: number;
  /** Where batches run. */
  readonly device: 'gpu' | 'cpu';
}

/** The voices of an order: with batches, and as the service has them without a GPU. */
interface Loaded {
  readonly order: GpuOrder;
  readonly inBatches: LoadedVoices;
  readonly oneByOne: LoadedVoices;
  /** On the CPU, its time: other work of the machine changes it little. */
  readonly clock: () => number;
}

let loaded: Loaded | undefined;

/** What is meant for the GPU. */
const createOnCpu: NonNullable<GpuMeans['createSession']> = (source, options) =>
  createSessionOf(source, { ...options, executionProviders: ['cpu'] });

/** @returns how long it took to load the voice for batches, and where each graph runs */
const load = async (order: GpuOrder): Promise<{ loadMs: number; graphs: readonly string[] }> => {
  const { packs } = await readPacks(order);
  const pack = packs.find(({ voices }) => voices.some(({ id }) => id === order.voice))!;
  const log = {
    debug: () => undefined,
    warn: (...line: unknown[]) => void process.stderr.write(`${JSON.stringify(line)}\n`),
  };
  const loadWith = (more: Partial<EngineMeans>) =>
    loadPacks([pack], { provider: 'cpu', native: unguarded, log, bounds: limits, ...more });
  const startedMs = monotonicMs();
  const inBatches = await loadWith({
    provider: 'webgpu',
    gpu: {
      ...{ state: new GpuState(), graphs: 'all', batchMax: order.batchMax },
      ...{ cudaDevice: null, placements: new Map() },
      ...(order.device === 'cpu' && { createSession: createOnCpu }),
    },
  });
  const loadMs = monotonicMs() - startedMs;
  const clock = order.device === 'cpu' ? cpuTimeMs : monotonicMs;
  loaded = { order, inBatches, oneByOne: await loadWith({}), clock };
  return { loadMs, graphs: [...inBatches.graphs!.values()] };
};

/** Steps segments until all are over, those with equal windows together. @returns milliseconds of audio, and until the first */
const speakAll = async (
  open: readonly SegmentSynthesis[],
  batches: Engine['batches'],
  clock: () => number,
): Promise<{ audioMs: number; firstMs: number }> => {
  const startedMs = clock();
  const silent = new Set(open);
  let left = open;
  let [audioMs, firstMs] = [0, 0];
  while (left.length > 0) {
    const [first] = left;
    const batch = left.filter(({ window }) => window === first!.window);
    const steps = batch.map((segment) => () => segment.step());
    const results = await (batches?.together(steps) ?? Promise.allSettled(steps.map((step) => step())));
    const over = new Set<SegmentSynthesis>();
    for (const [i, segment] of batch.entries()) {
      const result = results[i]!;
      if (result.status === 'rejected') throw result.reason;
      const made = result.value;
      if (made === null || made.last) over.add(segment);
      if (made === null || made.pcm.length === 0) continue;
      audioMs += (made.pcm.length * 1_000) / segment.sampleRateHz;
      if (silent.delete(segment) && silent.size === 0) firstMs = clock() - startedMs;
    }
    left = left.filter((segment) => !over.has(segment));
  }
  return { audioMs, firstMs };
};

let seeds = 0;

/** Rounds begin until so many milliseconds have passed: of CPU time, if batches run on the CPU. */
const measure = async ({ durationMs, size }: { readonly durationMs: number; readonly size: number }) => {
  const { clock, inBatches, oneByOne, order } = loaded!;
  const segmenter = new Segmenter(limits, false, 'en');
  const segments = [...segmenter.push(order.text), ...segmenter.end()].filter(({ speak }) => speak);
  const settings = settingsOf({ voiceId: order.voice });
  const ways = ([oneByOne, inBatches] as const).map((voices) => ({
    voices,
    audioMs: [] as number[],
    firstMs: [] as number[],
    passedMs: 0,
  }));
  const begunMs = clock();
  do {
    for (const way of ways) {
      const open = Array.from({ length: size }, (_, place) => {
        const seed = ++seeds;
        return way.voices.open({
          ...segments[place % segments.length]!,
          settings,
          seed,
          utteranceSeed: seed,
        });
      });
      const startedMs = clock();
      // Without batches a thread steps one segment at a time.
      for (const group of way.voices === inBatches ? [open] : open.map((segment) => [segment])) {
        const { audioMs, firstMs } = await speakAll(group, way.voices.batchesOf?.(order.voice), clock);
        way.audioMs.push(audioMs);
        way.firstMs.push(firstMs);
      }
      way.passedMs += clock() - startedMs;
    }
  } while (clock() - begunMs < durationMs);
  const [single, batched] = ways.map(({ audioMs, firstMs, passedMs }) => ({
    /** Seconds of audio a second. */
    throughput: sumOf(audioMs) / passedMs,
    /** Milliseconds until all of a batch have their first audio. */
    firstAudioMs: firstMs.toSorted((a, b) => a - b)[firstMs.length >> 1]!,
  }));
  return { single: single!, batched: batched! };
};
export type Measured = Awaited<ReturnType<typeof measure>>;

/** Medians of runs on the GPU that do little but copy a tensor there and back: of four bytes, and of a MiB. */
const copies = async (): Promise<{ emptyMs: number; mebibyteMs: number }> => {
  const graph = new GraphBuilder(1);
  const x = graph.input('x', elementTypes.float32, ['count']);
  const outputs = [{ name: 'y', type: elementTypes.float32, dims: ['count'] }];
  const message = modelMessage(graph.model(outputs, [graph.op('Neg', [x])], {}));
  const session = await InferenceSession.create(message, gpuOptionsOf('webgpu', null));
  const sizes = [1, 2 ** 18].map((count) => ({
    feeds: { x: new Tensor('float32', new Float32Array(count), [count]) },
    timesMs: [] as number[],
  }));
  // The first runs compile the shader and take memory.
  for (let i = -3; i < 10; i++)
    for (const { feeds, timesMs } of sizes) {
      const startedMs = monotonicMs();
      await session.run(feeds);
      if (i >= 0) timesMs.push(monotonicMs() - startedMs);
    }
  await session.release();
  const [emptyMs, mebibyteMs] = sizes.map(({ timesMs }) => median(timesMs)) as [number, number];
  return { emptyMs, mebibyteMs };
};

const calls = { load, measure, copies };
export type GpuProcess = LoadProcess<typeof calls>;

serveLoad(calls);
