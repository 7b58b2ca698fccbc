/** The OpenAPI 3.1 description of the service. */
import { paths } from './openapi-paths.js';
import { sharedResponses } from './openapi-responses.js';
import { schemas, type Json } from './openapi-schemas.js';

/** Of the contract, which changes with its own version and not with every release. */
const DOCUMENT_VERSION = '0.1.0';

/**
 * @param speakerIds the catalogue, not empty: examples use it
 * @returns a fresh document
 */
export const openApiDocument = (speakerIds: readonly string[]): Json => ({
  openapi: '3.1.0',
  info: {
    title: 'syrinx',
    version: DOCUMENT_VERSION,
    description:
      'Text to speech, whole or streamed. Every response carries an `x-request-id`; routes that answer GET answer ' +
      'HEAD too.',
    license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
  },
  servers: [{ url: '/' }],
  security: [{ apiKey: [] }],
  tags: [
    { name: 'speech', description: 'Speech and its voices.' },
    { name: 'integrations', description: 'For platforms that call a webhook.' },
    { name: 'operation', description: 'For those who run the service.' },
  ],
  paths: paths(speakerIds),
  components: {
    schemas: schemas(),
    responses: sharedResponses(speakerIds),
    headers: {
      RequestId: {
        description: 'Names the request, here and in the log of the service.',
        required: true,
        schema: { type: 'string', format: 'uuid' },
      },
    },
    securitySchemes: {
      apiKey: {
        type: 'apiKey',
        in: 'header',
        name: 'x-api-key',
        description: 'A key that begins with `svc_sk_`. Bearer tokens are not taken.',
      },
    },
  },
});
