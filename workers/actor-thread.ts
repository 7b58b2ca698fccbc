/** What an actor thread does: it hosts contexts, passes them commands and chunks, and mails their frames to the front thread. */
import { parentPort, workerData } from 'node:worker_threads';
import { faultPlace } from '../src/fault.js';
import { monotonicMs } from '../src/monotonic.js';
import { nameThread } from '../src/thread-name.js';
import { packFrames } from '../src/threads/mail.js';
import { encodingNames, type Encoding } from '../src/api/formats.js';
import { EffortTable } from '../src/threads/effort.js';
import { ClockTable } from '../src/threads/playback-clock.js';
import type {
  ActorCommand,
  ActorError,
  ActorReady,
  ActorThreadData,
  ActorThreadMessage,
  ChunkMail,
  Frame,
} from '../src/threads/messages.js';
import { Vitals } from '../src/threads/vitals.js';
import { TickBatch } from '../src/tick.js';
import { ContextActor } from './actor/context.js';
import { EarlyMail } from './actor/early-mail.js';
import { RunQueue } from './actor/run-queue.js';
import { loadEncoders } from './audio/encoders.js';

/** Work between two looks at the mail: about two frames of the slowest codec. */
const WORK_MS = 4;

if (parentPort === null) throw new Error('contexts are hosted by a worker thread');
const front = parentPort;
const data = workerData as ActorThreadData;
nameThread('actor');
new Vitals(data.vitals).live(data.bounds);
const efforts = new EffortTable(data.effort);
const clocks = new ClockTable(data.clocks);

const contexts = new Map<number, ContextActor>();
const early = new EarlyMail(data.actor, (reason) => front.postMessage({ reason } satisfies ActorError));

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

/** Runs a context's reaction. A fault ends that context and no other. */
const guarded = <T>(contextId: number, react: () => T): T | null => {
  try {
    return react();
  } catch (error) {
    forget(contextId);
    outgoing.add({ type: 'failed', contextId, reason: faultPlace(error) });
    return null;
  }
};

const queue = new RunQueue<ContextActor>({
  clock: monotonicMs,
  workMs: WORK_MS,
  work: (context) => {
    const end = efforts.begin();
    const speechMs = guarded(context.id, () => context.work());
    efforts.add(encodingNames.indexOf(context.encoding), end(speechMs ?? 0).effort);
    return speechMs !== null;
  },
  dueMs: (context) => context.dueMs,
  onPause: () => outgoing.flush(),
  defer: setImmediate,
});

const open = (command: Extract<ActorCommand, { type: 'open' }>): void => {
  const { contextId } = command;
  const chunks = early.opened(contextId);
  const emit = (frame: Frame): void => {
    outgoing.add(frame);
    if (frame.type === 'closed' || frame.type === 'failed') forget(contextId);
  };
  const context = new ContextActor(command, clocks.clock(command.clock), emit, (woken) => queue.wake(woken));
  contexts.set(contextId, context);
  for (const chunk of chunks) context.chunk(chunk);
};

const onCommand = (command: ActorCommand): void => {
  const { type, contextId } = command;
  guarded(contextId, () => {
    if (type === 'open') {
      open(command);
      return;
    }
    const context = contexts.get(contextId);
    if (context === undefined) early.command(type, contextId);
    else if (type === 'cancel') forget(contextId);
    else context.announce(command);
  });
};

const onChunk = (chunk: ChunkMail): void => {
  const context = contexts.get(chunk.contextId);
  if (context === undefined) early.offer(chunk);
  else guarded(chunk.contextId, () => context.chunk(chunk));
};

/** @param measure what each encoding costs in this thread */
export const serveActors = async (measure: () => Promise<Map<Encoding, number>>): Promise<void> => {
  // Before the first message is taken: a context must never wait for an encoder.
  await loadEncoders(data.bounds);
  const encodingCosts = await measure();

  front.on('message', (message: ActorThreadMessage) => {
    if (message.type === 'synthesis') message.port.on('message', onChunk);
    else for (const command of message.commands) onCommand(command);
  });
  front.postMessage({ encodingCosts } satisfies ActorReady);
};
