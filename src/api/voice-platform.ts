/**
 * The webhook that voice-agent platforms call: `POST /v1/tts/integrations/voiceplatform?voice=ID`. Platforms send many
 * further keys (the call, the assistant, timestamps), and messages that ask for no speech.
 */
import typia, { type tags } from 'typia';
import { parseJsonBody, refuse, type Refusal } from './body.js';
import { isObject, issuesOf, missing } from './issues.js';
import type { SpeechRequest } from './speech-request.js';
import type { Bounds } from '../limits.js';

/** The rate of a `voice-request` that names none, in Hz. */
export const PLATFORM_DEFAULT_SAMPLE_RATE_HZ = 24_000;

/** Hz, 8000 to 48000. */
export type PlatformSampleRate = number & tags.MultipleOf<1> & tags.Minimum<8_000> & tags.Maximum<48_000>;

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

const validateRequest = typia.createValidate<{ message: VoiceRequestMessage }>();
const validateOther = typia.createValidate<{ message: OtherMessage }>();

const asksForSpeech = (body: unknown): boolean =>
  isObject(body) && isObject(body['message']) && body['message']['type'] === 'voice-request';

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
  bounds: Bounds,
): VoicePlatformResult => {
  const queryIssues = voice === null ? [missing(['query', 'voice'], null)] : [];
  const json = parseJsonBody(bytes, contentType, bounds, queryIssues);
  if (!json.ok) return json;
  const asked = asksForSpeech(json.value) ? validateRequest(json.value) : null;
  const checked = asked ?? validateOther(json.value);
  const bodyIssues = checked.success ? [] : issuesOf(checked.errors, json.value, ['body'], bounds);
  if (voice === null || !checked.success) return refuse([...queryIssues, ...bodyIssues], bounds);
  if (asked?.success !== true) return { ok: true, request: null };
  const { text, sampleRate } = asked.data.message;
  return {
    ok: true,
    request: {
      text,
      settings: { voiceId: voice },
      format: { encoding: 'pcm', sampleRateHz: sampleRate ?? PLATFORM_DEFAULT_SAMPLE_RATE_HZ },
      timestamps: false,
    },
  };
};
