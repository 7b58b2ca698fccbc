/** Clients that ask at the same time. */
import { HttpStream, type Target, encodeSpeech, keyOf } from './streams.js';

export interface CrowdOrder {
  readonly target: Target;
  readonly text: string;
  readonly clients: number;
  readonly rounds: number;
}

/** Clients that ask at the same time, and all hear their speech to its end. @returns milliseconds to each first byte */
export const crowd = async ({ clients, rounds, target, text }: CrowdOrder): Promise<readonly number[]> => {
  const streams = Array.from({ length: clients }, () => new HttpStream(target));
  await Promise.all(streams.map((stream) => stream.opened()));
  const waits: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const begunMs = performance.now();
    const spoken = streams.map(
      (stream, i) =>
        new Promise<void>((resolve, reject) => {
          let isFirst = true;
          const onAudio = () => {
            if (isFirst) waits.push(performance.now() - begunMs);
            isFirst = false;
          };
          const request = encodeSpeech(target, keyOf(target, i), text);
          stream.request(request, { onAudio, onEnd: resolve, onError: reject });
        }),
    );
    await Promise.all(spoken);
  }
  for (const stream of streams) stream.close();
  return waits;
};
