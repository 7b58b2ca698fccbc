/**
 * The calls of the page, and who answers each. A member's calls reach its own account only:
 * the administration thread checks that in the transaction of the act.
 */
import type { Installed } from '../accounts/checks.js';
import type { Admission } from '../accounts/admission.js';
import type { BrowserTokens } from '../accounts/browser-tokens.js';
import type { OpenedSession } from '../accounts/sessions.js';
import { Buckets } from '../buckets.js';
import { canonicalOrigin } from '../config.js';
import { monotonicMs } from '../monotonic.js';
import type { ConsoleAdministration } from './administration.js';
import { badRequest, forOperators, forPeople, signedOut } from './answers.js';
import { whoOf } from './call-rules.js';
import type {
  Answer,
  CallName,
  Question,
  RequestRow,
  SessionState,
  User,
  VoicesView,
  WordsView,
  WordView,
} from './contract.js';
import type { AccountTurn, Turns } from '../front/turns.js';
import type { Past } from '../metrics.js';
import { endOf, type KeptRequest } from '../recent-requests.js';
import type { Lexicons } from '../threads/lexicons.js';
import { ConsoleRefusal } from './refusal.js';
import type { sayerOf } from './said.js';
import type { Session } from './sessions.js';
import { isLoopback, type Throttle } from './throttle.js';
import type { Bounds } from '../limits.js';
import type { LexiconEntry } from '../text/lexicon.js';

/** A call that was read, and who makes it. */
export interface Caller {
  readonly address: string;
  /** Of the cookie: the session may have ended. */
  readonly tokenHash: string | null;
  /** Of the last sign-in in this browser: see `Access.device`. */
  readonly device: string | null;
  readonly session: Session | null;
  /** The browser gets the cookies of this session. */
  readonly begin: (opened: OpenedSession) => void;
  /** The browser loses its session's cookie. */
  readonly end: () => void;
}

/** Calls that only ask the store. */
type StoreCall = {
  [N in CallName & keyof ConsoleAdministration]: ConsoleAdministration[N] extends StoreCalls<N>[N]
    ? N
    : never;
}[CallName & keyof ConsoleAdministration];

type StoreCalls<Names extends CallName> = {
  readonly [N in Names]: (by: Pick<Session, 'tokenHash'>, question: Question<N>) => Promise<Answer<N>>;
};

type Answers = {
  readonly [N in CallName]: (question: Question<N>, caller: Caller) => Promise<Answer<N>>;
};

/** @throws {ConsoleRefusal} if the caller may not */
export const checkRole = (name: CallName, session: Session | null, isProgram: boolean): void => {
  const who = whoOf(name);
  if (who === 'anyone') return;
  if (session === null) throw signedOut(isProgram);
  if (who === 'person' && session.isProgram) throw forPeople();
  if (who === 'operator' && session.user.role !== 'operator') throw forOperators();
};

type WordBounds = Pick<Bounds, 'consoleWordsMax' | 'consoleWordsShownMax'>;

const spokenOf = ({ form }: LexiconEntry): string => ('ipa' in form ? `/${form.ipa}/` : form.spelling);
const keyOf = (entry: LexiconEntry): string =>
  JSON.stringify([entry.written, entry.language, spokenOf(entry)]);

/** Takes turns like an account. */
const OPERATORS = 'operators at the console';

/** Words that are searched in one piece: it takes less than a millisecond. */
const WORDS_A_PIECE = 500;

/** By its first letters, and an accent after its letter: a comparison by language takes 10 µs for words of many marks. */
const placeOf = (word: string): string => word.slice(0, 32).normalize('NFD').toLowerCase();

/**
 * Those in use, and which of them the console keeps. Of 20,000 words, only those that are shown are sorted: it runs on the front
 * thread, in pieces.
 *
 * @param inUse of all files of the account
 * @param kept those of the console
 */
