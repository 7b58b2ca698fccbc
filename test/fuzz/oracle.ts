/**
 * A second opinion on requests: the specification's rules written down again, without the code that they judge and
 * without its validators. It answers with whole items, so that not only the decision is compared but every byte.
 */
import {
  B,
  boolParsing,
  boolType,
  extra,
  floatParsing,
  floatType,
  ge,
  intFromFloat,
  intParsing,
  intType,
  le,
  missing,
  noDictionary,
  noString,
  RF,
  unsupported,
  value,
  type Item,
  type Loc,
} from '../support/items.js';

type Members = Readonly<Record<string, unknown>>;

const asObject = (body: unknown): Members | null =>
  typeof body === 'object' && body !== null && !Array.isArray(body) ? (body as Members) : null;

const has = (object: Members, key: string) => Object.prototype.hasOwnProperty.call(object, key);

const spellings: Readonly<Record<string, RegExp>> = {
  mp3: /^mp3$/i,
  wav: /^wav$/i,
  pcm: /^(?:pcm(?:_s16le)?|raw)$/i,
  linear16: /^linear(?:16|[_-]pcm)$/i,
  opus: /^opus$/i,
  mulaw: /^(?:mu-?|u-?|[\u03bc\u039c\u00b5]-)law$/i,
  alaw: /^a-?law$/i,
};

const encodingOf = (name: string) =>
  Object.keys(spellings).find((encoding) => spellings[encoding]?.test(name));

const OPUS_RATES = [8000, 12000, 16000, 24000, 48000];

const rateFault = (encoding: string, hz: number): string | null => {
  if (encoding === 'opus')
    return OPUS_RATES.includes(hz)
      ? null
      : 'opus audio sample_rate must be one of 8000, 12000, 16000, 24000, or 48000 Hz';
  if (encoding === 'mulaw' || encoding === 'alaw')
    return hz === 8000 ? null : `${encoding} audio requires an 8000 Hz sample rate`;
  const least = encoding === 'mp3' ? 16000 : 8000;
  return hz < least || hz > 48000
    ? `${encoding} audio sample_rate must be between ${least} and 48000 Hz`
    : null;
};

const bitrateFault = (encoding: string, sent: string | number): string | null => {
  const most = { mp3: 320, opus: 192 }[encoding];
  if (most === undefined) return `${encoding} audio does not support a bitrate option`;
  const digits = /^([+-]?[0-9]+)[kK]?$/.exec(String(sent))?.[1];
  if (typeof sent === 'string' && digits === undefined) return `Invalid ${encoding} audio bitrate: ${sent}`;
  const kbps = typeof sent === 'number' ? sent : Number(digits);
  return kbps < 32 || kbps > most ? `${encoding} audio bitrate must be between 32kbps and ${most}kbps` : null;
};

const integerFault = (loc: Loc, sent: unknown): Item | null => {
  if (typeof sent === 'number') return sent % 1 === 0 ? null : intFromFloat(loc, sent);
  return typeof sent === 'string' ? intParsing(loc, sent) : intType(loc, sent);
};

const formatItems = (format: unknown): Item[] => {
  if (typeof format === 'string') return encodingOf(format) === undefined ? [unsupported(format)] : [];
  const fields = asObject(format);
  if (fields === null) return [noDictionary(RF, format)];
  const { sample_rate: rate, bitrate } = fields;
  const name = has(fields, 'encoding') ? fields['encoding'] : 'mp3';
  const ofEncoding = typeof name === 'string' ? [] : [noString([...RF, 'encoding'], name)];
  const ofRate: Item[] = [];
  const ofBitrate: Item[] = [];
  if (has(fields, 'sample_rate') && rate !== null) {
    const fault = integerFault([...RF, 'sample_rate'], rate);
    if (fault !== null) ofRate.push(fault);
  }
  if (has(fields, 'bitrate') && bitrate !== null && typeof bitrate !== 'string') {
    const fault = integerFault([...RF, 'bitrate', 'int'], bitrate);
    if (fault !== null) ofBitrate.push(noString([...RF, 'bitrate', 'str'], bitrate), fault);
  }
  const typed = ofEncoding.length + ofRate.length + ofBitrate.length === 0;
  const encoding = typeof name === 'string' ? encodingOf(name) : undefined;
  if (typeof name === 'string' && encoding === undefined) ofEncoding.push(unsupported(name));
  if (typed && encoding !== undefined) {
    if (typeof rate === 'number') {
      const fault = rateFault(encoding, rate);
      if (fault !== null) ofRate.push(value([...RF, 'sample_rate'], fault, rate));
    }
    if (typeof bitrate === 'number' || typeof bitrate === 'string') {
      const fault = bitrateFault(encoding, bitrate);
      if (fault !== null) ofBitrate.push(value([...RF, 'bitrate'], fault, bitrate));
    }
  }
  const extras = Object.keys(fields)
    .filter((key) => !['encoding', 'sample_rate', 'bitrate'].includes(key))
    .map((key) => extra([...RF, key], fields[key]));
  return [...ofEncoding, ...ofRate, ...ofBitrate, ...extras];
};

