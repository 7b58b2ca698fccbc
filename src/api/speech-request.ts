/**
 * The speech request: what `POST /v1/tts` and `POST /v1/tts/stream` take. typia, at compile time, turns the wire
 * types below into the checks that decide whether a body is valid; `speech-issues.ts` words what they refuse.
 */
import typia, { type tags } from 'typia';
import { parseJsonBody, refuse, type Refusal } from './body.js';
import { resolveFormat, type AudioFormat } from './formats.js';
import { speechIssues } from './speech-issues.js';
import { DEFAULT_TEMPERATURE, type SpeechSettings, type Temperature } from './speech-settings.js';

/** A whole number; its bounds depend on the encoding, whose row has them, with messages that name it. */
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

/** What is to be spoken, by whom and in what form. Further keys are refused. */
export interface SpeechRequestBody {
  /** Any text; markup is spoken as words, blank text is a short silence. */
  text: string;
  /** One of the ids of `GET /v1/tts/speakers`. */
  voice: string;
  /** A bare string is shorthand for the encoding. */
  response_format?: string | ResponseFormatBody;
  /** Whether the times of words are told; by default not. */
  timestamps?: boolean;
  /** `null` and omitted alike: the server's default. */
  temperature?: Temperature | null;
  /**
   * Whether numbers, dates, money and the like are written out before they are spoken; by default not. Words in
   * timestamps stay as they were sent.
   */
  normalize_text?: boolean;
}

/** A validated request: trusted, its defaults filled in. Whether the voice exists is still to be asked. */
export interface SpeechRequest {
  /** As sent, lone surrogates included: tokens are reported as written. Speech takes its `toWellFormed()`. */
  readonly text: string;
  readonly settings: SpeechSettings;
  readonly format: AudioFormat;
  readonly timestamps: boolean;
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
      settings: {
        voiceId: body.voice,
        temperature: body.temperature ?? DEFAULT_TEMPERATURE,
        normalizeText: body.normalize_text ?? false,
      },
      format: resolved.format,
      timestamps: body.timestamps ?? false,
    },
  };
};
