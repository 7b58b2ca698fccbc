/** Bare audio over HTTP: its content type, and whether it is sent as it is made. */
import type { AudioFormat, Encoding } from '../api/formats.js';
import type { SpeechRequest } from '../api/speech-request.js';
import { audioResponder, wholeResponder } from '../front/responders.js';
import type { Responder } from '../front/speech-route.js';

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

/** UTF-16 units of the longest text whose wav waits for its end: it is made in about 100 ms. */
const SHORT_UNITS_MAX = 160;

/**
 * Audio comes as it is made. But programs that read a wav file want its sizes, which its first bytes say, so a short one is
 * sent when it is complete.
 */
export const audioResponders = (spoolFolder: string) => {
  const streamed = audioResponder(({ encoding }: AudioFormat) => contentTypes[encoding]);
  const file = wholeResponder(spoolFolder, {
    framing: 'file',
    contentType: contentTypes.wav,
    audioName: null,
    timestamps: () => [],
  });
  return {
    streamed,
    of: ({ format, text }: Pick<SpeechRequest, 'format' | 'text'>): Responder =>
      format.encoding === 'wav' && text.length <= SHORT_UNITS_MAX ? file : streamed,
  };
};
