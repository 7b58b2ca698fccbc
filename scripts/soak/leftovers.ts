/** What the service has left when all clients have. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Leftovers } from './invariants.js';
import type { Monitor } from './monitor.js';

/** For the service to notice that all have left. */
const waitMsMax = 10_000;

/** Until nothing is left, or it is clear that something stays. */
export const awaitLeftovers = async (monitor: Monitor): Promise<Leftovers> => {
  const endMs = performance.now() + waitMsMax;
  for (;;) {
    const status = await monitor.status();
    const { streams, contexts } = await monitor.sample();
    const leftovers: Leftovers = {
      requestsInFlight: status?.requestsInFlight ?? null,
      openContexts: status?.openContexts ?? null,
      streams,
      contexts,
    };
    const isOver = Object.values(leftovers).every((value) => value === null || value === 0);
    if (isOver || performance.now() > endMs) {
      // Connections of the probes, and those that were just closed.
      await sleep(500);
      return leftovers;
    }
    await sleep(250);
  }
};
