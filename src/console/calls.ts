/**
 * The calls of the page: who may make each, what it asks, and who answers it. A member's calls reach its own account only:
 * the administration thread checks that in the transaction of the act.
 */
import typia, { type IValidation } from 'typia';
import type { Installed } from '../accounts/checks.js';
import type { ConsoleAdministration, OpenedSession, StoreCall, StoreCalls } from './administration.js';
import type { Admission } from '../accounts/admission.js';
import type { BrowserTokens } from '../accounts/browser-tokens.js';
import { canonicalOrigin } from '../config.js';
import { badRequest, forOperators, forPeople, signedOut } from './answers.js';
import type { Answer, CallName, Question, SessionState, User, VoicesView } from './contract.js';
import type { Lexicons } from '../threads/lexicons.js';
import { ConsoleRefusal } from './refusal.js';
import type { Sayer } from './said.js';
import type { Session } from './sessions.js';
import type { Throttle } from './throttle.js';

/** `person`: a user at the page, and no program with the user's token. */
type Who = 'anyone' | 'person' | 'signedIn' | 'operator';

/** Who may make a call. */
export const whoMay = {
  session: 'anyone',
  claim: 'anyone',
  signIn: 'anyone',
  invitation: 'anyone',
  acceptInvitation: 'anyone',
  signOut: 'anyone',
  changePassword: 'person',
  tokens: 'signedIn',
  createToken: 'person',
  revokeToken: 'signedIn',
  account: 'signedIn',
  keys: 'signedIn',
  createKey: 'signedIn',
  changeKey: 'signedIn',
  revokeKey: 'signedIn',
  browserToken: 'signedIn',
  usage: 'signedIn',
  balance: 'signedIn',
  users: 'signedIn',
  voices: 'signedIn',
  lexicons: 'signedIn',
  said: 'signedIn',
  addWord: 'signedIn',
  accounts: 'operator',
  createAccount: 'operator',
  credit: 'operator',
  meterAccount: 'operator',
  changeAccount: 'operator',
  suspendAccount: 'operator',
  deleteAccount: 'operator',
  invite: 'operator',
  invitations: 'operator',
  withdrawInvitations: 'operator',
  removeUser: 'operator',
  reloadVoices: 'operator',
  audit: 'operator',
} as const satisfies Record<CallName, Who>;

export const callNames = Object.keys(whoMay) as CallName[];

type Validators = { readonly [N in CallName]: (input: unknown) => IValidation<Question<N>> };

export const validators: Validators = {
  session: typia.createValidateEquals<Question<'session'>>(),
  claim: typia.createValidateEquals<Question<'claim'>>(),
  signIn: typia.createValidateEquals<Question<'signIn'>>(),
  invitation: typia.createValidateEquals<Question<'invitation'>>(),
  acceptInvitation: typia.createValidateEquals<Question<'acceptInvitation'>>(),
  signOut: typia.createValidateEquals<Question<'signOut'>>(),
  changePassword: typia.createValidateEquals<Question<'changePassword'>>(),
  tokens: typia.createValidateEquals<Question<'tokens'>>(),
  createToken: typia.createValidateEquals<Question<'createToken'>>(),
  revokeToken: typia.createValidateEquals<Question<'revokeToken'>>(),
  account: typia.createValidateEquals<Question<'account'>>(),
  keys: typia.createValidateEquals<Question<'keys'>>(),
  createKey: typia.createValidateEquals<Question<'createKey'>>(),
  changeKey: typia.createValidateEquals<Question<'changeKey'>>(),
  revokeKey: typia.createValidateEquals<Question<'revokeKey'>>(),
  browserToken: typia.createValidateEquals<Question<'browserToken'>>(),
  usage: typia.createValidateEquals<Question<'usage'>>(),
  balance: typia.createValidateEquals<Question<'balance'>>(),
  users: typia.createValidateEquals<Question<'users'>>(),
  voices: typia.createValidateEquals<Question<'voices'>>(),
  lexicons: typia.createValidateEquals<Question<'lexicons'>>(),
  said: typia.createValidateEquals<Question<'said'>>(),
  addWord: typia.createValidateEquals<Question<'addWord'>>(),
  accounts: typia.createValidateEquals<Question<'accounts'>>(),
  createAccount: typia.createValidateEquals<Question<'createAccount'>>(),
  credit: typia.createValidateEquals<Question<'credit'>>(),
  meterAccount: typia.createValidateEquals<Question<'meterAccount'>>(),
  changeAccount: typia.createValidateEquals<Question<'changeAccount'>>(),
  suspendAccount: typia.createValidateEquals<Question<'suspendAccount'>>(),
  deleteAccount: typia.createValidateEquals<Question<'deleteAccount'>>(),
  invite: typia.createValidateEquals<Question<'invite'>>(),
  invitations: typia.createValidateEquals<Question<'invitations'>>(),
  withdrawInvitations: typia.createValidateEquals<Question<'withdrawInvitations'>>(),
  removeUser: typia.createValidateEquals<Question<'removeUser'>>(),
  reloadVoices: typia.createValidateEquals<Question<'reloadVoices'>>(),
  audit: typia.createValidateEquals<Question<'audit'>>(),
};

