/** The operations of the OpenAPI description. */
import { jsonContent, requestIdHeader, responses } from './openapi-responses.js';
import { schemaRef, type Json } from './openapi-schemas.js';
import { PLATFORM_DEFAULT_SAMPLE_RATE_HZ } from './voice-platform.js';

const RECORDS = [
  { type: 'audio', audio_chunk: 'SUQzBAAAAAA=' },
  { type: 'timestamps', words: ['Good', 'morning.'], start_seconds: [0.03, 0.3], end_seconds: [0.3, 0.82] },
];

/** A record of a stream. */
const record = (value: Json): string => `data: ${JSON.stringify(value)}\n\n`;

const speechBody = (voice: string): Json => ({
  required: true,
  content: jsonContent(schemaRef('SpeechRequestBody'), {
    shortest: { text: 'Good morning.', voice },
    whole: {
      text: 'The 3rd train leaves at 9:45.',
      voice,
      response_format: { encoding: 'opus', sample_rate: 24000, bitrate: '48k' },
      timestamps: true,
      temperature: 1.2,
      normalize_text: true,
    },
    shorthand: { text: 'Good morning.', voice, response_format: 'wav' },
  }),
});

const synchronous = (voice: string): Json => ({
  operationId: 'createSpeech',
  tags: ['speech'],
  summary: 'Speak, and answer with the whole file',
  description: 'Answers when all is made. Above about 1000 characters, the stream is heard sooner.',
  requestBody: speechBody(voice),
  responses: responses(
    {
      200: {
        description: 'The whole file, and the times of its words when they were asked for.',
        headers: requestIdHeader,
        content: jsonContent(schemaRef('SpeechResponse'), {
          audio: { audio: 'SUQzBAAAAAA=' },
          timed: {
            audio: 'SUQzBAAAAAA=',
            timestamps: { words: ['Good', 'morning.'], start_seconds: [0.03, 0.3], end_seconds: [0.3, 0.82] },
          },
        }),
      },
    },
    400,
    401,
    402,
    404,
    405,
    413,
    422,
    429,
    500,
    503,
  ),
});

const streaming = (voice: string): Json => ({
  operationId: 'streamSpeech',
  tags: ['speech'],
  summary: 'Speak, and answer while the speech is made',
  requestBody: speechBody(voice),
  responses: responses(
    {
      200: {
        description:
          'Records, each of them `data: `, one JSON object and two newlines; no last record marks the end. Records ' +
          'of audio and of word times come in no fixed order or ratio. `$defs.record` describes the JSON object. A ' +
          'response that fails after its first record ends without the last chunk of the chunked encoding.',
        headers: requestIdHeader,
        content: {
          'text/plain; charset=utf-8': {
            schema: {
              type: 'string',
              pattern: '^(data: \\{[^\\n]*\\}\\n\\n)*$',
              $defs: { record: schemaRef('StreamRecord') },
            },
            examples: { timed: { value: RECORDS.map(record).join('') } },
          },
        },
      },
    },
    400,
    401,
    402,
    404,
    405,
    413,
    422,
    429,
    500,
    503,
  ),
});

const speakers = (speakerIds: readonly string[]): Json => ({
  operationId: 'listSpeakers',
  tags: ['speech'],
  summary: 'The voices that can be asked for',
  responses: responses(
    {
      200: {
        description: 'The live catalogue.',
        headers: requestIdHeader,
        content: jsonContent(schemaRef('SpeakerList'), { now: { speaker_ids: speakerIds } }),
      },
    },
    400,
    401,
    404,
    405,
    500,
  ),
});

const voicePlatform = (voice: string): Json => ({
  operationId: 'speakForVoicePlatform',
  tags: ['integrations'],
  summary: 'The webhook of a voice-agent platform',
  description:
    'Speech is made for messages whose `type` is `voice-request`; all others are acknowledged with an empty body, ' +
    'and cost nothing.',
  parameters: [
    {
      name: 'voice',
      in: 'query',
      required: true,
      description: 'One of the ids of `GET /v1/tts/speakers`.',
      schema: { type: 'string' },
      example: voice,
    },
  ],
  requestBody: {
    required: true,
    content: jsonContent(schemaRef('VoicePlatformBody'), {
      voiceRequest: {
        message: { type: 'voice-request', text: 'How can I help?', sampleRate: 16000, call: { id: 'c1' } },
      },
      other: { message: { type: 'status-update', status: 'ended' } },
    }),
  },
  responses: responses(
    {
      200: {
        description:
          'Signed 16-bit little-endian mono samples at the `sampleRate` of the message (by default ' +
          `${String(PLATFORM_DEFAULT_SAMPLE_RATE_HZ)} Hz), without a header, as they are made. Empty, and without a ` +
          'content type, for a message that asks for no speech.',
        headers: requestIdHeader,
        content: { 'application/octet-stream': {} },
      },
    },
    400,
    401,
    402,
    404,
    405,
    413,
    422,
    429,
    500,
    503,
  ),
});

const description: Json = {
  operationId: 'describe',
  tags: ['operation'],
  summary: 'This description',
  responses: responses(
    {
      200: {
        description: 'An OpenAPI 3.1 document.',
        headers: requestIdHeader,
        content: { 'application/json': { schema: { type: 'object' } } },
      },
    },
    400,
    401,
    404,
    405,
    500,
  ),
};

const health = (operationId: string, summary: string, own: Readonly<Record<string, Json>>): Json => ({
  operationId,
  tags: ['operation'],
  summary,
  security: [],
  responses: responses(own, 400, 404, 405, 500),
});

const healthAnswer = (text: string, example: Json): Json => ({
  description: text,
  headers: requestIdHeader,
  content: jsonContent(schemaRef('Health'), { now: example }),
});

/** @param speakerIds the catalogue, not empty, for examples */
export const paths = (speakerIds: readonly string[]): Json => {
  const voice = speakerIds[0] ?? '';
  return {
    '/v1/tts': { post: synchronous(voice) },
    '/v1/tts/stream': { post: streaming(voice) },
    '/v1/tts/speakers': { get: speakers(speakerIds) },
    '/v1/tts/integrations/voiceplatform': { post: voicePlatform(voice) },
    '/openapi.json': { get: description },
    '/healthz': {
      get: health('isAlive', 'Whether the process lives', {
        200: healthAnswer('It does.', { status: 'ok' }),
      }),
    },
    '/readyz': {
      get: health('isReady', 'Whether speech may be asked for', {
        200: healthAnswer('It may.', { status: 'ready' }),
        503: healthAnswer('It may not.', { status: 'not ready', reasons: ['draining'] }),
      }),
    },
  };
};
