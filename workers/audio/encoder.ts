/** What every encoding implements, and the one place that knows them all. An encoder belongs to one context. */
import type { AudioFormat } from '../../src/api/formats.js';
import { ALawEncoder, MuLawEncoder } from './g711.js';
import { loadMp3, Mp3Encoder } from './mp3.js';
import { loadOpus, OpusEncoder } from './opus.js';
import { loadResampler } from './resampler.js';
import { Linear16Encoder, PcmEncoder, WavEncoder } from './samples.js';

export interface Flushed {
  readonly payload: Uint8Array;
  /** Samples of silence, at the encoder's rate, that are now part of the sound. */
  readonly silenceSamples: number;
}

export interface Encoder {
  /** Rate of the samples that it takes: the format's, or the nearest one that the codec has. */
  readonly sampleRateHz: number;
  /** By how many samples the sound comes later in what decoders make of a stream. Whole files tell them of it. */
  readonly streamDelaySamples: number;
  /** @param samples mono; @returns payload bytes, perhaps fewer than were fed or none */
  encode(samples: Int16Array): Uint8Array;
  /** Feeds silence until all that was fed before it can be decoded from the payload so far. More may follow. */
  flush(): Flushed;
  /** The last payload bytes, after all samples. */
  finish(): Uint8Array;
  /** Bytes before a chunk of a stream. */
  chunkHeader(payloadBytes: number, first: boolean): Uint8Array;
  /** Bytes before the payload of a whole file, asked for after `finish`; their number never changes. */
  fileHeader(payloadBytes: number): Uint8Array;
  /** Idempotent. */
  dispose(): void;
}

/** Loads the modules that encoders and resamplers need: once a thread, before the first context. */
export const loadEncoders = async (): Promise<void> => {
  await Promise.all([loadResampler(), loadMp3(), loadOpus()]);
};

/** A promise where a codec's library makes its encoders at leisure. */
export const createEncoder = (format: AudioFormat): Encoder | Promise<Encoder> => {
  switch (format.encoding) {
    case 'mp3':
      return Mp3Encoder.open(format);
    case 'opus':
      return OpusEncoder.open(format);
    case 'pcm':
      return new PcmEncoder(format.sampleRateHz);
    case 'wav':
      return new WavEncoder(format.sampleRateHz);
    case 'linear16':
      return new Linear16Encoder(format.sampleRateHz);
    case 'mulaw':
      return new MuLawEncoder();
    case 'alaw':
      return new ALawEncoder();
  }
};
