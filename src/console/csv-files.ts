/** All rows of the calls `usage` and `audit` as files for a spreadsheet, however many they are. */
import typia from 'typia';
import { csvTable } from '../api/csv.js';
import type { Exchange } from '../front/exchange.js';
import { holdsAnswer, reply } from '../front/reply.js';
import { ResponseSender } from '../front/response-sender.js';
import type { Route } from '../front/routes.js';
import { Query } from '../front/query.js';
import type { ConsoleAdministration } from './administration.js';
import { badRequest, replyFault } from './answers.js';
import type { CallsParts } from './calls.js';
import type { AuditRow, UsageQuestion } from './contract.js';
import type { Door } from './dispatch.js';
import type { Session, Sessions } from './sessions.js';

const auditTable = csvTable<AuditRow>({
  time: ({ atMs }) => new Date(atMs).toISOString(),
  action: ({ action }) => action,
  who: ({ actor }) => actor,
  account: ({ account }) => account ?? '',
  what: ({ subject }) => subject,
  details: ({ details }) => details,
});

const isQuestion = typia.createEquals<UsageQuestion>();

const questionIn = (query: string): UsageQuestion => {
  const fields = new Query(query);
  const number = (text: string | null): number => (/^\d{1,16}$/.test(text ?? '') ? Number(text) : Number.NaN);
  const accountId = fields.get('accountId') ?? '';
  const question = {
    accountId: accountId === '' ? null : number(accountId),
    fromMs: number(fields.get('fromMs')),
    toMs: number(fields.get('toMs')),
    step: fields.get('step'),
  };
  if (isQuestion(question)) return question;
  throw badRequest('The file needs fromMs, toMs and step (hour or day), and accountId for one account.');
};

/** @returns a function that writes bytes, and resolves when the reader has taken them: to false if the reader has gone */
const writerOf = (exchange: Exchange, sender: ResponseSender): ((bytes: Uint8Array) => Promise<boolean>) => {
  let settle: (isTaken: boolean) => void = () => undefined;
  // Once, and not for each page: the exchange keeps its listeners to its end.
  exchange.onOver(() => settle(false));
  return (bytes) =>
    new Promise((resolve) => {
      settle = resolve;
      if (exchange.isOver) resolve(false);
      else sender.write(bytes, () => resolve(true));
    });
};

/** Reads a part when the reader has taken the part before it. */
const sendParts = async (
  exchange: Exchange,
  name: string,
  parts: AsyncIterator<Uint8Array>,
): Promise<void> => {
  // The first part is read before the head is sent, so that a refusal has its own status.
  let part = await parts.next();
  if (exchange.isOver) return;
  const head = {
    status: 200,
    contentType: 'text/csv; charset=utf-8',
    headers: [['content-disposition', `attachment; filename="syrinx-${name}.csv"`]],
  } as const;
  if (exchange.method === 'head') {
    reply(exchange, { ...head, body: '' });
    return;
  }
  if (!holdsAnswer(exchange, exchange.services.bounds.fileAnswerBytes)) return;
  const sender = new ResponseSender(exchange, head);
  const write = writerOf(exchange, sender);
  for (; part.done !== true; part = await parts.next()) if (!(await write(part.value))) return;
  sender.end();
};

export interface CsvParts {
  readonly door: Door;
  readonly sessions: Sessions;
  readonly administration: Pick<ConsoleAdministration, 'usageFile' | 'audit'>;
  readonly settled: CallsParts['settled'];
}

/** @param partsOf may throw a `ConsoleRefusal`, as for a wrong query */
const csvRoute = (
  { door, sessions }: CsvParts,
  name: string,
  partsOf: (
    query: string,
    session: Session,
    inOrder: <T>(read: () => Promise<T>) => Promise<T>,
  ) => AsyncIterator<Uint8Array>,
): Route => ({
  path: `/api/${name}.csv`,
  method: 'get',
  handler: (exchange, head) => {
    if (!door.admits(exchange, head)) return;
    const answer = async (): Promise<void> => {
      const session = await sessions.demand(exchange, head);
      const parts = partsOf(head.query, session, (read) => door.inOrder(exchange, session.user, read));
      await sendParts(exchange, name, parts);
    };
    answer().catch((error: unknown) =>
      exchange.guard(() => (exchange.hasBegun ? exchange.fail(error) : replyFault(exchange, error))),
    );
  },
});

/** `GET /api/usage.csv` and, for operators, `GET /api/audit.csv?search&kind` */
export const csvRoutes = (parts: CsvParts): readonly Route[] => {
  const { administration, settled } = parts;
  const usage = csvRoute(parts, 'usage', async function* (query, session, inOrder) {
    let question = questionIn(query);
    // The generator keeps its values while the reader takes the page: only bytes.
    const read = () => inOrder(() => administration.usageFile(session, question));
    await settled();
    for (;;) {
      const { bytes, next } = await read();
      yield bytes;
      if (next === null) return;
      question = { ...question, after: next };
    }
  });
  const audit = csvRoute(parts, 'audit', async function* (query, session, inOrder) {
    const fields = new Query(query);
    const [search = '', kind = ''] = ['search', 'kind'].map((name) => fields.get(name)?.slice(0, 100));
    let beforeId: number | null = null;
    const read = () => inOrder(() => administration.audit(session, { beforeId, search, kind }));
    for (let { header } = auditTable; ; header = '') {
      const rows = await read();
      yield Buffer.from(header + auditTable.records(rows));
      beforeId = rows.at(-1)?.auditId ?? null;
      if (beforeId === null) return;
    }
  });
  return [usage, audit];
};
