/** The rows of the call `usage` as a file for a spreadsheet. */
import typia from 'typia';
import type { Handler } from '../front/routes.js';
import type { ConsoleAdministration } from './administration.js';
import { badRequest, replyWhenDone } from './answers.js';
import type { UsageQuestion, UsageRow } from './contract.js';
import type { Door } from './dispatch.js';
import type { Sessions } from './sessions.js';

const columns: Readonly<Record<string, (row: UsageRow) => string | number>> = {
  time: ({ atMs }) => new Date(atMs).toISOString(),
  account: ({ accountId }) => accountId,
  key: ({ key }) => key,
  key_name: ({ keyName }) => keyName,
  voice: ({ voice }) => voice,
  requests: ({ requests }) => requests,
  characters: ({ characters }) => characters,
  credits: ({ credits }) => credits,
  refunded: ({ refunded }) => refunded,
  audio_seconds: ({ audioMs }) => audioMs / 1_000,
};

/** A spreadsheet takes a text with such a start for a formula. The name of a key can be anything. */
const FORMULA_START = /^[=+\-@\t\r]/;

const cell = (value: string | number): string => {
  if (typeof value === 'number') return String(value);
  const text = FORMULA_START.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};

/** As RFC 4180 has it. */
export const usageCsv = (rows: readonly UsageRow[]): string =>
  [Object.keys(columns), ...rows.map((row) => Object.values(columns).map((valueOf) => valueOf(row)))]
    .map((cells) => `${cells.map(cell).join(',')}\r\n`)
    .join('');

const isQuestion = typia.createEquals<UsageQuestion>();

const questionIn = (query: string): UsageQuestion => {
  const fields = Object.fromEntries(new URLSearchParams(query));
  const { accountId = '', fromMs, toMs, step } = fields;
  const number = (text: string | undefined): number =>
    /^\d{1,16}$/.test(text ?? '') ? Number(text) : Number.NaN;
  const question = {
    accountId: accountId === '' ? null : number(accountId),
    fromMs: number(fromMs),
    toMs: number(toMs),
    step,
  };
  if (isQuestion(question)) return question;
  throw badRequest('The file needs fromMs, toMs and step (hour or day), and accountId for one account.');
};

/** `GET /api/usage.csv` */
export const usageCsvRoute =
  (door: Door, sessions: Sessions, administration: Pick<ConsoleAdministration, 'usage'>): Handler =>
  (exchange, head) => {
    if (!door.admits(exchange, head)) return;
    const answer = async () => {
      const { user } = await sessions.demand(head);
      const rows = await administration.usage(user, questionIn(head.query));
      return {
        status: 200,
        contentType: 'text/csv; charset=utf-8',
        body: usageCsv(rows),
        headers: [['content-disposition', 'attachment; filename="syrinx-usage.csv"'] as const],
      };
    };
    replyWhenDone(exchange, answer());
  };
