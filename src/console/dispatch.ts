/** Reads a call of the page, checks it, and answers it. */
import type { IValidation } from 'typia';
import { parseJsonBody } from '../api/body.js';
import { quoted, type QuoteBound } from '../api/quoted.js';
import type { Member } from '../byte-budget.js';
import { readBody } from '../front/body-reader.js';
import type { Header } from '../front/cors.js';
import type { Exchange } from '../front/exchange.js';
import type { Reply } from '../front/reply.js';
import type { RequestHead } from '../front/request-head.js';
import type { Handler, Route } from '../front/routes.js';
import type { Bounds } from '../limits.js';
import { badRequest, jsonReply, replyFault, replyRefusal, replyWhenDone } from './answers.js';
import { callNames, validateCall } from './call-rules.js';
import { checkRole, type Caller, type createCalls } from './calls.js';
import type { CallOrder } from './call-order.js';
import type { CallName, Question, User } from './contract.js';
import type { Gate } from './gate.js';
import type { Cookies } from './headers.js';
import { ConsoleRefusal } from './refusal.js';
import { isOfProgram, type Sessions } from './sessions.js';
import { addressOf, type Throttle } from './throttle.js';

export interface DoorParts {
  readonly gate: Gate;
  readonly throttle: Throttle;
  readonly order: CallOrder;
  readonly cookies: Cookies;
  readonly sessions: Sessions;
  readonly bounds: Pick<Bounds, 'keylessMessageBytesMax'>;
}

/** Every request below /api passes through it. */
export class Door {
  readonly #parts: DoorParts;

  constructor(parts: DoorParts) {
    this.#parts = parts;
  }

  /** @returns the refusal, if its user, or without a session its address, which others may share, calls too often */
  #countCall(exchange: Exchange, head: RequestHead): ConsoleRefusal | null {
    const { sessions, throttle } = this.#parts;
    try {
      throttle.call(sessions.nameIn(head) ?? addressOf(exchange, head));
      return null;
    } catch (error) {
      if (error instanceof ConsoleRefusal) return error;
      throw error;
    }
  }

  /**
   * Whose part of the bodies a request takes. Before its session is found, a stranger may send it. Unfinished long bodies
   * of strangers keep out no sign-in, because connections are too few to fill a part with short ones.
   */
  memberOf(head: RequestHead): Member {
    const { bounds, sessions } = this.#parts;
    const isLong = head.contentLength > bounds.keylessMessageBytesMax;
    return sessions.nameIn(head) ?? `${isLong ? 'long' : 'short'} bodies of strangers at the console`;
  }

  /** Makes a call in the order of its account: see `CallOrder`. */
  inOrder<T>(exchange: Exchange, user: User | null, call: () => Promise<T>): Promise<T> {
    return this.#parts.order.run(user?.accountId ?? null, () => exchange.isOver, call);
  }

  /** Refuses a request of another site, or of one who calls too often. @returns whether to go on */
  admits(exchange: Exchange, head: RequestHead): boolean {
    const refusal = this.#parts.gate.refuseCall(head, exchange.origin) ?? this.#countCall(exchange, head);
    if (refusal !== null) replyRefusal(exchange, refusal);
    return refusal === null;
  }

  /** Answers those who are signed in. @param answer may throw a `ConsoleRefusal` */
  forSession(answer: (head: RequestHead) => Reply | Promise<Reply>): Handler {
    return (exchange, head) => {
      if (!this.admits(exchange, head)) return;
      replyWhenDone(
        exchange,
        this.#parts.sessions.demand(exchange, head).then(() => answer(head)),
      );
    };
  }

  /** Counts a request for the page. @returns whether it may cause work on the store now */
  mayAsk(exchange: Exchange, head: RequestHead): boolean {
    return this.#countCall(exchange, head) === null;
  }

  /** Reads the question of a call. @param onQuestion may throw a `ConsoleRefusal` */
  #readQuestion<N extends CallName>(
    exchange: Exchange,
    head: RequestHead,
    name: N,
    onQuestion: (question: Question<N>) => void,
  ): void {
    // Forms of other sites can send bodies of every other type. Without a body the type may be absent.
    const isJson = /^application\/json\s*(?:;|$)/i.test(head.contentType?.trim() ?? '');
    readBody(exchange, head, this.memberOf(head), (bytes) => {
      try {
        if (!isJson) throw badRequest('Send JSON, with the content-type application/json.');
        const { bounds } = exchange.services;
        const json = parseJsonBody(bytes, head.contentType, bounds);
        if (!json.ok) throw badRequest('The request is not valid JSON.');
        const { question } = checked(validateCall({ name, question: json.value }), bounds);
        onQuestion(question);
      } catch (error) {
        replyFault(exchange, error);
      }
    });
  }

  callRoutes(calls: ReturnType<typeof createCalls>): readonly Route[] {
    return callNames.map((name) => ({
      path: `/api/${name}`,
      method: 'post',
      handler: this.#callHandler(name, calls),
    }));
  }

  // oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- it joins a question with its answer
  #callHandler<N extends CallName>(name: N, calls: ReturnType<typeof createCalls>): Handler {
    const { cookies, sessions } = this.#parts;
    return (exchange, head) => {
      if (!this.admits(exchange, head)) return;
      const address = addressOf(exchange, head);
      this.#readQuestion(exchange, head, name, (question) => {
        const answer = async (): Promise<Reply> => {
          const headers: Header[] = [];
          const session = await sessions.find(exchange, head);
          checkRole(name, session, isOfProgram(head));
          const caller: Caller = {
            ...{ address, session },
            tokenHash: sessions.hashIn(head),
            device: cookies.device(head),
            begin: (opened) => {
              sessions.began(opened);
              headers.push(...cookies.begin(opened));
            },
            end: () => headers.push(...cookies.end()),
          };
          const answered = await this.inOrder(exchange, session?.user ?? null, () =>
            calls[name](question, caller),
          );
          return { ...jsonReply(answered), headers };
        };
        replyWhenDone(exchange, answer());
      });
    };
  }
}

const boundsIn = (expected: string): string => {
  const [, least] = /Min(?:Length|Items)?(?:imum)?<(\d+)>/.exec(expected) ?? [];
  const [, most] = /Max(?:Length|Items)?(?:imum)?<(\d+)>/.exec(expected) ?? [];
  if (least !== undefined && most !== undefined) return `from ${least} to ${most}`;
  if (least !== undefined) return `at least ${least}`;
  return most === undefined ? '' : `at most ${most}`;
};

/** In words, from the type that typia names. */
const wanted = (expected: string): string => {
  if (/\bstring\b/.test(expected)) return `a text of ${boundsIn(expected)} characters`;
  if (/\bnumber\b/.test(expected)) return `a whole number, ${boundsIn(expected) || '0 or more'}`;
  if (/\bArray\b|Items/.test(expected)) return `a list of ${boundsIn(expected)} entries`;
  return /^(?:undefined|never)$/.test(expected) ? 'absent' : expected;
};

/** @throws {ConsoleRefusal} names the field and what it takes */
const checked = <Q>(result: IValidation<Q>, bounds: QuoteBound): Q => {
  if (result.success) return result.data;
  // Typia keeps the errors of its last check, with what the caller sent.
  const [first] = result.errors.splice(0);
  const field = quoted(first?.path.replace(/^\$input(?:\.question)?\.?/, '') ?? '', bounds);
  if (first === undefined || field === '')
    throw badRequest('The request does not have the form that this call takes.');
  throw badRequest(`${field} must be ${wanted(first.expected)}.`, field);
};
