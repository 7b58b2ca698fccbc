/** The calls that a program can make with a user's token, as an OpenAPI document: its schemas come from the types of the calls. */
import typia from 'typia';
import { withIntegers, type Json } from '../api/openapi-parts.js';
import type { Handler } from '../front/routes.js';
import { version } from '../version.js';
import { jsonReply, replyWhenDone } from './answers.js';
import { callNames, callRules } from './calls.js';
import type { CallName, Calls, Refusal } from './contract.js';
import type { Door } from './dispatch.js';
import type { Sessions } from './sessions.js';

type DescribedCall = {
  readonly [N in CallName]: (typeof callRules)[N]['who'] extends 'anyone' | 'person' ? never : N;
}[CallName];

const summaries: Readonly<Record<DescribedCall, string>> = {
  tokens: 'Your own tokens',
  revokeToken: 'End one of your tokens, at once',
  account: 'An account: credit, state, speaking defaults',
  keys: 'The keys of an account, without their secrets',
  createKey: 'Create a key. The answer is the only one that shows it',
  changeKey: 'Name or restrict a key, or set what it speaks by default',
  revokeKey: 'End a key, at once and for good',
  browserToken: 'Let a page in a browser speak for a key, for a minute: see `BROWSER_PORT`',
  usage: 'Usage by hour or day, by key and by voice, a page at a time',
  balance: 'How the balance of an account changed, the newest first',
  requests: 'The last requests that ended, and why, a page at a time',
  users: 'The members of an account, or the operators (`null`)',
  voices: 'The voice packs, and what loading them found',
  lexicons: 'The names of the lexicons that keys and accounts can have',
  said: 'What will be said of a text',
  addWord: 'Teach the lexicon of an account a word',
  removeWord: 'Take a word that was added out of the lexicon of an account',
  words: 'The words of the lexicon of an account',
  alerts: 'Low credit and expiring keys of an account, or of all (`null`)',
  webhook: 'Where the alerts of an account are sent',
  setWebhook: 'Send the alerts of an account to an address. The answer is the only one that shows the secret',
  testWebhook: 'Send a message to the webhook of an account, now',
  accounts: 'All accounts',
  createAccount: 'Create an account, without a limit of credit if `credits` is null',
  credit: 'Add credit to an account that has a limit',
  meterAccount: 'Give an account a limit of credit, or take it away',
  changeAccount: 'Set what the keys of an account speak by default',
  suspendAccount: 'Refuse all keys of an account, or accept them again',
  deleteAccount: 'Revoke the keys of an account and remove its users. Its ledger stays',
  invite: 'Make a link that invites a member of an account, or an operator (`null`)',
  invitations: 'The open invitations',
  withdrawInvitations: 'End the open invitations',
  removeUser: 'Remove a user, whose sessions and tokens end',
  reloadVoices: 'Read voices and lexicons again, without dropping a stream',
  history:
    'Requests, streams, first audio, capacity, refusals and failures of the last hour, day, week, or of each day',
  audit: 'A page of the audit table, the newest first',
};

const isDescribed = (name: CallName): name is DescribedCall => name in summaries;

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
        tags: [callRules[name].who === 'operator' ? 'operators' : 'users'],
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
      callNames.filter(isDescribed).map((name) => [`/api/${name}`, pathOf(name)] as const),
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
export const describeRoute = (door: Door, sessions: Sessions): Handler => {
  let document: Json | undefined;
  return (exchange, head) => {
    if (!door.admits(exchange, head)) return;
    const answer = async () => {
      await sessions.demand(exchange, head);
      return jsonReply((document ??= administrationDocument()));
    };
    replyWhenDone(exchange, answer());
  };
};
