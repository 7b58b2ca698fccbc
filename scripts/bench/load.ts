/** The benchmark's load, a process of its own: what it can be asked to do. */
import { setTimeout as sleep } from 'node:timers/promises';
import { type FirstAudio, FirstAudioProbe, decoderOf } from '../rig/first-audio.js';
import { HttpConnection, encodeRequest } from '../rig/http.js';
import { serveLoad, type LoadProcess } from '../rig/load-process.js';
import { readFrontCpuMs } from '../rig/process-facts.js';
import { SocketConnection, encodeStart } from '../rig/socket.js';
import { sumOf } from '../rig/statistics.js';
import { speakTogether } from './socket-together.js';
import { HttpStream, Listener, SocketStream, encodeUtterance, keyOf, type Target } from './streams.js';
import { closedLoop, throughput, wholeThroughput, type ThroughputOrder } from './throughput.js';
import { replayTokens } from './token-replay.js';

/** Between two requests: the service finishes everything, including a cancelled step. */
const restMs = 40;
/** A tick of the real-time listeners; what they notice late is less than this. */
const tickMs = 10;
/** Handshakes at a time: the backlog of a listening socket may refuse more. */
const handshakesMax = 100;

const nowMs = (): number => performance.now();

/** Messages that sockets received in a while, and what they cost their sender. */
export interface FrameCost {
  /** Messages of all kinds. */
  readonly frames: number;
  readonly gaugedMs: number;
  /** Time of the main thread of the watched process; `null` where the system does not report it. */
  readonly frontCpuMs: number | null;
}

/** @returns a function that ends the measurement */
const gaugeFrames = (
  pid: number | null,
  sources: readonly { readonly messages: number }[],
): (() => FrameCost) => {
  const read = () => ({
    atMs: nowMs(),
    frames: sumOf(sources.map(({ messages }) => messages)),
    cpuMs: pid === null ? null : readFrontCpuMs(pid),
  });
  const begun = read();
  return () => {
    const ended = read();
    return {
      frames: ended.frames - begun.frames,
      gaugedMs: ended.atMs - begun.atMs,
      frontCpuMs: begun.cpuMs === null || ended.cpuMs === null ? null : ended.cpuMs - begun.cpuMs,
    };
  };
};

