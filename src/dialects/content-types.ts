/** The content type of bare audio over HTTP. */
import type { AudioFormat, Encoding } from '../api/formats.js';

const contentTypes: Readonly<Record<Encoding, string>> = {
  mp3: 'audio/mpeg',
  wav: 'audio/wav',
  pcm: 'audio/pcm',
  linear16: 'audio/wav',
  opus: 'audio/ogg',
  mulaw: 'audio/basic',
  alaw: 'audio/basic',
  flac: 'audio/flac',
  aac: 'audio/aac',
};

export const contentTypeOf = ({ encoding }: AudioFormat): string => contentTypes[encoding];
