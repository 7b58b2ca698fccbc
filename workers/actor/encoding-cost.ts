/** What each encoding costs in this thread: for admission, before the first request. */
import { defaultFormat, encodingNames, type Encoding } from '../../src/api/formats.js';
import { monotonicMs } from '../../src/monotonic.js';
import { threadCpuMs } from '../../src/threads/effort.js';
import { createEncoder, opensSlowly } from '../audio/encoders.js';
import { FrameMaker } from './frame-maker.js';

/** The rate of our voices. */
const engineSampleRateHz = 24_000;
/** Speech in a chunk, as engines make it. */
const chunkMs = 250;
/** Each encoding has so many turns of so many chunks: the compiler makes hot code faster meanwhile. */
const turns = 3;
const chunks = 4;
/** The system counts the CPU time of a thread in such steps. Most chunks take less. */
const cpuStepMs = 4;

/** A harmonic tone under noise, the same in each run. */
const sound = (): Int16Array => {
  let noise = 1;
  return Int16Array.from({ length: (engineSampleRateHz * chunkMs) / 1000 }, (_, i) => {
    noise = (noise * 16_807) % 2_147_483_647;
    const phase = (2 * Math.PI * 150 * i) / engineSampleRateHz;
    return 6_000 * Math.sin(phase) + 3_000 * Math.sin(2 * phase) + 1_000 * (noise / 2 ** 30 - 1);
  });
};

/**
 * Encodes some sound in each encoding at its defaults. The shortest time of a chunk counts: a longer one has other programs in
 * it. If all have, the CPU time counts.
 *
 * @returns CPU time of a millisecond of speech, in milliseconds; without those whose library is loaded when it is needed
 */
export const measureEncodings = async (clock = monotonicMs): Promise<Map<Encoding, number>> => {
  const context = { contextId: 0, framing: 'stream', timestamps: false, clock: 0 } as const;
  const chunk = { type: 'chunk', contextId: 0, segment: 0, startSample: 0, pcm: sound(), words: [] } as const;
  const makers = new Map<Encoding, { frames: FrameMaker; shortestMs: number; cpuMs: number }>();
  for (const encoding of encodingNames) {
    const format = defaultFormat(encoding);
    if (opensSlowly(format)) continue;
    const encoder = await createEncoder(format, engineSampleRateHz);
    const open = { type: 'open', ...context, format, engineSampleRateHz } as const;
    const frames = new FrameMaker(open, encoder, () => undefined);
    makers.set(encoding, { frames, shortestMs: Infinity, cpuMs: 0 });
  }
  for (let turn = 0; turn < turns; turn++)
    for (const made of makers.values()) {
      const startCpuMs = threadCpuMs();
      for (let count = 0; count < chunks; count++) {
        const startMs = clock();
        while (!made.frames.speak(chunk).isLast);
        made.shortestMs = Math.min(made.shortestMs, clock() - startMs);
      }
      made.cpuMs += threadCpuMs() - startCpuMs + cpuStepMs;
    }
  const costs = new Map<Encoding, number>();
  for (const [encoding, { frames, shortestMs, cpuMs }] of makers) {
    costs.set(encoding, Math.min(shortestMs, cpuMs / (turns * chunks)) / chunkMs);
    frames.dispose();
  }
  return costs;
};
