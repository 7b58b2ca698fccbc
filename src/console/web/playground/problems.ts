/** The errors of the service for the user of the playground: what happened, and what to do. */
import { answerTo, type Worded } from '../call.js';

const noCredit =
  'The account has too little credit for this text. Shorten the text, or ask an operator to add credit.';
const noSlot =
  'Nine streams of this account speak in the playground already, here or in other windows. Wait until one of them ends, then try again.';
const suspended = 'The account is suspended, so it cannot speak until an operator resumes it.';
const busy =
  'The service takes no more speech at the moment: it is at its capacity, or it is starting or stopping.';
const fault = 'The service failed. Try again. If that does not help, read the log of the service.';

interface Fault {
  readonly loc: readonly (string | number)[];
  readonly msg: string;
}

const isFault = (value: unknown): value is Fault =>
  typeof value === 'object' && value !== null && 'msg' in value && 'loc' in value && Array.isArray(value.loc);

const listFaults = (detail: unknown): string => {
  const faults = (Array.isArray(detail) ? detail : []).filter(isFault);
  const lines = faults.map(
    ({ loc, msg }) => `${loc.slice(1).join('.')}: ${msg.replace('Value error, ', '')}`,
  );
  return lines.length === 0 ? `${String(detail)}.` : `${lines.join('. ')}.`;
};

const ofStatus: Readonly<Record<number, string>> = {
  401: suspended,
  402: noCredit,
  413: 'The text is too long for one request. Speak it in parts.',
  429: noSlot,
  500: fault,
};

const worded: Worded = (response, body) => {
  const { detail, message } = (body ?? {}) as { readonly detail?: unknown; readonly message?: unknown };
  // That of an unknown voice is for people.
  if (typeof message === 'string') return message;
  const { headers, status } = response;
  if (status === 422) return `The service refused the request. ${listFaults(detail)}`;
  const seconds = Number(headers.get('retry-after'));
  if (status === 503) return `${busy} Try again ${seconds > 0 ? `in ${seconds} s` : 'in a moment'}.`;
  return (
    ofStatus[status] ??
    `The service answered with status ${status}. Try again. If that does not help, read the log of the service.`
  );
};

/** An answer of a route that speaks. @throws {CallError} */
export const speechOf = (path: string, init: RequestInit = {}): Promise<Response> =>
  answerTo(path, init, worded);

const ofFrame: Readonly<Record<string, string>> = {
  INSUFFICIENT_CREDITS: noCredit,
  'Rate limit exceeded': noSlot,
  INVALID_API_KEY: suspended,
  'Service unavailable': `${busy} Try again in a moment.`,
  'Internal Server Error': fault,
};

/** @param text of an `error` frame */
export const problemOfFrame = (text: string): string => ofFrame[text] ?? `The service says: ${text}.`;

export const problemOfClose = (code: number): string => {
  switch (code) {
    case 1001:
      return 'The service is stopping or restarting, and closed the connection. Connect again in a moment.';
    case 1008:
      return 'The connection was closed: the account was suspended or deleted, or you signed out.';
    default:
      return `The connection was lost (code ${code}). Its contexts are gone. Open another to connect again.`;
  }
};
