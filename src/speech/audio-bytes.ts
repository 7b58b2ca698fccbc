/** How much memory a millisecond of speech takes from when it is made to when its socket has it. */
import type { AudioFormat } from '../api/formats.js';

const BYTES_A_SAMPLE = 2;
const BASE64 = 4 / 3;

const encodedBytesAMs = (format: AudioFormat): number => {
  switch (format.encoding) {
    case 'mp3':
    case 'opus':
      return format.bitrateKbps / 8;
    case 'mulaw':
    case 'alaw':
      return format.sampleRateHz / 1000;
    case 'wav':
    case 'pcm':
    case 'linear16':
      return (BYTES_A_SAMPLE * format.sampleRateHz) / 1000;
  }
};

/**
 * @param engineSampleRateHz of the samples that wait with the actor
 * @returns bytes a millisecond: of the samples, or of the base64 that is made of them, whichever is more
 */
export const heldBytesAMs = (format: AudioFormat, engineSampleRateHz: number): number =>
  Math.max((BYTES_A_SAMPLE * engineSampleRateHz) / 1000, BASE64 * encodedBytesAMs(format));
