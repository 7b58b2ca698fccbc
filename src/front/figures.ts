/** What is open in the front at the moment, counted when somebody asks. */
import type { Figures } from '../metrics.js';
import type { Services } from './services.js';
import { SOCKET_PATH, type Sockets } from './ws/sockets.js';

export type FrontFigures = Pick<Figures, 'streams' | 'sockets' | 'bufferedBytes'>;

/** @param routes those of HTTP that speak */
export const frontFigures = (
  { registry, resultBudget }: Pick<Services, 'registry' | 'resultBudget'>,
  sockets: Sockets,
  routes: readonly string[],
): FrontFigures => {
  const streams = new Map(routes.map((route) => [route, 0]));
  let bufferedBytes = resultBudget.taken + sockets.bufferedBytes;
  for (const { isSpokenFor, route, sender } of registry.members) {
    if (isSpokenFor) streams.set(route, (streams.get(route) ?? 0) + 1);
    bufferedBytes += sender?.queuedBytes ?? 0;
  }
  streams.set(SOCKET_PATH, sockets.speaking);
  return { streams, sockets: sockets.size, bufferedBytes };
};
