/** Entry of an actor thread that breaks when a segment has a word that names a fault. */
import { parentPort } from 'node:worker_threads';
import type { ActorThreadMessage } from '../../../src/threads/messages.js';
import { actorFaults, exhaustHeap, spin, type ActorFault } from './faults.js';

await import('../../../workers/actors.js');

const faults: Readonly<Record<ActorFault, () => void>> = {
  'actor-throw': () => {
    throw new Error('injected');
  },
  'actor-exit': () => process.exit(4),
  'actor-heap': exhaustHeap,
  'actor-spin': spin,
};

parentPort?.on('message', (message: ActorThreadMessage) => {
  if (message.type !== 'commands') return;
  for (const command of message.commands) {
    if (command.type !== 'segment') continue;
    for (const fault of actorFaults) if (command.words.includes(`${fault}.`)) faults[fault]();
  }
});
