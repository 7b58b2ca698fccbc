/** The load client's process: does what it is told, one command at a time, and reports. */
import { setTimeout as sleep } from 'node:timers/promises';
import { FrameGauge } from './frame-gauge.js';
import { Listener } from './listener.js';
import type { LoadCommand, LoadResult, Target } from './protocol.js';
import { check } from './socket-check.js';
import { closeIdle, openIdle, receive, recordTurn } from './socket-load.js';
import { SocketStream, encodeTurn } from './socket-stream.js';
import { StreamConnection, encodeRequest } from './stream-connection.js';

type Command<T extends LoadCommand['type']> = Extract<LoadCommand, { type: T }>;

/** Between two lone listeners: the service comes to rest, a cancelled step included. */
const restMs = 40;
/** A tick of the real-time listeners; what they notice late is less than this. */
const tickMs = 10;

const nowMs = (): number => performance.now();

const firstAudioOf = async (target: Target, request: Buffer): Promise<number> => {
  const connection = new StreamConnection(target);
  await connection.opened();
  await sleep(restMs);
  try {
    return await new Promise((resolve, reject) => {
      const startedMs = nowMs();
      connection.request(request, {
        onAudio: () => resolve(nowMs() - startedMs),
        onEnd: () => reject(new Error('the stream had no audio')),
        onError: reject,
      });
    });
  } finally {
    connection.close();
  }
};

const runFirstAudio = async ({ target, texts, rounds }: Command<'first-audio'>): Promise<LoadResult> => {
  const requests = texts.map((text, i) => encodeRequest(target, target.keys[i % target.keys.length]!, text));
  const firstAudioMs = texts.map((): number[] => []);
  for (let round = 0; round < rounds; round++) {
    // In turns, so that a slow moment of the machine meets every text alike.
    for (const [i, request] of requests.entries()) firstAudioMs[i]!.push(await firstAudioOf(target, request));
  }
  return { type: 'first-audio', firstAudioMs };
};

const runThroughput = async (command: Command<'throughput'>): Promise<LoadResult> => {
  const { target, text, connections, durationMs } = command;
  let audioMs = 0;
  let over = false;
  const repeat = async (key: string): Promise<void> => {
    const connection = new StreamConnection(target);
    await connection.opened();
    const request = encodeRequest(target, key, text);
    try {
      while (!over) {
        await new Promise<void>((resolve, reject) => {
          let heardMs = 0;
          const onAudio = (totalMs: number) => {
            if (over) {
              resolve();
              return;
            }
            audioMs += totalMs - heardMs;
            heardMs = totalMs;
          };
          connection.request(request, { onAudio, onEnd: resolve, onError: reject });
        });
      }
    } finally {
      connection.close();
    }
  };
  const running = Promise.all(
    Array.from({ length: connections }, (_, i) => repeat(target.keys[i % target.keys.length]!)),
  );
  const failed = running.then(() => undefined);
  failed.catch(() => undefined);
  // The first requests start together; what is counted begins when they are spread out.
  await Promise.race([sleep(1_000), failed]);
  audioMs = 0;
  const startedMs = nowMs();
  await Promise.race([sleep(durationMs), failed]);
  const result: LoadResult = { type: 'throughput', audioMs, durationMs: nowMs() - startedMs };
  over = true;
  await running;
  return result;
};

const runListeners = async (command: Command<'listeners'>): Promise<LoadResult> => {
  const { target, text, transport, listeners: count, spreadMs, durationMs, watchedPid } = command;
  const sockets: SocketStream[] = [];
  const listeners = Array.from({ length: count }, (_, i) => {
    const key = target.keys[i % target.keys.length]!;
    if (transport === 'http')
      return new Listener(new StreamConnection(target), encodeRequest(target, key, text));
    const socket = new SocketStream(target, key);
    sockets.push(socket);
    return new Listener(socket, encodeTurn(text));
  });
  const gauge = new FrameGauge(watchedPid, sockets);
  await Promise.all(listeners.map((listener) => listener.opened()));
  const startedMs = nowMs();
  let started = 0;
  while (nowMs() - startedMs < spreadMs + durationMs) {
    const elapsedMs = nowMs() - startedMs;
    while (started < count && (started * spreadMs) / count <= elapsedMs) listeners[started++]!.start(nowMs());
    const tickStartMs = nowMs();
    for (const listener of listeners) listener.tick(tickStartMs);
    if (elapsedMs >= spreadMs) gauge.begin();
    await sleep(tickMs);
  }
  const { frames, durationMs: gaugedMs, frontCpuMs } = gauge.end();
  for (const listener of listeners) listener.close();
  return {
    type: 'listeners',
    firstAudioMs: listeners.flatMap((listener) => [...listener.firstAudioMs]),
    dry: listeners.filter((listener) => listener.dryMs > 0).length,
    dryMsMax: Math.max(...listeners.map((listener) => listener.dryMs)),
    audioMs: listeners.reduce((sum, listener) => sum + listener.audioMs, 0),
    frames,
    gaugedMs,
    frontCpuMs,
  };
};

const run = (command: LoadCommand): Promise<LoadResult> => {
  switch (command.type) {
    case 'first-audio':
      return runFirstAudio(command);
    case 'throughput':
      return runThroughput(command);
    case 'listeners':
      return runListeners(command);
    case 'open-idle':
      return openIdle(command);
    case 'close-idle':
      return closeIdle();
    case 'record':
      return recordTurn(command);
    case 'receive':
      return receive(command);
    case 'check':
      return check(command);
  }
};

const onCommand = async (command: LoadCommand): Promise<void> => {
  let result: LoadResult;
  try {
    result = await run(command);
  } catch (error) {
    result = { type: 'failed', message: error instanceof Error ? error.message : String(error) };
  }
  process.send?.(result);
};

process.on('message', (command: LoadCommand) => void onCommand(command));
// The benchmark ended, in whatever way: so does its client.
process.on('disconnect', () => process.exit(0));
