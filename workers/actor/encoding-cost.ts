/** What each encoding costs in this thread: for admission, before the first request. */
import { defaultFormat, encodingNames, type Encoding } from '../../src/api/formats.js';
import { monotonicMs } from '../../src/monotonic.js';
import { createEncoder } from '../audio/encoders.js';
import { FrameMaker } from './frame-maker.js';

/** The rate of our voices. */
const engineSampleRateHz = 24_000;
/** Speech in a chunk, as engines make it. The first one warms the code up. */
const chunkMs = 250;
const chunks = 4;

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
 * Encodes some sound in each encoding at its defaults. The shortest time of a chunk counts: the system counts the CPU time of a
 * thread in steps of several milliseconds, which is more than a chunk takes, and a longer time has other programs in it.
 *
 * @returns CPU time of a millisecond of speech, in milliseconds; without AAC, whose library is loaded when it is needed
 */
export const measureEncodings = async (): Promise<Map<Encoding, number>> => {
  const costs = new Map<Encoding, number>();
  for (const encoding of encodingNames) {
    if (encoding === 'aac') continue;
    const format = defaultFormat(encoding);
    const encoder = await createEncoder(format, engineSampleRateHz);
    const context = { contextId: 0, framing: 'stream', timestamps: false, clock: 0 } as const;
    const open = { type: 'open', ...context, format, engineSampleRateHz } as const;
    const frames = new FrameMaker(open, encoder, () => undefined);
    let shortestMs = Number.POSITIVE_INFINITY;
    for (let chunk = 0; chunk <= chunks; chunk++) {
      const mail = {
        type: 'chunk',
        contextId: 0,
        segment: 0,
        startSample: 0,
        pcm: sound(),
        words: [],
      } as const;
      const startMs = monotonicMs();
      while (!frames.speak(mail).isLast);
      if (chunk > 0) shortestMs = Math.min(shortestMs, monotonicMs() - startMs);
    }
    costs.set(encoding, shortestMs / chunkMs);
    frames.dispose();
  }
  return costs;
};
