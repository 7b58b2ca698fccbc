/** Runs the engine over and over, with nothing around it. */
import { setPriority } from 'node:os';
import { parentPort, workerData } from 'node:worker_threads';
import { limits } from '../../src/limits.js';
import { SYNTHESIS_NICENESS } from '../../src/threads/synthesis-thread.js';
import { unguarded } from '../../src/threads/vitals.js';
import { Segmenter } from '../../src/text/segments.js';
import { loadPacks, meansOf } from '../../workers/engines/registry.js';
import type { DeviceData } from '../device.js';
import { withCpuTime } from '../rig/cpu-clock.js';
import type { VoicePack } from '../../src/threads/voices.js';
import { settingsOf } from '../../src/api/speech-settings.js';

export interface BareThreadData extends DeviceData {
  readonly packs: readonly VoicePack[];
  readonly voice: string;
  readonly text: string;
  /** [0]: 1 while the loop runs. */
  readonly control: SharedArrayBuffer;
}

const { packs, executionProvider, gpu, voice, text, control } = workerData as BareThreadData;
const running = new Int32Array(control);
// The priority of this thread alone, as in the service: both yield to other programs alike.
setPriority(SYNTHESIS_NICENESS);
const voices = await loadPacks(
  packs,
  meansOf({ executionProvider, gpu, logLevel: 'warn', bounds: limits }, unguarded),
);
const segmenter = new Segmenter(limits);
const segments = [...segmenter.push(text), ...segmenter.end()].filter(({ speak }) => speak);

/** @returns milliseconds of speech made until the loop is stopped */
const loop = async (): Promise<number> => {
  let madeMs = 0;
  for (let seed = 0; ; seed++) {
    for (const segment of segments) {
      const synthesis = voices.open({
        ...segment,
        settings: settingsOf({ voiceId: voice }),
        seed,
        utteranceSeed: seed,
      });
      for (;;) {
        const chunk = await synthesis.step();
        if (chunk === null) break;
        if (Atomics.load(running, 0) === 0) return madeMs;
        madeMs += (chunk.pcm.length * 1000) / synthesis.sampleRateHz;
      }
    }
  }
};

parentPort?.on('message', () => void withCpuTime(loop).then((work) => parentPort?.postMessage(work)));
parentPort?.postMessage('ready');
