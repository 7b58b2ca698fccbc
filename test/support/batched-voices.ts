/** Voices whose graphs run in batches, as on a GPU. Without a GPU, the CPU stands for it. */
import type { InferenceSession } from 'onnxruntime-node';
import { GpuState } from '../../src/threads/gpu.js';
import type { SegmentRequest } from '../../src/threads/messages.js';
import type { NativeGuard } from '../../src/threads/vitals.js';
import type { GpuMeans, LoadedVoices, SegmentSynthesis } from '../../workers/engines/engine.js';
import { createSessionOf } from '../../workers/engines/onnx.js';
import { joinPcm } from './voices.js';

/** Runs what is meant for the GPU on the CPU. */
const onCpu: typeof createSessionOf = (source, options) =>
  createSessionOf(source, { ...options, executionProviders: ['cpu'] });

/** All graphs on the GPU. */
export const gpuMeans = (batchMax: number, more: Partial<GpuMeans> = {}): GpuMeans => ({
  ...{ state: new GpuState(), graphs: 'all', batchMax, cudaDevice: null, placements: new Map() },
  ...more,
});

/** Means for a GPU with a stand-in, and the shapes of its runs: those of the load, and those after it. */
export const watchedMeans = (batchMax: number) => {
  const loaded = new Set<string>();
  const later = new Set<string>();
  const counts = { gpu: 0, all: 0 };
  let graphs = 0;
  let isWatching = false;
  const createSession: NonNullable<GpuMeans['createSession']> = async (source, options) => {
    const session = await onCpu(source, options);
    const graph = graphs++;
    return {
      run: (feeds: InferenceSession.FeedsType) => {
        const shapes = Object.entries(feeds).map(([name, { dims }]) => `${name} ${dims.join('x')}`);
        (isWatching ? later : loaded).add(`${graph}: ${shapes.join(', ')}`);
        counts.gpu++;
        return session.run(feeds);
      },
      release: () => session.release(),
    };
  };
  const native: NativeGuard = (run) => {
    if (isWatching) counts.all++;
    return run();
  };
  const warnings: unknown[] = [];
  const log = { debug: () => undefined, warn: (...line: unknown[]) => void warnings.push(line) };
  const watch = () => {
    isWatching = true;
    counts.gpu = 0;
  };
  const gpu = gpuMeans(batchMax, { createSession });
  return { means: { provider: 'webgpu', gpu, native, log } as const, loaded, later, counts, warnings, watch };
};

/** Speaks segments, of which up to `size` with equal windows run as one. @returns samples and sizes of the batches */
export const speakTogether = async (
  voices: Pick<LoadedVoices, 'open' | 'batchesOf'>,
  requests: readonly SegmentRequest[],
  size: number,
): Promise<{ pcm: Int16Array[]; sizes: number[] }> => {
  const segments = requests.map((request) => voices.open(request));
  const chunks = segments.map((): Int16Array[] => []);
  const batches = voices.batchesOf?.(requests[0]!.settings.voiceId);
  const sizes: number[] = [];
  let left: readonly (readonly [number, SegmentSynthesis])[] = [...segments.entries()];
  while (left.length > 0) {
    const window = left[0]![1].window;
    const batch = left.filter(([, segment]) => segment.window === window).slice(0, size);
    sizes.push(batch.length);
    const steps = batch.map(
      ([, segment]) =>
        () =>
          segment.step(),
    );
    const results = await (batches?.together(steps) ?? Promise.allSettled(steps.map((step) => step())));
    const over = new Set<SegmentSynthesis>();
    for (const [i, [place, segment]] of batch.entries()) {
      const result = results[i]!;
      if (result.status === 'rejected') throw result.reason;
      const made = result.value;
      if (made !== null) chunks[place]!.push(made.pcm);
      if (made === null || made.last) over.add(segment);
    }
    left = left.filter(([, segment]) => !over.has(segment));
  }
  return { pcm: chunks.map(joinPcm), sizes };
};

/** The largest difference of samples; infinite if the lengths differ. */
export const differenceOf = (a: Int16Array, b: Int16Array): number =>
  a.length === b.length
    ? a.reduce((most, sample, i) => Math.max(most, Math.abs(sample - b[i]!)), 0)
    : Infinity;
