/** What every encoding implements, and the one place that knows them all. An encoder belongs to one context. */
import type { AudioFormat } from '../../src/api/formats.js';
import { Linear16Encoder, PcmEncoder, WavEncoder } from './samples.js';
import { loadResampler } from './resampler.js';

export interface Encoder {
  /** @param samples mono, at the format's rate; @returns payload bytes, perhaps fewer than were fed or none */
  encode(samples: Int16Array): Uint8Array;
  /** The last payload bytes, after all samples. */
  finish(): Uint8Array;
  /** Bytes before a chunk of a stream. */
  chunkHeader(payloadBytes: number, first: boolean): Uint8Array;
  /** Bytes before the payload of a whole file; their number does not depend on `payloadBytes`. */
  fileHeader(payloadBytes: number): Uint8Array;
  /** Idempotent. */
  dispose(): void;
}

/** Loads the modules that encoders and resamplers need: once a thread, before the first context. */
export const loadEncoders = async (): Promise<void> => {
  await loadResampler();
};

export const createEncoder = (format: AudioFormat): Encoder => {
  switch (format.encoding) {
    case 'pcm':
      return new PcmEncoder();
    case 'wav':
      return new WavEncoder(format.sampleRateHz);
    case 'linear16':
      return new Linear16Encoder(format.sampleRateHz);
  }
};
