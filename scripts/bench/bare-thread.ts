/** Runs a part of the service over and over, with nothing around it: the engine, or the resampler and encoder of an actor. */
import { setPriority } from 'node:os';
import { setImmediate as nextTick } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';
import type { AudioFormat } from '../../src/api/formats.js';
import { settingsOf } from '../../src/api/speech-settings.js';
import { limits } from '../../src/limits.js';
import { Segmenter } from '../../src/text/segments.js';
import { SYNTHESIS_NICENESS } from '../../src/threads/synthesis-thread.js';
import { unguarded } from '../../src/threads/vitals.js';
import type { VoicePack } from '../../src/threads/voices.js';
import { FRAME_MS_MAX } from '../../workers/actor/frame-maker.js';
import { AudioPath } from '../../workers/audio/audio-path.js';
import { createEncoder, loadCodec, loadEncoders } from '../../workers/audio/encoders.js';
import { loadPacks, meansOf } from '../../workers/engines/registry.js';
import type { DeviceData } from '../device.js';

export interface BareEngineData extends DeviceData {
  readonly packs: readonly VoicePack[];
  readonly voice: string;
  readonly text: string;
}

export interface BareEncoderData {
  /** 16-bit samples of the engine. */
  readonly speech: SharedArrayBuffer;
  readonly sampleRateHz: number;
}

export interface BareOrder {
  readonly durationMs: number;
  /** Of an encoder. */
  readonly format?: AudioFormat | undefined;
}

/** What a thread reports when its time is over: milliseconds of speech, and of its CPU time. */
export interface BareWork {
  readonly audioMs: number;
  readonly cpuMs: number;
}

const data = workerData as BareEngineData | BareEncoderData;

/** @returns milliseconds of speech made until then */
type Loop = (endMs: number, format: AudioFormat | undefined) => Promise<number>;

const engineLoop = async (order: BareEngineData): Promise<Loop> => {
  const { packs, executionProvider, gpu, voice, text } = order;
  // The priority of this thread alone, as in the service: both yield to other programs alike.
  setPriority(SYNTHESIS_NICENESS);
  const voices = await loadPacks(
    packs,
    meansOf({ executionProvider, gpu, logLevel: 'warn', bounds: limits }, unguarded),
  );
  const segmenter = new Segmenter(limits);
  const segments = [...segmenter.push(text), ...segmenter.end()].filter(({ speak }) => speak);
  const settings = settingsOf({ voiceId: voice });
  return async (endMs) => {
    let madeMs = 0;
    for (let seed = 0; ; seed++)
      for (const segment of segments) {
        const synthesis = voices.open({ ...segment, settings, seed, utteranceSeed: seed });
        for (;;) {
          const chunk = await synthesis.step();
          if (chunk === null) break;
          if (performance.now() > endMs) return madeMs;
          madeMs += (chunk.pcm.length * 1000) / synthesis.sampleRateHz;
        }
      }
  };
};

const encoderLoop = async ({ sampleRateHz, speech }: BareEncoderData): Promise<Loop> => {
  const samples = new Int16Array(speech);
  const frameSamples = (sampleRateHz * FRAME_MS_MAX) / 1000;
  await loadEncoders(limits);
  return async (endMs, format) => {
    if (format === undefined) throw new Error('an encoder needs a format');
    await loadCodec(format);
    let encodedSamples = 0;
    for (;;) {
      const path = new AudioPath(sampleRateHz, await createEncoder(format, sampleRateHz));
      try {
        for (let start = 0; start < samples.length; start += frameSamples) {
          if (performance.now() > endMs) return (encodedSamples * 1000) / sampleRateHz;
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
};

const loop = await ('speech' in data ? encoderLoop(data) : engineLoop(data));

const run = async ({ durationMs, format }: BareOrder): Promise<BareWork> => {
  const before = process.threadCpuUsage();
  const audioMs = await loop(performance.now() + durationMs, format);
  const { user, system } = process.threadCpuUsage(before);
  return { audioMs, cpuMs: (user + system) / 1000 };
};

parentPort?.on(
  'message',
  (order: BareOrder) => void run(order).then((work) => parentPort?.postMessage(work)),
);
parentPort?.postMessage('ready');
