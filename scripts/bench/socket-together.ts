/** Contexts of one WebSocket that speak at the same time: when has each its first audio? The load's side. */
import { setTimeout as sleep } from 'node:timers/promises';
import { SocketConnection, encodeMessage, encodeStart, type ServerFrame } from '../rig/socket.js';
import { keyOf, type Target } from './streams.js';

/** Between two rounds: the service finishes everything. */
const restMs = 40;

export interface TogetherOrder {
  readonly target: Target;
  readonly text: string;
  readonly contexts: number;
  readonly rounds: number;
}

export interface Together {
  /** First audio of one context that speaks alone, by round. */
  readonly aloneMs: readonly number[];
  /** First audio of each context when all begin at once, by round; the earliest first. */
  readonly togetherMs: readonly (readonly number[])[];
}

/**
 * In each round one context speaks alone, and then several at once. Each context speaks once: the listener of a context that
 * spoke before has audio in hand, and is not in a hurry.
 */
export const speakTogether = async (order: TogetherOrder): Promise<Together> => {
  const { target, text, contexts, rounds } = order;
  let onFrame: (frame: ServerFrame) => void = () => undefined;
  const fault = Promise.withResolvers<never>();
  fault.promise.catch(() => undefined);
  const connection = new SocketConnection(
    { port: target.port, key: keyOf(target, 0) },
    { onMessage: (json) => onFrame(JSON.parse(json) as ServerFrame), onError: fault.reject },
  );
  const send = (messages: readonly Buffer[]): void => connection.write(Buffer.concat(messages));
  /** Resolves when so many frames of the kind came. */
  const receive = (kind: keyof ServerFrame, count: number, onEach: (id: string) => void): Promise<void> => {
    const received = new Promise<void>((resolve) => {
      let left = count;
      onFrame = (frame) => {
        if (frame.error !== undefined) fault.reject(new Error(`the service sent ${frame.error}`));
        if (frame.audio_chunk !== undefined) onEach(frame.context_id ?? '');
        if (frame[kind] !== undefined && --left === 0) resolve();
      };
    });
    return Promise.race([received, fault.promise]);
  };
  let opened = 0;
  /** @returns milliseconds from the request to the first audio of each, when all has been spoken */
  const speak = async (count: number): Promise<number[]> => {
    const ids = Array.from({ length: count }, () => `context-${opened++}`);
    send(ids.map((id) => encodeStart(target, id)));
    await receive('context_started', count, () => undefined);
    await sleep(restMs);
    const firstMs = new Map<string, number>();
    const startedMs = performance.now();
    send(
      ids.flatMap((id) => [
        encodeMessage({ send_text: text, context_id: id }),
        encodeMessage({ close_context: true, context_id: id }),
      ]),
    );
    await receive('context_closed', count, (id) => {
      if (!firstMs.has(id)) firstMs.set(id, performance.now() - startedMs);
    });
    return [...firstMs.values()];
  };
  try {
    await Promise.race([connection.opened(), fault.promise]);
    await speak(contexts);
    const aloneMs: number[] = [];
    const togetherMs: number[][] = [];
    for (let round = 0; round < rounds; round++) {
      aloneMs.push(...(await speak(1)));
      togetherMs.push(await speak(contexts));
    }
    return { aloneMs, togetherMs };
  } finally {
    connection.close();
  }
};
