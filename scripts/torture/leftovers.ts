/** What a service that came to rest must not hold any more. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Status, TortureService } from './service.js';

/** For idle connections that the library closes after ten seconds, in steps of four. */
const restMsMax = 25_000;
/** The store's and the system's own come and go. */
const filesMax = 4;
const slotsOfKey = 9;

/** What is meant to be there. */
export interface Stays {
  readonly sockets: number;
  readonly contexts: number;
}

const isAtRest = (status: Status, stays: Stays): boolean =>
  status.requestsInFlight === stays.sockets &&
  status.openContexts === stays.contexts &&
  status.runningSegments === 0 &&
  status.threadsWhole;

/** Whether every slot of the key is free: as many requests as it may have, at once. */
const slotsAreFree = async (port: number, key: string, voice: string): Promise<boolean> => {
  const statuses = await Promise.all(
    Array.from({ length: slotsOfKey }, async () => {
      const response = await fetch(`http://127.0.0.1:${String(port)}/v1/tts`, {
        method: 'POST',
        headers: { 'x-api-key': key, 'content-type': 'application/json' },
        body: JSON.stringify({ text: 'Still here.', voice }),
      });
      await response.arrayBuffer();
      return response.status;
    }),
  );
  return statuses.every((status) => status === 200);
};

/**
 * @param filesBefore open files of the service before the torture
 * @param keys whose slots must be free
 * @returns what is left over, in words; empty when nothing is
 */
export const leftoversOf = async (
  service: TortureService,
  filesBefore: number,
  keys: readonly string[],
  voice: string,
  stays: Stays = { sockets: 0, contexts: 0 },
): Promise<string[]> => {
  const endMs = performance.now() + restMsMax;
  let status = await service.status();
  while (!isAtRest(status, stays) || service.openFiles > filesBefore + filesMax) {
    if (performance.now() > endMs) break;
    await sleep(200);
    status = await service.status();
  }
  const left: string[] = [];
  if (!isAtRest(status, stays)) left.push(`not at rest: ${JSON.stringify(status)}`);
  if (service.openFiles > filesBefore + filesMax)
    left.push(`${String(service.openFiles)} open files, before ${String(filesBefore)}`);
  for (const key of keys) if (!(await slotsAreFree(service.port, key, voice))) left.push('slots of a key');
  return left;
};
