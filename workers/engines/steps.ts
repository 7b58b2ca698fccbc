/** How engines run the steps of several segments, and how to run one. */
import type { Batches } from './batches.js';
import type { EngineChunk, SegmentSynthesis, StepResult } from './engine.js';

/**
 * `Engine.step` for segments that can run a step of their own: one after the other, or several as one batch.
 *
 * @param batches absent: the CPU runs the graphs, where a batch saves little
 */
export const stepAll = async (
  segments: readonly { step(): Promise<EngineChunk | null> }[],
  batches?: Batches,
): Promise<StepResult[]> => {
  const [first] = segments;
  if (first !== undefined && segments.length === 1) return [await first.step()];
  const steps = segments.map((segment) => () => segment.step());
  const results: StepResult[] = [];
  if (batches === undefined) for (const step of steps) results.push(await step().catch(errorOf));
  else
    for (const result of await batches.together(steps))
      results.push(result.status === 'fulfilled' ? result.value : errorOf(result.reason));
  return results;
};

export const errorOf = (reason: unknown): Error =>
  reason instanceof Error ? reason : new Error(String(reason));

/** The next chunk of one segment. */
export const stepOne = async (segment: SegmentSynthesis): Promise<EngineChunk | null> => {
  const [result] = await segment.engine.step([segment]);
  if (result === undefined) throw new RangeError('an engine returned no result for a segment');
  if (result instanceof Error) throw result;
  return result;
};
