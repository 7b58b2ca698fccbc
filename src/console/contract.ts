/**
 * What the console's page asks of the console's server. Both import these types, and the server validates with them.
 *
 * Every call is `POST /api/NAME` with a JSON object, and with the cookie of a session or a user's token in `authorization`. It
 * is answered by 200 with the JSON of `answer`, or by an error status with a `Refusal`. Times are milliseconds since 1970.
 */
import type { tags } from 'typia';
import type { Invited } from '../accounts/access.js';
import type { Alert as AlertView } from '../accounts/alerts.js';
import type { BrowserToken } from '../accounts/browser-tokens.js';
import type { BalanceRow, Names, UsagePage } from '../accounts/overview.js';
import type { Webhook } from '../accounts/webhooks.js';
import type { SpeakingDefaults, Speed } from '../api/speech-settings.js';
import type { AuditRow, Role, StoredToken, User } from '../store/people.js';
import type { HistoryPoint, HistoryRange, HistoryView } from '../history.js';
import type { Figures } from '../metrics.js';
import type { RequestEnd, RequestOutcome } from '../recent-requests.js';
import type { RefusalReason } from '../refusals.js';
import type { Said } from '../speech/said.js';
import type { KeyProperties, ListedAccount, ListedKey, UsageRow, UsageStep } from '../store/store.js';
import type { TrialResult as TrialView } from '../threads/voices.js';

export type { AuditRow, HistoryPoint, HistoryRange, HistoryView, RequestEnd, Role, SpeakingDefaults };
export type { AlertView, BalanceRow, Invited, TrialView, UsagePage, UsageRow, UsageStep, User };

type Name = string & tags.MinLength<1> & tags.MaxLength<64>;
type Password = string & tags.MinLength<10> & tags.MaxLength<256>;
type Token = string & tags.MinLength<1> & tags.MaxLength<128>;
type Id = number & tags.Type<'uint32'>;
type Credits = number & tags.Type<'int64'> & tags.Minimum<0>;
type Time = number & tags.Type<'int64'> & tags.Minimum<0>;
/** An address may have one that cannot be: it finds nothing. */
type Filter = number & tags.Type<'int64'> & tags.Minimum<0>;
type Entry = string & tags.MinLength<1> & tags.MaxLength<200>;
type Nothing = Readonly<Record<string, never>>;

/** The body of every error. */
export interface Refusal {
  readonly code:
    | 'badRequest'
    | 'signedOut'
    | 'forbidden'
    | 'notFound'
    | 'conflict'
    | 'tooManyAttempts'
    | 'unavailable'
    /** The act may be done. */
    | 'uncertain'
    | 'failed';
  /** For the person at the page: what happened, and what to do. */
  readonly message: string;
  /** `badRequest`: the field that is wrong, where one is. */
  readonly field?: string;
  /** `tooManyAttempts`: when the next attempt counts. */
  readonly retryAfterMs?: number;
}

export interface SessionState {
  /** Whether an operator has claimed the console. */
  readonly claimed: boolean;
  /** Who is signed in. */
  readonly user: User | null;
  /** The service's version, its public address for clients on its machine, and `HOST`. */
  readonly version: string;
  readonly serviceUrl: string;
  readonly listensOn: string;
  /** The ports of other APIs that are on, by the names of their listeners: `openai`, `browser` ... */
  readonly ports: Readonly<Record<string, number>>;
  /** What a character of text costs. */
  readonly creditsPerCharacter: number;
}

/** A token of a user, for a program. */
export type TokenView = StoredToken;

/** Its speaking defaults are those of its keys that set nothing. */
export type AccountView = Omit<ListedAccount, 'deletedAtMs'>;

export type KeyPropertiesView = KeyProperties;

export type KeyView = Omit<ListedKey, 'account' | 'byOperator'>;

export interface SpeakingChanges {
  readonly normalizeText?: boolean | null;
  readonly speed?: Speed | null;
  readonly lexiconId?: (string & tags.MaxLength<64>) | null;
}

export interface KeyChanges extends SpeakingChanges {
  readonly name?: string & tags.MaxLength<64>;
  readonly expiresAtMs?: Time | null;
  readonly creditLimit?: Credits | null;
  readonly voices?:
    | (readonly (string & tags.MaxLength<200>)[] & tags.MinItems<1> & tags.MaxItems<100>)
    | null;
}