const booleanItems = (loc: Loc, sent: unknown): Item[] => {
  if (sent === true || sent === false) return [];
  const looksLikeOne = typeof sent === 'string' || (typeof sent === 'number' && sent % 1 === 0);
  return [looksLikeOne ? boolParsing(loc, sent) : boolType(loc, sent)];
};

const temperatureItems = (loc: Loc, sent: unknown): Item[] => {
  if (sent === null) return [];
  if (typeof sent === 'string') return [floatParsing(loc, sent)];
  if (typeof sent !== 'number') return [floatType(loc, sent)];
  if (sent < 0.5) return [ge(loc, sent)];
  return sent > 3 ? [le(loc, sent)] : [];
};

const requiredString = (object: Members, key: string, loc: Loc): Item[] => {
  if (!has(object, key)) return [missing([...loc, key], object)];
  return typeof object[key] === 'string' ? [] : [noString([...loc, key], object[key])];
};

const SPEECH_FIELDS = ['text', 'voice', 'response_format', 'timestamps', 'temperature', 'normalize_text'];

/** @param body of a speech request, parsed @returns its items: none, when it is valid */
export const speechItems = (body: unknown): Item[] => {
  if (body === null) return [missing(B, null)];
  const object = asObject(body);
  if (object === null) return [noDictionary(B, body)];
  const optional = (key: string, items: (loc: Loc, sent: unknown) => Item[]): Item[] =>
    has(object, key) ? items([...B, key], object[key]) : [];
  return [
    ...requiredString(object, 'text', B),
    ...requiredString(object, 'voice', B),
    ...optional('response_format', (_, format) => formatItems(format)),
    ...optional('timestamps', booleanItems),
    ...optional('temperature', temperatureItems),
    ...optional('normalize_text', booleanItems),
    ...Object.keys(object)
      .filter((key) => !SPEECH_FIELDS.includes(key))
      .map((key) => extra([...B, key], object[key])),
  ];
};

const MESSAGE: Loc = ['body', 'message'];

const rateItems = (sent: unknown): Item[] => {
  const loc = [...MESSAGE, 'sampleRate'];
  const fault = integerFault(loc, sent);
  if (fault !== null) return [fault];
  if ((sent as number) < 8000) return [ge(loc, sent, 8000)];
  return (sent as number) > 48000 ? [le(loc, sent, 48000)] : [];
};

const messageItems = (sent: unknown): Item[] => {
  const message = asObject(sent);
  if (message === null) return [noDictionary(MESSAGE, sent)];
  const type = requiredString(message, 'type', MESSAGE);
  if (message['type'] !== 'voice-request') return type;
  return [
    ...requiredString(message, 'text', MESSAGE),
    ...(has(message, 'sampleRate') ? rateItems(message['sampleRate']) : []),
  ];
};

/** @param voice of the query, `null` when it has none @param body of a message, parsed */
export const platformItems = (voice: string | null, body: unknown): Item[] => {
  const ofQuery = voice === null ? [missing(['query', 'voice'], null)] : [];
  if (body === null) return [...ofQuery, missing(B, null)];
  const object = asObject(body);
  if (object === null) return [...ofQuery, noDictionary(B, body)];
  if (!has(object, 'message')) return [...ofQuery, missing([...B, 'message'], object)];
  return [...ofQuery, ...messageItems(object['message'])];
};
