/** Answers that several routes share: the `components.responses` of the OpenAPI description. */
import { errors, type ErrorCode } from '../errors.js';
import { schemaRef, type Json, type SchemaName } from './openapi-schemas.js';
import { parseSpeechRequest } from './speech-request.js';
import { unknownVoice } from './unknown-voice.js';

type Examples = Readonly<Record<string, Json>>;

export const requestIdHeader = { 'x-request-id': { $ref: '#/components/headers/RequestId' } };

/** A JSON body with named examples. */
export const jsonContent = (schema: Json, examples: Examples): Json => ({
  'application/json': {
    schema,
    examples: Object.fromEntries(Object.entries(examples).map(([name, value]) => [name, { value }])),
  },
});

const fixed = (description: string, schema: SchemaName, ...codes: readonly ErrorCode[]): Json => ({
  description,
  headers: requestIdHeader,
  content: jsonContent(
    schemaRef(schema),
    Object.fromEntries(codes.map((code) => [code, JSON.parse(errors[code].body) as Json])),
  ),
});

/** A request with several faults, and what it is answered. */
const invalid = (voice: string): Json => {
  const body = {
    voice,
    response_format: { encoding: 'mp3', sample_rate: 8000 },
    temperature: 4,
    speed: 2,
  };
  const result = parseSpeechRequest(Buffer.from(JSON.stringify(body)), 'application/json');
  if (result.ok) throw new Error('the example of an invalid request is valid');
  return JSON.parse(result.body) as Json;
};

/** @param speakerIds the catalogue, not empty, for examples */
export const sharedResponses = (speakerIds: readonly string[]): Readonly<Record<string, Json>> => ({
  BadRequest: fixed(
    'The body is no UTF-8 or nests too deeply, or the request is malformed.',
    'DetailBody',
    'bodyUnreadable',
    'badRequest',
  ),
  Unauthorized: fixed(
    'No key, or a value that is none; or a key that does not exist or was revoked.',
    'ErrorBody',
    'keyMissing',
    'keyUnknown',
  ),
  OutOfCredit: fixed(
    'The account is out of credit. The key stays valid, and works as soon as credit is added.',
    'ErrorBody',
    'creditExhausted',
  ),
  NotFound: {
    description: 'What is answered at any other path.',
    headers: requestIdHeader,
    content: { 'text/html; charset=utf-8': { schema: { type: 'string' } } },
  },
  MethodNotAllowed: {
    ...(fixed('What any other method is answered.', 'DetailBody', 'methodNotAllowed') as object),
    headers: {
      ...requestIdHeader,
      allow: { description: 'The methods that there are.', required: true, schema: { type: 'string' } },
    },
  },
  BodyTooLarge: fixed('The body is larger than 1 MiB.', 'DetailBody', 'bodyTooLarge'),
  Invalid: {
    description: 'Fields are missing, wrong or unknown (`detail`), or the voice is (`error`).',
    headers: requestIdHeader,
    content: jsonContent(
      { oneOf: [schemaRef('ValidationErrors'), schemaRef('UnknownVoice')] },
      {
        fields: invalid(speakerIds[0] ?? ''),
        unknownVoice: JSON.parse(unknownVoice('nobody', speakerIds).body) as Json,
      },
    ),
  },
  SlotsTaken: fixed(
    'Nine requests of the key are in flight. Nothing queues: try again from 200 ms on, backing off to 5 s.',
    'ErrorBody',
    'slotsExhausted',
  ),
  InternalError: {
    description: 'A fault of the service. Try again, backing off.',
    headers: requestIdHeader,
    content: {
      'text/plain; charset=utf-8': { schema: { type: 'string', const: errors.internal.body } },
    },
  },
  Unavailable: fixed(
    'Draining, full, or its store takes no writes: try again later.',
    'ErrorBody',
    'unavailable',
  ),
});

const names = {
  400: 'BadRequest',
  401: 'Unauthorized',
  402: 'OutOfCredit',
  404: 'NotFound',
  405: 'MethodNotAllowed',
  413: 'BodyTooLarge',
  422: 'Invalid',
  429: 'SlotsTaken',
  500: 'InternalError',
  503: 'Unavailable',
} as const;

/** The `responses` of an operation: its own, and references to shared ones. */
export const responses = (
  own: Readonly<Record<string, Json>>,
  ...shared: readonly (keyof typeof names)[]
): Json => ({
  ...own,
  ...Object.fromEntries(
    shared.map((status) => [status, { $ref: `#/components/responses/${names[status]}` }]),
  ),
});
