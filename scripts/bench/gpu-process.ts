/**
 * Entry of the process that measures an engine in batches and one segment at a time, in turns: batches on a GPU or on the CPU,
 * single segments on the CPU. A driver may end it. Writes a line of JSON for each measurement.
 */
import { limits } from '../../src/limits.js';
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
import { sizesTo } from '../../workers/engines/windows.js';
import { createSessionOf, gpuOptionsOf } from '../../workers/engines/onnx.js';
import { loadPacks, readPacks } from '../../workers/engines/registry.js';
import { monotonicMs } from '../../src/monotonic.js';
import { InferenceSession, Tensor } from 'onnxruntime-node';
import { elementTypes } from '../../workers/engines/graph/model.js';
import { modelMessage } from '../../workers/engines/graph/write.js';
import { cpuTimeMs } from '../rig/cpu-clock.js';
import { median } from '../rig/statistics.js';
import { GraphBuilder } from '../voices/fixtures/graph-builder.js';
import { settingsOf } from '../../src/api/speech-settings.js';

export interface GpuOrder {
  readonly modelsDir: string;
  readonly cacheDir: string;
  readonly voice: string;
  readonly text: string;
  readonly batchMax: number;
  /** Where batches run. */
  readonly device: 'gpu' | 'cpu';
  /** Rounds of a measurement begin until this many milliseconds have passed: of CPU time, if batches run on the CPU. */
  readonly durationMs: number;
  /** Whether it measures copies to the device, too. */
  readonly copies: boolean;
}

export type GpuLine =
  | {
      readonly type: 'copied';
      /** Milliseconds of a run that computes nothing, with four bytes in and out, and with a MiB. */
      readonly emptyMs: number;
      readonly mebibyteMs: number;
    }
  | {
      readonly type: 'loaded';
      readonly loadMs: number;
      /** Where each graph runs. */
      readonly graphs: readonly string[];
    }
  | {
      readonly type: 'measured';
      readonly size: number;
      /** One at a time. */
      readonly single: SpeechFigures;
      readonly batched: SpeechFigures;
    };

export interface SpeechFigures {
  /** Seconds of audio a second. */
  readonly throughput: number;
  /** Milliseconds until all of a batch have their first audio. */
  readonly firstAudioMs: number;
}

const order = JSON.parse(process.argv[2]!) as GpuOrder;
const tell = (line: GpuLine) => process.stdout.write(`${JSON.stringify(line)}\n`);

const segmenter = new Segmenter(limits, false, 'en');
const segments = [...segmenter.push(order.text), ...segmenter.end()].filter(({ speak }) => speak);

/** On the CPU, its time: other work of the machine changes it little. */
const clock = order.device === 'cpu' ? cpuTimeMs : monotonicMs;

let seeds = 0;
const requestOf = (place: number) => {
  const settings = settingsOf({ voiceId: order.voice });
  const seed = ++seeds;
  return { ...segments[place % segments.length]!, settings, seed, utteranceSeed: seed };
};

/** Steps segments until all are over, those with equal windows together. @returns milliseconds of audio, and until the first */
const speakAll = async (
  open: readonly SegmentSynthesis[],
  batches: Engine['batches'],
): Promise<{ audioMs: number; firstMs: number }> => {
  const startedMs = clock();
  const silent = new Set(open);
  let left = open;
  let audioMs = 0;
  let firstMs = 0;
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

/** Sums of rounds. */
class Figures {
  #audioMs = 0;
  #passedMs = 0;
  readonly #firstMs: number[] = [];

  async round(voices: LoadedVoices, size: number, together: boolean): Promise<void> {
    const open = Array.from({ length: size }, (_, place) => voices.open(requestOf(place)));
    const startedMs = clock();
    // On the CPU a thread steps one segment at a time.
    for (const group of together ? [open] : open.map((segment) => [segment])) {
      const { audioMs, firstMs } = await speakAll(group, voices.batchesOf?.(order.voice));
      this.#audioMs += audioMs;
      this.#firstMs.push(firstMs);
    }
    this.#passedMs += clock() - startedMs;
  }

  get made(): SpeechFigures {
    const sorted = this.#firstMs.toSorted((a, b) => a - b);
    return { throughput: this.#audioMs / this.#passedMs, firstAudioMs: sorted[sorted.length >> 1]! };
  }
}

/** Medians of runs on the GPU that do little but copy a tensor there and back. */
const measureCopies = async (): Promise<{ emptyMs: number; mebibyteMs: number }> => {
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

const { packs } = await readPacks(order);
const pack = packs.find(({ voices }) => voices.some(({ id }) => id === order.voice))!;
const quiet = {
  debug: () => undefined,
  warn: (...line: unknown[]) => void process.stderr.write(`${JSON.stringify(line)}\n`),
};
const load = (more: Partial<EngineMeans>) =>
  loadPacks([pack], { provider: 'cpu', native: unguarded, log: quiet, bounds: limits, ...more });

/** What is meant for the GPU. */
const createOnCpu: NonNullable<GpuMeans['createSession']> = (source, options) =>
  createSessionOf(source, { ...options, executionProviders: ['cpu'] });

const startedMs = monotonicMs();
const inBatches = await load({
  provider: 'webgpu',
  gpu: {
    ...{ state: new GpuState(), graphs: 'all', batchMax: order.batchMax },
    ...{ cudaDevice: null, placements: new Map() },
    ...(order.device === 'cpu' && { createSession: createOnCpu }),
  },
});
tell({ type: 'loaded', loadMs: monotonicMs() - startedMs, graphs: [...inBatches.graphs!.values()] });
const oneByOne = await load({});
for (const size of sizesTo(order.batchMax)) {
  const [single, batched] = [new Figures(), new Figures()];
  const begunMs = clock();
  do {
    await single.round(oneByOne, size, false);
    await batched.round(inBatches, size, true);
  } while (clock() - begunMs < order.durationMs);
  tell({ type: 'measured', size, single: single.made, batched: batched.made });
}
if (order.copies) tell({ type: 'copied', ...(await measureCopies()) });
process.stdout.write('', () => process.exit(0));
