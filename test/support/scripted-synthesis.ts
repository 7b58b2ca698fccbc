/** Entry of a synthesis thread with the scripted engine. */
import { threadId, workerData } from 'node:worker_threads';
import type { SynthesisThreadData } from '../../src/threads/messages.js';
import { serveSynthesis } from '../../workers/synthesis-thread.js';
import { type EngineThread, loadScripted } from './scripted-engine.js';

const exhaustHeap = (): never => {
  const hoard: unknown[] = [];
  for (;;) hoard.push(Array.from({ length: 1_000 }, () => ({})));
};

const spin = (): never => {
  for (;;);
};

const thread: EngineThread = {
  threadId,
  exit: (code) => process.exit(code),
  wait: (latch) => {
    Atomics.wait(latch, 0, 0);
    return Promise.resolve();
  },
  lives: () => Promise.resolve(),
  ownFaults: {
    '!reject-late': () => {
      setImmediate(() => {
        throw new Error('scripted fault outside any promise');
      });
    },
    '!heap': exhaustHeap,
    '!spin': spin,
    // Before the next step of any job, which begins in a later turn.
    '!late-spin': () => void setImmediate(spin),
  },
};

const data = workerData as SynthesisThreadData;

export default await serveSynthesis(data, (native) => loadScripted(data, native, thread));
