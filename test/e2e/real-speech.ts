/** Requests to a service with the real engine, and what its audio holds. */
import type { Test } from 'tap';
import { samplesOf } from '../support/conversation.js';
import { readStream, startService } from '../support/service.js';

export const sentence = 'Good morning, the "kettle" is on — and the paper (as ever) is at the door!';

/** A format with few samples, where the sound does not matter. */
export const pcm16 = { encoding: 'pcm', sample_rate: 16_000 };

interface Whole {
  readonly audio: string;
  readonly timestamps?: {
    readonly words: string[];
    readonly start_seconds: number[];
    readonly end_seconds: number[];
  };
}

export const startRealSpeech = async (t: Test) => {
  const service = await startService(t);
  const whole = async (body: object): Promise<Whole> => {
    const response = await service.post('/v1/tts', { voice: 'wren', ...body });
    if (response.status !== 200) throw new Error(`${response.status}: ${await response.text()}`);
    return (await response.json()) as Whole;
  };
  const streamed = async (body: object) => {
    const { words, ...stream } = await readStream(
      await service.post('/v1/tts/stream', { voice: 'wren', ...body }),
    );
    return { ...stream, times: words, words: words.map(({ word }) => word) };
  };
  return { service, whole, streamed };
};

export const peakOf = (samples: Int16Array) =>
  samples.reduce((max, sample) => Math.max(max, Math.abs(sample)), 0);

export const peak = (pcm: Buffer) => peakOf(samplesOf(pcm));
