/** Many connections that open and ask in the same moment: none may be lost. */
import { setTimeout as sleep } from 'node:timers/promises';
import { Tally } from '../../rig/tally.js';
import { HttpStream, keyOf, SocketStream, type SpeechStream, type Target } from '../streams.js';
import { type Spread, spreadOf } from './figures.js';

export interface BurstOrder {
  readonly target: Target;
  readonly texts: readonly string[];
  readonly connections: number;
  /** One in so many is a WebSocket. */
  readonly socketEvery: number;
  readonly msMax: number;
}

export interface BurstFigures {
  /** The utterance came whole. */
  readonly served: number;
  /** 503, at the handshake of a WebSocket too, or its error frame. */
  readonly refused: number;
  /** Neither. */
  readonly lost: number;
  readonly faults: string;
  /** From the beginning of the burst. */
  readonly firstAudioMs: Spread | null;
  readonly refusalMs: Spread | null;
  readonly tookMs: number;
}

/** The answer to a handshake that the service refuses. */
const handshakeRefusal = 'HTTP/1.1 503 ';

export const burst = async (order: BurstOrder): Promise<BurstFigures> => {
  const { connections, msMax, socketEvery, target, texts } = order;
  const streams: SpeechStream[] = [];
  const [firstAudioMs, refusalMs]: [number[], number[]] = [[], []];
  const faults = new Tally();
  let [served, refused, failed] = [0, 0, 0];
  const startedMs = performance.now();
  for (let i = 0; i < connections; i++) {
    const key = keyOf(target, i);
    const stream = i % socketEvery === 0 ? new SocketStream(target, key) : new HttpStream(target, key);
    streams.push(stream);
    let isRefused = false;
    let hears = false;
    const refuse = (): void => {
      if (!isRefused) refusalMs.push(performance.now() - startedMs);
      isRefused = true;
    };
    stream.request(texts[i % texts.length]!, {
      onAudio: () => {
        if (!hears) firstAudioMs.push(performance.now() - startedMs);
        hears = true;
      },
      onRefused: refuse,
      onEnd: () => {
        if (isRefused) refused++;
        else if (hears) served++;
        else {
          failed++;
          faults.add('an answer without audio');
        }
      },
      onError: ({ message }) => {
        if (message.includes(handshakeRefusal)) {
          refuse();
          refused++;
          return;
        }
        failed++;
        faults.add(message);
      },
    });
  }
  const endMs = startedMs + msMax;
  while (performance.now() < endMs && served + refused + failed < connections) await sleep(10);
  const tookMs = performance.now() - startedMs;
  for (const stream of streams) stream.close();
  const unanswered = connections - served - refused - failed;
  if (unanswered > 0) faults.add('no end in time', unanswered);
  return {
    served,
    refused,
    lost: failed + unanswered,
    faults: faults.toString(),
    firstAudioMs: spreadOf(firstAudioMs),
    refusalMs: spreadOf(refusalMs),
    tookMs,
  };
};