interface UsagePosition {
  readonly atMs: Time;
  readonly keyId: Id;
  readonly voice: string & tags.MaxLength<200>;
}

export interface UsageQuestion {
  /** `null`: all accounts, for operators. */
  readonly accountId: Id | null;
  readonly fromMs: Time;
  /** Exclusive. */
  readonly toMs: Time;
  readonly step: UsageStep;
  /** `next` of the page before. */
  readonly after?: UsagePosition;
}

export interface RequestsQuestion {
  /** `null`: all accounts and requests without a key, for operators. */
  readonly accountId: Id | null;
  readonly keyId: Filter | null;
  /** How it ended, or its HTTP status. */
  readonly status: RequestEnd | Filter | null;
  /** `next` of the page before; `null`: the newest. */
  readonly before: Time | null;
}

/** Why a request ended: it was refused for that reason, or this was its end. */
export type RequestReason = RefusalReason | RequestOutcome;

/** A request, a context of a WebSocket, or a frame or text that was refused. */
export interface RequestRow {
  /** The `x-request-id`; of a context, that of its WebSocket. */
  readonly requestId: string;
  readonly atMs: number;
  /** `null`: it has shown no key. */
  readonly accountId: number | null;
  readonly keyId: number | null;
  readonly route: string;
  readonly voice: string | null;
  readonly characters: number | null;
  /** `null`: no answer had begun. */
  readonly status: number | null;
  readonly end: RequestEnd;
  readonly reason: RequestReason;
  readonly firstAudioMs: number | null;
  readonly totalMs: number;
}

/** It names the keys and accounts of its rows; the first page also names those of other kept requests, 100 in all. */
export interface RequestsPage extends Names {
  /** The newest first. */
  readonly rows: readonly RequestRow[];
  readonly next: number | null;
}

export interface VoiceView {
  readonly id: string;
  readonly pack: string;
  readonly description: string;
  readonly language: string;
  /** As it sounds; `null`: its pack does not say. */
  readonly sex: 'female' | 'male' | null;
  /** Factor of the pace that its model learned; `null`: its pack does not say. */
  readonly pace: number | null;
  /** CPU seconds for a second of speech on this machine: measured when the voice was loaded, and by its work since. */
  readonly realTimeFactor: number | null;
  readonly sampleRateHz: number;
  readonly licence: string | null;
}

export interface PackView {
  readonly name: string;
  /** `null`: it did not load. */
  readonly format: string | null;
  /** Of its files. */
  readonly bytes: number;
  readonly loaded: boolean;
  /** The loader's message, if it did not load. */
  readonly message: string | null;
  /** Missing parts, and parts that the service does not support: a sentence each. */
  readonly notes: readonly string[];
  /** `null`: it was not tried. The default pack never is. */
  readonly trial: TrialView | null;
  readonly voices: readonly VoiceView[];
}

export interface VoicesView {
  readonly packs: readonly PackView[];
  readonly generation: number;
  readonly reload: {
    readonly running: boolean;
    readonly message: string | null;
    readonly atMs: number | null;
  };
}

export interface SaidQuestion {
  readonly accountId: Id;
  readonly voice: string & tags.MaxLength<200>;
  readonly text: string & tags.MaxLength<5000>;
  readonly normalize: boolean;
}

/** What is heard before a word is added. Answered as `POST /v1/tts`. */
export interface HearQuestion {
  readonly voice: string & tags.MaxLength<200>;
  readonly word: Entry;
  readonly spoken: Entry;
}

/** A word of the lexicon of an account. */
export interface WordView {
  readonly word: string;
  /** Another spelling, or phonemes between slashes. */
  readonly spoken: string;
  /** Of voices of this language only. */
  readonly language: string | null;
  /** Users keep it in the console. The others are in files of operators. */
  readonly isOwn: boolean;
}

export interface WordsView {
  /** Those that are like the search, in the order of the alphabet. */
  readonly words: readonly WordView[];
  /** How many are like it, with those that the answer has no room for. */
  readonly found: number;
  /** Words that users keep, and may keep. */
  readonly own: number;
  readonly ownMax: number;
}

export interface SaidView extends Omit<Said, 'text'> {
  /** The voice knows phonemes; otherwise each `ipa` is empty. */
  readonly hasPhonemes: boolean;
}

