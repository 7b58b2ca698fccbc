/**
 * The operations of the specification for the console's users, below `/api`: only the authentication differs. A session, and
 * an account in the query, replace the key in the header: they give the hidden key of the account.
 */
import typia from 'typia';
import type { Admission } from '../accounts/admission.js';
import { parseJsonBody, type Refusal } from '../api/body.js';
import { defaultCodecFormat } from '../api/formats.js';
import { operations, type OperationId } from '../api/operations.js';
import { errors } from '../errors.js';
import { readBody } from '../front/body-reader.js';
import type { Exchange } from '../front/exchange.js';
import { reply, replyError, replyUnavailable } from '../front/reply.js';
import type { RequestHead } from '../front/request-head.js';
import type { Handler, Route } from '../front/routes.js';
import {
  healthAnswer,
  keyedOperations,
  readyAnswer,
  speechPaths,
  type KeyedOperations,
  type SpecificationParts,
} from '../front/specification.js';
import { speak, type Parser } from '../front/speech-route.js';
import { specificationProtocol, type SocketProtocol } from '../front/ws/protocol.js';
import type { FoundKey, RefusedSocket, SocketAuthentication } from '../front/ws/socket-route.js';
import { Query } from '../front/query.js';
import { refusalOf, type RefusalReason } from '../refusals.js';
import type { ActiveKey } from '../store/store.js';
import { ipaOf } from '../text/ipa.js';
import { fitsWords, formCharactersMax } from '../text/lexicon.js';
import type { ConsoleAdministration } from './administration.js';
import { badRequest, replyFault, replyRefusal } from './answers.js';
import type { HearQuestion, Question } from './contract.js';
import type { Door } from './dispatch.js';
import { ConsoleRefusal } from './refusal.js';
import { holderOf, type Session, type Sessions } from './sessions.js';

export interface PlaygroundParts extends SpecificationParts {
  readonly administration: Pick<ConsoleAdministration, 'playgroundKey'>;
  readonly sessions: Sessions;
  readonly door: Door;
}

const isId = typia.createIs<Question<'account'>['accountId']>();

export const keyOf = async (
  { administration, admission, sessions }: Pick<PlaygroundParts, 'administration' | 'admission' | 'sessions'>,
  session: Session,
  accountId: number,
): Promise<ReturnType<Admission['byId']>> => {
  const keyId = await sessions.lookUp(`${session.tokenHash} ${accountId}`, holderOf(session.user), () =>
    administration.playgroundKey(session, { accountId }),
  );
  const found = admission.byId(keyId);
  if (found.ok) return found;
  // The call may have made the key.
  await admission.refresh();
  return admission.byId(keyId);
};

const accountIn = (head: RequestHead): number => {
  const text = new Query(head.query).get('accountId') ?? '';
  const accountId = /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN;
  if (!isId(accountId)) throw badRequest('accountId must be the number of an account.', 'accountId');
  return accountId;
};

/** Finds the hidden key, or answers why there is none. */
const withKey = async (
  parts: PlaygroundParts,
  exchange: Exchange,
  head: RequestHead,
  act: (key: ActiveKey, session: Session) => void,
): Promise<void> => {
  try {
    const session = await parts.sessions.demand(exchange, head);
    const found = await keyOf(parts, session, accountIn(head));
    exchange.guard(() => {
      if (found.ok) {
        exchange.key = found.key;
        act(found.key, session);
      } else replyError(exchange, found.code);
    });
  } catch (error) {
    exchange.guard(() => replyFault(exchange, error));
  }
};

const speakRoute =
  (parts: PlaygroundParts, { parse, responder }: KeyedOperations['speaking']['createSpeech']): Handler =>
  (exchange, head) => {
    if (!parts.door.admits(exchange, head)) return;
    const isLate = parts.isDraining();
    const { bodyBudget, bounds, turns } = exchange.services;
    const member = parts.door.memberOf(head);
    const part = bodyBudget.of(member);
    readBody(exchange, head, member, (body) => {
      // It waits for the session, and counts until then. It is valid only now.
      const bytes = Uint8Array.from(body);
      if (!part.take(bytes.length)) {
        replyUnavailable(exchange, 'bodyPoolExhausted');
        return;
      }
      void withKey(parts, exchange, head, (key, session) => {
        exchange.onOver(parts.sessions.open(session, () => exchange.drop('revoked')));
        turns.of(key.accountId).run(bytes.length, () => {
          speak(parts, exchange, { key, isLate }, parse(bytes, head, bounds, key), responder);
        });
      }).finally(() => part.giveBack(bytes.length));
    });
  };

const isHearQuestion = typia.createEquals<HearQuestion>();

const refuseHearing = (message: string, field?: string): Refusal => ({
  ok: false,
  status: 400,
  body: JSON.stringify({ code: 'badRequest', message, field }),
});

