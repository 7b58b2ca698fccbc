/** Clients that ask again as soon as they are served, and read as fast as they can. */
import { setTimeout as sleep } from 'node:timers/promises';
import { encodeRequest, HttpConnection, speechRequest } from '../rig/http.js';
import { sumOf } from '../rig/statistics.js';
import { HttpStream, keyOf, msPerBase64Byte, type Target } from './streams.js';

export interface ThroughputOrder {
  readonly target: Target;
  readonly text: string;
  readonly connections: number;
  readonly durationMs: number;
}

/**
 * The first requests start together; counting begins when they are spread out, and each lasts some 2.5 s. A file is made faster
 * in its first half, so that a count by shares of its time is too low until files of all ages are under way.
 */
const warmUpMs = 4_000;

export interface ClosedLoopFigures {
  /** Milliseconds from each request to its first audio. */
  readonly waits: readonly number[];
  /** Seconds of speech that all of them received in a second. */
  readonly speechRatio: number;
  /** Milliseconds of speech that they received in all, before and after the measured time too. */
  readonly allSpeechMs: number;
}

/** Each client has one connection. Speech counts as it arrives. @param isCut whether the last answers are left where they are */
export const closedLoop = async (order: ThroughputOrder, isCut = false): Promise<ClosedLoopFigures> => {
  const { connections, durationMs, target, text } = order;
  const waits: number[] = [];
  let [audioMs, allSpeechMs] = [0, 0];
  let [isMeasured, isOver] = [false, false];
  const repeat = async (key: string): Promise<void> => {
    const stream = new HttpStream(target, key);
    await stream.opened();
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
          if (isOver && isCut) resolve();
        };
        stream.request(text, { onAudio, onEnd: resolve, onError: reject });
      });
    stream.close();
  };
  const running = Promise.all(Array.from({ length: connections }, (_, i) => repeat(keyOf(target, i))));
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

/** Seconds of speech that they get in a second. */
export const throughput = async (order: ThroughputOrder): Promise<number> =>
  (await closedLoop(order, true)).speechRatio;

/** A whole file that arrived: how much speech, and when it was made. */
export interface MadeFile {
  readonly fromMs: number;
  readonly toMs: number;
  readonly audioMs: number;
}

/** Files come all at once, so those that begin before a time or end after it count by their share of it. */
export const speechIn = (files: readonly MadeFile[], fromMs: number, toMs: number): number =>
  sumOf(
    files.map((file) => {
      const insideMs = Math.min(file.toMs, toMs) - Math.max(file.fromMs, fromMs);
      return insideMs <= 0 ? 0 : (file.audioMs * insideMs) / (file.toMs - file.fromMs);
    }),
  );

const wholeOverheadBytes = '{"audio":""}'.length;

/** The same with whole files (`POST /v1/tts`). The clients go on until each file that counts is there, so that all have the same company. */
export const wholeThroughput = async (order: ThroughputOrder): Promise<number> => {
  const { connections: count, durationMs, target, text } = order;
  const msPerByte = msPerBase64Byte(target.format);
  if (msPerByte === null) throw new RangeError('the bytes of this format have no fixed duration');
  const connections = Array.from({ length: count }, () => new HttpConnection(target));
  await Promise.all(connections.map((connection) => connection.opened()));
  const fromMs = performance.now() + warmUpMs;
  const toMs = fromMs + durationMs;
  const files: MadeFile[] = [];
  const { voice, format } = target;
  const repeat = async (connection: HttpConnection, key: string, onDone: () => void): Promise<void> => {
    const bytes = encodeRequest(speechRequest({ key, text, voice, format, path: '/v1/tts' }));
    for (;;) {
      const askedMs = performance.now();
      if (askedMs > toMs) onDone();
      let bodyBytes = 0;
      await new Promise<void>((resolve, reject) => {
        connection.request(bytes, {
          onHead: (status) => {
            if (status !== 200) reject(new Error(`the service answered ${status}`));
          },
          onBody: (piece) => (bodyBytes += piece.length),
          onEnd: resolve,
          onError: reject,
        });
      });
      const audioMs = (bodyBytes - wholeOverheadBytes) * msPerByte;
      files.push({ fromMs: askedMs, toMs: performance.now(), audioMs });
    }
  };
  try {
    await Promise.all(
      connections.map(
        (connection, i) =>
          new Promise<void>((resolve, reject) => {
            repeat(connection, keyOf(target, i), resolve).catch(reject);
          }),
      ),
    );
  } finally {
    for (const connection of connections) connection.close();
  }
  return speechIn(files, fromMs, toMs) / durationMs;
};
