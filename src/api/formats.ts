/**
 * Audio formats: the table of encodings, one row each, and what a client's `response_format` resolves to.
 *
 * To add an encoding is to add a row here (and its encoder under `workers/audio/`): validation, default rates,
 * aliases and messages follow from the table.
 */
import { limits } from '../limits.js';

/** Tells what is wrong with a value for an encoding, or `null`. */
type Rule<T> = (encoding: string, value: T) => string | null;

interface EncodingRow {
  /** Other names that clients may write, in lower case. */
  readonly aliases: readonly string[];
  readonly defaultSampleRateHz: number;
  readonly sampleRateHz: Rule<number>;
  /** Only asked about a bitrate that was sent and is not null: a string, or a whole number. */
  readonly bitrate: Rule<string | number>;
}

const between =
  (minHz: number, maxHz: number): Rule<number> =>
  (encoding, hz) =>
    hz >= minHz && hz <= maxHz
      ? null
      : `${encoding} audio sample_rate must be between ${minHz} and ${maxHz} Hz`;

const noBitrate: Rule<string | number> = (encoding) => `${encoding} audio does not support a bitrate option`;

const samples = {
  defaultSampleRateHz: 32_000,
  sampleRateHz: between(8_000, 48_000),
  bitrate: noBitrate,
} as const satisfies Omit<EncodingRow, 'aliases'>;

const encodings = {
  /** One RIFF header a file. */
  wav: { ...samples, aliases: [] },
  /** Headerless signed 16-bit little-endian mono. */
  pcm: { ...samples, aliases: ['pcm_s16le', 'raw'] },
  /** The samples of `pcm` in RIFF; a stream repeats the header on every chunk. */
  linear16: { ...samples, aliases: ['linear_pcm', 'linear-pcm'] },
} as const satisfies Record<string, EncodingRow>;

/** Canonical encoding names this build can produce. */
export type Encoding = keyof typeof encodings;

/** After validation: what an encoder needs to know, nothing that a client wrote. */
export interface AudioFormat {
  readonly encoding: Encoding;
  readonly sampleRateHz: number;
}

/**
 * The encoding of a request that names none. The specification's default is `mp3`; until this build can make it,
 * such a request gets a file that every player opens rather than an error about a field that it never sent.
 */
export const DEFAULT_ENCODING: Encoding = 'wav';

const canonicalByName = new Map<string, Encoding>();
for (const [encoding, row] of Object.entries(encodings) as [Encoding, EncodingRow][])
  for (const name of [encoding, ...row.aliases]) canonicalByName.set(name, encoding);

/** The fields of `response_format` as sent, their types already checked; what is absent is `undefined`. */
export interface FormatFields {
  readonly encoding?: string | undefined;
  readonly sample_rate?: number | null | undefined;
  readonly bitrate?: string | number | null | undefined;
}

/** A value of the right type that the table refuses. */
export interface FormatFault {
  readonly field: 'encoding' | 'sample_rate' | 'bitrate';
  readonly message: string;
  /** The value as sent. */
  readonly value: string | number;
}

export type FormatResult =
  | { readonly ok: true; readonly format: AudioFormat }
  | { readonly ok: false; readonly faults: readonly FormatFault[] };

/** @returns the format with its defaults filled in, or every fault in the order of the fields */
export const resolveFormat = (fields: FormatFields): FormatResult => {
  const name = fields.encoding ?? DEFAULT_ENCODING;
  const encoding = canonicalByName.get(name.toLowerCase());
  if (encoding === undefined) {
    const message = `Unsupported audio encoding: ${name.slice(0, limits.validationNameMax)}`;
    return { ok: false, faults: [{ field: 'encoding', message, value: name }] };
  }
  const row: EncodingRow = encodings[encoding];
  const faults: FormatFault[] = [];
  const sampleRateHz = fields.sample_rate ?? row.defaultSampleRateHz;
  const rateMessage = row.sampleRateHz(encoding, sampleRateHz);
  if (rateMessage !== null) faults.push({ field: 'sample_rate', message: rateMessage, value: sampleRateHz });
  const bitrate = fields.bitrate ?? null;
  const bitrateMessage = bitrate === null ? null : row.bitrate(encoding, bitrate);
  if (bitrate !== null && bitrateMessage !== null)
    faults.push({ field: 'bitrate', message: bitrateMessage, value: bitrate });
  return faults.length === 0 ? { ok: true, format: { encoding, sampleRateHz } } : { ok: false, faults };
};
