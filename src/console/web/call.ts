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
  message: 'The console does not answer. Check that the service is running, then try again.',
};

const isRefusal = (value: unknown): value is Refusal =>
  typeof value === 'object' && value !== null && 'code' in value && 'message' in value;

/** What an answer with an error status says. A proxy's answer has no `Refusal`. */
export const refusalOf = async (response: Response): Promise<Refusal> => {
  const body: unknown = await response.json().catch(() => null);
  if (isRefusal(body)) return body;
  return {
    code: 'failed',
    message: `The console answered with status ${response.status}. Try again. If that does not help, read the service's log.`,
  };
};

let whenSignedOut = (): void => undefined;

/** Runs `listener` whenever a call shows that the session has ended. */
export const onSignedOut = (listener: () => void): void => {
  whenSignedOut = listener;
};

/** For code that reads answers without `call`. */
export const noticeSignedOut = (): void => whenSignedOut();

/** @throws {CallError} */
export const call = <N extends CallName>(
  name: N,
  question: Question<N>,
  signal?: AbortSignal,
): Promise<Answer<N>> =>
  ask(`/api/${name}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(question),
    ...(signal === undefined ? {} : { signal }),
  });

/** The JSON of an answer. @throws {CallError} */
export const ask = async <T>(path: string, init: RequestInit): Promise<T> => {
  let response: Response;
  try {
    response = await fetch(path, init);
  } catch (error) {
    if (init.signal?.aborted === true) throw error;
    throw new CallError(unanswered);
  }
  if (response.ok) return (await response.json()) as T;
  const refusal = await refusalOf(response);
  if (refusal.code === 'signedOut') whenSignedOut();
  throw new CallError(refusal);
};
