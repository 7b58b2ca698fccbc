/** Voices of scripted-synthesis.ts, and how a test controls the threads that load them. */
import { catalogueOf, type Voices } from '../../src/threads/voices.js';
import { eventually } from './waiting.js';

/** `data` of a scripted pack. */
export interface Script {
  /**
   * How a thread loads. `slow`: inside native code, until `letGo`; `stuck`: never, outside native code; `exit inside`: it
   * dies in native code; `cuda`: at once, and reports a GPU.
   */
  readonly load: 'at once' | 'broken' | 'slow' | 'stuck' | 'exit' | 'exit inside' | 'cuda';
  /** [0]: 1 lets threads go that wait inside native code. [1]: counts the threads that hang, or are about to. */
  readonly latch: SharedArrayBuffer;
}

/** The id of a voice whose steps are long. */
export const longVoice = 'long';
/** The id of a voice whose segments are stepped together. The first sample of a chunk is their number. */
export const batchVoice = 'batch';
/** The name of a pack that no thread can load. */
export const tornPack = 'torn';
export const longStep = { ms: 5_000, speechMs: 250 };

export interface ScriptedVoices extends Voices {
  /** Resolves when so many threads hang by script. */
  hung(threads?: number): Promise<void>;
  /** Releases threads that wait inside native code, now and from now on. */
  letGo(): void;
}

export const voicesOf = (
  speakerIds: readonly string[],
  load: Script['load'] = 'at once',
  sampleRateHz = 24_000,
): ScriptedVoices => {
  const script: Script = { load, latch: new SharedArrayBuffer(8) };
  const latch = new Int32Array(script.latch);
  const voices = speakerIds.map((id) => ({ id, sampleRateHz, language: 'en' }));
  const packs = [{ engine: 'scripted', name: 'scripted', voices, modelBytes: 0, openFiles: 0, data: script }];
  return {
    catalogue: catalogueOf(packs),
    packs,
    findings: [],
    release: () => undefined,
    hung: (threads = 1) => eventually(() => Atomics.load(latch, 1) >= threads),
    letGo: () => {
      Atomics.store(latch, 0, 1);
      Atomics.notify(latch, 0);
    },
  };
};

/** Each voice has a pack of its own. */
export const voicesByPack = (ids: readonly string[], files = 'files'): ScriptedVoices => {
  const voices = voicesOf(ids);
  const [pack] = voices.packs;
  const packs = pack!.voices.map((voice) => {
    const stamp = `${files} of ${voice.id}`;
    return { ...pack!, name: voice.id, voices: [voice], stamp, identity: stamp };
  });
  return { ...voices, packs, catalogue: catalogueOf(packs) };
};

export const scriptedVoices = voicesOf(['scripted']);