const wordsView = function* (
  inUse: Iterable<LexiconEntry>,
  kept: readonly LexiconEntry[],
  search: string,
  { consoleWordsMax, consoleWordsShownMax }: WordBounds,
): Generator<void, WordsView> {
  const wanted = search.toLowerCase();
  const isWanted = (entry: LexiconEntry): boolean =>
    wanted === '' || `${entry.written}\n${spokenOf(entry)}`.toLowerCase().includes(wanted);
  const shown: LexiconEntry[] = [];
  let [found, seen] = [0, 0];
  for (const entry of inUse) {
    if (seen++ % WORDS_A_PIECE === 0) yield;
    if (!isWanted(entry)) continue;
    found++;
    if (shown.length < consoleWordsShownMax) shown.push(entry);
  }
  const own = new Set(kept.map(keyOf));
  const words = shown.map((entry): WordView => {
    const { language, written: word } = entry;
    return { word, spoken: spokenOf(entry), language, isOwn: own.has(keyOf(entry)) };
  });
  const places = new Map(words.map((view) => [view, placeOf(view.word)]));
  words.sort((one, other) => {
    const [place, otherPlace] = [places.get(one)!, places.get(other)!];
    return place < otherPlace ? -1 : Number(place > otherPlace);
  });
  return { words, found, own: kept.length, ownMax: consoleWordsMax };
};

/** Does the work in the turns of an account: it takes no more of the front thread than its requests may. @param pieces must not throw */
const inTurns = <Answer>(turn: AccountTurn, pieces: Generator<void, Answer>): Promise<Answer> =>
  new Promise((resolve) => {
    const piece = (): boolean => {
      const { done, value } = pieces.next();
      if (done === true) resolve(value);
      return done !== true;
    };
    turn.wait({ nextBytes: 0, piece });
  });

