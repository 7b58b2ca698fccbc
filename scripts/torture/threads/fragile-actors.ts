/** Entry of an actor thread that breaks when a segment has a word that names a fault. */
import { parentPort } from 'node:worker_threads';
import type { ActorThreadMessage } from '../../../src/threads/messages.js';
import { faultIn } from './faults.js';

await import('../../../workers/actors.js');

parentPort?.on('message', (message: ActorThreadMessage) => {
  if (message.type !== 'commands') return;
  for (const command of message.commands)
    if (command.type === 'segment') faultIn(command.words.join(' '), 'actor-')?.();
});
