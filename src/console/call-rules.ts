/** The table of calls: who may make each, what it is for, and what it asks. */
import typia, { type IValidation } from 'typia';
import type {
  CallName,
  CallsOfAnyone,
  CallsOfOperators,
  CallsOfPeople,
  CallsOfUsers,
  Question,
} from './contract.js';

/** `person`: a user at the page, and no program with the user's token. */
export type Who = 'anyone' | 'person' | 'signedIn' | 'operator';

const anyone: Readonly<Record<keyof CallsOfAnyone, true>> = {
  ...{ session: true, claim: true, signIn: true, invitation: true, acceptInvitation: true, signOut: true },
};
const people: Readonly<Record<keyof CallsOfPeople, true>> = { changePassword: true, createToken: true };

const users: Readonly<Record<keyof CallsOfUsers, string>> = {
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
};

const operators: Readonly<Record<keyof CallsOfOperators, string>> = {
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

export type DescribedCall = keyof CallsOfUsers | keyof CallsOfOperators;

/** Of the calls that a program can make. */
export const summaries: Readonly<Record<DescribedCall, string>> = { ...users, ...operators };

export const callNames = Object.keys({ ...anyone, ...people, ...summaries }) as CallName[];

export const whoOf = (name: CallName): Who => {
  if (name in anyone) return 'anyone';
  if (name in people) return 'person';
  return name in users ? 'signedIn' : 'operator';
};

type Asked = {
  readonly [N in CallName]: { readonly name: N; readonly question: Question<N> };
}[CallName];

/** A call and its question. In the paths of its faults the question is `$input.question`. */
export const validateCall: (input: unknown) => IValidation<Asked> = typia.createValidateEquals<Asked>();
