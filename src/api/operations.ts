/**
 * The specification's HTTP operations: method, path, and the description in OpenAPI. The front adds a handler to each; the
 * compiler reports one without.
 */
import {
  commonHeaders,
  jsonContent,
  schemaRef,
  unavailableHeaders,
  type Examples,
  type Json,
} from './openapi-parts.js';
import { PLATFORM_DEFAULT_SAMPLE_RATE_HZ } from './voice-platform.js';

export interface Operation {
  /** A `get` operation answers HEAD too. */
  readonly method: 'get' | 'post';
  readonly path: string;
  /** @param speakerIds the catalogue, not empty, for examples @returns the operation without its id */
  readonly describe: (speakerIds: readonly string[]) => Readonly<Record<string, Json>>;
}

const sharedNames = {
  400: 'BadRequest',
  401: 'Unauthorized',
  402: 'OutOfCredit',
  404: 'NotFound',
  405: 'MethodNotAllowed',
  411: 'LengthRequired',
  413: 'BodyTooLarge',
  422: 'Invalid',
  429: 'SlotsTaken',
  500: 'InternalError',
  503: 'Unavailable',
} as const;

type SharedStatus = keyof typeof sharedNames;

/** The statuses of every route, of a route that asks for a key, and of a route that speaks. */
const anyRoute: readonly SharedStatus[] = [400, 404, 405, 411, 500];
const keyedRoute: readonly SharedStatus[] = [401, 503, ...anyRoute];
const speechRoute: readonly SharedStatus[] = [402, 413, 422, 429, ...keyedRoute];

/** A success: its description and content. */
const ok = (description: string, content: Json) => ({ description, headers: commonHeaders, content });

/** The `responses` of an operation: its own, and references to shared ones. */
const responses = (own: Readonly<Record<number, Json>>, shared: readonly SharedStatus[]): Json => ({
  ...Object.fromEntries(
    shared.map((status) => [status, { $ref: `#/components/responses/${sharedNames[status]}` }]),
  ),
  ...own,
});

const jsonOf = (schema: Parameters<typeof schemaRef>[0], examples: Examples): Json =>
  jsonContent(schemaRef(schema), examples);

const WORDS = { words: ['Good', 'morning.'], start_seconds: [0.03, 0.3], end_seconds: [0.3, 0.82] };

const RECORDS: readonly Json[] = [
  { type: 'audio', audio_chunk: 'SUQzBAAAAAA=' },
  { type: 'timestamps', ...WORDS },
];

const speechBody = (voice: string): Json => ({
  required: true,
  content: jsonOf('SpeechRequestBody', {
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

const health = (summary: string, own: Readonly<Record<number, Json>>) => ({
  tags: ['operation'],
  summary,
  security: [],
  responses: responses(own, anyRoute),
});

export const operations = {
  createSpeech: {
    method: 'post',
    path: '/v1/tts',
    describe: ([voice = '']) => ({
      tags: ['speech'],
      summary: 'Speak, and answer with the whole file',
      description:
        'Answers when all audio is made. Above about 1000 characters, the stream gives the first audio sooner.',
      requestBody: speechBody(voice),
      responses: responses(
        {
          200: ok(
            'The whole file, and the times of its words if the request asked for them.',
            jsonOf('SpeechResponse', {
              audio: { audio: 'SUQzBAAAAAA=' },
              timed: { audio: 'SUQzBAAAAAA=', timestamps: WORDS },
            }),
          ),
        },
        speechRoute,
      ),
    }),
  },
  streamSpeech: {
    method: 'post',
    path: '/v1/tts/stream',
    describe: ([voice = '']) => ({
      tags: ['speech'],
      summary: 'Speak, and answer while the audio is made',
      requestBody: speechBody(voice),
      responses: responses(
        {
          200: ok(
            'Records. Each record is `data: `, one JSON object and two newlines; no last record marks the end. Audio and ' +
              'word times come in no fixed order or ratio. `$defs.record` describes the JSON object. A response that ' +
              'fails after its first record ends without the last chunk of the chunked encoding.',
            {
              'text/plain; charset=utf-8': {
                schema: {
                  type: 'string',
                  pattern: '^(data: \\{[^\\n]*\\}\\n\\n)*$',
                  $defs: { record: schemaRef('StreamRecord') },
                },
                examples: {
                  timed: {
                    value: RECORDS.map((record) => `data: ${JSON.stringify(record)}\n\n`).join(''),
                  },
                },
              },
            },
          ),
        },
        speechRoute,
      ),
    }),
  },
  listSpeakers: {
    method: 'get',
    path: '/v1/tts/speakers',
    describe: (speakerIds) => ({
      tags: ['speech'],
      summary: 'The voices that requests with this key can name',
      responses: responses(
        { 200: ok('The live catalogue.', jsonOf('SpeakerList', { now: { speaker_ids: speakerIds } })) },
        keyedRoute,
      ),
    }),
  },
  speakForVoicePlatform: {
    method: 'post',
    path: '/v1/tts/integrations/voiceplatform',
    describe: ([voice = '']) => ({
      tags: ['integrations'],
      summary: 'The webhook of a voice-agent platform',
      description:
        'Speaks messages whose `type` is `voice-request`. All others get an empty response and cost nothing. Numbers are ' +
        'spoken as they are written, unless the key or its account is set to normalise them.',
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
        content: jsonOf('VoicePlatformBody', {
          voiceRequest: {
            message: {
              type: 'voice-request',
              text: 'How can I help?',
              sampleRate: 16000,
              call: { id: 'c1' },
            },
          },
          other: { message: { type: 'status-update', status: 'ended' } },
        }),
      },
      responses: responses(
        {
          200: ok(
            'Signed 16-bit little-endian mono samples without a header, at the `sampleRate` of the message ' +
              `(${String(PLATFORM_DEFAULT_SAMPLE_RATE_HZ)} Hz by default), as they are made. Empty, without a content ` +
              'type, for a message that asks for no speech.',
            { 'application/octet-stream': {} },
          ),
        },
        speechRoute,
      ),
    }),
  },
  describe: {
    method: 'get',
    path: '/openapi.json',
    describe: () => ({
      tags: ['operation'],
      summary: 'This description',
      responses: responses(
        { 200: ok('An OpenAPI 3.1 document.', { 'application/json': { schema: { type: 'object' } } }) },
        keyedRoute,
      ),
    }),
  },
  isAlive: {
    method: 'get',
    path: '/healthz',
    describe: () =>
      health('Whether the process is alive', {
        200: ok('It is alive.', jsonOf('Health', { now: { status: 'ok' } })),
      }),
  },
  isReady: {
    method: 'get',
    path: '/readyz',
    describe: () =>
      health('Whether the service takes speech requests', {
        200: ok('It does.', jsonOf('Health', { now: { status: 'ready' } })),
        503: {
          ...ok('It does not.', jsonOf('Health', { now: { status: 'not ready', reasons: ['draining'] } })),
          headers: unavailableHeaders,
        },
      }),
  },
} as const satisfies Record<string, Operation>;

export type OperationId = keyof typeof operations;
