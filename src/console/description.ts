/** The calls that a program can make with a user's token, as an OpenAPI document: its schemas come from the types of the calls. */
import typia from 'typia';
import { withIntegers, type Json } from '../api/openapi-parts.js';
import type { Handler } from '../front/routes.js';
import { version } from '../version.js';
import { jsonReply } from './answers.js';
import { summaries, whoOf, type DescribedCall } from './call-rules.js';
import type { Calls, Refusal } from './contract.js';
import type { Door } from './dispatch.js';

type Schemas = Readonly<Record<string, { readonly properties?: Readonly<Record<string, Json>> }>>;

/** @returns a new document */
export const administrationDocument = (): Json => {
  const { components } = typia.json.schemas<[Calls, Refusal]>();
  const schemas = withIntegers((components.schemas ?? {}) as unknown as Json) as unknown as Schemas;
  const content = (schema: Json): Json => ({ 'application/json': { schema } });
  const pathOf = (name: DescribedCall): Json => {
    const call = schemas['Calls']?.properties?.[name] as { readonly $ref: string };
    const { question = {}, answer = {} } =
      schemas[call.$ref.slice(call.$ref.lastIndexOf('/') + 1)]?.properties ?? {};
    return {
      post: {
        operationId: name,
        summary: summaries[name],
        tags: [whoOf(name) === 'operator' ? 'operators' : 'users'],
        requestBody: { required: true, content: content(question) },
        responses: {
          200: { description: 'Done.', content: content(answer) },
          default: {
            description:
              'Refused. `code` is for programs, `message` for people, `field` names what is wrong.',
            content: content({ $ref: '#/components/schemas/Refusal' }),
          },
        },
      },
    };
  };
  return {
    openapi: '3.1.0',
    info: {
      title: 'syrinx administration',
      version,
      description: 'Accounts, keys, users and usage. Times are milliseconds since 1970.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/' }],
    security: [{ token: [] }],
    tags: [
      { name: 'operators', description: 'For operators of the service.' },
      { name: 'users', description: 'For operators, and for the members of the account.' },
    ],
    paths: Object.fromEntries(
      (Object.keys(summaries) as DescribedCall[]).map((name) => [`/api/${name}`, pathOf(name)] as const),
    ),
    components: {
      schemas: schemas as unknown as Json,
      securitySchemes: {
        token: {
          type: 'http',
          scheme: 'bearer',
          description:
            'A token of a user, which begins with `svc_op_`. Users make them in the console, under their name.',
        },
      },
    },
  };
};

/** `GET /api/administration.json` */
export const describeRoute = (door: Door): Handler => {
  let document: Json | undefined;
  return door.forSession(() => jsonReply((document ??= administrationDocument())));
};
