/** How long the speech of a stream plays, told by as little of its bytes as possible. */
import type { AudioFormat } from '../../src/api/formats.js';

/** Bytes of payload for a millisecond; `null` where they are not always as many: then pages tell the time. */
export const bytesPerMs = (format: AudioFormat): number | null => {
  switch (format.encoding) {
    case 'pcm':
    case 'wav':
    case 'linear16':
      return (format.sampleRateHz * 2) / 1000;
    case 'mulaw':
    case 'alaw':
      return format.sampleRateHz / 1000;
    case 'mp3':
      return format.bitrateKbps / 8;
    case 'opus':
      return null;
  }
};

/** Where the base64 of an Ogg page has its position: nine of its bytes, eight of them the position. */
export const pagePosition = { begin: 8, end: 20 } as const;

/** @param base64 that part of a page's base64; @returns milliseconds from the beginning to the page's end */
export const pageTimeMs = (base64: string): number => {
  const samplesPerMs = 48;
  return Number(Buffer.from(base64, 'base64').readBigInt64LE(0)) / samplesPerMs;
};
