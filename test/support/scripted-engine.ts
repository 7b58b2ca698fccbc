/**
 * A scripted engine, for tests that inject faults. Each letter of the text becomes 50 ms of one level, which depends on the
 * letter. A step makes five letters. Some texts break the thread. In place of a text with `!asked` it speaks what it was asked
 * for: see `heard.ts`.
 */
import type { SegmentRequest, SynthesisThreadData } from '../../src/threads/messages.js';
import { threadCpuMs } from '../../src/threads/effort.js';
import type { NativeGuard } from '../../src/threads/vitals.js';
import type { Engine, EngineChunk, LoadedVoices, SegmentSynthesis } from '../../workers/engines/engine.js';
import { batchVoice, longStep, longVoice, tornPack, type Script } from './scripted-voices.js';
import { pause } from './waiting.js';

export const LETTER_SAMPLES = 1_200;
const LETTERS_A_STEP = 5;
const SLOW_STEP_MS = 200;
const HEAVY_STEP_MS = 600;
const SLUGGISH_STEP_MS = 150;
const LONG_STEP_MS = 75;

/** The thread that runs the engine. */
export interface EngineThread {
  readonly threadId: number;
  /** Ends the thread. */
  exit(code: number): Promise<never>;
  /** Stands for a model run that hangs: it waits until `latch[0]` is not 0. */
  wait(latch: Int32Array): Promise<void>;
  /** Resolves at once, and never if the thread has ended. */
  lives(): Promise<void>;
  /** Faults that only a thread of its own can have, by their markers. */
  readonly ownFaults: Readonly<Record<string, () => void>>;
}

const compute = (cpuMs: number): void => {
  for (const endMs = threadCpuMs() + cpuMs; threadCpuMs() < endMs;);
};

/** Stands for a run of a large model. It takes far less than it declares: on a busy machine it must not take more. */
const blockInside = (native: NativeGuard): Promise<void> =>
  native(() => {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, LONG_STEP_MS);
    return Promise.resolve();
  });

/** The settings, then the forms that are spoken in place of words. */
const askedFor = ({ settings, spoken = [] }: SegmentRequest): string =>
  [settings.normalizeText, settings.speed ?? 1, ...spoken.map((form) => form.spoken)].join(' ');

/** The first sample of a chunk of its voice says how many steps were one. */
const together: Engine['batches'] = {
  batchMax: 4,
  together: async (steps) => {
    const made = await Promise.allSettled(steps.map((step) => step()));
    for (const result of made)
      if (result.status === 'fulfilled' && result.value !== null)
        (result.value as EngineChunk).pcm[0] = steps.length;
    return made;
  },
};

class ScriptedEngine implements LoadedVoices {
  readonly voices: LoadedVoices['voices'];
  readonly executionProvider: LoadedVoices['executionProvider'];
  readonly faults: ReadonlyMap<string, string>;
  readonly #native: NativeGuard;
  readonly #thread: EngineThread;
  readonly #latch: Int32Array;
  readonly #load: Script['load'] | undefined;
  /** What a text causes in its second step. */
  readonly #faults: Readonly<Record<string, () => void | Promise<void>>>;

  constructor({ packs }: SynthesisThreadData, native: NativeGuard, thread: EngineThread) {
    this.#native = native;
    this.#thread = thread;
    this.voices = packs
      .flatMap((pack) => pack.voices)
      .map((voice) => (voice.id === longVoice ? { ...voice, longStep } : voice));
    this.faults = new Map(
      packs.filter(({ name }) => name === tornPack).map(({ name }) => [name, 'scripted fault of a pack']),
    );
    const [pack] = packs;
    // A service under test reads real packs: they have no script.
    const script = pack?.engine === 'scripted' ? (pack.data as Script) : undefined;
    this.#load = script?.load;
    this.#latch = new Int32Array(script?.latch ?? new SharedArrayBuffer(8));
    this.executionProvider = this.#load === 'cuda' ? this.#load : 'cpu';
    this.#faults = {
      '!throw': () => {
        throw new Error('scripted fault');
      },
      '!warn': () => process.emitWarning('scripted warning'),
      '!exit': () => thread.exit(3),
      // Before the next step of any job, which begins in a later turn.
      '!late-exit': () => void setImmediate(() => void thread.exit(3)),
      '!die-inside': () => native(() => thread.exit(3)),
      '!heavy': () => compute(HEAVY_STEP_MS),
      '!sluggish': () => compute(SLUGGISH_STEP_MS),
      '!stuck': () => this.#stayStuck(),
      '!inside': () => this.#waitInside(),
      ...Object.fromEntries(
        Object.entries(thread.ownFaults).map(([marker, fault]) => [
          marker,
          () => {
            Atomics.add(this.#latch, 1, 1);
            fault();
          },
        ]),
      ),
    };
  }

  async load(): Promise<this> {
    await this.#thread.lives();
    switch (this.#load) {
      case 'broken':
        throw new Error('scripted fault of a pack');
      case 'slow':
        await this.#waitInside();
        break;
      case 'stuck':
        await this.#stayStuck();
        break;
      case 'exit':
        await this.#thread.exit(5);
        break;
      case 'exit inside':
        await this.#native(() => this.#thread.exit(5));
        break;
      case 'at once':
      case 'cuda':
      case undefined:
    }
    return this;
  }

  batchesOf(voiceId: string): Engine['batches'] {
    return voiceId === batchVoice ? together : undefined;
  }

  open(request: SegmentRequest): SegmentSynthesis {
    const voice = this.voices.find(({ id }) => id === request.settings.voiceId);
    if (voice === undefined) throw new RangeError('unknown voice');
    const text = request.text.includes('!asked') ? askedFor(request) : request.text;
    let letter = 0;
    const step = async (): Promise<EngineChunk | null> => {
      // The event loop turns during a step.
      if (voice.longStep !== undefined) await blockInside(this.#native);
      else await pause(request.text.includes('!slow') ? SLOW_STEP_MS : 1);
      await this.#thread.lives();
      if (letter > 0)
        for (const [marker, fault] of Object.entries(this.#faults))
          if (request.text.includes(marker)) await fault();
      // The thread must still be in this step when the fault outside any promise occurs.
      if (request.text.includes('!reject-late') && letter > 0) await pause(50);
      if (letter >= text.length) return null;
      const letters = text.slice(letter, letter + LETTERS_A_STEP);
      letter += letters.length;
      const pcm = new Int16Array(letters.length * LETTER_SAMPLES);
      for (let i = 0; i < pcm.length; i++)
        pcm[i] = letters.charCodeAt(Math.floor(i / LETTER_SAMPLES)) * 50 + (request.seed % 40);
      if (voice.id === batchVoice) pcm[0] = 1;
      return { pcm, words: [], last: letter >= text.length };
    };
    return { sampleRateHz: voice.sampleRateHz, step };
  }

  async #waitInside(): Promise<void> {
    await this.#native(() => {
      Atomics.add(this.#latch, 1, 1);
      return this.#thread.wait(this.#latch);
    });
  }

  #stayStuck(): Promise<never> {
    Atomics.add(this.#latch, 1, 1);
    return new Promise(() => undefined);
  }
}

export const loadScripted = (
  data: SynthesisThreadData,
  native: NativeGuard,
  thread: EngineThread,
): Promise<LoadedVoices> => new ScriptedEngine(data, native, thread).load();
