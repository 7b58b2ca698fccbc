/** First audio through each dialect, against the public port: what another protocol adds. */
import { setTimeout as sleep } from 'node:timers/promises';
import { doorsOf, DoorVisit, type Door } from '../rig/doors.js';
import type { Service } from '../rig/service.js';
import { percentile } from '../rig/statistics.js';
import { sentence } from '../rig/texts.js';
import { type Row, barredRow, row } from './report.js';
import type { Target } from './streams.js';

/** Milliseconds that a dialect may add to the first audio of the public port. */
const ADDED_MS_MAX = 2;
const ROUNDS = 60;
/** The first ones make the service compile code. */
const WARM_UP_ROUNDS = 8;
/** Between two requests: the service finishes the last one. */
const PAUSE_MS = 60;
const SAMPLE_RATE_HZ = 24_000;

/** @returns milliseconds from the request on an open connection to its first audio */
const firstAudioMs = async (door: Door): Promise<number> => {
  const visit = new DoorVisit(door);
  try {
    await visit.heard();
    if (visit.heardMs === 0) throw new Error(`${door.name}: no audio: ${JSON.stringify(visit.tail)}`);
    return visit.heardMs - visit.askedMs;
  } finally {
    visit.leave();
  }
};

const ms = (value: number): string => `${value.toFixed(1)} ms`;

/** Alternates between all listeners, so that a slow moment of the machine affects all alike. */
export const measureDialects = async (target: Target, service: Service): Promise<Row[]> => {
  const { dialectPorts } = service;
  const { keys, port, voice } = target;
  const format = { encoding: 'pcm', sampleRateHz: SAMPLE_RATE_HZ } as const;
  const parts = { port, dialectPorts, key: keys[0]!, voice, text: sentence, format };
  const kinds = Object.values(doorsOf(parts)) as (readonly [Door, ...Door[]])[];
  const figures = new Map<Door, number[]>(kinds.flat().map((door) => [door, []]));
  for (let round = 0; round < WARM_UP_ROUNDS + ROUNDS; round++)
    for (const [door, times] of figures) {
      const took = await firstAudioMs(door);
      if (round >= WARM_UP_ROUNDS) times.push(took);
      await sleep(PAUSE_MS);
    }
  const spread = (times: readonly number[]) =>
    `p50 ${ms(percentile(times, 0.5))}, p95 ${ms(percentile(times, 0.95))}`;
  return kinds.flatMap(([publicDoor, ...dialects]) => {
    const publicTimes = figures.get(publicDoor)!;
    return [
      row(`First audio, ${publicDoor.name}`, spread(publicTimes)),
      ...dialects.map((door) => {
        const times = figures.get(door)!;
        const addedMs = percentile(times, 0.5) - percentile(publicTimes, 0.5);
        return barredRow(
          `First audio, ${door.name}`,
          `${spread(times)} (${addedMs < 0 ? '' : '+'}${ms(addedMs)})`,
          `p50 within ${ADDED_MS_MAX} ms of the public port`,
          addedMs <= ADDED_MS_MAX,
        );
      }),
    ];
  });
};
