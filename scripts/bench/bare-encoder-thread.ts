/** A thread of the bare loop of encoders: what an actor does to samples, over and over, with nothing around it. */
import { setImmediate as turn } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';
import type { AudioFormat } from '../../src/api/formats.js';
import { AudioPath } from '../../workers/audio/audio-path.js';
import { createEncoder, loadEncoders } from '../../workers/audio/encoders.js';
import { FRAME_MS_MAX } from '../../workers/actor/frame-maker.js';
import { limits } from '../../src/limits.js';

export interface BareEncoderData {
  /** What the engine said, 16-bit samples. */
  readonly speech: SharedArrayBuffer;
  readonly sampleRateHz: number;
  /** [0]: 1 while the loop shall run. */
  readonly control: SharedArrayBuffer;
}

const { speech, sampleRateHz, control } = workerData as BareEncoderData;
const running = new Int32Array(control);
const samples = new Int16Array(speech);
const frameSamples = (sampleRateHz * FRAME_MS_MAX) / 1000;
await loadEncoders(limits);

/** Milliseconds of speech encoded until told to stop. */
const loop = async (format: AudioFormat): Promise<number> => {
  let encodedSamples = 0;
  for (;;) {
    const path = new AudioPath(sampleRateHz, await createEncoder(format));
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
    // As between two messages: an encoder that was given back is set up anew.
    await turn();
  }
};

parentPort?.on(
  'message',
  (format: AudioFormat) => void loop(format).then((audioMs) => parentPort?.postMessage(audioMs)),
);
parentPort?.postMessage('ready');
