/**
 * Entry of a synthesis thread whose engine is scripted: every letter of the text is 50 ms of a level that depends on
 * it, a step is five letters, and some texts break the thread. It stands in for a voice where faults are injected.
 */
import { workerData } from 'node:worker_threads';
import type { SegmentRequest, SynthesisThreadData } from '../../src/threads/messages.js';
import type { NativeGuard } from '../../src/threads/vitals.js';
import type { EngineChunk, LoadedVoices, SegmentSynthesis } from '../../workers/engines/engine.js';
import { serveSynthesis } from '../../workers/synthesis-thread.js';
import type { Script } from './scripted-voices.js';

export const LETTER_SAMPLES = 1_200;
const SAMPLE_RATE_HZ = 24_000;
const LETTERS_A_STEP = 5;
const SLOW_STEP_MS = 200;

const data = workerData as SynthesisThreadData;
/** The service reads real packs, where it is started as such. */
const script = data.packs[0] as Partial<Script> | undefined;

/** Stands for a model run that hangs: nothing but the guard tells it from any wait. */
const waitInside = async (native: NativeGuard): Promise<void> => {
  await native(() => {
    Atomics.wait(new Int32Array(script?.latch ?? new SharedArrayBuffer(4)), 0, 0);
    return Promise.resolve();
  });
};

const exhaustHeap = (): never => {
  const hoard: unknown[] = [];
  for (;;) hoard.push(Array.from({ length: 1_000 }, () => ({})));
};

/** What a text does when its second step runs. */
const faults: Record<string, (native: NativeGuard) => void | Promise<void>> = {
  '!throw': () => {
    throw new Error('scripted fault');
  },
  '!reject-late': () => {
    setImmediate(() => {
      throw new Error('scripted fault outside any promise');
    });
  },
  '!exit': () => process.exit(3),
  '!heap': exhaustHeap,
  '!spin': () => {
    for (;;);
  },
  '!stuck': () => new Promise(() => undefined),
  '!inside': waitInside,
};

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

class ScriptedEngine implements LoadedVoices {
  readonly voices = [{ id: 'scripted', sampleRateHz: SAMPLE_RATE_HZ, language: 'en' }];
  readonly executionProvider = script?.load === 'cuda' ? 'cuda' : 'cpu';

  readonly #native: NativeGuard;

  constructor(native: NativeGuard) {
    this.#native = native;
  }

  open(request: SegmentRequest): SegmentSynthesis {
    let letter = 0;
    const step = async (): Promise<EngineChunk | null> => {
      // As long as a real step, or much longer: the event loop turns meanwhile.
      await pause(request.text.includes('!slow') ? SLOW_STEP_MS : 1);
      if (letter > 0)
        for (const [marker, fault] of Object.entries(faults))
          if (request.text.includes(marker)) await fault(this.#native);
      // The thread must still be in this step when a fault of the loop itself strikes.
      if (request.text.includes('!reject-late') && letter > 0) await pause(50);
      if (letter >= request.text.length) return null;
      const letters = request.text.slice(letter, letter + LETTERS_A_STEP);
      letter += letters.length;
      const pcm = new Int16Array(letters.length * LETTER_SAMPLES);
      for (let i = 0; i < pcm.length; i++)
        pcm[i] = letters.charCodeAt(Math.floor(i / LETTER_SAMPLES)) * 50 + (request.seed % 40);
      return { pcm, words: [], last: letter >= request.text.length };
    };
    return { engine: { step: async () => [await step()] }, sampleRateHz: SAMPLE_RATE_HZ };
  }
}

const load = async (native: NativeGuard): Promise<LoadedVoices> => {
  switch (script?.load) {
    case 'broken':
      throw new Error('scripted fault of a pack');
    case 'slow':
      await waitInside(native);
      break;
    case 'stuck':
      await new Promise(() => undefined);
      break;
    case 'exit':
      process.exit(5);
      break;
    case 'exit inside':
      await native(() => process.exit(5));
      break;
    case 'at once':
    case 'cuda':
    case undefined:
  }
  return new ScriptedEngine(native);
};

export default await serveSynthesis(data, load);
