/**
 * Plays synthesis threads in the thread of the test, for what does not need threads of their own: starts, reloads, hangs and
 * deaths. All but the thread itself is real. A thread that ended does no further step, as if it were gone.
 */
import { EventEmitter } from 'node:events';
import type { SynthesisJob, SynthesisThreadData } from '../../src/threads/messages.js';
import type { ThreadOfJobs } from '../../src/threads/synthesis-thread.js';
import { serveSynthesis } from '../../workers/synthesis-thread.js';
import { type EngineThread, loadScripted } from './scripted-engine.js';

/** No thread of Node has these ids. */
let lastThreadId = 1_000_000;

const never = () => new Promise<never>(() => undefined);

export const playThread = (data: SynthesisThreadData): ThreadOfJobs => {
  const events = new EventEmitter();
  const ended = Promise.withResolvers<never>();
  ended.promise.catch(() => undefined);
  let isOver = false;
  const end = (reason: string): void => {
    if (isOver) return;
    isOver = true;
    // Before its jobs end: they must not begin here again.
    events.emit('workerDestroy');
    ended.reject(new Error(reason));
  };
  const threadId = ++lastThreadId;
  const thread: EngineThread = {
    threadId,
    exit: (code) => {
      end(`the thread ended with code ${code}`);
      return never();
    },
    wait: async (latch) => {
      await Atomics.waitAsync(latch, 0, 0).value;
    },
    lives: () => (isOver ? never() : Promise.resolve()),
    ownFaults: {},
  };
  const serve = () =>
    serveSynthesis(
      data,
      (native) => loadScripted(data, native, thread),
      (message) => {
        if (!isOver) events.emit('message', message);
      },
    );
  // Its owner listens first.
  const handler = Promise.resolve().then(serve);
  const played = {
    threads: [{ threadId }],
    on: events.on.bind(events),
    run: async (job: SynthesisJob) =>
      Promise.race([handler.then((run) => run(structuredClone(job))), ended.promise]),
    destroy: () => {
      end('the thread was ended');
      return Promise.resolve();
    },
  };
  return played as unknown as ThreadOfJobs;
};