export interface CallsParts {
  readonly administration: ConsoleAdministration;
  readonly throttle: Throttle;
  readonly turns: Pick<Turns, 'of'>;
  readonly voices: {
    readonly ids: readonly string[];
    view(): VoicesView;
    reload(): void;
  };
  readonly lexicons: Pick<Lexicons, 'add' | 'hasRoomFor' | 'names' | 'reload' | 'remove' | 'wordsOf'>;
  readonly wordBounds: WordBounds;
  readonly said: ReturnType<typeof sayerOf>;
  readonly past: Past;
  /** The console's own address, without a slash at its end. */
  readonly url: () => string;
  /** Resolves when the store has all that was spent until now, if it takes writes. */
  readonly settled: () => Promise<void>;
  readonly about: () => Pick<
    SessionState,
    'version' | 'serviceUrl' | 'listensOn' | 'ports' | 'creditsPerCharacter'
  >;
  readonly admission: Pick<Admission, 'byId' | 'refresh'>;
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

const roundedMs = (ms: number): number => Math.round(ms * 10) / 10;

const requestRow = ({ atMs, request }: KeptRequest): RequestRow => {
  const { accountId, characters, firstAudioMs, keyId, outcome, refusal } = request;
  const { requestId, route, status, totalMs, voice } = request;
  return {
    ...{ requestId, atMs, route },
    accountId: accountId ?? null,
    keyId: keyId ?? null,
    voice: voice ?? null,
    characters: characters ?? null,
    status: status ?? null,
    end: endOf(request),
    reason: refusal ?? outcome,
    firstAudioMs: firstAudioMs === undefined ? null : roundedMs(firstAudioMs),
    totalMs: roundedMs(totalMs),
  };
};

/** A program takes a browser token for each visitor: the audit table has one row an hour for a user, a key and an origin. */
const TOKEN_ACTS = { atOnceMax: 1, everyMs: 3_600_000, countedMax: 10_000, clock: monotonicMs };

const conflict = (message: string): ConsoleRefusal => new ConsoleRefusal('conflict', message);

export const createCalls = (parts: CallsParts): Answers => {
  const { about, administration, admission, browserTokens, lexicons, onEnded } = parts;
  const { past, said, settled, throttle, turns, url, voices, wordBounds } = parts;
  const tokenActs = new Buckets(TOKEN_ACTS);
  const installed = (): Installed => ({ voices: voices.ids, lexicons: lexicons.names });

  const stateOf = async (user: User | null): Promise<SessionState> => ({
    claimed: user !== null || (await administration.claimed()),
    user,
    ...about(),
  });

  const store: StoreCalls<StoreCall> = administration;
  /** Passes a call on to the store, as the signed-in user. */
  const stored =
    <N extends StoreCall>(name: N) =>
    async (question: Question<N>, caller: Caller): Promise<Answer<N>> =>
      store[name](sessionOf(caller), question);

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
      const { address } = caller;
      const isKnown = await isKnownDevice(name, caller);
      throttle.attempt({ address, name, isKnownDevice: isKnown });
      return begun(administration.signIn(question, address, !isKnown && !isLoopback(address)), caller);
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
      // A token that was stolen from a program must not end the sessions of its user.
      if (everywhere && caller.session?.isProgram === true) throw forPeople();
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
    createKey: async (question, caller) => {
      const made = await administration.createKey(sessionOf(caller), question, installed());
      // The answer promises that the key can speak.
      await admission.refresh();
      return made;
    },
    changeKey: async (question, caller) => administration.changeKey(sessionOf(caller), question, installed()),
    revokeKey: stored('revokeKey'),
    browserToken: async ({ keyId, origin }, caller) => {
      const session = sessionOf(caller);
      const pageOrigin = canonicalOrigin(origin);
      if (pageOrigin === null)
        throw badRequest('origin must be that of the page, such as https://app.example.com.', 'origin');
      const { prefix } = await administration.key(session, { keyId });
      if (browserTokens === null)
        throw conflict('The port for browsers is off: an operator sets BROWSER_PORT.');
      const found = admission.byId(keyId);
      if (found.ok) {
        const act = `${session.user.name} ${keyId} ${pageOrigin}`;
        if (tokenActs.waitMs(act) === 0) {
          await administration.record(session, 'key.browserToken', prefix, pageOrigin);
          tokenActs.take(act);
        }
        return browserTokens.issue(keyId, pageOrigin);
      }
      if (found.code === 'unavailable')
        throw new ConsoleRefusal('unavailable', 'The store cannot be read. Try again in a moment.');
      throw conflict('This key is revoked or has expired, or its account is suspended.');
    },
    usage: afterSettling('usage'),
    balance: afterSettling('balance'),
    requests: async (question, caller) => {
      const { keyIds, next, rows } = past.requests.page(question);
      const accountIds = new Set(rows.flatMap(({ request }) => request.accountId ?? []));
      const of = { accountId: question.accountId, accountIds: [...accountIds], keyIds: [...keyIds] };
      // `names` checks that a member asks for its own account.
      const names = await administration.names(sessionOf(caller), of);
      return { rows: rows.map(requestRow), next, ...names };
    },
    users: stored('users'),
    voices: () => Promise.resolve(voices.view()),
    lexicons: () => Promise.resolve(lexicons.names),
    said: async (question, caller) => {
      const account = await administration.account(sessionOf(caller), question);
      return said(account, question);
    },
    addWord: async (question, caller) => {
      if (!lexicons.hasRoomFor(question.word, question.spoken))
        throw conflict('The lexicons of the service are full: an operator removes entries first.');
      const added = await administration.addWord(sessionOf(caller), question);
      if (added !== null && !lexicons.add(added.account, added.entry, added.isChange))
        throw conflict(
          'The word is in the lexicon, but is not used: an operator removes other forms of it first.',
        );
      return {};
    },
    removeWord: async (question, caller) => {
      const removed = await administration.removeWord(sessionOf(caller), question);
      if (removed === null)
        throw new ConsoleRefusal(
          'notFound',
          'The console keeps no such word: an operator can take it out of its file.',
        );
      if (removed.isWhole) lexicons.remove(removed.account, removed.entry);
      else await lexicons.reload();
      return {};
    },
    words: async (question, caller) => {
      const session = sessionOf(caller);
      const { account, own } = await administration.words(session, question);
      const found = wordsView(lexicons.wordsOf(account), own, question.search, wordBounds);
      return inTurns(turns.of(session.user.accountId ?? OPERATORS), found);
    },
    alerts: async ({ accountId }, caller) => {
      await settled();
      const refused = past.requests.refusedCharacters();
      return administration.alerts(sessionOf(caller), { accountId, refused });
    },
    webhook: stored('webhook'),
    setWebhook: stored('setWebhook'),
    testWebhook: stored('testWebhook'),
    accounts: afterSettling('accounts'),
    createAccount: stored('createAccount'),
    credit: stored('credit'),
    meterAccount: stored('meterAccount'),
    changeAccount: async (question, caller) =>
      administration.changeAccount(sessionOf(caller), question, installed()),
    suspendAccount: ending('suspendAccount'),
    deleteAccount: async (question, caller) => {
      const answer = await ending('deleteAccount')(question, caller);
      await lexicons.reload();
      return answer;
    },
    invite: async (question, caller) => {
      const { token, ...view } = await administration.invite(sessionOf(caller), question);
      return { url: `${url()}/invite#${token}`, ...view };
    },
    invitations: stored('invitations'),
    withdrawInvitations: stored('withdrawInvitations'),
    removeUser: ending('removeUser'),
    reloadVoices: async (_, caller) => {
      await administration.record(sessionOf(caller), 'voices.reload', '');
      voices.reload();
      return {};
    },
    history: ({ range }) => Promise.resolve(past.history.view(range)),
    audit: stored('audit'),
  };
};
