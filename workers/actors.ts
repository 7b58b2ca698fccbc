/**
 * Entry of an actor thread: hosts contexts, passes them commands and chunks, and mails their frames to the front.
 */
import { parentPort, workerData, type MessagePort } from 'node:worker_threads';
import { packFrames, unpackCommands } from '../src/threads/mail.js';
import { ACTOR_READY } from '../src/threads/messages.js';
import { faultPlace } from '../src/fault.js';
import type {
  ActorCommand,
  ActorThreadData,
  ActorThreadMessage,
  ChunkMail,
  Frame,
} from '../src/threads/messages.js';
import { Vitals } from '../src/threads/vitals.js';
import { monotonicMs } from '../src/monotonic.js';
import { TickBatch } from '../src/tick.js';
import { nameThread } from '../src/thread-name.js';
import { loadEncoders } from './audio/encoders.js';
import { ContextActor } from './actor/context.js';
import { EarlyMail } from './actor/early-mail.js';
import { RunQueue } from './actor/run-queue.js';

/** Of work between two looks at the mail: about two frames of the slowest codec. */
const TURN_MS = 4;

if (parentPort === null) throw new Error('actors.js is the entry of a worker thread');
const front = parentPort;
nameThread('actor');
const data = workerData as ActorThreadData;
new Vitals(data.vitals).live(data.bounds);

const contexts = new Map<number, ContextActor>();
const early = new EarlyMail();

const outgoing = new TickBatch<Frame>((frames) => {
  const mail = packFrames(frames);
  front.postMessage(mail, [mail.body]);
});

const forget = (contextId: number): void => {
  const context = contexts.get(contextId);
  if (context === undefined) return;
  context.dispose();
  queue.remove(context);
  contexts.delete(contextId);
};

/** Runs a context's reaction; a fault ends that context and no other. */
const guarded = <T>(contextId: number, react: () => T): T | null => {
  try {
    return react();
  } catch (error) {
    forget(contextId);
    const reason = faultPlace(error);
    outgoing.add({ type: 'failed', contextId, reason });
    return null;
  }
};

const queue = new RunQueue<ContextActor>({
  clock: monotonicMs,
  turnMs: TURN_MS,
  step: (context) => guarded(context.id, () => context.step()),
  endTurn: () => outgoing.flush(),
  defer: setImmediate,
});

const open = (command: Extract<ActorCommand, { type: 'open' }>): void => {
  const { contextId } = command;
  const emit = (frame: Frame): void => {
    outgoing.add(frame);
    if (frame.type === 'closed' || frame.type === 'failed') forget(contextId);
  };
  const context = new ContextActor(command, emit, (woken) => queue.wake(woken));
  contexts.set(contextId, context);
  for (const mail of early.take(contextId)) context.chunk(mail);
};

const onCommand = (command: ActorCommand): void => {
  const { contextId } = command;
  guarded(contextId, () => {
    switch (command.type) {
      case 'open':
        open(command);
        return;
      case 'segment':
        contexts.get(contextId)?.segment(command);
        return;
      case 'flush':
        contexts.get(contextId)?.flush(command.flushId);
        return;
      case 'close':
        contexts.get(contextId)?.close();
        return;
      case 'cancel':
        forget(contextId);
    }
  });
};

const onChunk = (mail: ChunkMail): void => {
  const context = contexts.get(mail.contextId);
  if (context === undefined) early.offer(mail);
  else guarded(mail.contextId, () => context.chunk(mail));
};

const listen = (port: MessagePort): void => {
  port.on('message', onChunk);
};

// Before the first message is taken: a context must never wait for an encoder.
await loadEncoders(data.bounds);

front.on('message', (message: ActorThreadMessage) => {
  switch (message.type) {
    case 'commands':
      for (const command of unpackCommands(message.mail)) {
        if (command.type === 'open') early.opened(command.contextId);
        onCommand(command);
      }
      return;
    case 'synthesis':
      listen(message.port);
  }
});
front.postMessage(ACTOR_READY);
