/** The table of all encodings. */
import type { AudioFormat, CodecFormat, Encoding, SampleFormat } from '../../src/api/formats.js';
import { aac } from './aac.js';
import type { Encoder, EncoderBounds, EncoderFactory } from './encoder.js';
import { FlacEncoder } from './flac.js';
import { mp3 } from './mp3.js';
import { opus } from './opus.js';
import { loadResampler } from './resampler.js';
import { ALawEncoder, Linear16Encoder, MuLawEncoder, PcmEncoder, WavEncoder } from './samples.js';

type FormatOf<Name extends Encoding> = Name extends CodecFormat['encoding'] ? CodecFormat : SampleFormat;

const encodings: { readonly [Name in Encoding]: EncoderFactory<FormatOf<Name>> } = {
  mp3,
  opus,
  aac,
  pcm: { open: ({ sampleRateHz }) => new PcmEncoder(sampleRateHz) },
  wav: { open: ({ sampleRateHz }) => new WavEncoder(sampleRateHz) },
  linear16: { open: ({ sampleRateHz }) => new Linear16Encoder(sampleRateHz) },
  mulaw: { open: () => new MuLawEncoder() },
  alaw: { open: () => new ALawEncoder() },
  flac: { open: ({ sampleRateHz }) => new FlacEncoder(sampleRateHz) },
};

/** Loads the modules of encoders and resamplers: once per thread, before the first context. */
export const loadEncoders = async (bounds: EncoderBounds): Promise<void> => {
  const factories = Object.values<EncoderFactory<never>>(encodings);
  await Promise.all([loadResampler(), ...factories.map((factory) => factory.load?.(bounds))]);
};

/** @returns whether an encoder of the format takes milliseconds to open */
export const opensSlowly = ({ encoding }: AudioFormat): boolean => encodings[encoding].loadLate !== undefined;

/** @returns `null` if the codec of the format is loaded */
export const loadCodec = ({ encoding }: AudioFormat): Promise<void> | null =>
  encodings[encoding].loadLate?.() ?? null;

/**
 * @param engineSampleRateHz rate of the voice
 * @returns a promise if the codec's library makes its encoders asynchronously
 */
export const createEncoder = (
  format: AudioFormat,
  engineSampleRateHz: number,
): Encoder | Promise<Encoder> => {
  // The type of the table ties each row to its format; the compiler cannot follow the lookup.
  const factory = encodings[format.encoding] as EncoderFactory<AudioFormat>;
  return factory.open(format, engineSampleRateHz);
};
