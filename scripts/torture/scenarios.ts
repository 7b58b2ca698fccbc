/** Every scenario of `npm run torture`, in the order in which they run. */
import { fileLimit } from './floods/file-limit.js';
import { connections, requests, slow, sockets } from './floods/floods.js';
import { fuzz } from './fuzz/fuzz.js';
import { halfOpen } from './half-open/half-open.js';
import { kills } from './kills/kills.js';
import type { Scenario } from './scenario.js';
import { damagedStore } from './store/damaged-store.js';
import { clock } from './surroundings/clock.js';
import { damagedVoices } from './surroundings/damaged-voices.js';
import { fullDisk } from './surroundings/full-disk.js';
import { threads } from './threads/threads.js';

export const scenarios: readonly Scenario[] = [
  fuzz,
  connections,
  requests,
  sockets,
  slow,
  halfOpen,
  fileLimit,
  threads,
  kills,
  damagedStore,
  damagedVoices,
  fullDisk,
  clock,
];
