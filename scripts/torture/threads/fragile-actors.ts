/** Entry of an actor thread that breaks when it is told of a word: how, the word says. */
import { parentPort } from 'node:worker_threads';
import { unpackCommands } from '../../../src/threads/mail.js';
import type { ActorThreadMessage } from '../../../src/threads/messages.js';
import { actorFaults, type ActorFault } from './faults.js';

await import('../../../workers/actors.js');

const exhaustHeap = (): never => {
  const hoard: unknown[] = [];
  for (;;) hoard.push(new Array(2 ** 20).fill(hoard));
};

const spin = (): never => {
  for (;;);
};

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
  for (const command of unpackCommands(message.mail)) {
    if (command.type !== 'segment') continue;
    for (const fault of actorFaults) if (command.words.includes(`${fault}.`)) faults[fault]();
  }
});
