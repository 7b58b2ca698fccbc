/** Speaks segments without a service: to warm a voice up, to try it, and to find what its speech costs. */
import { settingsOf } from '../../src/api/speech-settings.js';
import { monotonicMs } from '../../src/monotonic.js';
import { sampleText } from '../../src/text/sample-sentences.js';
import { wordSpans } from '../../src/text/words.js';
import { threadCpuMs } from '../../src/threads/effort.js';
import type { SegmentRequest } from '../../src/threads/messages.js';
import type { VoiceCost, VoicePack } from '../../src/threads/voices.js';
import type { Engine, EngineChunk, SegmentSynthesis } from './engine.js';

export const errorOf = (reason: unknown): Error =>
  reason instanceof Error ? reason : new Error(String(reason));

/** A text as an utterance of its own, in the default settings. */
export const utteranceOf = (voiceId: string, text: string, seed: number): SegmentRequest => ({
  ...{ text, words: wordSpans(text), before: '', after: '', seed, utteranceSeed: seed },
  settings: settingsOf({ voiceId }),
});

/** The sample sentence of a pack in its first voice. All voices of a pack have the same graphs. */
export const sampleOf = (pack: Pick<VoicePack, 'voices' | 'sample'>): SegmentRequest | null => {
  const [voice] = pack.voices;
  return voice === undefined ? null : { ...utteranceOf(voice.id, sampleText(pack, voice), 1), isFirst: true };
};

/** Steps a segment to its end. */
export async function* chunksOf(segment: SegmentSynthesis): AsyncGenerator<EngineChunk, void> {
  for (let isLast = false; !isLast;) {
    const chunk = await segment.step();
    if (chunk === null) return;
    yield chunk;
    isLast = chunk.last;
  }
}

/** Milliseconds of CPU time of this thread; with a GPU the time that passed, which is what it costs there. */
const spentMs = ({ executionProvider }: Engine): number =>
  executionProvider === 'cpu' ? threadCpuMs() : monotonicMs();

const costOf = async (sample: SegmentRequest, engine: Engine): Promise<VoiceCost | null> => {
  const segment = engine.open(sample);
  const startMs = spentMs(engine);
  let beginMs: number | undefined;
  let speechMs = 0;
  for await (const { pcm } of chunksOf(segment)) {
    beginMs ??= spentMs(engine) - startMs;
    speechMs += (1000 * pcm.length) / segment.sampleRateHz;
  }
  return speechMs > 0 ? { cpu: (spentMs(engine) - startMs) / speechMs, beginMs: beginMs ?? 0 } : null;
};

/** With a first sentence of less CPU time, the compilation of our code is a large part of it: a second one is measured. */
const QUICK_MS = 250;

/**
 * What speech of a pack costs in this thread, for admission before the first request.
 *
 * @param engine warmed up
 * @returns `null` if it spoke nothing
 */
export const measureCost = async (
  pack: Pick<VoicePack, 'voices' | 'sample'>,
  engine: Engine,
): Promise<VoiceCost | null> => {
  const sample = sampleOf(pack);
  if (sample === null) return null;
  const startMs = spentMs(engine);
  const first = await costOf(sample, engine);
  return spentMs(engine) - startMs < QUICK_MS ? costOf(sample, engine) : first;
};