/** A call that was read, and who makes it. */
export interface Caller {
  readonly address: string;
  /** Of the cookie: the session may have ended. */
  readonly tokenHash: string | null;
  /** Of the last sign-in in this browser: see `ConsoleAdministration.device`. */
  readonly device: string | null;
  readonly session: Session | null;
  /** The browser gets the cookies of this session. */
  readonly begin: (opened: OpenedSession) => void;
  /** The browser loses its session's cookie. */
  readonly end: () => void;
}

type Answers = {
  readonly [N in CallName]: (question: Question<N>, caller: Caller) => Promise<Answer<N>>;
};

/** @throws {ConsoleRefusal} if the caller may not */
export const checkRole = (name: CallName, session: Session | null, isProgram: boolean): void => {
  const who = whoMay[name];
  if (who === 'anyone') return;
  if (session === null) throw signedOut(isProgram);
  if (who === 'person' && session.isProgram) throw forPeople();
  if (who === 'operator' && session.user.role !== 'operator') throw forOperators();
};

export interface CallsParts {
  readonly administration: ConsoleAdministration;
  readonly throttle: Throttle;
  readonly voices: {
    readonly ids: readonly string[];
    view(): VoicesView;
    reload(): void;
  };
  readonly lexicons: Pick<Lexicons, 'add' | 'names' | 'reload'>;
  readonly sayer: Pick<Sayer, 'said'>;
  /** The console's own address, without a slash at its end. */
  readonly url: () => string;
  /** Resolves when the store has all that was spent until now, if it takes writes. */
  readonly settled: () => Promise<void>;
  readonly about: () => Pick<SessionState, 'version' | 'serviceUrl' | 'listensOn' | 'ports'>;
  readonly admission: Pick<Admission, 'byId'>;
  /** `null`: the listener for browsers is off. */
  readonly browserTokens: BrowserTokens | null;
  /** Sessions, keys or accounts may have ended: their streams must end. */
  readonly onEnded: () => void;
}

/** The session of a call that only signed-in users may make. */
const sessionOf = ({ session }: Caller): Session => {
  if (session === null) throw new Error('`checkRole` lets no such call through');
  return session;
};

const conflict = (message: string): ConsoleRefusal => new ConsoleRefusal({ code: 'conflict', message });

