/**
 * The body of a request for speech. Its clients send many further fields (models, seeds, dictionaries, neighbouring texts):
 * they are accepted and do nothing.
 */
import typia from 'typia';
import { parseJsonBody, refuse, type JsonBody } from '../../api/body.js';
import {
  fieldIssues,
  isObject,
  notAnObject,
  notANumber,
  tooLarge,
  tooSmall,
  valueError,
  type ApiBounds,
  type Field,
  type Issue,
  type Loc,
} from '../../api/issues.js';
import { stringField, type SpeechRequest } from '../../api/speech-request.js';
import type { AskedSettings, Speed } from '../../api/speech-settings.js';
import type { RequestHead } from '../../front/request-head.js';
import type { Parser, Responder } from '../../front/speech-route.js';
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

const isSpeechBody = typia.createIs<SpeechBody>();
const isSpeed = typia.createIs<Speed | null>();
const isNormalization = typia.createIs<Normalization | null>();

const speedIssue = (loc: Loc, value: unknown): Issue => {
  if (typeof value !== 'number') return notANumber(loc, value);
  return value < 1 ? tooSmall(loc, value, 0.5) : tooLarge(loc, value, 2);
};

const speedField: Field = {
  name: 'speed',
  required: false,
  accepts: isSpeed,
  issues: (loc, value) => [speedIssue(loc, value)],
};

/** Faults of the fields that are used; others may be there. */
const openIssues = (
  fields: readonly Field[],
  value: unknown,
  loc: Loc,
  bounds: ApiBounds,
): readonly Issue[] =>
  isObject(value)
    ? fieldIssues(fields, value, loc, bounds).flatMap((issues) => issues ?? [])
    : [notAnObject(loc, value)];

export const voiceSettingsField: Field = {
  name: 'voice_settings',
  required: false,
  accepts: typia.createIs<SpeechBody['voice_settings']>(),
  issues: (loc, value, bounds) => openIssues([speedField], value, loc, bounds),
};

const normalizationField: Field = {
  name: 'apply_text_normalization',
  required: false,
  accepts: isNormalization,
  issues: (loc, value) => [valueError(loc, value, 'apply_text_normalization must be auto, on or off')],
};

const bodyFields: readonly Field[] = [stringField('text'), voiceSettingsField, normalizationField];

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

export interface Reading {
  /** The voice in the path, under our own name. */
  readonly voiceIn: (head: RequestHead, key: ActiveKey) => string;
  /** Whether the answer has the times of characters. */
  readonly timestamps: boolean;
  /** What makes the answer, where it depends on the request. */
  readonly responderOf?: (request: SpeechRequest) => Responder;
}

export const parseSpeechBody =
  ({ voiceIn, timestamps, responderOf }: Reading): Parser =>
  (bytes, head, bounds, key) => {
    const format = formatIn(new URLSearchParams(head.query), bounds);
    const before: readonly Issue[] = 'loc' in format ? [format] : [];
    const json: JsonBody = parseJsonBody(bytes, head.contentType, bounds, before);
    if (!json.ok) return json;
    const body = json.value;
    if ('loc' in format || !isSpeechBody(body))
      return refuse([...before, ...openIssues(bodyFields, body, ['body'], bounds)], bounds);
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
