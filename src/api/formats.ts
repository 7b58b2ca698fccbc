/**
 * The table of audio encodings, one row each, and what a client's `response_format` resolves to. HTTP bodies, WebSocket
 * frames and the client share it.
 *
 * A new encoding is a row here and an encoder under `workers/audio/`: validation, defaults, aliases and messages follow
 * from the table. The file needs nothing of the service, because the client imports it.
 */
import { quoted, type QuoteBound } from './quoted.js';

/** @returns what is wrong with a value for an encoding, or `null` */
type Rule<T> = (encoding: string, value: T, bounds: QuoteBound) => string | null;

interface EncodingRow {
  /** Other names that clients may write, in lower case. */
  readonly aliases: readonly string[];
  readonly defaultSampleRateHz: number;
  readonly sampleRateHz: Rule<number>;
  /** Only for an encoding that has bitrates. */
  readonly defaultBitrateKbps?: number;
  /** Only for an encoding without bitrates: payload bytes. */
  readonly bytesPerSample?: number;
  /** Called for a bitrate that is not null: a string or a whole number. */
  readonly bitrate: Rule<string | number>;
  /** Clients of the specification cannot ask for it, only those of a dialect. */
  readonly isOfDialects?: true;
  /** A decoder plays nothing of the first tenth of a second: frames are long, and it takes one only with the next. */
  readonly hasLongFrames?: true;
}

const between =
  (minHz: number, maxHz: number): Rule<number> =>
  (encoding, hz) =>
    hz >= minHz && hz <= maxHz
      ? null
      : `${encoding} audio sample_rate must be between ${minHz} and ${maxHz} Hz`;

const exactly =
  (hz: number): Rule<number> =>
  (encoding, sent) =>
    sent === hz ? null : `${encoding} audio requires an ${hz} Hz sample rate`;

const oneOf =
  (...ratesHz: readonly number[]): Rule<number> =>
  (encoding, hz) =>
    ratesHz.includes(hz)
      ? null
      : `${encoding} audio sample_rate must be one of ${ratesHz.slice(0, -1).join(', ')}, or ${ratesHz.at(-1)} Hz`;

/** `128k`, `128` and 128 are the same. @returns `null` for a string that is no bitrate */
const parseKbps = (bitrate: string | number): number | null => {
  if (typeof bitrate === 'number') return bitrate;
  return /^[+-]?\d+k?$/i.test(bitrate) ? parseInt(bitrate, 10) : null;
};

const betweenKbps =
  (minKbps: number, maxKbps: number): Rule<string | number> =>
  (encoding, bitrate, bounds) => {
    const kbps = parseKbps(bitrate);
    if (kbps === null) return `Invalid ${encoding} audio bitrate: ${quoted(String(bitrate), bounds)}`;
    return kbps >= minKbps && kbps <= maxKbps
      ? null
      : `${encoding} audio bitrate must be between ${minKbps}kbps and ${maxKbps}kbps`;
  };

const noBitrate: Rule<string | number> = (encoding) => `${encoding} audio does not support a bitrate option`;

const samples = {
  defaultSampleRateHz: 32_000,
  sampleRateHz: between(8_000, 48_000),
  bitrate: noBitrate,
  bytesPerSample: 2,
} as const satisfies Omit<EncodingRow, 'aliases'>;

const telephony = {
  defaultSampleRateHz: 8_000,
  sampleRateHz: exactly(8_000),
  bitrate: noBitrate,
  bytesPerSample: 1,
} as const satisfies Omit<EncodingRow, 'aliases'>;

const encodings = {
  /** MPEG frames; a whole file begins with an ID3 tag. */
  mp3: {
    aliases: [],
    defaultSampleRateHz: 32_000,
    sampleRateHz: between(16_000, 48_000),
    defaultBitrateKbps: 128,
    bitrate: betweenKbps(32, 320),
    hasLongFrames: true,
  },
  /** One RIFF header for the whole file. */
  wav: { ...samples, aliases: [] },
  /** Headerless signed 16-bit little-endian mono. */
  pcm: { ...samples, aliases: ['pcm_s16le', 'raw'] },
  /** The samples of `pcm` in RIFF; a stream repeats the header on every chunk. */
  linear16: { ...samples, aliases: ['linear_pcm', 'linear-pcm'] },
  /** In Ogg. */
  opus: {
    aliases: [],
    defaultSampleRateHz: 48_000,
    sampleRateHz: oneOf(8_000, 12_000, 16_000, 24_000, 48_000),
    defaultBitrateKbps: 64,
    bitrate: betweenKbps(32, 192),
  },
  /** Headerless G.711. The Greek letter and the micro sign look alike, so both count. */
  mulaw: { ...telephony, aliases: ['mu-law', 'ulaw', 'u-law', '\u03bc-law', '\u00b5-law'] },
  alaw: { ...telephony, aliases: ['a-law'] },
  /** Without a loss, at about 60 % of the bytes of `pcm`. */
  flac: { ...samples, aliases: [], isOfDialects: true },
  /** AAC-LC in ADTS frames. */
  aac: {
    aliases: [],
    defaultSampleRateHz: 24_000,
    sampleRateHz: oneOf(8_000, 11_025, 12_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000),
    defaultBitrateKbps: 96,
    bitrate: betweenKbps(32, 128),
    isOfDialects: true,
    hasLongFrames: true,
  },
} as const satisfies Record<string, EncodingRow>;

