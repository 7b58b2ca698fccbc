/** The one place that knows all encodings. */
import type { AudioFormat } from '../../src/api/formats.js';
import type { Encoder } from './encoder.js';
import { ALawEncoder, MuLawEncoder } from './g711.js';
import { loadMp3, Mp3Encoder } from './mp3.js';
import type { Mp3Bounds } from './mp3-pool.js';
import { loadOpus, OpusEncoder } from './opus.js';
import { loadResampler } from './resampler.js';
import { Linear16Encoder, PcmEncoder, WavEncoder } from './samples.js';

/** Loads the modules that encoders and resamplers need: once a thread, before the first context. */
export const loadEncoders = async (bounds: Mp3Bounds): Promise<void> => {
  await Promise.all([loadResampler(), loadMp3(bounds), loadOpus()]);
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
