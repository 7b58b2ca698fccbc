/** Whole files that one key asks for, one at a time: how long each takes. */
import { setTimeout as sleep } from 'node:timers/promises';
import { exchange } from '../../rig/http.js';
import { Tally } from '../../rig/tally.js';

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

const restMs = 30;
const waitMsMax = 15_000;

export const wholes = async (order: WholesOrder): Promise<WholesFigures> => {
  const { askMsMax, count, key, port, text, voice } = order;
  const waitsMs: number[] = [];
  const faults = new Tally();
  const endMs = performance.now() + askMsMax;
  while (waitsMs.length < count && performance.now() < endMs) {
    const askedMs = performance.now();
    // In the format of a client that names none.
    const request = { path: '/v1/tts', key, body: { text, voice } };
    const { error, status } = await exchange(port, request, { signal: AbortSignal.timeout(waitMsMax) });
    const isServed = error === null && status === 200;
    waitsMs.push(isServed ? performance.now() - askedMs : Infinity);
    if (!isServed) faults.add(error?.message ?? `the service answered ${status}`);
    await sleep(restMs);
  }
  return { waitsMs, faults: faults.toString() };
};
