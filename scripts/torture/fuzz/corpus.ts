/**
 * What inputs are made of: requests and messages of each listener, mostly valid, because the service refuses the others early.
 *
 * They are templates: `$name` stands for one of the values of that name, and a part in «...» is left out of two thirds of the inputs.
 */
import type { Dice, Weighted } from '../../rig/random.js';

/** By name: the usual values, and odd ones for a tenth of the inputs. */
type Values = Readonly<Record<string, readonly [usual: readonly string[], odd?: readonly string[]]>>;

/** Keys with credit and without, and the voices. */
export interface Vocabulary {
  readonly goodKeys: readonly string[];
  readonly brokeKeys: readonly string[];
  readonly voices: readonly string[];
}

const json = (...values: readonly unknown[]): string[] => values.map((value) => JSON.stringify(value));
const contexts = (...ids: readonly unknown[]): string[] => json(...ids).map((id) => `"context_id":${id},`);

export const valuesOf = ({ brokeKeys, goodKeys, voices }: Vocabulary): Values => ({
  key: [
    [...brokeKeys, ...goodKeys],
    ['', 'svc_sk_', 'svc_sk_none', `svc_sk_${'A'.repeat(43)}`, `svc_sk_${'x'.repeat(2_000)}`, 'svc_sk_\xff'],
  ],
  keyHeader: [['x-api-key: $key', 'X-Api-Key: $key', 'X-API-KEY: $key']],
  dialectKeyHeader: [['xi-api-key: $key', 'Authorization: Bearer $key', 'authorization: $key']],
  voice: [voices, ['nobody', '', '..', '%00', '%ff%fe', '__proto__', 'x'.repeat(500)]],
  // Mostly short, because the service speaks what is valid.
  text: [
    json('', ' ', 'Hi.', 'No.', 'a', '\u{1F600}', '1', '\\', '"', '\u0000', 'é', '你好', '<b>'),
    json('a'.repeat(3_000), '\n'.repeat(500), '\ud800', '9'.repeat(1_000), '\u0301'.repeat(600)),
  ],
  format: [['$encoding', '{"encoding":$encoding«,"sample_rate":$rate»«,"bitrate":$bitrate»}']],
  encoding: [json('mp3', 'wav', 'pcm', 'linear16', 'opus', 'mulaw', 'alaw'), json('PCM', 'flac', '')],
  rate: [json(8_000, 16_000, 24_000, 48_000), json(7_999, 48_001, 0, '8000', null)],
  bitrate: [json(64, '64k', '128'), json(31, 321, 128_000, '0x40', null)],
  flag: [json(true, false)],
  temperature: [json(0.5, 1, 3), json(0.49, 3.01, null, 'NaN')],
  speed: [json(0.7, 1, 1.2), json(0.24, 4.01, null, '1')],
  platformType: [json('voice-request', 'voice-request', 'assistant-request', '')],
  context: [
    [...contexts('a', 'b'), ''],
    contexts('c', '', null, 'x'.repeat(200), 'x'.repeat(1_025), '\u0000', 'a:close', '__proto__', 5),
  ],
  start: [['{"voice_id":"$voice","model_id":"default"$spoken}']],
  speechBody: [['{"text":$text,"voice":"$voice"$spoken«,"normalize_text":$flag»}']],
  spoken: [['«,"response_format":$format»«,"timestamps":$flag»«,"temperature":$temperature»']],
  platformBody: [['{"message":{"type":$platformType,"text":$text«,"sampleRate":$rate»}}']],
  elevenLabsBody: [
    [
      '{"text":$text,"model_id":"eleven_flash_v2_5"«,"voice_settings":$settings»«,"apply_text_normalization":$normalization»}',
    ],
  ],
  elevenLabsPath: [
    ['/v1/voices', '/v2/voices?page_size=x&search=%ff', '/v1/models', '/v1/user/subscription'],
  ],
  keyMember: [['xi_api_key', 'xi-api-key', 'authorization']],
  openAiBody: [
    [
      '{"model":"tts-1","input":$text,"voice":$openAiVoice«,"response_format":$openAiFormat»«,"speed":$speed»«,"stream_format":$streamFormat»}',
    ],
  ],
  openAiPath: [
    ['', '/models', '/models/tts-1', '/models/%ff', '/audio/voices', '/audio/models', '/audio/speech'],
  ],
  settings: [['{"stability":0.5«,"speed":$speed»}']],
  normalization: [json('auto', 'on', 'off'), json('x', null, 1)],
  outputFormat: [
    ['pcm_24000', 'pcm_8000', 'mp3_44100_128', 'opus_48000_64', 'ulaw_8000', 'wav_16000'],
    ['', 'mp3', 'mp3_1_1', 'aac_44100', 'pcm_999999', '%00', 'pcm_24000_1', 'x'.repeat(300)],
  ],
  query: [
    [
      '«&»output_format=$outputFormat«&auto_mode=true»«&inactivity_timeout=180»«&authorization=«Bearer%20»$key»',
    ],
  ],
  speakPath: [['', '/stream', '/with-timestamps', '/stream/with-timestamps']],
  openAiVoice: [[...json(...voices, 'alloy', { id: 'nova' }), '"$voice"'], json(null)],
  openAiFormat: [json('mp3', 'opus', 'flac', 'wav', 'pcm', 'aac'), json('alac', 'PCM', null, {})],
  streamFormat: [json('audio', 'sse'), json('x', null, 1)],
  wyomingVoice: [['{"name":"$voice"}', '{"language":"en_GB"}'], json({ name: 5 }, 'wren', null)],
});

