/** The OpenAPI 3.1 description of the service, and the answers that several of its operations share. */
import { errors, type ErrorCode } from '../errors.js';
import { unknownVoice } from './error-shape.js';
import {
  jsonContent,
  commonHeaders,
  schemaRef,
  schemas,
  unavailableHeaders,
  type Json,
  type SchemaName,
} from './openapi-parts.js';
import { operations, type Operation } from './operations.js';
import { parseSpeechRequest } from './speech-request.js';
import type { Bounds } from '../limits.js';

/** The version of the contract, not of a release. */
const DOCUMENT_VERSION = '0.1.0';

const fixed = (description: string, schema: SchemaName, ...codes: readonly ErrorCode[]): Json => ({
  description,
  headers: commonHeaders,
  content: jsonContent(
    schemaRef(schema),
    Object.fromEntries(codes.map((code) => [code, JSON.parse(errors[code].body) as Json])),
  ),
});

/** A request with several faults, and its answer. */
const invalid = (voice: string, bounds: Bounds): Json => {
  const body = {
    voice,
    response_format: { encoding: 'mp3', sample_rate: 8000 },
    temperature: 4,
    speed: 2,
  };
  const result = parseSpeechRequest(Buffer.from(JSON.stringify(body)), 'application/json', bounds);
  if (result.ok) throw new Error('the example of an invalid request is valid');
  return JSON.parse(result.body) as Json;
};

const sharedResponses = (speakerIds: readonly string[], bounds: Bounds): Readonly<Record<string, Json>> => ({
  BadRequest: fixed(
    'The body is not UTF-8 or nests too deeply, or the request is malformed.',
    'DetailBody',
    'bodyUnreadable',
    'badRequest',
  ),
  Unauthorized: fixed(
    'The key is missing or malformed; or it does not exist, was revoked or has expired, or its account is suspended.',
    'ErrorBody',
    'keyMissing',
    'keyUnknown',
  ),
  OutOfCredit: fixed(
    'The account is out of credit, or the key is at its limit. The key stays valid, and works as soon as there is credit.',
    'ErrorBody',
    'creditExhausted',
  ),
  NotFound: {
    description: 'The answer at any other path.',
    headers: commonHeaders,
    content: { 'text/html; charset=utf-8': { schema: { type: 'string' } } },
  },
  MethodNotAllowed: {
    ...(fixed('The answer to any other method.', 'DetailBody', 'methodNotAllowed') as object),
    headers: {
      ...commonHeaders,
      allow: { description: 'The allowed methods.', required: true, schema: { type: 'string' } },
    },
  },
  LengthRequired: fixed(
    'The body has a transfer coding: send `Content-Length`.',
    'DetailBody',
    'lengthRequired',
  ),
  BodyTooLarge: fixed('The body is larger than 1 MiB.', 'DetailBody', 'bodyTooLarge'),
  Invalid: {
    description: 'Fields are missing, wrong or unknown (`detail`), or the voice is unknown (`error`).',
    headers: commonHeaders,
    content: jsonContent(
      { oneOf: [schemaRef('ValidationErrors'), schemaRef('UnknownVoice')] },
      {
        fields: invalid(speakerIds[0] ?? '', bounds),
        unknownVoice: JSON.parse(unknownVoice('nobody', speakerIds, bounds).body) as Json,
      },
    ),
  },
  SlotsTaken: fixed(
    'Nine requests of the key are in flight. The service queues nothing: try again after 200 ms, with backoff up to 5 s.',
    'ErrorBody',
    'slotsExhausted',
  ),
  InternalError: {
    description: 'A fault of the service. Try again with backoff.',
    headers: commonHeaders,
    content: {
      'text/plain; charset=utf-8': { schema: { type: 'string', const: errors.internal.body } },
    },
  },
  Unavailable: {
    ...(fixed(
      'The service is draining or full, or its store cannot be used: try again later.',
      'ErrorBody',
      'unavailable',
    ) as object),
    headers: unavailableHeaders,
  },
});

const pathsOf = (described: Readonly<Record<string, Operation>>, speakerIds: readonly string[]): Json => {
  const paths: Record<string, Record<string, Json>> = {};
  for (const [operationId, { path, method, describe }] of Object.entries(described))
    (paths[path] ??= {})[method] = { operationId, ...describe(speakerIds) };
  return paths;
};

/**
 * @param speakerIds the catalogue, not empty, for examples
 * @returns a new document
 */
export const openApiDocument = (speakerIds: readonly string[], bounds: Bounds): Json => ({
  openapi: '3.1.0',
  info: {
    title: 'syrinx',
    version: DOCUMENT_VERSION,
    description:
      'Text to speech, whole or streamed. Every response carries an `x-request-id`. Routes that answer GET answer ' +
      'HEAD too.',
    license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
  },
  servers: [{ url: '/' }],
  security: [{ apiKey: [] }],
  tags: [
    { name: 'speech', description: 'Speech and its voices.' },
    { name: 'integrations', description: 'For platforms that call a webhook.' },
    { name: 'operation', description: 'For operators of the service.' },
  ],
  paths: pathsOf(operations, speakerIds),
  components: {
    schemas: schemas(),
    responses: sharedResponses(speakerIds, bounds),
    headers: {
      RequestId: {
        description: 'Names the request, here and in the log of the service.',
        required: true,
        schema: { type: 'string', format: 'uuid' },
      },
      Traceparent: {
        description:
          'Our span in the trace of the request, as W3C Trace Context has it. Only if the request has a valid `traceparent`.',
        required: false,
        schema: { type: 'string', pattern: '^00-[0-9a-f]{32}-[0-9a-f]{16}-0[0-3]$' },
      },
    },
    securitySchemes: {
      apiKey: {
        type: 'apiKey',
        in: 'header',
        name: 'x-api-key',
        description: 'A key that begins with `svc_sk_`. Bearer tokens are refused.',
      },
    },
  },
});