export const createCalls = (parts: CallsParts): Answers => {
  const { about, administration, admission, browserTokens, lexicons, onEnded } = parts;
  const { sayer, settled, throttle, url, voices } = parts;
  const installed = (): Installed => ({ voices: voices.ids, lexicons: lexicons.names });

  const stateOf = async (user: User | null): Promise<SessionState> => ({
    claimed: user !== null || (await administration.claimed()),
    user,
    ...about(),
  });

  const store: StoreCalls = administration;
  /** Passes a call on to the store, as the signed-in user. */
  const stored =
    <N extends StoreCall>(name: N) =>
    async (question: Question<N>, caller: Caller): Promise<Answer<N>> =>
      store[name](sessionOf(caller).user, question);

  /** The same for an answer with amounts: the page asks as soon as a user has heard what it costs. */
  const afterSettling =
    <N extends StoreCall>(name: N) =>
    async (question: Question<N>, caller: Caller): Promise<Answer<N>> => {
      await settled();
      return stored(name)(question, caller);
    };

  /** The same for an act that can end sessions, keys or accounts. */
  const ending =
    <N extends StoreCall>(name: N) =>
    async (question: Question<N>, caller: Caller): Promise<Answer<N>> => {
      const answer = await stored(name)(question, caller);
      onEnded();
      return answer;
    };

  const isKnownDevice = async (name: string, { device }: Caller): Promise<boolean> =>
    device !== null && device === (await administration.device(name));

  const begun = async (opening: Promise<OpenedSession>, caller: Caller): Promise<SessionState> => {
    const opened = await opening;
    caller.begin(opened);
    return stateOf(opened.user);
  };

  const link = (caller: Caller): void =>
    throttle.attempt({ address: caller.address, name: null, isKnownDevice: false });

  return {
    session: (_, { session }) => stateOf(session?.user ?? null),
    claim: async (question, caller) => {
      link(caller);
      const state = await begun(administration.claim(question, caller.address), caller);
      onEnded();
      return state;
    },
    signIn: async (question, caller) => {
      const { name } = question;
      throttle.attempt({
        address: caller.address,
        name,
        isKnownDevice: await isKnownDevice(name, caller),
      });
      return begun(administration.signIn(question, caller.address), caller);
    },
    invitation: async (question, caller) => {
      link(caller);
      return administration.invitation(question);
    },
    acceptInvitation: async (question, caller) => {
      link(caller);
      return begun(administration.acceptInvitation(question, caller.address), caller);
    },
    signOut: async ({ everywhere }, caller) => {
      if (caller.tokenHash !== null) await administration.signOut(caller.tokenHash, everywhere);
      caller.end();
      onEnded();
      return stateOf(null);
    },
    changePassword: async (question, caller) => {
      const { tokenHash, user } = sessionOf(caller);
      const { name } = user;
      throttle.attempt({ address: caller.address, name, isKnownDevice: await isKnownDevice(name, caller) });
      await administration.changePassword(tokenHash, question);
      onEnded();
      return {};
    },
    tokens: stored('tokens'),
    createToken: stored('createToken'),
    revokeToken: ending('revokeToken'),
    account: afterSettling('account'),
    keys: afterSettling('keys'),
    createKey: async (question, caller) =>
      administration.createKey(sessionOf(caller).user, question, installed()),
    changeKey: async (question, caller) =>
      administration.changeKey(sessionOf(caller).user, question, installed()),
    revokeKey: stored('revokeKey'),
    browserToken: async ({ keyId, origin }, caller) => {
      const pageOrigin = canonicalOrigin(origin);
      if (pageOrigin === null)
        throw badRequest('origin must be that of the page, such as https://app.example.com.', 'origin');
      await administration.key(sessionOf(caller).user, { keyId });
      if (browserTokens === null)
        throw conflict('The port for browsers is off: an operator sets BROWSER_PORT.');
      const found = admission.byId(keyId);
      if (found.ok) return browserTokens.issue(keyId, pageOrigin);
      if (found.code === 'unavailable')
        throw new ConsoleRefusal({
          code: 'unavailable',
          message: 'The store cannot be read. Try again in a moment.',
        });
      throw conflict('This key is revoked or has expired, or its account is suspended.');
    },
    usage: afterSettling('usage'),
    balance: afterSettling('balance'),
    users: stored('users'),
    voices: () => Promise.resolve(voices.view()),
    lexicons: () => Promise.resolve(lexicons.names),
    said: async (question, caller) => {
      const account = await administration.account(sessionOf(caller).user, question);
      return sayer.said(account, question);
    },
    addWord: async (question, caller) => {
      const added = await administration.addWord(sessionOf(caller).user, question);
      if (added !== null) await lexicons.add(added.account, added.entry);
      return {};
    },
    accounts: afterSettling('accounts'),
    createAccount: stored('createAccount'),
    credit: stored('credit'),
    meterAccount: stored('meterAccount'),
    changeAccount: async (question, caller) =>
      administration.changeAccount(sessionOf(caller).user, question, installed()),
    suspendAccount: ending('suspendAccount'),
    deleteAccount: async (question, caller) => {
      const answer = await ending('deleteAccount')(question, caller);
      await lexicons.reload();
      return answer;
    },
    invite: async (question, caller) => {
      const { token, expiresAtMs } = await administration.invite(sessionOf(caller).user, question);
      return { url: `${url()}/invite#${token}`, expiresAtMs };
    },
    invitations: stored('invitations'),
    withdrawInvitations: stored('withdrawInvitations'),
    removeUser: ending('removeUser'),
    reloadVoices: async (_, caller) => {
      await administration.record(sessionOf(caller).user, 'voices.reload', '');
      voices.reload();
      return voices.view();
    },
    audit: stored('audit'),
  };
};