/** A word in a spoken form that the lexicon of the account may get. */
const hearBody: Parser = (bytes, head, bounds) => {
  const json = parseJsonBody(bytes, head.contentType, bounds);
  if (!json.ok) return json;
  if (!isHearQuestion(json.value))
    return refuseHearing('Give a word and its spoken form, of 1 to 200 characters each.');
  const { spoken, voice, word } = json.value;
  const request = { settings: { voiceId: voice }, format: defaultCodecFormat('mp3'), timestamps: false };
  const phonemes = /^\/(.+)\/$/.exec(spoken.trim())?.[1];
  if (phonemes === undefined) return { ok: true, request: { ...request, text: spoken } };
  const form = ipaOf(phonemes);
  if ('sign' in form)
    return refuseHearing(
      `"${form.sign}" in the phonemes is not a sign of the IPA that voices know`,
      'spoken',
    );
  if (!fitsWords(form, word))
    return refuseHearing(`The phonemes may have ${formCharactersMax(word)} characters`, 'spoken');
  return { ok: true, request: { ...request, text: word, pieces: [{ text: word, form }] } };
};

const jsonRoute =
  (parts: PlaygroundParts, body: (key: ActiveKey) => string): Handler =>
  (exchange, head) => {
    if (!parts.door.admits(exchange, head)) return;
    void withKey(parts, exchange, head, (key) =>
      reply(exchange, { status: 200, contentType: 'application/json', body: body(key) }),
    );
  };

const pathOf = (path: string): string => `/api${path}`;

/** Those that speak, for the metrics. */
export const playgroundPaths = speechPaths.map(pathOf);

export const playgroundRoutes = (parts: PlaygroundParts): readonly Route[] => {
  const { door, readiness } = parts;
  const { json, speaking } = keyedOperations(parts);
  const handlers: Record<OperationId, Handler> = {
    createSpeech: speakRoute(parts, speaking.createSpeech),
    streamSpeech: speakRoute(parts, speaking.streamSpeech),
    speakForVoicePlatform: speakRoute(parts, speaking.speakForVoicePlatform),
    listSpeakers: jsonRoute(parts, json.listSpeakers),
    describe: jsonRoute(parts, json.describe),
    isAlive: (exchange, head) => {
      if (door.admits(exchange, head)) reply(exchange, healthAnswer());
    },
    isReady: (exchange, head) => {
      if (door.admits(exchange, head)) reply(exchange, readyAnswer(readiness));
    },
  };
  const hear = { ...speaking.createSpeech, parse: hearBody };
  return [
    { method: 'post', path: '/api/hear', handler: speakRoute(parts, hear) },
    ...(Object.keys(handlers) as OperationId[]).map((id) => {
      const { method, path } = operations[id];
      return { method, path: pathOf(path), handler: handlers[id] };
    }),
  ];
};

/** The protocol of the specification has no word for it: a key says it for its sockets, and here the page does. */
const protocolOf = (head: RequestHead, bounds: PlaygroundParts['bounds']): SocketProtocol => {
  const protocol = specificationProtocol(bounds);
  const normalizes = new Query(head.query).get('normalize');
  if (normalizes === null) return protocol;
  return {
    ...protocol,
    read: (message, contexts) =>
      protocol
        .read(message, contexts)
        .map((act) =>
          act.type === 'start'
            ? { ...act, settings: { ...act.settings, normalizeText: normalizes === 'true' } }
            : act,
        ),
  };
};

const reasons: Partial<Readonly<Record<ConsoleRefusal['code'], RefusalReason>>> = {
  tooManyAttempts: 'socketsOfAccountExhausted',
  unavailable: 'storeUnavailable',
};

/** @throws what is no refusal of the console */
const refusedSocket = (error: unknown): RefusedSocket => {
  if (!(error instanceof ConsoleRefusal)) throw error;
  return { reason: reasons[error.code] ?? 'keyUnknown', text: error.message };
};

/** `WS /api/socket` */
export const socketAuthentication =
  (parts: PlaygroundParts): SocketAuthentication =>
  (exchange, head) => {
    const { door, sessions } = parts;
    if (!door.admits(exchange, head)) return null;
    const refusal = sessions.refusalOf(head);
    if (refusal !== null) {
      replyRefusal(exchange, refusal);
      return null;
    }
    const lookUp = async (revoke: () => void): Promise<FoundKey | RefusedSocket> => {
      const session = await sessions.demand(exchange, head, false);
      const found = await keyOf(parts, session, accountIn(head));
      if (!found.ok) {
        const { socketText } = errors[found.code === 'unavailable' ? 'unavailable' : 'keyUnknown'];
        return { reason: refusalOf(found.code), text: socketText };
      }
      return { key: found.key, onClosed: sessions.open(session, revoke) };
    };
    return {
      key: null,
      keyLater: {
        // A cookie that is made up must take nothing from a user.
        payer: sessions.nameIn(head),
        lookUp: (revoke) => lookUp(revoke).catch(refusedSocket),
      },
      protocol: protocolOf(head, parts.bounds),
    };
  };