export const fill = (template: string, values: Values, dice: Dice): string => {
  let text = template;
  // The inner parts first.
  while (text.includes('«'))
    text = text.replaceAll(/«([^«»]*)»/g, (_, part: string) => (dice.chance(1 / 3) ? part : ''));
  return text.replaceAll(/\$(\w+)/g, (_, name: string) => {
    const [usual, odd = usual] = values[name]!;
    return fill(dice.pick(dice.chance(0.1) ? odd : usual), values, dice);
  });
};

/** Over HTTP. */
export interface Requests {
  readonly name: string;
  /** The listener, as the service names it; `null`: the public port. */
  readonly dialect: string | null;
  readonly keyHeader: string;
  /** Method and path, and the body of a POST. */
  readonly lines: readonly Weighted<readonly [line: string, body?: string]>[];
}

/** Over a WebSocket. */
export interface Sockets extends Pick<Requests, 'name' | 'dialect' | 'keyHeader'> {
  readonly paths: readonly string[];
  /** In any order. */
  readonly messages: readonly Weighted<string>[];
  /** Messages that are spoken. */
  readonly utterance: readonly string[];
}

const publicPort = { dialect: null, keyHeader: '$keyHeader' } as const;
const elevenLabs = { dialect: 'elevenlabs', keyHeader: '$dialectKeyHeader' } as const;
const openAi = { dialect: 'openai', keyHeader: '$dialectKeyHeader' } as const;

export const publicRequests: Requests = {
  ...{ ...publicPort, name: 'request' },
  lines: [
    { weight: 20, value: ['POST /v1/tts/stream', '$speechBody'] },
    { weight: 15, value: ['POST /v1/tts', '$speechBody'] },
    { weight: 10, value: ['POST /v1/tts/integrations/voiceplatform?voice=$voice', '$platformBody'] },
    { weight: 8, value: ['GET /v1/tts/speakers'] },
    { weight: 3, value: ['GET /openapi.json'] },
    { weight: 5, value: ['GET /healthz'] },
    { weight: 3, value: ['HEAD /readyz'] },
    { weight: 3, value: ['OPTIONS /v1/tts'] },
  ],
};

export const publicSockets: Sockets = {
  ...{ ...publicPort, name: 'WebSocket', paths: ['/v1/tts/ws«?x=y»'] },
  messages: [
    { weight: 30, value: '{$context"start_context":$start}' },
    { weight: 25, value: '{$context"send_text":$text}' },
    { weight: 15, value: '{$context"flush":true«,"flush_id":"f"»}' },
    { weight: 10, value: '{$context"close_context":true}' },
    { weight: 10, value: '{$context"cancel_context":true}' },
    { weight: 2, value: '{$context"send_text":$text,"flush":true,"close_context":true}' },
  ],
  utterance: [
    '{"context_id":"a","start_context":{"voice_id":"$voice","model_id":"default"}}',
    '{"context_id":"a","send_text":"Hi."}',
    '{"context_id":"a","flush":true}',
    '{"context_id":"a","close_context":true}',
  ],
};

export const elevenLabsRequests: Requests = {
  ...{ ...elevenLabs, name: 'ElevenLabs request' },
  lines: [
    { weight: 4, value: ['POST /v1/text-to-speech/$voice$speakPath?$query', '$elevenLabsBody'] },
    { weight: 1, value: ['GET $elevenLabsPath'] },
  ],
};

export const elevenLabsSockets: Sockets = {
  ...{ ...elevenLabs, name: 'ElevenLabs WebSocket' },
  paths: ['/v1/text-to-speech/$voice/«multi-»stream-input?$query'],
  messages: [
    { weight: 12, value: '{$context"text":" ","voice_settings":$settings}' },
    { weight: 8, value: '{$context"text":" ","$keyMember":"$key"}' },
    { weight: 30, value: '{$context"text":$text«,"flush":true»}' },
    { weight: 10, value: '{$context"flush":true}' },
    { weight: 8, value: '{$context"text":""«,"flush":true»}' },
    { weight: 14, value: '{$context"close_context":true}' },
    { weight: 3, value: '{$context"close_socket":true}' },
  ],
  utterance: [
    '{"context_id":"a","text":" "}',
    '{"context_id":"a","text":"Hi. ","flush":true}',
    '{"context_id":"a","close_context":true}',
  ],
};

export const openAiRequests: Requests = {
  ...{ ...openAi, name: 'OpenAI request' },
  lines: [
    { weight: 6, value: ['POST /v1/audio/speech', '$openAiBody'] },
    { weight: 1, value: ['GET /v1$openAiPath'] },
  ],
};

/** Events of Wyoming: type and data. */
export const events: readonly Weighted<readonly [type: string, data: string]>[] = [
  { weight: 10, value: ['describe', '{}'] },
  { weight: 10, value: ['ping', '{"text":$text}'] },
  { weight: 20, value: ['synthesize', '{"text":$text,"voice":$wyomingVoice}'] },
  { weight: 20, value: ['synthesize-start', '{"voice":$wyomingVoice}'] },
  { weight: 30, value: ['synthesize-chunk', '{"text":$text}'] },
  { weight: 20, value: ['synthesize-stop', '{}'] },
  { weight: 2, value: ['', '{"text":$text}'] },
  { weight: 2, value: ['audio-chunk', '{"text":$text}'] },
  { weight: 1, value: ['x'.repeat(400), '{"text":$text}'] },
];
