/** Clients that ask again as soon as they are served, and read as fast as they can. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { AudioFormat } from '../../src/api/formats.js';
import { encodeRequest, exchange, HttpConnection, jsonOf, speechRequest } from '../rig/http.js';
import { Tally } from '../rig/tally.js';
import { HttpStream, keyOf, wholeAudioMs, type Target } from './streams.js';

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
    await stream.connection.opened();
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

/**
 * The same with whole files (`POST /v1/tts`). They come all at once, so those that begin before the measured time or end after it
 * count by their share of it. The clients go on until each file that counts is there, so that all have the same company.
 */
export const wholeThroughput = async (order: ThroughputOrder): Promise<number> => {
  const { connections: count, durationMs, target, text } = order;
  const { format, voice } = target;
  const connections = Array.from({ length: count }, () => new HttpConnection(target));
  await Promise.all(connections.map((connection) => connection.opened()));
  const fromMs = performance.now() + warmUpMs;
  const toMs = fromMs + durationMs;
  let audioMs = 0;
  const repeat = async (connection: HttpConnection, key: string, onDone: () => void): Promise<void> => {
    const bytes = encodeRequest(speechRequest({ key, text, voice, format, path: '/v1/tts' }));
    for (;;) {
      const askedMs = performance.now();
      if (askedMs > toMs) onDone();
      let bodyBytes = 0;
      const status = await connection.ask(bytes, (piece) => (bodyBytes += piece.length));
      if (status !== 200) throw new Error(`the service answered ${status}`);
      const endedMs = performance.now();
      const insideMs = Math.min(endedMs, toMs) - Math.max(askedMs, fromMs);
      if (insideMs > 0) audioMs += (wholeAudioMs(format, bodyBytes) * insideMs) / (endedMs - askedMs);
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
  return audioMs / durationMs;
};

export interface WholesOrder {
  readonly port: number;
  readonly key: string;
  readonly voice: string;
  readonly text: string;
  readonly count: number;
  /** None is asked for after this. */
  readonly askMsMax: number;
}

export interface WholesFigures {
  /** From the request on a new connection to the whole file; infinite for one that did not come. */
  readonly waitsMs: readonly number[];
  readonly faults: string;
}

const wholesRestMs = 30;
const wholeMsMax = 15_000;

/** Whole files that one key asks for, one at a time: how long each takes. */
export const wholes = async (order: WholesOrder): Promise<WholesFigures> => {
  const { askMsMax, count, key, port, text, voice } = order;
  const waitsMs: number[] = [];
  const faults = new Tally();
  const endMs = performance.now() + askMsMax;
  while (waitsMs.length < count && performance.now() < endMs) {
    const askedMs = performance.now();
    // In the format of a client that names none.
    const request = { path: '/v1/tts', key, body: { text, voice } };
    const { error, status } = await exchange(port, request, { signal: AbortSignal.timeout(wholeMsMax) });
    const isServed = error === null && status === 200;
    waitsMs.push(isServed ? performance.now() - askedMs : Infinity);
    if (!isServed) faults.add(error?.message ?? `the service answered ${status}`);
    await sleep(wholesRestMs);
  }
  return { waitsMs, faults: faults.toString() };
};

/** The speech of a text, as 16-bit samples. */
export const samplesOf = async (
  { port, voice }: Pick<Target, 'port' | 'voice'>,
  key: string,
  text: string,
  sampleRateHz: number,
): Promise<Buffer> => {
  const format: AudioFormat = { encoding: 'pcm', sampleRateHz };
  const request = speechRequest({ key, voice, text, path: '/v1/tts', format });
  const { audio } = jsonOf(await exchange(port, request)) as { audio: string };
  return Buffer.from(audio, 'base64');
};

/** Milliseconds of speech of each text, each asked for once. */
export const durations = async (order: { target: Target; texts: readonly string[] }): Promise<number[]> => {
  const { target, texts } = order;
  const durationsMs: number[] = [];
  for (const [i, text] of texts.entries())
    durationsMs.push((await samplesOf(target, keyOf(target, i), text, 24_000)).length / 48);
  return durationsMs;
};
