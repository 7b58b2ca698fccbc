/** A closed loop: clients that ask again as soon as they are served. */
import { setTimeout as sleep } from 'node:timers/promises';
import { HttpStream, type Target, encodeSpeech, keyOf } from './streams.js';

export interface ClosedLoopOrder {
  readonly target: Target;
  readonly text: string;
  readonly clients: number;
  readonly durationMs: number;
}

export interface ClosedLoopFigures {
  /** Milliseconds from each request to its first audio. */
  readonly waits: readonly number[];
  /** Seconds of speech that all of them received in a second. */
  readonly speechRatio: number;
  /** Milliseconds of speech that they received in all, before and after the measured time too. */
  readonly allSpeechMs: number;
}

/** The first requests come together; what is measured begins when they are spread out. */
const warmUpMs = 1_500;

/** Each client has one connection, and reads as fast as it can. */
export const closedLoop = async ({
  clients,
  durationMs,
  target,
  text,
}: ClosedLoopOrder): Promise<ClosedLoopFigures> => {
  const waits: number[] = [];
  let audioMs = 0;
  let allSpeechMs = 0;
  let isMeasured = false;
  let isOver = false;
  const repeat = async (key: string): Promise<void> => {
    const stream = new HttpStream(target);
    await stream.opened();
    const request = encodeSpeech(target, key, text);
    while (!isOver)
      await new Promise<void>((resolve, reject) => {
        const begunMs = performance.now();
        const isCounted = isMeasured;
        let heardMs = 0;
        const onAudio = (totalMs: number): void => {
          if (isCounted && heardMs === 0) waits.push(performance.now() - begunMs);
          if (isMeasured && !isOver) audioMs += totalMs - heardMs;
          allSpeechMs += totalMs - heardMs;
          heardMs = totalMs;
        };
        stream.request(request, { onAudio, onEnd: resolve, onError: reject });
      });
    stream.close();
  };
  const running = Promise.all(Array.from({ length: clients }, (_, i) => repeat(keyOf(target, i))));
  running.catch(() => undefined);
  await Promise.race([sleep(warmUpMs), running]);
  isMeasured = true;
  const startedMs = performance.now();
  await Promise.race([sleep(durationMs), running]);
  const speechRatio = audioMs / (performance.now() - startedMs);
  isOver = true;
  await running;
  return { waits, speechRatio, allSpeechMs };
};
