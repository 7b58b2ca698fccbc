/**
 * The speech request: the body of `POST /v1/tts` and `POST /v1/tts/stream`. typia turns the wire types below into checks
 * at compile time. The WebSocket shares the fields that it has too.
 *
 * Items of a 422 body come depth-first in the order in which the fields are declared, then further keys in the order sent
 * (`JSON.parse` moves keys that look like array indices to the front).
 */
import typia, { type tags } from 'typia';
import { parseJsonBody, refuse, type Refusal } from './body.js';
import { resolveFormat, type AudioFormat, type FormatFields } from './formats.js';
import {
  extraIssues,
  isObject,
  issuesOf,
  notAnInteger,
  notAString,
  valueError,
  type Issue,
  type Loc,
} from './issues.js';
import type { MarkedText } from '../text/replacements.js';
import type { AskedSettings, Temperature } from './speech-settings.js';
import type { Bounds } from '../limits.js';

/** A whole number; its bounds depend on the encoding, whose row has them with messages that name it. */
export type WholeNumber = number & tags.MultipleOf<1>;

/** Audio format. Further keys are refused. */
export interface ResponseFormatBody {
  /**
   * `mp3` (default), `wav`, `pcm`, `linear16`, `opus`, `mulaw` or `alaw`, in upper or lower case. Other names:
   * `linear_pcm` and `linear-pcm` for linear16; `pcm_s16le` and `raw` for pcm; `mu-law`, `ulaw`, `u-law` and `μ-law`
   * for mulaw; `a-law` for alaw.
   */
  encoding?: string;
  /**
   * Hz. mp3: 16000 to 48000, by default 32000. wav, pcm, linear16: 8000 to 48000, by default 32000. opus: 8000, 12000,
   * 16000, 24000 or 48000, by default 48000. mulaw, alaw: 8000.
   */
  sample_rate?: WholeNumber | null;
  /**
   * kbps: `128`, `"128"` or `"128k"`. mp3: 32 to 320, by default 128. opus: 32 to 192, by default 64. The others have
   * none.
   */
  bitrate?: string | WholeNumber | null;
}

/** A text to speak, its voice and its format. Further keys are refused. */
export interface SpeechRequestBody {
  /** Any text; markup is spoken as words, blank text is a short silence. */
  text: string;
  /** One of the ids of `GET /v1/tts/speakers`. */
  voice: string;
  /** A bare string is shorthand for the encoding. */
  response_format?: string | ResponseFormatBody;
  /** Whether to report the times of words; false by default. */
  timestamps?: boolean;
  /** `null` counts as omitted: the server's default. */
  temperature?: Temperature | null;
  /**
   * Whether to write out numbers, dates, money and the like before they are spoken. By default as the key, or its account, is
   * set; false where neither is. Words in timestamps stay as they were sent.
   */
  normalize_text?: boolean;
}

/** A validated request. Whether the voice exists is not checked yet; `settingsOf` fills in what its settings leave open. */
export interface SpeechRequest {
  /** As sent, with lone surrogates, because word times report tokens as written. Engines get its `toWellFormed()`. */
  readonly text: string;
  readonly settings: AskedSettings;
  readonly format: AudioFormat;
  readonly timestamps: boolean;
  /** The text in pieces, where a dialect has markup. */
  readonly pieces?: readonly MarkedText[];
}

export type SpeechRequestResult = { readonly ok: true; readonly request: SpeechRequest } | Refusal;

const isSpeechRequestBody = typia.createEquals<SpeechRequestBody>();
const validate = typia.createValidate<SpeechRequestBody>();

/** In the order of their items. */
const fields: readonly string[] = [
  'text',
  'voice',
  'response_format',
  'timestamps',
  'temperature',
  'normalize_text',
] satisfies (keyof SpeechRequestBody)[];
const formatFields: readonly string[] = [
  'encoding',
  'sample_rate',
  'bitrate',
] satisfies (keyof ResponseFormatBody)[];

/** Items of fields whose types are right and whose values the table of formats refuses. */
export const formatIssues = (fields: FormatFields, loc: Loc, bounds: Bounds): Issue[] => {
  const resolved = resolveFormat(fields, bounds);
  const faults = resolved.ok ? [] : resolved.faults;
  return faults.map(({ field, message, value }) => valueError([...loc, field], value, message));
};

const FORMAT: Loc = ['body', 'response_format'];

/** What the table of formats adds to the items of wrong types. */
const formatIssuesOf = (wanted: unknown, typeIssues: readonly Issue[], bounds: Bounds): Issue[] => {
  if (typeof wanted === 'string') return formatIssues({ encoding: wanted }, FORMAT, bounds);
  if (!isObject(wanted)) return [];
  if (!typeIssues.some(({ loc }) => loc[1] === FORMAT[1])) return formatIssues(wanted, FORMAT, bounds);
  // Whether an encoding is known needs no other field; the rules of rate and bitrate need all of them.
  const { encoding } = wanted;
  return typeof encoding === 'string' ? formatIssues({ encoding }, FORMAT, bounds) : [];
};

/** A union has an item for each of its members. */
const membersOf = (issue: Issue): readonly Issue[] => {
  const { loc, input } = issue;
  if (loc[1] !== FORMAT[1] || loc[2] !== 'bitrate') return [issue];
  return [notAString([...loc, 'str'], input), notAnInteger([...loc, 'int'], input)];
};

/** Further keys come after all fields. */
const placeIn = (names: readonly unknown[], name: unknown): number =>
  names.includes(name) ? names.indexOf(name) : names.length;

const byPlace = ({ loc: one }: Issue, { loc: other }: Issue): number =>
  placeIn(fields, one[1]) - placeIn(fields, other[1]) ||
  placeIn(formatFields, one[2]) - placeIn(formatFields, other[2]);

/** @param body a JSON value that is not a valid speech request */
const refuseBody = (body: unknown, bounds: Bounds): Refusal => {
  const checked = validate(body);
  const typeIssues = checked.success ? [] : issuesOf(checked.errors, body, ['body'], bounds);
  const format = isObject(body) ? body['response_format'] : undefined;
  const issues = [
    ...typeIssues.flatMap(membersOf),
    ...formatIssuesOf(format, typeIssues, bounds),
    ...extraIssues(body, fields, ['body'], bounds),
    ...extraIssues(format, formatFields, FORMAT, bounds),
  ];
  if (issues.length === 0) throw new Error('no item says why a body was refused');
  return refuse(issues.sort(byPlace), bounds);
};

/** @see parseJsonBody for the parameters and for the refusals of a body that is not JSON */
export const parseSpeechRequest = (
  bytes: Uint8Array,
  contentType: string | undefined,
  bounds: Bounds,
): SpeechRequestResult => {
  const json = parseJsonBody(bytes, contentType, bounds);
  if (!json.ok) return json;
  const body = json.value;
  // An array cannot pass, because `text` is required.
  if (!isSpeechRequestBody(body)) return refuseBody(body, bounds);
  const wanted = body.response_format ?? {};
  const resolved = resolveFormat(typeof wanted === 'string' ? { encoding: wanted } : wanted, bounds);
  if (!resolved.ok) return refuseBody(body, bounds);
  return {
    ok: true,
    request: {
      text: body.text,
      settings: {
        voiceId: body.voice,
        temperature: body.temperature,
        normalizeText: body.normalize_text,
      },
      format: resolved.format,
      timestamps: body.timestamps ?? false,
    },
  };
};
