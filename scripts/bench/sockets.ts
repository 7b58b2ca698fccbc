/** What the load does with WebSockets besides listening: many that are idle, frames that are counted, contexts at once. */
import { setTimeout as sleep } from 'node:timers/promises';
import { cpuTimesOf } from '../rig/process-facts.js';
import { SocketConnection, encodeMessage, encodeStart, openMany, type ServerFrame } from '../rig/socket.js';
import { sumOf } from '../rig/statistics.js';
import { encodeUtterance, keyOf, type Target } from './streams.js';

/** Between two rounds: the service finishes everything. */
const restMs = 40;

/** Messages that sockets received in a while, and what they cost their sender. */
export interface FrameCost {
  /** Messages of all kinds. */
  readonly frames: number;
  readonly gaugedMs: number;
  /** Time of the main thread of the watched process; NaN without one, and where the system does not report it. */
  readonly frontCpuMs: number;
}

/** @returns a function that ends the measurement */
export const gaugeFrames = (
  pid: number | undefined,
  sources: readonly { readonly messages: number }[],
): (() => FrameCost) => {
  const read = () => ({
    atMs: performance.now(),
    frames: sumOf(sources.map(({ messages }) => messages)),
    cpuMs: pid === undefined ? Number.NaN : cpuTimesOf(pid).front,
  });
  const begun = read();
  return () => {
    const ended = read();
    return {
      frames: ended.frames - begun.frames,
      gaugedMs: ended.atMs - begun.atMs,
      frontCpuMs: ended.cpuMs - begun.cpuMs,
    };
  };
};

let idle: SocketConnection[] = [];
let idleFault: Error | null = null;

/** Opens WebSockets on which nothing happens. */
export const openIdle = async ({ sockets, target }: { target: Target; sockets: number }): Promise<void> => {
  idleFault = null;
  const onError = (error: Error): void => void (idleFault ??= error);
  const onMessage = (json: string): void => onError(new Error(`an idle socket received ${json}`));
  const { port } = target;
  idle = await openMany(
    sockets,
    (index) => new SocketConnection({ port, key: keyOf(target, index) }, { onMessage, onError }),
  );
};

/** The service ends idle sockets on purpose. @returns how many are open */
export const idleLeft = (): number => {
  idleFault = null;
  return idle.filter(({ isOver }) => !isOver).length;
};

/** @throws the first fault of an idle socket */
export const closeIdle = (): void => {
  for (const connection of idle) connection.close();
  idle = [];
  if (idleFault !== null) throw idleFault;
};

export interface ReceiveOrder {
  readonly port: number;
  readonly sockets: number;
  readonly warmUpMs: number;
  readonly durationMs: number;
  readonly watchedPid: number;
}

/** WebSockets to a server that sends on its own, read as fast as they can be. */
export const receive = async (order: ReceiveOrder): Promise<FrameCost> => {
  const { durationMs, port, sockets, warmUpMs, watchedPid } = order;
  const fault = Promise.withResolvers<never>();
  fault.promise.catch(() => undefined);
  const handlers = { onAudio: () => undefined, onMessage: () => undefined, onError: fault.reject };
  const connections = await openMany(
    sockets,
    () => new SocketConnection({ port, path: '/', key: '' }, handlers),
  );
  try {
    await Promise.race([sleep(warmUpMs), fault.promise]);
    const end = gaugeFrames(watchedPid, connections);
    await Promise.race([sleep(durationMs), fault.promise]);
    return end();
  } finally {
    for (const connection of connections) connection.close();
  }
};

type OnFrame = (frame: ServerFrame, json: string) => void;

/** A WebSocket of which each frame is read. */
export class FrameSocket {
  readonly #connection: SocketConnection;
  readonly #fault = Promise.withResolvers<never>();
  #onFrame: OnFrame = () => undefined;

  constructor({ port }: Target, key: string) {
    this.#fault.promise.catch(() => undefined);
    const onMessage = (json: string): void => {
      const frame = JSON.parse(json) as ServerFrame;
      if (frame.error !== undefined) this.#fault.reject(new Error(`the service sent ${json}`));
      this.#onFrame(frame, json);
    };
    this.#connection = new SocketConnection({ port, key }, { onMessage, onError: this.#fault.reject });
  }

  opened(): Promise<void> {
    return Promise.race([this.#connection.opened(), this.#fault.promise]);
  }

  write(...messages: readonly Buffer[]): void {
    this.#connection.write(Buffer.concat(messages));
  }

  /** Resolves when so many frames of the kind came. @param onFrame sees each frame from now on */
  until(kind: keyof ServerFrame, count = 1, onFrame: OnFrame = () => undefined): Promise<void> {
    const received = new Promise<void>((resolve) => {
      let left = count;
      this.#onFrame = (frame, json) => {
        onFrame(frame, json);
        if (frame[kind] !== undefined && --left === 0) resolve();
      };
    });
    return Promise.race([received, this.#fault.promise]);
  }

  close(): void {
    this.#connection.close();
  }
}

/** The frames of one utterance, as they come. */
export const record = async ({ target, text }: { target: Target; text: string }): Promise<string[]> => {
  const frames: string[] = [];
  const socket = new FrameSocket(target, target.keys[0]!);
  try {
    await socket.opened();
    socket.write(encodeStart(target), encodeUtterance(text));
    await socket.until('flush_completed', 1, ({ context_started }, json) => {
      if (context_started === undefined) frames.push(json);
    });
  } finally {
    socket.close();
  }
  return frames;
};

/**
 * In each round one context of a WebSocket speaks alone, and then several at once. Each context speaks once: the listener of a
 * context that spoke before has audio in hand, and is not in a hurry.
 */
export const speakTogether = async (order: {
  readonly target: Target;
  readonly text: string;
  readonly contexts: number;
  readonly rounds: number;
}) => {
  const { target, text, contexts, rounds } = order;
  const socket = new FrameSocket(target, keyOf(target, 0));
  let opened = 0;
  /** @returns milliseconds from the request to the first audio of each, when all has been spoken */
  const speak = async (count: number): Promise<number[]> => {
    const ids = Array.from({ length: count }, () => `context-${opened++}`);
    socket.write(...ids.map((id) => encodeStart(target, id)));
    await socket.until('context_started', count);
    await sleep(restMs);
    const firstMs = new Map<string, number>();
    const startedMs = performance.now();
    socket.write(
      ...ids.flatMap((id) => [
        encodeMessage({ send_text: text, context_id: id }),
        encodeMessage({ close_context: true, context_id: id }),
      ]),
    );
    await socket.until('context_closed', count, ({ audio_chunk, context_id = '' }) => {
      if (audio_chunk !== undefined && !firstMs.has(context_id))
        firstMs.set(context_id, performance.now() - startedMs);
    });
    return [...firstMs.values()];
  };
  try {
    await socket.opened();
    await speak(contexts);
    /** First audio by round: of one context that speaks alone, and of each when all begin at once, the earliest first. */
    const [aloneMs, togetherMs]: [number[], number[][]] = [[], []];
    for (let round = 0; round < rounds; round++) {
      aloneMs.push(...(await speak(1)));
      togetherMs.push(await speak(contexts));
    }
    return { aloneMs, togetherMs };
  } finally {
    socket.close();
  }
};
