/** Whether the voices of a reload fit beside the current ones: the plan fitted the pools to the voices of the start. */
import type { Bounds } from './limits.js';
import {
  MachineError,
  checkGpu,
  sizeOf,
  threadsWith,
  type Plan,
  type PlanConfig,
  type PlannedPack,
  type Sizes,
} from './plan.js';
import { generationBytes, worstCaseOf, type Threads } from './worst-case.js';

const MiB = 1024 * 1024;

const sizeIn = ({ packsLoadedMax, synthesisThreads }: Plan, packs: readonly PlannedPack[]): Sizes =>
  sizeOf(packs, packsLoadedMax, synthesisThreads);

const threadsAt = (
  { gpu, hasConsole, synthesisThreads }: Plan,
  config: PlanConfig,
  sizes: Sizes & Pick<Threads, 'nextModelBytes'>,
): Threads =>
  threadsWith(config, { ...sizes, synthesisThreads, console: hasConsole, gpuBatch: gpu.batchMax });

/** Bounds for the reading of the next voices: its heap has the room in which they are loaded, and what the plan left free. */
export const readingBounds = (plan: Plan, config: PlanConfig, current: readonly PlannedPack[]): Bounds => {
  const { bounds, memoryMaxBytes } = plan;
  const threads = threadsAt(plan, config, sizeIn(plan, current));
  const bytes = memoryMaxBytes - worstCaseOf(bounds, threads).memoryBytes + generationBytes(threads);
  return { ...bounds, voiceReadHeapMiBMax: Math.min(bounds.voiceReadHeapMiBMax, Math.floor(bytes / MiB)) };
};

/**
 * Checks that the next voices can load beside the current ones: the plan fitted the pools to the voices of the start.
 *
 * @throws {MachineError} if that could take more memory than the service may use
 */
export const checkReload = (
  plan: Plan,
  config: PlanConfig,
  current: readonly PlannedPack[],
  next: readonly PlannedPack[],
): void => {
  const { bounds, gpu, memoryMaxBytes } = plan;
  const [now, then] = [sizeIn(plan, current), sizeIn(plan, next)];
  const threads = threadsAt(plan, config, {
    modelBytes: now.modelBytes,
    nextModelBytes: then.modelBytes,
    // Both count in full: the service does not compare the files of two generations.
    sharedBytes: now.sharedBytes + then.sharedBytes,
    stateBytes: Math.max(now.stateBytes, then.stateBytes),
    packFiles: Math.max(now.packFiles, then.packFiles),
    gpuItemBytes: Math.max(now.gpuItemBytes, then.gpuItemBytes),
  });
  const worstCase = worstCaseOf(bounds, threads);
  checkGpu(worstCase, config, gpu.batchMax);
  const total = Math.ceil(worstCase.memoryBytes / MiB);
  if (worstCase.memoryBytes > memoryMaxBytes)
    throw new MachineError(
      `with both generations loaded the worst case needs ${total} MiB of memory, but the service may use ` +
        `${Math.floor(memoryMaxBytes / MiB)} MiB: restart the service, which fits its pools to the new voices, or ` +
        'give it more memory',
    );
};
