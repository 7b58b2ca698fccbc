/** Voices of scripted-synthesis.ts, and what a test tells its threads with them. */
import type { VoicePack, Voices } from '../../src/threads/voices.js';

/** In the place of a pack. */
export interface Script {
  /**
   * How a thread loads. `slow`: inside native code, until it is let go; `stuck`: never, outside of it; `exit inside`: it
   * dies in native code; `cuda`: at once, and says that it runs on a GPU.
   */
  readonly load: 'at once' | 'broken' | 'slow' | 'stuck' | 'exit' | 'exit inside' | 'cuda';
  /** [0]: 1 when what waits inside native code is let go. */
  readonly latch: SharedArrayBuffer;
}

export interface ScriptedVoices extends Voices {
  /** Lets go whoever waits inside native code, now and from now on. */
  letGo(): void;
}

export const voicesOf = (
  speakerIds: readonly string[],
  load: Script['load'] = 'at once',
  sampleRateHz = 24_000,
): ScriptedVoices => {
  const script: Script = { load, latch: new SharedArrayBuffer(4) };
  return {
    catalogue: { speakerIds, sampleRateHz: () => sampleRateHz },
    packs: [script as unknown as VoicePack],
    release: () => undefined,
    letGo: () => {
      const latch = new Int32Array(script.latch);
      Atomics.store(latch, 0, 1);
      Atomics.notify(latch, 0);
    },
  };
};

export const scriptedVoices = voicesOf(['scripted']);