/** Where this host sends the alerts of an account. */
export interface WebhookView extends Pick<Webhook, 'lastAtMs' | 'lastResult'> {
  readonly url: string | null;
}

export interface InvitationView extends Invited {
  readonly expiresAtMs: number;
}

export interface InvitationLink extends InvitationView {
  /** Complete. Shown once. */
  readonly url: string;
}

interface Call<Question, Answer> {
  readonly question: Question;
  readonly answer: Answer;
}

/** Anyone makes these. */
export interface CallsOfAnyone {
  session: Call<Nothing, SessionState>;
  claim: Call<{ readonly token: Token; readonly name: Name; readonly password: Password }, SessionState>;
  signIn: Call<{ readonly name: Name; readonly password: string & tags.MaxLength<256> }, SessionState>;
  /** What an invitation is for, before it is accepted. */
  invitation: Call<{ readonly token: Token }, Invited>;
  acceptInvitation: Call<
    { readonly token: Token; readonly name: Name; readonly password: Password },
    SessionState
  >;

  signOut: Call<{ readonly everywhere: boolean }, SessionState>;
}

/** A user at the page, and no program with the user's token. */
export interface CallsOfPeople {
  changePassword: Call<
    { readonly current: string & tags.MaxLength<256>; readonly password: Password },
    Nothing
  >;
  createToken: Call<
    {
      readonly name: Name;
      readonly days: number & tags.Type<'uint32'> & tags.Minimum<1> & tags.Maximum<366>;
    },
    { readonly token: string; readonly view: TokenView }
  >;
}

/** Operators, and the members of the account. */
export interface CallsOfUsers {
  /** The user's own. */
  tokens: Call<Nothing, readonly TokenView[]>;
  revokeToken: Call<{ readonly name: Name }, Nothing>;
  account: Call<{ readonly accountId: Id }, AccountView>;
  keys: Call<{ readonly accountId: Id }, readonly KeyView[]>;
  createKey: Call<
    { readonly accountId: Id; readonly properties: KeyChanges },
    { readonly key: string; readonly view: KeyView }
  >;
  changeKey: Call<{ readonly keyId: Id; readonly changes: KeyChanges }, KeyView>;
  revokeKey: Call<{ readonly keyId: Id }, KeyView>;
  /** A page of this origin can then speak for the key, on the port for browsers. */
  browserToken: Call<{ readonly keyId: Id; readonly origin: string & tags.MaxLength<300> }, BrowserToken>;
  usage: Call<UsageQuestion, UsagePage>;
  balance: Call<{ readonly accountId: Id }, readonly BalanceRow[]>;
  /** The last requests that ended, a page of 50 at a time. They are lost when the service ends. */
  requests: Call<RequestsQuestion, RequestsPage>;
  users: Call<{ readonly accountId: Id | null }, readonly User[]>;
  voices: Call<Nothing, VoicesView>;
  /** The names of the lexicons that keys and accounts can have. */
  lexicons: Call<Nothing, readonly string[]>;
  /** What will be said of a text, with the lexicons of the account. */
  said: Call<SaidQuestion, SaidView>;
  /** Adds a word to the account's lexicon, or changes it. The next utterance uses it. */
  addWord: Call<{ readonly accountId: Id; readonly word: Entry; readonly spoken: Entry }, Nothing>;
  /** Of an account; `null`: of all, for operators. */
  alerts: Call<{ readonly accountId: Id | null }, readonly AlertView[]>;
  webhook: Call<{ readonly accountId: Id }, WebhookView>;
  /** `null`: none. The answer is the only one that shows the secret, with which each message is signed. */
  setWebhook: Call<
    { readonly accountId: Id; readonly url: (string & tags.MinLength<1> & tags.MaxLength<500>) | null },
    { readonly secret: string | null }
  >;
  /** Sends a message now. */
  testWebhook: Call<{ readonly accountId: Id }, { readonly isDelivered: boolean; readonly result: string }>;
  /** Takes a word that users added out of the account's lexicon. */
  removeWord: Call<{ readonly accountId: Id; readonly word: Entry }, Nothing>;
  /** The words of the account's lexicon. */
  words: Call<{ readonly accountId: Id; readonly search: string & tags.MaxLength<100> }, WordsView>;
}

