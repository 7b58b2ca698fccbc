/** The load of an overload, a process of its own: what it can be asked to do. */
import { exchange, jsonOf, speechRequest } from '../../rig/http.js';
import { serveLoad, type LoadProcess } from '../../rig/load-process.js';
import { keyOf, type Target } from '../streams.js';
import { burst } from './burst.js';
import { Crowd, type CrowdFigures, type CrowdOrder } from './crowd.js';
import { wholes } from './wholes.js';

interface DurationsOrder {
  readonly target: Target;
  readonly texts: readonly string[];
}

/** Milliseconds of speech of each text, each asked for once. */
const durations = async ({ target, texts }: DurationsOrder): Promise<number[]> => {
  const durationsMs: number[] = [];
  const sampleRateHz = 24_000;
  for (const [i, text] of texts.entries()) {
    const format = { encoding: 'pcm', sampleRateHz } as const;
    const request = speechRequest({
      key: keyOf(target, i),
      text,
      voice: target.voice,
      format,
      path: '/v1/tts',
    });
    const { audio } = jsonOf(await exchange(target.port, request)) as { audio: string };
    durationsMs.push((Buffer.byteLength(audio, 'base64') / 2 / sampleRateHz) * 1000);
  }
  return durationsMs;
};

const crowd = (order: CrowdOrder): Promise<CrowdFigures> => new Crowd(order).run();

const calls = { durations, crowd, burst, wholes };
export type OverloadLoad = LoadProcess<typeof calls>;

serveLoad(calls);
