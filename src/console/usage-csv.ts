/** The rows of the call `usage` as a file for a spreadsheet, however many they are. */
import typia from 'typia';
import type { Exchange } from '../front/exchange.js';
import { reply } from '../front/reply.js';
import { ResponseSender } from '../front/response-sender.js';
import type { Handler } from '../front/routes.js';
import { Query } from '../front/query.js';
import type { ConsoleAdministration } from './administration.js';
import { badRequest, replyFault } from './answers.js';
import type { CallsParts } from './calls.js';
import type { UsagePage, UsageQuestion, UsageRow } from './contract.js';
import type { Door } from './dispatch.js';
import type { Sessions } from './sessions.js';

const columns: Readonly<Record<string, (row: UsageRow) => string | number>> = {
  time: ({ atMs }) => new Date(atMs).toISOString(),
  account: ({ account }) => account,
  key: ({ key }) => key,
  key_name: ({ keyName }) => keyName,
  voice: ({ voice }) => voice,
  requests: ({ requests }) => requests,
  characters: ({ characters }) => characters,
  credits: ({ credits }) => credits,
  refunded: ({ refunded }) => refunded,
  audio_seconds: ({ audioMs }) => audioMs / 1_000,
};

/**
 * Users choose the names of keys, and a spreadsheet reads a cell with such a start as a formula. Where it separates cells by
 * another character than a comma, a name has several. NFKC makes ASCII of the wide and small forms.
 */
const SEPARATORS = new Set(',;|\t\r\n');
const isPassedOver = /^[\s\p{C}"]$/u;
const startsFormula = /^[=+\-@]/;

const asText = (name: string): string => {
  let text = '';
  /** What came since the start of the cell; `null`: something that counts came. */
  let lead: string | null = '';
  for (const character of name) {
    if (SEPARATORS.has(character)) {
      text += (lead ?? '') + character;
      lead = '';
    } else if (lead === null) text += character;
    else if (isPassedOver.test(character)) lead += character;
    else {
      text += (startsFormula.test(character.normalize('NFKC')) ? "'" : '') + lead + character;
      lead = null;
    }
  }
  return text + (lead ?? '');
};

const cell = (value: string | number): string => {
  if (typeof value === 'number') return String(value);
  const text = asText(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};

const record = (cells: readonly (string | number)[]): string => `${cells.map(cell).join(',')}\r\n`;

export const csvHeader = record(Object.keys(columns));

/** In the form of RFC 4180. */
export const csvRecords = (rows: readonly UsageRow[]): string =>
  rows.map((row) => record(Object.values(columns).map((valueOf) => valueOf(row)))).join('');

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

const csvHead = {
  status: 200,
  contentType: 'text/csv; charset=utf-8',
  headers: [['content-disposition', 'attachment; filename="syrinx-usage.csv"']],
} as const;

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

/** Reads a page of rows when the reader has taken the page before it. */
const sendPages = async (
  exchange: Exchange,
  question: UsageQuestion,
  read: (question: UsageQuestion) => Promise<UsagePage>,
): Promise<void> => {
  // The first page is read before the head is sent, so that a refusal has its own status.
  let page = await read(question);
  if (exchange.isOver) return;
  if (exchange.method === 'head') {
    reply(exchange, { ...csvHead, body: '' });
    return;
  }
  const sender = new ResponseSender(exchange, csvHead);
  const write = writerOf(exchange, sender);
  let text = csvHeader;
  while (await write(Buffer.from(text + csvRecords(page.rows)))) {
    if (page.next === null) {
      sender.end();
      return;
    }
    page = await read({ ...question, after: page.next });
    text = '';
  }
};

export interface UsageCsvParts {
  readonly door: Door;
  readonly sessions: Sessions;
  readonly administration: Pick<ConsoleAdministration, 'usage'>;
  readonly settled: CallsParts['settled'];
}

/** `GET /api/usage.csv` */
export const usageCsvRoute =
  ({ administration, door, sessions, settled }: UsageCsvParts): Handler =>
  (exchange, head) => {
    if (!door.admits(exchange, head)) return;
    const answer = async (): Promise<void> => {
      const { user } = await sessions.demand(exchange, head);
      const question = questionIn(head.query);
      await settled();
      await sendPages(exchange, question, (page) =>
        door.inOrder(exchange, user, () => administration.usage(user, page)),
      );
    };
    answer().catch((error: unknown) =>
      exchange.guard(() => (exchange.hasBegun ? exchange.fail(error) : replyFault(exchange, error))),
    );
  };