/** Reads no more of pcm than it needs; of a codec all, because its decoder would disturb what is measured. */
const firstAudioOf = async (target: Target, key: string, text: string): Promise<FirstAudio> => {
  const decoder = decoderOf(target.format);
  if (decoder === null) throw new RangeError(`nothing decodes ${target.format.encoding} here`);
  const isPcm = target.format.encoding === 'pcm';
  const stream = new HttpStream(target, key);
  await stream.opened();
  await sleep(restMs);
  try {
    return await new Promise((resolve, reject) => {
      const probe = new FirstAudioProbe(decoder);
      const review = (): boolean => {
        const figures = probe.figures();
        if (figures !== null) resolve(figures);
        return figures !== null;
      };
      const startedMs = nowMs();
      stream.request(text, {
        onBody: (piece) => probe.push(piece, nowMs() - startedMs),
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

interface FirstAudioOrder {
  readonly target: Target;
  readonly texts: readonly string[];
  readonly rounds: number;
}

interface ListenersOrder {
  readonly target: Target;
  readonly text: string;
  readonly transport: 'http' | 'ws';
  readonly listeners: number;
  /** Over which their first requests are spread. */
  readonly spreadMs: number;
  readonly durationMs: number;
  /** The process whose main thread is watched. */
  readonly watchedPid: number | null;
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
  endsListeningMs = nowMs();
};

/** Listeners that read at the speed of playback and ask again when they have heard everything. */
const listen = async (order: ListenersOrder): Promise<Heard> => {
  const { durationMs, listeners: count, spreadMs, target, text, transport, watchedPid } = order;
  const sockets: SocketStream[] = [];
  // A codec's decoder would disturb what is measured.
  const decoder = target.format.encoding === 'pcm' ? decoderOf(target.format) : null;
  const listeners = Array.from({ length: count }, (_, i) => {
    const key = keyOf(target, i);
    if (transport === 'http') return new Listener(new HttpStream(target, key), text, decoder);
    const socket = new SocketStream(target, key);
    sockets.push(socket);
    return new Listener(socket, text);
  });
  await Promise.all(listeners.map((listener) => listener.opened()));
  const startedMs = nowMs();
  endsListeningMs = startedMs + spreadMs + durationMs;
  let started = 0;
  let endGauge: (() => FrameCost) | null = null;
  while (nowMs() < endsListeningMs) {
    const elapsedMs = nowMs() - startedMs;
    while (started < count && (started * spreadMs) / count <= elapsedMs) listeners[started++]!.start(nowMs());
    const tickStartMs = nowMs();
    for (const listener of listeners) listener.tick(tickStartMs);
    if (elapsedMs >= spreadMs) endGauge ??= gaugeFrames(watchedPid, sockets);
    await sleep(tickMs);
  }
  endGauge ??= gaugeFrames(watchedPid, sockets);
  const cost = endGauge();
  for (const listener of listeners) listener.close();
  return {
    ...cost,
    firstAudioMs: listeners.flatMap(({ firstAudioMs }) => firstAudioMs),
    firstAudio: listeners.flatMap(({ firstAudio }) => firstAudio),
    dry: listeners.filter(({ dryMs }) => dryMs > 0).length,
    dryMsMax: Math.max(...listeners.map(({ dryMs }) => dryMs)),
  };
};

/** One request after the other on one connection. @returns their statuses, each once */
const repeat = async ({ bytes, target, times }: RepeatOrder): Promise<readonly number[]> => {
  const connection = new HttpConnection(target);
  const statuses = new Set<number>();
  for (let i = 0; i < times; i++) await ask(connection, bytes, (status) => void statuses.add(status));
  connection.close();
  return [...statuses];
};

interface RepeatOrder {
  readonly target: Target;
  readonly bytes: Buffer;
  readonly times: number;
}

const ask = (connection: HttpConnection, bytes: Buffer, onHead: (status: number) => void): Promise<void> =>
  new Promise((resolve, reject) => {
    connection.request(bytes, { onHead, onBody: () => undefined, onEnd: resolve, onError: reject });
  });

let probing = false;

/** Asks again and again for something that is answered at once. @returns the longest time to an answer, in milliseconds */
const probe = async ({ everyMs, target }: { target: Target; everyMs: number }): Promise<number> => {
  const connection = new HttpConnection(target);
  const bytes = encodeRequest({ path: '/v1/tts/speakers', key: target.keys[0]! });
  let longestMs = 0;
  probing = true;
  while (probing) {
    await sleep(everyMs);
    const askedMs = nowMs();
    await ask(connection, bytes, () => {
      longestMs = Math.max(longestMs, nowMs() - askedMs);
    });
  }
  connection.close();
  return longestMs;
};

const endProbe = (): void => {
  probing = false;
};

let idle: SocketConnection[] = [];
let idleFault: Error | null = null;

/** Opens WebSockets on which nothing happens. */
const openIdle = async ({ sockets, target }: { target: Target; sockets: number }): Promise<void> => {
  idleFault = null;
  for (let begin = 0; begin < sockets; begin += handshakesMax) {
    const batch = Array.from(
      { length: Math.min(handshakesMax, sockets - begin) },
      (_, i) =>
        new SocketConnection(
          { port: target.port, key: keyOf(target, begin + i) },
          {
            onMessage: (json) => (idleFault ??= new Error(`an idle socket received ${json}`)),
            onError: (error) => (idleFault ??= error),
          },
        ),
    );
    idle.push(...batch);
    await Promise.all(batch.map((connection) => connection.opened()));
  }
};

/** The service ends idle sockets on purpose. @returns how many are open */
const idleLeft = (): number => {
  idleFault = null;
  return idle.filter(({ isOver }) => !isOver).length;
};

/** @throws the first fault of an idle socket */
const closeIdle = (): void => {
  for (const connection of idle) connection.close();
  idle = [];
  if (idleFault !== null) throw idleFault;
};

/** The frames of one utterance, as they come. */
const record = async ({ target, text }: { target: Target; text: string }): Promise<readonly string[]> => {
  const frames: string[] = [];
  let connection: SocketConnection | undefined;
  try {
    await new Promise<void>((resolve, reject) => {
      const onMessage = (json: string) => {
        if (json.startsWith('{"error"')) reject(new Error(`the service sent ${json}`));
        if (!json.startsWith('{"context_started"')) frames.push(json);
        if (json.startsWith('{"flush_completed"')) resolve();
      };
      const options = { port: target.port, key: target.keys[0]! };
      connection = new SocketConnection(options, { onMessage, onError: reject });
      const utterance = [encodeStart(target), encodeUtterance(text)];
      connection.opened().then(() => connection?.write(Buffer.concat(utterance)), reject);
    });
  } finally {
    connection?.close();
  }
  return frames;
};

interface ReceiveOrder {
  readonly port: number;
  readonly sockets: number;
  readonly warmUpMs: number;
  readonly durationMs: number;
  readonly watchedPid: number;
}

/** WebSockets to a server that sends on its own, read as fast as they can be. */
const receive = async (order: ReceiveOrder): Promise<FrameCost> => {
  const { durationMs, port, sockets, warmUpMs, watchedPid } = order;
  const fault = Promise.withResolvers<never>();
  fault.promise.catch(() => undefined);
  const connections = Array.from(
    { length: sockets },
    () =>
      new SocketConnection(
        { port, path: '/', key: '' },
        { onAudio: () => undefined, onMessage: () => undefined, onError: fault.reject },
      ),
  );
  try {
    await Promise.all(connections.map((connection) => connection.opened()));
    await Promise.race([sleep(warmUpMs), fault.promise]);
    const end = gaugeFrames(watchedPid, connections);
    await Promise.race([sleep(durationMs), fault.promise]);
    return end();
  } finally {
    for (const connection of connections) connection.close();
  }
};

const calls = {
  firstAudio,
  closedLoop: (order: ThroughputOrder) => closedLoop(order),
  throughput,
  wholeThroughput,
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
