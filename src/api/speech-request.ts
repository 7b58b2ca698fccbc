/**
 * The speech request: what `POST /v1/tts` and `POST /v1/tts/stream` take. typia, at compile time, turns the wire
 * types below into the checks that decide whether a body is valid; `speech-issues.ts` words what they refuse.
 */
import typia, { type tags } from 'typia';
import { parseJsonBody, refuse, type Refusal } from './body.js';
import { resolveFormat, type AudioFormat } from './formats.js';
import { speechIssues } from './speech-issues.js';

/** 0.5 to 3: widens pitch range and duration variety. */
export type Temperature = number & tags.Minimum<0.5> & tags.Maximum<3>;
/** No bounds of its own: the encoding's row has them, with messages that name the encoding. */
export type WholeNumber = number & tags.MultipleOf<1>;

/** `response_format` on the wire. */
export interface ResponseFormatBody {
  encoding?: string;
  /** Hz */
  sample_rate?: WholeNumber | null;
  /** kbps */
  bitrate?: string | WholeNumber | null;
}

/** The body on the wire. Further keys are refused. */
export interface SpeechRequestBody {
  text: string;
  voice: string;
  /** A bare string is shorthand for the encoding. */
  response_format?: string | ResponseFormatBody;
  timestamps?: boolean;
  temperature?: Temperature | null;
  normalize_text?: boolean;
}

/** A validated request: trusted, its defaults filled in. Whether the voice exists is still to be asked. */
export interface SpeechRequest {
  /** As sent, lone surrogates included: tokens are reported as written. Speech takes its `toWellFormed()`. */
  readonly text: string;
  readonly voiceId: string;
  readonly format: AudioFormat;
  readonly timestamps: boolean;
  /** 0.5 to 3; `null`: the server's default. */
  readonly temperature: number | null;
  readonly normalizeText: boolean;
}

export type SpeechRequestResult = { readonly ok: true; readonly request: SpeechRequest } | Refusal;

const isSpeechRequestBody = typia.createEquals<SpeechRequestBody>();

/** @see parseJsonBody for the parameters and the refusals of a body that is no JSON */
export const parseSpeechRequest = (
  bytes: Uint8Array,
  contentType: string | undefined,
): SpeechRequestResult => {
  const json = parseJsonBody(bytes, contentType);
  if (!json.ok) return json;
  const body = json.value;
  // An array cannot pass: `text` is required. What fails the types, or the table of formats, is worded as items.
  if (!isSpeechRequestBody(body)) return refuse(...speechIssues(body));
  const wanted = body.response_format ?? {};
  const resolved = resolveFormat(typeof wanted === 'string' ? { encoding: wanted } : wanted);
  if (!resolved.ok) return refuse(...speechIssues(body));
  return {
    ok: true,
    request: {
      text: body.text,
      voiceId: body.voice,
      format: resolved.format,
      timestamps: body.timestamps ?? false,
      temperature: body.temperature ?? null,
      normalizeText: body.normalize_text ?? false,
    },
  };
};
