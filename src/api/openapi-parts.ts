/**
 * Parts of the OpenAPI description: JSON schemas of everything on the wire, derived from the types that validate requests
 * and shape answers.
 */
import typia from 'typia';
import type {
  DetailBody,
  ErrorBody,
  Health,
  SpeakerList,
  SpeechResponse,
  StreamRecord,
  UnknownVoice,
  ValidationErrors,
} from './responses.js';
import type { SpeechRequestBody } from './speech-request.js';
import type { VoicePlatformBody } from './voice-platform.js';

/** A value of a JSON document. */
export type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json };

export type Examples = Readonly<Record<string, Json>>;

export type SchemaName =
  | 'SpeechRequestBody'
  | 'VoicePlatformBody'
  | 'SpeechResponse'
  | 'StreamRecord'
  | 'SpeakerList'
  | 'ValidationErrors'
  | 'UnknownVoice'
  | 'ErrorBody'
  | 'DetailBody'
  | 'Health';

/** Whether a client may send further keys: typia's schema of a type is the same for `equals` and for `is`. */
const furtherKeys: Readonly<Record<string, boolean>> = {
  SpeechRequestBody: false,
  ResponseFormatBody: false,
  VoicePlatformBody: true,
  VoiceRequestMessage: true,
  OtherMessage: true,
};

/** typia writes a whole number as a multiple of one; JSON Schema has the type `integer`. */
export const withIntegers = (value: Json): Json => {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return (value as readonly Json[]).map(withIntegers);
  const members = Object.entries(value).map(([key, member]) => [key, withIntegers(member)] as const);
  const object = Object.fromEntries(members);
  if (object['type'] !== 'number' || object['multipleOf'] !== 1) return object;
  const { multipleOf: _, ...others } = object;
  return { ...others, type: 'integer' };
};

/** The `components.schemas` of the description. */
export const schemas = (): Record<string, Json> => {
  const { components } =
    typia.json.schemas<
      [
        SpeechRequestBody,
        VoicePlatformBody,
        SpeechResponse,
        StreamRecord,
        SpeakerList,
        ValidationErrors,
        UnknownVoice,
        ErrorBody,
        DetailBody,
        Health,
      ]
    >();
  const derived = Object.entries(components.schemas ?? {}).map(([name, schema]) => {
    const plain = withIntegers(schema as unknown as Json) as Readonly<Record<string, Json>>;
    const allowed = furtherKeys[name];
    return [name, allowed === undefined ? plain : { ...plain, additionalProperties: allowed }] as const;
  });
  return Object.fromEntries(derived);
};

export const schemaRef = (name: SchemaName): Json => ({ $ref: `#/components/schemas/${name}` });

/** Of every response. */
export const commonHeaders = {
  'x-request-id': { $ref: '#/components/headers/RequestId' },
  traceparent: { $ref: '#/components/headers/Traceparent' },
};

/** Of a 503. */
export const unavailableHeaders = {
  ...commonHeaders,
  'retry-after': {
    description: 'Seconds to wait before the next attempt.',
    required: true,
    schema: { type: 'integer', minimum: 1 },
  },
};

/** A JSON body with named examples. */
export const jsonContent = (schema: Json, examples: Examples): Json => ({
  'application/json': {
    schema,
    examples: Object.fromEntries(Object.entries(examples).map(([name, value]) => [name, { value }])),
  },
});
