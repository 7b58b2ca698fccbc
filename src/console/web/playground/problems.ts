/** The errors of the service for the user of the playground: what happened, and what to do. */
import { noticeSignedOut } from '../call.js';

const noCredit =
  'The account has too little credit for this text. Shorten the text, or ask an operator to add credit.';
const noSlot =
  'Nine streams of this account speak in the playground already, here or in other windows. Wait until one of them ends, then try again.';
const suspended = 'The account is suspended, so it cannot speak until an operator resumes it.';
const busy =
  'The service takes no more speech at the moment: it is at its capacity, or it is starting or stopping.';
const fault = 'The service failed. Try again. If that does not help, read the log of the service.';

export const unreachable =
  'The console does not answer. Check that the service is running and that you are online, then try again.';

interface Fault {
  readonly loc: readonly (string | number)[];
  readonly msg: string;
}

/** The bodies of errors differ in these members. */
interface ErrorBody {
  readonly error?: unknown;
  readonly message?: unknown;
  readonly code?: unknown;
  readonly detail?: unknown;
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

/** @returns what a response that refuses speech says */
export const problemOf = async (response: Response): Promise<string> => {
  const body = ((await response.json().catch(() => null)) ?? {}) as ErrorBody;
  if (body.code === 'signedOut') noticeSignedOut();
  // The messages of the console's own refusals, and of an unknown voice, are for people.
  if (typeof body.message === 'string') return body.message;
  switch (response.status) {
    case 401:
      return suspended;
    case 402:
      return noCredit;
    case 413:
      return 'The text is too long for one request. Speak it in parts.';
    case 422:
      return `The service refused the request. ${listFaults(body.detail)}`;
    case 429:
      return noSlot;
    case 500:
      return fault;
    case 503: {
      const seconds = Number(response.headers.get('retry-after'));
      return `${busy} Try again ${seconds > 0 ? `in ${seconds} s` : 'in a moment'}.`;
    }
    default:
      return `The service answered with status ${response.status}. Try again. If that does not help, read the log of the service.`;
  }
};

/** @param text of an `error` frame */
export const problemOfFrame = (text: string): string => {
  switch (text) {
    case 'INSUFFICIENT_CREDITS':
      return noCredit;
    case 'Rate limit exceeded':
      return noSlot;
    case 'INVALID_API_KEY':
      return suspended;
    case 'Service unavailable':
      return `${busy} Try again in a moment.`;
    case 'Internal Server Error':
      return fault;
    default:
      return `The service says: ${text}.`;
  }
};

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
