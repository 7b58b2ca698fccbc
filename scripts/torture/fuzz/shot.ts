/** Writes one input to a connection of its own, and reads what the service answers. */
import { connect } from 'node:net';
import type { Input } from './input.js';

/**
 * Milliseconds that a client waits for an answer, or for more of it: a multiple of the mean time of answers, because on a
 * busy machine all clients would leave before theirs.
 */
const quietMs = { min: 60, max: 2_000, answersMin: 3 } as const;
/** A patient client waits so many times longer, for speech. */
const patience = 6;
/** The weight of one answer in the mean time. */
const answerWeight = 0.02;
/** The service must have closed the connection of a client that half-closed. */
const closedMsMax = 20_000;
/**
 * And of one that stays, and answers no ping: more than any bound on a head or a body, and on the silence of a client, which is a minute
 * and twice the speech that it has read.
 */
const stayMsMax = 120_000;
const trickleEveryMs = 1_000;
/** The part of an answer that is read. */
const lookedBytesMax = 64 * 1024;

const statusLine = /HTTP\/1\.1 (\d{3}) /g;
const frameKinds = [
  'context_started',
  'audio_chunk',
  'flush_completed',
  'context_closed',
  'isFinal',
  'error',
];

/** From a connection to its first answer, of all clients. */
let answerMsMean = 0;

const waitMs = (): number => Math.min(quietMs.max, Math.max(quietMs.min, quietMs.answersMin * answerMsMean));

export interface Shot {
  /** Statuses, and kinds of frames; `none`: no answer. */
  readonly answers: readonly string[];
  /** A wrong answer, or that the service keeps the connection too long. */
  readonly fault: string | null;
}

/** @param localAddress one of many: otherwise connections in TIME_WAIT would use up the ports */
export const shoot = (input: Input, port: number, localAddress: string): Promise<Shot> => {
  const { afterUpgrade, bytes, cuts, ending } = input;
  const { promise, resolve } = Promise.withResolvers<Shot>();
  const startMs = performance.now();
  const answers = new Set<string>();
  let fault: string | null = null;
  let heardBytes = 0;
  let isUpgraded = false;
  let hasWritten = false;
  let isLeaving = false;
  let timer: NodeJS.Timeout | undefined;
  let trickle: NodeJS.Timeout | undefined;
  const socket = connect({ host: '127.0.0.1', port, localAddress, noDelay: true });

  const leave = (why: string | null): void => {
    if (isLeaving) return;
    isLeaving = true;
    fault ??= why;
    // A reset leaves no trace in the system's tables. After a FIN the library may refuse it.
    if (socket.writableEnded) socket.destroy();
    else socket.resetAndDestroy();
  };
  const stays = ending === 'linger' || ending === 'trickle';
  /** Waits for an answer, or for more of it; a client that stays, for the end. */
  const wait = (): void => {
    if (stays && timer !== undefined) return;
    clearTimeout(timer);
    const [ms, why] = patienceNow();
    timer = setTimeout(() => leave(why), ms);
  };
  /** How long it waits in silence, and what is wrong then. */
  const patienceNow = (): readonly [ms: number, why: string | null] => {
    if (stays) return [stayMsMax, 'the service keeps the connection'];
    if (ending === 'half-close' && hasWritten)
      return [closedMsMax, 'the service keeps a connection that its client has half-closed'];
    return [waitMs() * (ending === 'patient' ? patience : 1), null];
  };
  const end = (): void => {
    hasWritten = true;
    if (ending === 'half-close') socket.end();
    else if (ending === 'reset') setImmediate(() => leave(null));
    else if (ending === 'trickle') trickle = setInterval(() => socket.write('x'), trickleEveryMs);
  };
  const read = (text: string): void => {
    if (isUpgraded) {
      for (const kind of frameKinds) if (text.includes(`"${kind}"`)) answers.add(kind);
      return;
    }
    for (const [, status = ''] of text.matchAll(statusLine)) {
      answers.add(status);
      isUpgraded = status === '101';
      if (status === '500') fault = 'answered 500';
    }
    if (answers.size === 0 || hasWritten || afterUpgrade === undefined) return;
    if (isUpgraded) socket.write(afterUpgrade);
    end();
  };

  socket.on('connect', () => {
    for (const [i, from] of [0, ...cuts].entries()) socket.write(bytes.subarray(from, cuts[i]));
    if (afterUpgrade === undefined) end();
    wait();
  });
  socket.on('data', (data) => {
    if (heardBytes === 0) answerMsMean += answerWeight * (performance.now() - startMs - answerMsMean);
    heardBytes += data.length;
    if (heardBytes <= lookedBytesMax) read(data.toString('latin1'));
    // It speaks; the rest of a long answer would only cost CPU.
    else if (ending !== 'half-close') leave(null);
    wait();
  });
  socket.on('error', (error: NodeJS.ErrnoException) => {
    // A reset is a valid answer; a refused connection is not.
    if (error.syscall === 'connect') fault = `no connection: ${error.message}`;
  });
  socket.on('close', () => {
    clearTimeout(timer);
    clearInterval(trickle);
    resolve({ answers: answers.size === 0 ? ['none'] : [...answers], fault });
  });
  return promise;
};
