/** First audio through each dialect, against the public port: what another protocol adds. */
import { setTimeout as sleep } from 'node:timers/promises';
import { endpointsOf, firstAudioMs, type Endpoint } from '../rig/endpoints.js';
import type { Service } from '../rig/service.js';
import { median } from '../rig/statistics.js';
import { sentence } from '../rig/texts.js';
import { ms, row, spread, type Row } from './report.js';
import type { Target } from './streams.js';

/** Milliseconds that a dialect may add to the first audio of the public port. */
const ADDED_MS_MAX = 2;
const ROUNDS = 60;
/** The first ones make the service compile code. */
const WARM_UP_ROUNDS = 8;
/** Between two requests: the service finishes the last one. */
const PAUSE_MS = 60;
const SAMPLE_RATE_HZ = 24_000;

/** Alternates between all listeners, so that a slow moment of the machine affects all alike. */
export const measureDialects = async (target: Target, service: Service): Promise<Row[]> => {
  const { dialectPorts } = service;
  const { keys, port, voice } = target;
  const format = { encoding: 'pcm', sampleRateHz: SAMPLE_RATE_HZ } as const;
  const parts = { port, dialectPorts, key: keys[0]!, voice, text: sentence, format };
  const kinds = Object.values(endpointsOf(parts));
  const figures = new Map<Endpoint, number[]>(kinds.flat().map((endpoint) => [endpoint, []]));
  for (let round = 0; round < WARM_UP_ROUNDS + ROUNDS; round++)
    for (const [endpoint, times] of figures) {
      const took = await firstAudioMs(endpoint);
      if (round >= WARM_UP_ROUNDS) times.push(took);
      await sleep(PAUSE_MS);
    }
  return kinds.flatMap(([publicEndpoint, ...dialects]) => {
    const publicTimes = figures.get(publicEndpoint)!;
    return [
      row(`First audio, ${publicEndpoint.name}`, spread(publicTimes)),
      ...dialects.map((endpoint) => {
        const times = figures.get(endpoint)!;
        const addedMs = median(times) - median(publicTimes);
        return row(
          `First audio, ${endpoint.name}`,
          `${spread(times)} (${addedMs < 0 ? '' : '+'}${ms(addedMs)})`,
          `p50 within ${ADDED_MS_MAX} ms of the public port`,
          addedMs <= ADDED_MS_MAX,
        );
      }),
    ];
  });
};