/** Canonical names of the encodings. */
export type Encoding = keyof typeof encodings;

export const encodingNames = Object.keys(encodings) as readonly Encoding[];

/** The encodings that clients of the specification can ask for. */
export type SpecifiedEncoding = {
  [Name in Encoding]: (typeof encodings)[Name] extends { readonly isOfDialects: true } ? never : Name;
}[Encoding];

const isSpecified = (encoding: Encoding): encoding is SpecifiedEncoding =>
  !('isOfDialects' in encodings[encoding]);

export const specifiedEncodings: readonly SpecifiedEncoding[] = encodingNames.filter(isSpecified);

export const hasLongFrames = (encoding: Encoding): boolean => 'hasLongFrames' in encodings[encoding];

/** Encodings that have a bitrate. */
type Codec = {
  [Name in Encoding]: (typeof encodings)[Name] extends { readonly defaultBitrateKbps: number } ? Name : never;
}[Encoding];

export interface CodecFormat {
  readonly encoding: Codec;
  readonly sampleRateHz: number;
  readonly bitrateKbps: number;
}

export interface SampleFormat {
  readonly encoding: Exclude<Encoding, Codec>;
  readonly sampleRateHz: number;
}

/** A validated format with its defaults filled in. It holds no text of the client. */
export type AudioFormat = CodecFormat | SampleFormat;

/** The encoding of a request that names none, and of a context of a WebSocket that names none. */
export const DEFAULT_ENCODING: Encoding = 'mp3';
export const DEFAULT_SOCKET_ENCODING: Encoding = 'pcm';

const canonicalByName = new Map<string, Encoding>();
for (const encoding of specifiedEncodings)
  for (const name of [encoding, ...encodings[encoding].aliases]) canonicalByName.set(name, encoding);

const isCodec = (encoding: Encoding): encoding is Codec => 'defaultBitrateKbps' in encodings[encoding];

/** The fields of `response_format` as sent, with checked types. */
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

/** @returns the format with its defaults filled in, or all faults in the order of the fields */
export const resolveFormat = (fields: FormatFields, bounds: QuoteBound): FormatResult => {
  const name = fields.encoding ?? DEFAULT_ENCODING;
  const encoding = canonicalByName.get(name.toLowerCase());
  if (encoding === undefined) {
    const message = `Unsupported audio encoding: ${quoted(name, bounds)}`;
    return { ok: false, faults: [{ field: 'encoding', message, value: name }] };
  }
  const row: EncodingRow = encodings[encoding];
  const faults: FormatFault[] = [];
  const sampleRateHz = fields.sample_rate ?? row.defaultSampleRateHz;
  const rateMessage = row.sampleRateHz(encoding, sampleRateHz, bounds);
  if (rateMessage !== null) faults.push({ field: 'sample_rate', message: rateMessage, value: sampleRateHz });
  const bitrate = fields.bitrate ?? null;
  const bitrateMessage = bitrate === null ? null : row.bitrate(encoding, bitrate, bounds);
  if (bitrate !== null && bitrateMessage !== null)
    faults.push({ field: 'bitrate', message: bitrateMessage, value: bitrate });
  if (faults.length > 0) return { ok: false, faults };
  if (!isCodec(encoding)) return { ok: true, format: { encoding, sampleRateHz } };
  const sentKbps = bitrate === null ? null : parseKbps(bitrate);
  const bitrateKbps = sentKbps ?? encodings[encoding].defaultBitrateKbps;
  return { ok: true, format: { encoding, sampleRateHz, bitrateKbps } };
};

/** The format of a request that names no rate and no bitrate. */
export const defaultCodecFormat = (encoding: Codec): CodecFormat => ({
  encoding,
  sampleRateHz: encodings[encoding].defaultSampleRateHz,
  bitrateKbps: encodings[encoding].defaultBitrateKbps,
});

/** The same of any encoding, those of dialects included. */
export const defaultFormat = (encoding: Encoding): AudioFormat =>
  isCodec(encoding)
    ? defaultCodecFormat(encoding)
    : { encoding, sampleRateHz: encodings[encoding].defaultSampleRateHz };

/** The format in the fields of the wire, as `context_started` echoes it. */
export const formatEcho = (format: AudioFormat): FormatFields => ({
  encoding: format.encoding,
  sample_rate: format.sampleRateHz,
  ...('bitrateKbps' in format && { bitrate: `${format.bitrateKbps}k` }),
});

/** Payload bytes of a millisecond of audio. */
export const encodedBytesPerMs = (format: AudioFormat): number =>
  'bitrateKbps' in format
    ? format.bitrateKbps / 8
    : (encodings[format.encoding].bytesPerSample * format.sampleRateHz) / 1000;
