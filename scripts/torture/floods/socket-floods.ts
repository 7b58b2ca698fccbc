/** Contexts without end, over WebSockets. Small frames without end are sent by `greedy-frames`. */
import { limits } from '../../../src/limits.js';
import { Tally } from '../../rig/tally.js';
import type { Fault } from '../beside.js';
import { unmet, type Named } from '../scenario.js';
import { openSockets, type CountingSocket } from './counting-socket.js';

const sumOf = (sockets: readonly CountingSocket[], part: 'counts' | 'errors'): Tally => {
  const sum = new Tally();
  for (const socket of sockets) sum.merge(socket[part]);
  return sum;
};

/** Half of what the others leave. */
const contextsOfOneMax = limits.contextsMax / 2;

/** Starts more contexts than a socket and an account may have. */
const contextsFlood = (
  { fault, injected }: Named,
  accounts: number,
  isRight: (started: number, open: number) => boolean,
): Fault => ({
  ...{ fault, injected },
  async inject({ service, keys, voice, progress }) {
    const perSocket = limits.contextsPerSocketMax + 6;
    // Each key has an account of its own.
    const socketsEach = Math.ceil(contextsOfOneMax / limits.contextsPerSocketMax) + 2;
    const sockets = await openSockets(service.port, await keys(accounts), socketsEach * accounts);
    for (const [i, socket] of sockets.entries()) {
      for (let context = 0; context < perSocket; context++) socket.start(voice, String(context));
      await socket.caughtUp();
      progress(`${i} of ${sockets.length} sockets`);
    }
    const started = sumOf(sockets, 'counts').of('context_started');
    const { openContexts } = await service.status();
    const refused = sumOf(sockets, 'errors').toString();
    for (const socket of sockets) socket.close();
    return {
      count: sockets.length * perSocket,
      saw: `${started} started, ${openContexts} open at once; refused: ${refused}`,
      wrong: unmet({ 'as many contexts are open as may be': isRight(started, openContexts) }),
    };
  },
});

export const contextsOfOne = contextsFlood(
  {
    fault: 'contexts up to the caps of socket and account',
    injected: `endless start_context of one account: ${limits.contextsPerSocketMax} a socket, ${contextsOfOneMax} in all`,
  },
  1,
  // Neighbours have contexts, too: half of what they leave is a little less.
  (started) => started > 0.9 * contextsOfOneMax && started <= contextsOfOneMax,
);

export const contextsOfAll = contextsFlood(
  {
    fault: 'contexts of six accounts',
    injected: 'endless start_context of six accounts: each has at most half of what the others leave',
  },
  6,
  (_, open) => open < limits.contextsMax,
);
