/** How engines run the steps of several segments, how to run one, and what speech costs in steps. */
import { monotonicMs } from '../../src/monotonic.js';
import { sampleText } from '../../src/text/sample-sentences.js';
import { wordSpans } from '../../src/text/words.js';
import { threadCpuMs } from '../../src/threads/effort.js';
import type { VoiceCost, VoicePack } from '../../src/threads/voices.js';
import type { Batches } from './batches.js';
import type { Engine, EngineChunk, SegmentSynthesis, StepResult } from './engine.js';

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

/** Milliseconds of CPU time of this thread; with a GPU the time that passed, which is what it costs there. */
const spentMs = ({ executionProvider }: Engine): number =>
  executionProvider === 'cpu' ? threadCpuMs() : monotonicMs();

/**
 * What speech of a pack costs in this thread, for admission before the first request. Speaks a sentence with the first voice:
 * all voices of a pack have the same graphs.
 *
 * @param engine warmed up
 * @returns `null` if it spoke nothing
 */
export const measureCost = async (
  pack: Pick<VoicePack, 'voices' | 'sample'>,
  engine: Engine,
): Promise<VoiceCost | null> => {
  const [voice] = pack.voices;
  if (voice === undefined) return null;
  const text = sampleText(pack, voice);
  const segment = engine.open({
    ...{ text, words: wordSpans(text), before: '', after: '', seed: 1, utteranceSeed: 1 },
    settings: { voiceId: voice.id, temperature: 1, normalizeText: false },
    isFirst: true,
  });
  const startMs = spentMs(engine);
  let beginMs: number | undefined;
  let speechMs = 0;
  for (let isLast = false; !isLast;) {
    const chunk = await stepOne(segment);
    beginMs ??= spentMs(engine) - startMs;
    if (chunk === null) break;
    speechMs += (1000 * chunk.pcm.length) / segment.sampleRateHz;
    isLast = chunk.last;
  }
  return speechMs > 0 ? { cpu: (spentMs(engine) - startMs) / speechMs, beginMs: beginMs ?? 0 } : null;
};
