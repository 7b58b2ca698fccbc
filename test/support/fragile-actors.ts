/** Entry of an actor thread that breaks when a certain word is announced. */
import { parentPort } from 'node:worker_threads';
import { packFrames } from '../../src/threads/mail.js';
import type { ActorThreadMessage } from '../../src/threads/messages.js';

await import('./quick-actors.js');

parentPort?.on('message', (message: ActorThreadMessage) => {
  if (message.type !== 'commands') return;
  for (const command of message.commands) {
    if (command.type !== 'segment') continue;
    if (command.words.includes('!actor-exit')) process.exit(4);
    if (command.words.includes('!actor-spin')) for (;;);
    if (command.words.includes('!actor-stray'))
      parentPort?.postMessage(packFrames([{ type: 'closed', contextId: 2 ** 20 }]));
    if (command.words.includes('!actor-fails-twice')) {
      const failed = { type: 'failed', contextId: command.contextId, reason: 'scripted fault' } as const;
      parentPort?.postMessage(packFrames([failed, failed]));
    }
    if (command.words.includes('!actor-throw')) throw new Error('scripted fault');
  }
});
