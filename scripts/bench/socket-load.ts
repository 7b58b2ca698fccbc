/** What the load client does with WebSockets, besides listening to them. */
import { setTimeout as sleep } from 'node:timers/promises';
import { FrameGauge } from './frame-gauge.js';
import type { LoadCommand, LoadResult } from './protocol.js';
import { SocketConnection, encodeMessage } from '../rig-old/socket-connection.js';
import { encodeStart, socketPath } from '../rig-old/context-start.js';

type Command<T extends LoadCommand['type']> = Extract<LoadCommand, { type: T }>;

/** Handshakes at a time: more than these the backlog of a listening socket may refuse. */
const handshakesMax = 100;

let idle: SocketConnection[] = [];
let idleFault: Error | null = null;

export const openIdle = async ({ target, sockets }: Command<'open-idle'>): Promise<LoadResult> => {
  idleFault = null;
  for (let begin = 0; begin < sockets; begin += handshakesMax) {
    const batch = Array.from({ length: Math.min(handshakesMax, sockets - begin) }, (_, i) => {
      const key = target.keys[(begin + i) % target.keys.length]!;
      return new SocketConnection(
        { port: target.port, path: socketPath, key, wantsAll: false },
        {
          onAudio: () => undefined,
          onMessage: (json) => (idleFault ??= new Error(`an idle socket was told ${json}`)),
          onError: (error) => (idleFault ??= error),
        },
      );
    });
    idle.push(...batch);
    await Promise.all(batch.map((connection) => connection.opened()));
  }
  return { type: 'open-idle' };
};

/** @throws what befell one of them while it was open */
export const closeIdle = (): Promise<LoadResult> => {
  for (const connection of idle) connection.close();
  idle = [];
  return idleFault === null ? Promise.resolve({ type: 'close-idle' }) : Promise.reject(idleFault);
};

export const recordTurn = async ({ target, text }: Command<'record'>): Promise<LoadResult> => {
  const frames: string[] = [];
  let connection: SocketConnection | undefined;
  try {
    await new Promise<void>((resolve, reject) => {
      const onMessage = (json: string) => {
        if (json.startsWith('{"error"')) reject(new Error(`the service said ${json}`));
        if (!json.startsWith('{"context_started"')) frames.push(json);
        if (json.startsWith('{"flush_completed"')) resolve();
      };
      const options = { port: target.port, path: socketPath, key: target.keys[0]!, wantsAll: true };
      connection = new SocketConnection(options, { onAudio: () => undefined, onMessage, onError: reject });
      const turn = [encodeStart(target), encodeMessage({ send_text: text }), encodeMessage({ flush: true })];
      connection.opened().then(() => connection?.write(Buffer.concat(turn)), reject);
    });
  } finally {
    connection?.close();
  }
  return { type: 'record', frames };
};

export const receive = async (command: Command<'receive'>): Promise<LoadResult> => {
  const { port, sockets, warmUpMs, durationMs, watchedPid } = command;
  let onFault: (error: Error) => void = () => undefined;
  const fault = new Promise<never>((_, reject) => (onFault = reject));
  fault.catch(() => undefined);
  const connections = Array.from(
    { length: sockets },
    () =>
      new SocketConnection(
        { port, path: '/', key: '', wantsAll: false },
        { onAudio: () => undefined, onMessage: () => undefined, onError: (error) => onFault(error) },
      ),
  );
  try {
    await Promise.all(connections.map((connection) => connection.opened()));
    await Promise.race([sleep(warmUpMs), fault]);
    const gauge = new FrameGauge(watchedPid, connections);
    gauge.begin();
    await Promise.race([sleep(durationMs), fault]);
    const { frames, durationMs: gaugedMs, frontCpuMs } = gauge.end();
    return { type: 'receive', frames, gaugedMs, frontCpuMs };
  } finally {
    for (const connection of connections) connection.close();
  }
};
