/**
 * Entry of a synthesis thread with a scripted engine, for tests that inject faults. Each letter of the text becomes 50 ms
 * of one level, which depends on the letter. A step makes five letters. Some texts break the thread. In place of a text with
 * `!asked` it speaks what it was asked for: see `heard.ts`.
 */
import { threadId, workerData } from 'node:worker_threads';
import type { Placement } from '../../src/threads/gpu.js';
import type { SegmentRequest, SynthesisThreadData } from '../../src/threads/messages.js';
import type { NativeGuard } from '../../src/threads/vitals.js';
import type { Engine, EngineChunk, LoadedVoices, SegmentSynthesis } from '../../workers/engines/engine.js';
import { serveSynthesis } from '../../workers/synthesis-thread.js';
import { errorOf } from '../../workers/engines/steps.js';
import { batchVoice, longStep, longVoice, type Script } from './scripted-voices.js';
import { pause } from './waiting.js';

export const LETTER_SAMPLES = 1_200;
const LETTERS_A_STEP = 5;
const SLOW_STEP_MS = 200;

const data = workerData as SynthesisThreadData;
const voices = data.packs
  .flatMap((pack) => pack.voices)
  .map((voice) => (voice.id === longVoice ? { ...voice, longStep } : voice));
const [pack] = data.packs;
/** A service under test reads real packs: they have no script. */
const script = pack?.engine === 'scripted' ? (pack.data as Script) : undefined;
const latch = new Int32Array(script?.latch ?? new SharedArrayBuffer(8));

/** Stands for a model run that hangs. */
const waitInside = async (native: NativeGuard): Promise<void> => {
  await native(() => {
    Atomics.add(latch, 1, 1);
    Atomics.wait(latch, 0, 0);
    return Promise.resolve();
  });
};

/** Stands for a run of a large model. It takes half of what it declares: on a busy machine it must not take more. */
const blockInside = (native: NativeGuard): Promise<void> =>
  native(() => {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, longStep.ms / 2);
    return Promise.resolve();
  });

const stayStuck = (): Promise<never> => {
  Atomics.add(latch, 1, 1);
  return new Promise(() => undefined);
};

const spin = (): never => {
  Atomics.add(latch, 1, 1);
  for (;;);
};

const exhaustHeap = (): never => {
  const hoard: unknown[] = [];
  for (;;) hoard.push(Array.from({ length: 1_000 }, () => ({})));
};

/** The settings, then the forms that are spoken in place of words. */
const askedFor = ({ settings, spoken = [] }: SegmentRequest): string =>
  [settings.normalizeText, settings.speed ?? 1, ...spoken.map((form) => form.spoken)].join(' ');

/** What a text causes in its second step. */
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
  '!die-inside': (native) => native(() => process.exit(3)),
  '!heap': exhaustHeap,
  '!spin': spin,
  '!stuck': stayStuck,
  '!inside': waitInside,
};

/** What the thread finds out if no other one did. Its time is the thread that measured. */
const measured = new Map<string, Placement>([
  [
    'scripted/net',
    { device: 'gpu', batch: 1, windows: [], gpuMs: threadId, itemMs: threadId, cpuMs: 2 * threadId },
  ],
]);

class ScriptedEngine implements LoadedVoices {
  readonly voices = voices;
  readonly executionProvider =
    script?.load === 'cuda' || script?.load === 'webgpu' ? script.load : ('cpu' as const);
  readonly placements = data.gpu?.placements ?? measured;

  readonly #native: NativeGuard;
  readonly #steps = new WeakMap<SegmentSynthesis, () => Promise<EngineChunk | null>>();
  readonly #together: Pick<Engine, 'batchMax' | 'step'> = {
    batchMax: 4,
    step: async (segments) => {
      const made = await Promise.all(
        segments.map((segment) => this.#steps.get(segment)!().catch((error: unknown) => errorOf(error))),
      );
      for (const chunk of made)
        if (chunk !== null && !(chunk instanceof Error)) chunk.pcm[0] = segments.length;
      return made;
    },
  };

  constructor(native: NativeGuard) {
    this.#native = native;
  }

  engineOf(voiceId: string): Pick<Engine, 'batchMax'> {
    return voiceId === batchVoice ? this.#together : {};
  }

  open(request: SegmentRequest): SegmentSynthesis {
    const voice = voices.find(({ id }) => id === request.settings.voiceId);
    if (voice === undefined) throw new RangeError('unknown voice');
    const text = request.text.includes('!asked') ? askedFor(request) : request.text;
    let letter = 0;
    const step = async (): Promise<EngineChunk | null> => {
      // The event loop turns during a step.
      if (voice.longStep !== undefined) await blockInside(this.#native);
      else await pause(request.text.includes('!slow') ? SLOW_STEP_MS : 1);
      if (letter > 0)
        for (const [marker, fault] of Object.entries(faults))
          if (request.text.includes(marker)) await fault(this.#native);
      // The thread must still be in this step when the fault outside any promise occurs.
      if (request.text.includes('!reject-late') && letter > 0) await pause(50);
      if (letter >= text.length) return null;
      const letters = text.slice(letter, letter + LETTERS_A_STEP);
      letter += letters.length;
      const pcm = new Int16Array(letters.length * LETTER_SAMPLES);
      for (let i = 0; i < pcm.length; i++)
        pcm[i] = letters.charCodeAt(Math.floor(i / LETTER_SAMPLES)) * 50 + (request.seed % 40);
      return { pcm, words: [], last: letter >= text.length };
    };
    const engine = voice.id === batchVoice ? this.#together : { step: async () => [await step()] };
    const segment = { engine, sampleRateHz: voice.sampleRateHz };
    this.#steps.set(segment, step);
    return segment;
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
      await stayStuck();
      break;
    case 'exit':
      process.exit(5);
      break;
    case 'exit inside':
      await native(() => process.exit(5));
      break;
    case 'at once':
    case 'cuda':
    case 'webgpu':
    case undefined:
  }
  return new ScriptedEngine(native);
};

export default await serveSynthesis(data, load);
