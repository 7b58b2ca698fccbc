/**
 * The body of a request for speech. Its clients send many further fields (models, seeds, dictionaries, neighbouring texts):
 * they are accepted and do nothing.
 */
import typia from 'typia';
import { parseJsonBody, refuse, type JsonBody } from '../../api/body.js';
import { issuesOf, type Issue } from '../../api/issues.js';
import type { SpeechRequest } from '../../api/speech-request.js';
import type { AskedSettings, Speed } from '../../api/speech-settings.js';
import type { RequestHead } from '../../front/request-head.js';
import type { Parser, Responder } from '../../front/speech-route.js';
import { Query } from '../../front/query.js';
import type { ActiveKey } from '../../store/store.js';
import { formatIn } from './formats.js';
import { readTags } from './tags.js';

/** Further settings are accepted and do nothing. */
export interface VoiceSettings {
  speed?: Speed | null;
}

type Normalization = 'auto' | 'on' | 'off';

interface SpeechBody {
  text: string;
  voice_settings?: VoiceSettings | null;
  apply_text_normalization?: Normalization | null;
}

const validate = typia.createValidate<SpeechBody>();

/** @param normalization `auto`, and by default, the API leaves it to the service: to the key, or numbers are read as words */
export const settingsIn = (
  voiceId: string,
  normalization: string | null | undefined,
  voiceSettings?: VoiceSettings | null,
): AskedSettings => ({
  voiceId,
  normalizeText: normalization === 'on' ? true : normalization === 'off' ? false : null,
  normalizesByDefault: true,
  speed: voiceSettings?.speed,
});

export interface BodyRules {
  /** The voice in the path, under our own name. */
  readonly voiceIn: (head: RequestHead, key: ActiveKey) => string;
  /** Whether the answer has the times of characters. */
  readonly timestamps: boolean;
  /** What makes the answer, where it depends on the request. */
  readonly responderOf?: (request: SpeechRequest) => Responder;
}

export const parseSpeechBody =
  ({ voiceIn, timestamps, responderOf }: BodyRules): Parser =>
  (bytes, head, bounds, key) => {
    const format = formatIn(new Query(head.query), bounds);
    const before: readonly Issue[] = 'loc' in format ? [format] : [];
    const json: JsonBody = parseJsonBody(bytes, head.contentType, bounds, before);
    if (!json.ok) return json;
    const checked = validate(json.value);
    const bodyIssues = checked.success ? [] : issuesOf(checked.errors, json.value, ['body'], bounds);
    if ('loc' in format || !checked.success) return refuse([...before, ...bodyIssues], bounds);
    const body = checked.data;
    const pieces = readTags(body.text);
    const request: SpeechRequest = {
      text: pieces.map(({ text }) => text).join(''),
      pieces,
      settings: settingsIn(voiceIn(head, key), body.apply_text_normalization, body.voice_settings),
      format,
      timestamps,
    };
    return { ok: true, request, ...(responderOf && { responder: responderOf(request) }) };
  };
