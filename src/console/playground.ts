/**
 * Speech for the playground: the speech route and the WebSocket of the specification, for the hidden key of an account.
 * Only the authentication differs: a session replaces the key in the header.
 */
import typia from 'typia';
import type { Admission } from '../accounts/admission.js';
import { readSpeechRequest } from '../api/speech-request.js';
import type { Member } from '../byte-budget.js';
import { replyError, replyUnavailable } from '../front/reply.js';
import type { RequestHead } from '../front/request-head.js';
import { streamResponder } from '../front/responders.js';
import type { Handler } from '../front/routes.js';
import { speak, type SpeechRouteParts } from '../front/speech-route.js';
import type { SocketAuthentication } from '../front/ws/socket-route.js';
import type { ConsoleAdministration } from './administration.js';
import { badRequest, replyFault } from './answers.js';
import type { SpeakQuestion } from './contract.js';
import type { Door } from './dispatch.js';
import type { Session, Sessions } from './sessions.js';

export interface PlaygroundParts extends SpeechRouteParts {
  readonly admission: Admission;
  readonly administration: Pick<ConsoleAdministration, 'playgroundKey'>;
  readonly sessions: Sessions;
  readonly door: Door;
}

/** All bodies that wait for their session together have the part of one key. */
const WAITING: Member = 'waiting for a session of the console';

const validateQuestion = typia.createValidateEquals<SpeakQuestion>();
const isId = typia.createIs<SpeakQuestion['accountId']>();

/** `null`: the account is suspended. */
const keyOf = async (
  { administration, admission }: PlaygroundParts,
  session: Session,
  accountId: number,
): Promise<ReturnType<Admission['byId']>> =>
  admission.byId(await administration.playgroundKey(session.user, { accountId }));

/** `POST /api/speak` */
export const speakRoute =
  (parts: PlaygroundParts): Handler =>
  (exchange, head) => {
    const { door, sessions } = parts;
    if (!door.admits(exchange, head)) return;
    const isLate = parts.isDraining();
    door.readQuestion(exchange, head, validateQuestion, ({ accountId, request }, bytes) => {
      // The body waits for the session: it counts until then.
      const { bodyBudget, bounds, turns } = exchange.services;
      const part = bodyBudget.of(WAITING);
      if (!part.take(bytes)) {
        replyUnavailable(exchange, 'bodyPoolExhausted');
        return;
      }
      const answer = async (): Promise<void> => {
        const session = await sessions.demand(head);
        const found = await keyOf(parts, session, accountId);
        if (exchange.isOver) return;
        if (!found.ok) {
          replyError(exchange, found.code);
          return;
        }
        const { key } = found;
        exchange.key = key;
        exchange.onOver(sessions.open(session, () => exchange.drop('revoked')));
        turns.of(key.accountId).run(bytes, () => {
          const asked = readSpeechRequest(request, bounds);
          speak(parts, exchange, { key, isLate }, asked, streamResponder);
        });
      };
      answer()
        .catch((error: unknown) => exchange.guard(() => replyFault(exchange, error)))
        .finally(() => part.giveBack(bytes));
    });
  };

const accountIn = (head: RequestHead): number => {
  const text = new URLSearchParams(head.query).get('accountId') ?? '';
  const accountId = /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN;
  if (!isId(accountId)) throw badRequest('accountId must be the number of an account.', 'accountId');
  return accountId;
};

/** `WS /api/socket` */
export const socketAuthentication =
  (parts: PlaygroundParts): SocketAuthentication =>
  (exchange, head, proceed) => {
    const { door, sessions } = parts;
    if (!door.admits(exchange, head)) return;
    const authenticate = async (): Promise<void> => {
      const session = await sessions.demand(head);
      const found = await keyOf(parts, session, accountIn(head));
      if (exchange.isOver) return;
      if (!found.ok) {
        if (found.code === 'keyUnknown') proceed({ key: null });
        else replyError(exchange, found.code);
        return;
      }
      let open: { revoke(): void } | null = null;
      const onEnded = sessions.open(session, () => open?.revoke());
      exchange.onOver(onEnded);
      proceed({
        key: found.key,
        watch: (socket) => {
          open = socket;
          return onEnded;
        },
      });
    };
    authenticate().catch((error: unknown) => exchange.guard(() => replyFault(exchange, error)));
  };
