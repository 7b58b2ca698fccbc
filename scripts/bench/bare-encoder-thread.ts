/** Encodes speech over and over as an actor does, with nothing around it. */
import { setImmediate as nextTick } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';
import type { AudioFormat } from '../../src/api/formats.js';
import { AudioPath } from '../../workers/audio/audio-path.js';
import { createEncoder, loadEncoders } from '../../workers/audio/encoders.js';
import { FRAME_MS_MAX } from '../../workers/actor/frame-maker.js';
import { limits } from '../../src/limits.js';
import { withCpuTime } from '../rig/cpu-clock.js';

export interface BareEncoderData {
  /** 16-bit samples of the engine. */
  readonly speech: SharedArrayBuffer;
  readonly sampleRateHz: number;
  /** [0]: 1 while the loop runs. */
  readonly control: SharedArrayBuffer;
}

const { speech, sampleRateHz, control } = workerData as BareEncoderData;
const running = new Int32Array(control);
const samples = new Int16Array(speech);
const frameSamples = (sampleRateHz * FRAME_MS_MAX) / 1000;
await loadEncoders(limits);

/** @returns milliseconds of speech encoded until the loop is stopped */
const loop = async (format: AudioFormat): Promise<number> => {
  let encodedSamples = 0;
  for (;;) {
    const path = new AudioPath(sampleRateHz, await createEncoder(format, sampleRateHz));
    try {
      for (let start = 0; start < samples.length; start += frameSamples) {
        if (Atomics.load(running, 0) === 0) return (encodedSamples * 1000) / sampleRateHz;
        const frame = samples.subarray(start, start + frameSamples);
        path.encode(frame);
        encodedSamples += frame.length;
      }
      path.finish();
    } finally {
      path.dispose();
    }
    // As between two messages: the pool of encoders prepares the one that was given back.
    await nextTick();
  }
};

parentPort?.on(
  'message',
  (format: AudioFormat) => void withCpuTime(() => loop(format)).then((work) => parentPort?.postMessage(work)),
);
parentPort?.postMessage('ready');