export interface CallsOfOperators {
  accounts: Call<Nothing, readonly AccountView[]>;
  /** `credits` null: not metered. */
  createAccount: Call<{ readonly name: Name; readonly credits: Credits | null }, AccountView>;
  credit: Call<{ readonly accountId: Id; readonly credits: Credits }, AccountView>;
  /** Lets an account spend its credit and `credits` more, or for ever. */
  meterAccount: Call<
    { readonly accountId: Id; readonly metered: boolean; readonly credits: Credits },
    AccountView
  >;
  changeAccount: Call<{ readonly accountId: Id; readonly changes: SpeakingChanges }, AccountView>;
  suspendAccount: Call<{ readonly accountId: Id; readonly suspended: boolean }, AccountView>;
  /** Revokes its keys and removes its users. Its ledger stays. */
  deleteAccount: Call<{ readonly accountId: Id }, Nothing>;
  /** `accountId` null invites another operator. */
  invite: Call<{ readonly accountId: Id | null }, InvitationLink>;
  /** The open ones. */
  invitations: Call<{ readonly accountId: Id | null }, readonly InvitationView[]>;
  /** All that are open. */
  withdrawInvitations: Call<{ readonly accountId: Id | null }, Nothing>;
  removeUser: Call<{ readonly userId: Id }, Nothing>;
  reloadVoices: Call<Nothing, Nothing>;
  /** Points of the last hour, day or week, or of 31 days. A restart keeps them. */
  history: Call<{ readonly range: HistoryRange }, HistoryView>;
  /** A page of the audit table, of 100 rows or the last one, the newest first. */
  audit: Call<
    {
      readonly beforeId: Id | null;
      /** Only rows with this text. */
      readonly search?: string & tags.MaxLength<100>;
      /** Only actions that begin with this and a dot, such as `key`. */
      readonly kind?: string & tags.MaxLength<100>;
    },
    readonly AuditRow[]
  >;
}

export interface Calls extends CallsOfAnyone, CallsOfPeople, CallsOfUsers, CallsOfOperators {}

export type CallName = keyof Calls;
export type Question<N extends CallName> = Calls[N]['question'];
export type Answer<N extends CallName> = Calls[N]['answer'];

/*
 * Further routes, with the session's cookie or a token:
 *
 *   GET  /api/live                 operators: server-sent events, one `LiveView` a second
 *   GET  /api/usage.csv?accountId&fromMs&toMs&step   all rows of `usage`
 *   GET  /api/audit.csv?search&kind                  operators: all rows of `audit`
 *   GET  /api/administration.json  these calls, as an OpenAPI document
 *   POST /api/hear?accountId        a word as it would be said with a new entry: see `HearQuestion`; it costs the word
 *   GET  /api/sample?voice         a short mp3 of a voice, made once and kept in memory; costs nothing
 *
 * And the routes of the specification, for the hidden key of the account: a member's own, an operator's choice. They answer
 * as on the public port, errors included:
 *
 *   POST /api/v1/tts/stream?accountId ...
 *   WS   /api/socket?accountId&normalize   `normalize=true` or `false` stands for what the key sets. The session and the
 *                                          account are looked up when it is open: a refusal is an error and a 1008
 */

export interface LiveView extends Pick<
  Figures,
  'reasons' | 'sockets' | 'contexts' | 'capacityRatio' | 'bufferedAudioMs'
> {
  readonly atMs: number;
  readonly ready: boolean;
  readonly warnings: readonly string[];
  /** By route. */
  readonly streams: Readonly<Record<string, number>>;
  /** First byte, over the last five to ten minutes; `null` without a request. */
  readonly firstAudioMs: { readonly p50: number; readonly p95: number; readonly p99: number } | null;
  /** Since the start. */
  readonly lateChunks: number;
  readonly threads: Readonly<Record<string, number>>;
  readonly threadRestarts: Readonly<Record<string, number>>;
  readonly memoryBytes: number;
  readonly eventLoopDelayMs: { readonly p50: number; readonly p99: number };
  /** Since the start, by reason. */
  readonly refusals: Readonly<Record<string, number>>;
  /** The newest of `history` over the hour. */
  readonly point: HistoryPoint | null;
  readonly voices: number;
  readonly generations: { readonly current: number; readonly olderContexts: number };
}
