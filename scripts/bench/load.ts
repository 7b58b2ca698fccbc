/** The benchmark's load, a process of its own: what it can be asked to do. */
import { setTimeout as sleep } from 'node:timers/promises';
import { type FirstAudio, FirstAudioProbe, decoderOf } from '../rig/first-audio.js';
import { HttpConnection, encodeRequest } from '../rig/http.js';
import { serveLoad, type LoadProcess } from '../rig/load-process.js';
import { crowd } from './overload/crowd.js';
import {
  closeIdle,
  gaugeFrames,
  idleLeft,
  openIdle,
  receive,
  record,
  speakTogether,
  type FrameCost,
} from './sockets.js';
import type { SocketConnection } from '../rig/socket.js';
import { HttpStream, Listener, SocketStream, keyOf, type Target } from './streams.js';
import {
  closedLoop,
  durations,
  throughput,
  wholeThroughput,
  wholes,
  type ThroughputOrder,
} from './throughput.js';
import { replayTokens } from './token-replay.js';

/** Between two requests: the service finishes everything, including a cancelled step. */
const restMs = 40;
/** A tick of the real-time listeners; what they notice late is less than this. */
const tickMs = 10;

/** Reads no more of pcm than it needs; of a codec all, because its decoder would disturb what is measured. */
const firstAudioOf = async (target: Target, key: string, text: string): Promise<FirstAudio> => {
  const decoder = decoderOf(target.format);
  if (decoder === null) throw new RangeError(`nothing decodes ${target.format.encoding} here`);
  const isPcm = target.format.encoding === 'pcm';
  const stream = new HttpStream(target, key);
  await stream.connection.opened();
  await sleep(restMs);
  try {
    return await new Promise((resolve, reject) => {
      const probe = new FirstAudioProbe(decoder);
      const review = (): boolean => {
        const figures = probe.figures();
        if (figures !== null) resolve(figures);
        return figures !== null;
      };
      const startedMs = performance.now();
      stream.request(text, {
        onBody: (piece) => probe.push(piece, performance.now() - startedMs),
        onAudio: () => {
          if (isPcm) review();
        },
        onEnd: () => {
          if (!review()) reject(new Error('the stream had no audible sample'));
        },
        onError: reject,
      });
    });
  } finally {
    stream.close();
  }
};

interface FirstAudioOrder {
  readonly target: Target;
  readonly texts: readonly string[];
  readonly rounds: number;
}

/** One listener at a time; each round asks for every text once. @returns the figures of each request, by text */
const firstAudio = async ({ rounds, target, texts }: FirstAudioOrder): Promise<readonly FirstAudio[][]> => {
  const figures = texts.map((): FirstAudio[] => []);
  for (let round = 0; round < rounds; round++) {
    // Alternates between texts, so that a slow moment of the machine affects all alike.
    for (const [i, text] of texts.entries())
      figures[i]!.push(await firstAudioOf(target, keyOf(target, i), text));
  }
  return figures;
};

interface ListenersOrder {
  readonly target: Target;
  readonly text: string;
  readonly transport: 'http' | 'ws';
  readonly listeners: number;
  /** Over which their first requests are spread. */
  readonly spreadMs: number;
  readonly durationMs: number;
  /** The process whose main thread is watched, if any. */
  readonly watchedPid?: number | undefined;
}

export interface Heard extends FrameCost {
  readonly firstAudioMs: readonly number[];
  /** The three figures of each request over HTTP, of a format that is decoded at once. */
  readonly firstAudio: readonly FirstAudio[];
  /** Listeners that ever had nothing to play in the middle of speech. */
  readonly dry: number;
  /** The longest such wait. */
  readonly dryMsMax: number;
}

let endsListeningMs = Infinity;

/** Ends `listen` before its time. */
const endListening = (): void => {
  endsListeningMs = performance.now();
};

/** Listeners that read at the speed of playback and ask again when they have heard everything. */
const listen = async (order: ListenersOrder): Promise<Heard> => {
  const { durationMs, listeners: count, spreadMs, target, text, transport, watchedPid } = order;
  // A codec's decoder would disturb what is measured.
  const decoder = transport === 'http' && target.format.encoding === 'pcm' ? decoderOf(target.format) : null;
  const sockets: SocketConnection[] = [];
  const listeners = Array.from({ length: count }, (_, i) => {
    const stream = new (transport === 'http' ? HttpStream : SocketStream)(target, keyOf(target, i));
    if (stream instanceof SocketStream) sockets.push(stream.connection);
    return new Listener(stream, text, decoder);
  });
  await Promise.all(listeners.map(({ stream }) => stream.connection.opened()));
  const startedMs = performance.now();
  endsListeningMs = startedMs + spreadMs + durationMs;
  let started = 0;
  let endGauge: (() => FrameCost) | null = null;
  while (performance.now() < endsListeningMs) {
    const elapsedMs = performance.now() - startedMs;
    while (started < count && (started * spreadMs) / count <= elapsedMs)
      listeners[started++]!.start(performance.now());
    const tickStartMs = performance.now();
    for (const listener of listeners) listener.tick(tickStartMs);
    if (elapsedMs >= spreadMs) endGauge ??= gaugeFrames(watchedPid, sockets);
    await sleep(tickMs);
  }
  endGauge ??= gaugeFrames(watchedPid, sockets);
  const cost = endGauge();
  for (const { stream } of listeners) stream.close();
  return {
    ...cost,
    firstAudioMs: listeners.flatMap(({ firstAudioMs }) => firstAudioMs),
    firstAudio: listeners.flatMap(({ firstAudio }) => firstAudio),
    dry: listeners.filter(({ dryMs }) => dryMs > 0).length,
    dryMsMax: Math.max(...listeners.map(({ dryMs }) => dryMs)),
  };
};

interface RepeatOrder {
  readonly target: Target;
  readonly bytes: Buffer;
  readonly times: number;
}

/** One request after the other on one connection. @returns their statuses, each once */
const repeat = async ({ bytes, target, times }: RepeatOrder): Promise<readonly number[]> => {
  const connection = new HttpConnection(target);
  const statuses = new Set<number>();
  for (let i = 0; i < times; i++) statuses.add(await connection.ask(bytes));
  connection.close();
  return [...statuses];
};

let probing = false;

/** Asks again and again for something that is answered at once. @returns the longest time to an answer, in milliseconds */
const probe = async ({ everyMs, target }: { target: Target; everyMs: number }): Promise<number> => {
  const connection = new HttpConnection(target);
  const bytes = encodeRequest({ path: '/v1/tts/speakers', key: target.keys[0]! });
  let longestMs = 0;
  probing = true;
  while (probing) {
    await sleep(everyMs);
    const askedMs = performance.now();
    await connection.ask(bytes);
    longestMs = Math.max(longestMs, performance.now() - askedMs);
  }
  connection.close();
  return longestMs;
};

const endProbe = (): void => {
  probing = false;
};

const calls = {
  firstAudio,
  closedLoop: (order: ThroughputOrder) => closedLoop(order),
  throughput,
  wholeThroughput,
  wholes,
  durations,
  crowd,
  listen,
  endListening,
  repeat,
  probe,
  endProbe,
  openIdle,
  idleLeft,
  closeIdle,
  record,
  receive,
  speakTogether,
  replayTokens,
};
/** The load as the benchmark sees it. */
export type Load = LoadProcess<typeof calls>;

serveLoad(calls);
