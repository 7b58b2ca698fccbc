/**
 * The body of `POST /v1/audio/speech`. Clients send fields that mean nothing here (`instructions`, a model): they are accepted
 * and do nothing.
 */
import typia, { type tags } from 'typia';
import { voicesOf } from '../../accounts/keys.js';
import { parseJsonBody } from '../../api/body.js';
import type { ErrorAnswer } from '../../api/error-shape.js';
import type { AudioFormat } from '../../api/formats.js';
import { isObject } from '../../api/issues.js';
import { quoted } from '../../api/quoted.js';
import type { SpeechRequest } from '../../api/speech-request.js';
import type { Speed } from '../../api/speech-settings.js';
import { errors } from '../../errors.js';
import type { Asked, Parser, Responder } from '../../front/speech-route.js';
import { invalidRequest, unreadableBody } from './errors.js';
import type { StockVoices } from '../stock-voices.js';
import type { Bounds } from '../../limits.js';

/** All audio of this API has this rate. */
const SAMPLE_RATE_HZ = 24_000;

const formats = {
  mp3: { encoding: 'mp3', sampleRateHz: SAMPLE_RATE_HZ, bitrateKbps: 128 },
  opus: { encoding: 'opus', sampleRateHz: SAMPLE_RATE_HZ, bitrateKbps: 64 },
  aac: { encoding: 'aac', sampleRateHz: SAMPLE_RATE_HZ, bitrateKbps: 96 },
  flac: { encoding: 'flac', sampleRateHz: SAMPLE_RATE_HZ },
  wav: { encoding: 'wav', sampleRateHz: SAMPLE_RATE_HZ },
  pcm: { encoding: 'pcm', sampleRateHz: SAMPLE_RATE_HZ },
} as const satisfies Readonly<Record<string, AudioFormat>>;

export type StreamFormat = 'audio' | 'sse';

const SLOWEST = 0.25;
const FASTEST = 4;
/** What the voices can do. A speed beyond it is spoken at the nearest, because clients offer the whole range. */
const VOICE_SLOWEST = 0.5;
const VOICE_FASTEST = 2;

interface SpeechBody {
  input: string & tags.MinLength<1>;
  voice: string | { id: string };
  response_format?: keyof typeof formats | null;
  speed?: (number & tags.Minimum<typeof SLOWEST> & tags.Maximum<typeof FASTEST>) | null;
  stream_format?: StreamFormat | null;
}

const isSpeechBody = typia.createIs<SpeechBody>();
const validate = typia.createValidate<SpeechBody>();

const kindOf = (value: unknown): string => {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'an array';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
};

const wrongType = (param: string, expected: string, value: unknown): ErrorAnswer =>
  value === undefined
    ? invalidRequest(`Missing required parameter: '${param}'.`, param, 'missing_required_parameter')
    : invalidRequest(
        `Invalid type for '${param}': expected ${expected}, but got ${kindOf(value)} instead.`,
        param,
        'invalid_type',
      );

const wrongName = (param: string, value: unknown, names: readonly string[], bounds: Bounds): ErrorAnswer => {
  if (typeof value !== 'string') return wrongType(param, 'a string', value);
  const supported = names.map((name) => `'${name}'`).join(', ');
  const message = `Invalid value: '${quoted(value, bounds)}'. Supported values are: ${supported}.`;
  return invalidRequest(message, param, 'invalid_value');
};

const wrongSpeed = (value: unknown): ErrorAnswer => {
  if (typeof value !== 'number') return wrongType('speed', 'a number', value);
  const isLow = value < SLOWEST;
  const [place, expected] = isLow ? ['below minimum', `>= ${SLOWEST}`] : ['above maximum', `<= ${FASTEST}`];
  return invalidRequest(
    `Invalid 'speed': decimal ${place} value. Expected a value ${expected}, but got ${value} instead.`,
    'speed',
    isLow ? 'decimal_below_min_value' : 'decimal_above_max_value',
  );
};

const emptyInput = invalidRequest(
  "Invalid 'input': empty string. Expected a string with minimum length 1, but got an empty string instead.",
  'input',
  'empty_string',
);

/** The fault of each field, in the order in which they are checked. */
const faults: Readonly<Record<keyof SpeechBody, (value: unknown, bounds: Bounds) => ErrorAnswer>> = {
  input: (value) => (value === '' ? emptyInput : wrongType('input', 'a string', value)),
  voice: (value) => wrongType('voice', 'a string or an object with an id', value),
  response_format: (value, bounds) => wrongName('response_format', value, Object.keys(formats), bounds),
  speed: wrongSpeed,
  stream_format: (value, bounds) => wrongName('stream_format', value, ['audio', 'sse'], bounds),
};

/** The first fault, as this API reports one at a time. */
const faultOf = (body: unknown, bounds: Bounds): ErrorAnswer => {
  if (!isObject(body)) return invalidRequest('The body must be a JSON object.');
  const checked = validate(body);
  // They are taken out: typia keeps the errors of its last check, with what the caller sent.
  const paths = checked.success ? [] : checked.errors.splice(0).map(({ path }) => path);
  for (const [name, fault] of Object.entries(faults))
    if (paths.some((path) => path.split('.')[1] === name)) return fault(body[name], bounds);
  throw new Error('no fault says why a body was refused');
};

const refusal = (fault: ErrorAnswer): Asked => ({ ok: false, reason: 'requestInvalid', ...fault });

const clampSpeed = (speed: number): Speed => Math.min(VOICE_FASTEST, Math.max(VOICE_SLOWEST, speed));

type ResponderOf = (request: Pick<SpeechRequest, 'format' | 'text'>) => Responder;

export const speechParser =
  (
    { voiceFor }: StockVoices,
    speakerIds: () => readonly string[],
    responders: Readonly<Record<StreamFormat, ResponderOf>>,
  ): Parser =>
  (bytes, head, bounds, key) => {
    const json = parseJsonBody(bytes, head.contentType, bounds);
    if (!json.ok)
      return json.status === errors.bodyUnreadable.status
        ? { ...json, ...unreadableBody }
        : refusal(invalidRequest('We could not parse the JSON body of your request.'));
    const body = json.value;
    if (!isSpeechBody(body)) return refusal(faultOf(body, bounds));
    const name = typeof body.voice === 'string' ? body.voice : body.voice.id;
    const voiceId = voiceFor(name, voicesOf(key, speakerIds()));
    const speed = body.speed ?? null;
    const request: SpeechRequest = {
      text: body.input,
      settings: {
        voiceId,
        // Its voices read numbers and dates as words.
        normalizesByDefault: true,
        speed: speed === null ? null : clampSpeed(speed),
      },
      format: formats[body.response_format ?? 'mp3'],
      timestamps: false,
    };
    return { ok: true, request, responder: responders[body.stream_format ?? 'audio'](request) };
  };
