/**
 * The webhook that voice-agent platforms call: `POST /v1/tts/integrations/voiceplatform?voice=ID`. Platforms send many
 * further keys (the call, the assistant, timestamps), and messages that ask for no speech.
 */
import typia, { type tags } from 'typia';
import { parseJsonBody, refuse, type Refusal } from './body.js';
import {
  fieldIssues,
  isObject,
  missing,
  notAnInteger,
  notAnObject,
  tooLarge,
  tooSmall,
  type ApiBounds,
  type Field,
  type Issue,
  type Loc,
} from './issues.js';
import { stringField, type SpeechRequest } from './speech-request.js';

/** The rate of a `voice-request` that names none, in Hz. */
export const PLATFORM_DEFAULT_SAMPLE_RATE_HZ = 24_000;

const SAMPLE_RATE_HZ_MIN = 8_000;
const SAMPLE_RATE_HZ_MAX = 48_000;

/** Hz, 8000 to 48000. */
export type PlatformSampleRate = number &
  tags.MultipleOf<1> &
  tags.Minimum<typeof SAMPLE_RATE_HZ_MIN> &
  tags.Maximum<typeof SAMPLE_RATE_HZ_MAX>;

/** A message that asks for speech. Further keys are ignored. */
export interface VoiceRequestMessage {
  type: 'voice-request';
  /** The text to speak. */
  text: string;
  /** Sample rate of the response in Hz; 24000 if omitted. */
  sampleRate?: PlatformSampleRate;
}

/** Any other message: acknowledged, whatever its content. */
export interface OtherMessage {
  // Only for the OpenAPI description, where a message must be of exactly one kind. In the service the code decides.
  type: string & tags.JsonSchemaPlugin<{ not: { const: 'voice-request' } }>;
}

/** The message of a voice-agent platform. Further keys are ignored at every level. */
export interface VoicePlatformBody {
  message: VoiceRequestMessage | OtherMessage;
}

/** `request` is `null` for a message that gets an empty response. */
export type VoicePlatformResult = { readonly ok: true; readonly request: SpeechRequest | null } | Refusal;

const isPlatformBody = typia.createIs<{ message: OtherMessage }>();
const isVoiceRequest = typia.createIs<VoiceRequestMessage>();

const sampleRateIssue = (loc: Loc, value: unknown): Issue => {
  if (typeof value !== 'number' || !Number.isInteger(value)) return notAnInteger(loc, value);
  return value < SAMPLE_RATE_HZ_MIN
    ? tooSmall(loc, value, SAMPLE_RATE_HZ_MIN)
    : tooLarge(loc, value, SAMPLE_RATE_HZ_MAX);
};

const typeField = stringField('type');

const voiceRequestFields: readonly Field[] = [
  typeField,
  stringField('text'),
  {
    name: 'sampleRate',
    required: false,
    accepts: typia.createIs<VoiceRequestMessage['sampleRate']>(),
    issues: (loc, value) => [sampleRateIssue(loc, value)],
  },
];

const messageIssues = (loc: Loc, message: unknown, bounds: ApiBounds): readonly Issue[] => {
  if (!isObject(message)) return [notAnObject(loc, message)];
  const fields = message['type'] === 'voice-request' ? voiceRequestFields : [typeField];
  return fieldIssues(fields, message, loc, bounds).flatMap((issues) => issues ?? []);
};

const bodyIssues = (body: unknown, bounds: ApiBounds): readonly Issue[] => {
  if (!isObject(body)) return [notAnObject(['body'], body)];
  if (!Object.hasOwn(body, 'message')) return [missing(['body', 'message'], body)];
  return messageIssues(['body', 'message'], body['message'], bounds);
};

/**
 * @param voice the query's, `null` if it has none
 * @returns the request, or items: those of the query come before those of the body. Whether the voice exists is not
 * checked yet.
 * @see parseJsonBody for the other parameters
 */
export const parseVoicePlatform = (
  bytes: Uint8Array,
  contentType: string | undefined,
  voice: string | null,
  bounds: ApiBounds,
): VoicePlatformResult => {
  const queryIssues = voice === null ? [missing(['query', 'voice'], null)] : [];
  const json = parseJsonBody(bytes, contentType, bounds, queryIssues);
  if (!json.ok) return json;
  const body = json.value;
  const message = isPlatformBody(body) ? body.message : null;
  const asked = isVoiceRequest(message) ? message : null;
  if (message === null || (asked === null && message.type === 'voice-request'))
    return refuse([...queryIssues, ...bodyIssues(body, bounds)], bounds);
  if (voice === null) return refuse(queryIssues, bounds);
  if (asked === null) return { ok: true, request: null };
  return {
    ok: true,
    request: {
      text: asked.text,
      settings: { voiceId: voice },
      format: { encoding: 'pcm', sampleRateHz: asked.sampleRate ?? PLATFORM_DEFAULT_SAMPLE_RATE_HZ },
      timestamps: false,
    },
  };
};
