/**
 * The webhook that voice-agent platforms call: `POST /v1/tts/integrations/voiceplatform?voice=ID`. They send much
 * besides what is asked for here (the call, the assistant, timestamps), and messages that ask for no speech at all.
 */
import typia, { type tags } from 'typia';
import { parseJsonBody, refuse, type Refusal } from './body.js';
import { fieldIssues, isObject, type Field } from './fields.js';
import {
  missing,
  notAnInteger,
  notAnObject,
  notAString,
  tooLarge,
  tooSmall,
  type Issue,
  type Loc,
} from './issues.js';
import type { SpeechRequest } from './speech-request.js';
import { DEFAULT_TEMPERATURE } from './speech-settings.js';

/** The rate of a `voice-request` that names none, in Hz. */
export const PLATFORM_DEFAULT_SAMPLE_RATE_HZ = 24_000;

const SAMPLE_RATE_HZ_MIN = 8_000;
const SAMPLE_RATE_HZ_MAX = 48_000;

/** Hz, 8000 to 48000. */
export type PlatformSampleRate = number &
  tags.MultipleOf<1> &
  tags.Minimum<typeof SAMPLE_RATE_HZ_MIN> &
  tags.Maximum<typeof SAMPLE_RATE_HZ_MAX>;

/** A message that asks for speech. Further keys are let pass. */
export interface VoiceRequestMessage {
  type: 'voice-request';
  /** What is to be spoken. */
  text: string;
  /** Hz of the samples that come back; 24000 when omitted. */
  sampleRate?: PlatformSampleRate;
}

/** Any other message: acknowledged, whatever it carries. */
export interface OtherMessage {
  // The keyword is for the description alone, where a message must be of one kind: here, the code decides.
  type: string & tags.JsonSchemaPlugin<{ not: { const: 'voice-request' } }>;
}

/** What a voice-agent platform sends. Further keys are let pass, at every level. */
export interface VoicePlatformBody {
  message: VoiceRequestMessage | OtherMessage;
}

/** `request` is `null` for a message to be acknowledged with an empty response. */
export type VoicePlatformResult = { readonly ok: true; readonly request: SpeechRequest | null } | Refusal;

const isPlatformBody = typia.createIs<{ message: OtherMessage }>();
const isVoiceRequest = typia.createIs<VoiceRequestMessage>();

const sampleRateIssue = (loc: Loc, value: unknown): Issue => {
  if (typeof value !== 'number' || !Number.isInteger(value)) return notAnInteger(loc, value);
  return value < SAMPLE_RATE_HZ_MIN
    ? tooSmall(loc, value, SAMPLE_RATE_HZ_MIN)
    : tooLarge(loc, value, SAMPLE_RATE_HZ_MAX);
};

const typeField: Field = {
  name: 'type',
  required: true,
  accepts: typia.createIs<OtherMessage['type']>(),
  issues: (loc, value) => [notAString(loc, value)],
};

const voiceRequestFields: readonly Field[] = [
  typeField,
  {
    name: 'text',
    required: true,
    accepts: typia.createIs<VoiceRequestMessage['text']>(),
    issues: (loc, value) => [notAString(loc, value)],
  },
  {
    name: 'sampleRate',
    required: false,
    accepts: typia.createIs<VoiceRequestMessage['sampleRate']>(),
    issues: (loc, value) => [sampleRateIssue(loc, value)],
  },
];

const messageIssues = (loc: Loc, message: unknown): readonly Issue[] => {
  if (!isObject(message)) return [notAnObject(loc, message)];
  const fields = message['type'] === 'voice-request' ? voiceRequestFields : [typeField];
  return fieldIssues(fields, message, loc).flatMap((issues) => issues ?? []);
};

const bodyIssues = (body: unknown): readonly Issue[] => {
  if (!isObject(body)) return [notAnObject(['body'], body)];
  if (!Object.hasOwn(body, 'message')) return [missing(['body', 'message'], body)];
  return messageIssues(['body', 'message'], body['message']);
};

/**
 * @param voice the query's, `null` when it has none
 * @returns items of the query come before those of the body; whether the voice exists is still to be asked
 * @see parseJsonBody for the other parameters
 */
export const parseVoicePlatform = (
  bytes: Uint8Array,
  contentType: string | undefined,
  voice: string | null,
): VoicePlatformResult => {
  const queryIssues = voice === null ? [missing(['query', 'voice'], null)] : [];
  const json = parseJsonBody(bytes, contentType, queryIssues);
  if (!json.ok) return json;
  const body = json.value;
  if (!isPlatformBody(body)) return refuse(...queryIssues, ...bodyIssues(body));
  const { message } = body;
  const asked = isVoiceRequest(message) ? message : null;
  if (asked === null && message.type === 'voice-request') return refuse(...queryIssues, ...bodyIssues(body));
  if (voice === null) return refuse(...queryIssues);
  if (asked === null) return { ok: true, request: null };
  return {
    ok: true,
    request: {
      text: asked.text,
      settings: { voiceId: voice, temperature: DEFAULT_TEMPERATURE, normalizeText: false },
      format: { encoding: 'pcm', sampleRateHz: asked.sampleRate ?? PLATFORM_DEFAULT_SAMPLE_RATE_HZ },
      timestamps: false,
    },
  };
};
