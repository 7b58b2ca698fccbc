/** The page's side of the calls in `contract.ts`. */
import type { Answer, CallName, Question, Refusal } from '../contract.js';

/** A refused call. Its message is for the person at the page. */
export class CallError extends Error {
  override readonly name = 'CallError';
  readonly refusal: Refusal;

  constructor(refusal: Refusal) {
    super(refusal.message);
    this.refusal = refusal;
  }
}

const unanswered: Refusal = {
  code: 'unavailable',
  message:
    'The console does not answer. Check that the service is running and that you are online, then try again.',
};

const isRefusal = (value: unknown): value is Refusal =>
  typeof value === 'object' && value !== null && 'code' in value && 'message' in value;

let whenSignedOut = (): void => undefined;

/** Runs `listener` whenever an answer shows that the session has ended. */
export const onSignedOut = (listener: () => void): void => {
  whenSignedOut = listener;
};

/** Any answer, also that of an error. @throws {CallError} there is none */
export const request = async (path: string, init: RequestInit): Promise<Response> => {
  try {
    return await fetch(path, init);
  } catch (error) {
    if (init.signal?.aborted === true) throw error;
    throw new CallError(unanswered);
  }
};

export const jsonBody = (json: string): RequestInit => ({
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: json,
});

/** What the body of an error says without a `Refusal`: one of a proxy, or of a route for programs. */
export type Worded = (response: Response, body: unknown) => string;

const ofProxy: Worded = ({ status }) =>
  `The console answered with status ${status}. Try again. If that does not help, read the service's log.`;

/** @throws {CallError} */
export const answerTo = async (path: string, init: RequestInit, worded = ofProxy): Promise<Response> => {
  const response = await request(path, init);
  if (response.ok) return response;
  const body: unknown = await response.json().catch(() => null);
  const refusal: Refusal = isRefusal(body) ? body : { code: 'failed', message: worded(response, body) };
  if (refusal.code === 'signedOut') whenSignedOut();
  throw new CallError(refusal);
};

/** The JSON of an answer. @throws {CallError} */
export const ask = async <T>(path: string, init: RequestInit): Promise<T> =>
  (await (await answerTo(path, init)).json()) as T;

/** @throws {CallError} */
export const call = <N extends CallName>(
  name: N,
  question: Question<N>,
  signal: AbortSignal | null = null,
): Promise<Answer<N>> => ask(`/api/${name}`, { ...jsonBody(JSON.stringify(question)), signal });
