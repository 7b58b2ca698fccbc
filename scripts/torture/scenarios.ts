/** Every scenario of `npm run torture`, in the order in which they run. */
import { connections, requests, slow, sockets } from './floods/floods.js';
import { fuzz } from './fuzz/fuzz.js';
import { kills } from './kills/kills.js';
import type { Scenario } from './scenario.js';
import { damagedStore } from './store/damaged-store.js';
import { threads } from './threads/threads.js';

export const scenarios: readonly Scenario[] = [
  fuzz,
  connections,
  requests,
  sockets,
  slow,
  threads,
  kills,
  damagedStore,
];
