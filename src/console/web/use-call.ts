/** Answers of calls in pages. They are kept between pages: a page shows the last answer at once, then the new one. */
import { useLayoutEffect, useReducer, useRef } from 'preact/hooks';
import type { Answer, CallName, Question, Refusal, VoiceView } from '../contract.js';
import { call, CallError } from './call.js';

const answersMax = 100;
const answers = new Map<string, unknown>();
const mounted = new Set<() => Promise<void>>();

const remember = (key: string, answer: unknown): void => {
  answers.delete(key);
  answers.set(key, answer);
  const [oldest] = answers.keys();
  if (answers.size > answersMax && oldest !== undefined) answers.delete(oldest);
};

/** Before another user signs in here. */
export const forgetAnswers = (): void => answers.clear();

/** Repeats the calls of everything that is shown, after a change. */
export const refresh = async (): Promise<void> => {
  await Promise.all([...mounted].map((load) => load()));
};

export const toRefusal = (error: unknown): Refusal => {
  if (error instanceof CallError) return error.refusal;
  reportError(error);
  return { code: 'failed', message: 'The page failed. Reload it and try again.' };
};

export interface Asked<T> {
  /** The last answer to this question, perhaps of an earlier visit. */
  readonly answer: T | undefined;
  readonly problem: Refusal | null;
}

/** Asks when the page appears and when `key`, which stands for the question, changes. `null` asks nothing. */
export const useAnswer = <T>(key: string | null, ask: (signal: AbortSignal) => Promise<T>): Asked<T> => {
  const [, redraw] = useReducer((count: number) => count + 1, 0);
  const problem = useRef<{ readonly key: string; readonly refusal: Refusal } | null>(null);

  useLayoutEffect(() => {
    if (key === null) return;
    const controllers = new Set<AbortController>();
    const load = async (): Promise<void> => {
      // The answer to an earlier call is older.
      for (const earlier of controllers) earlier.abort();
      const controller = new AbortController();
      controllers.add(controller);
      try {
        remember(key, await ask(controller.signal));
        problem.current = null;
      } catch (error) {
        if (controller.signal.aborted) return;
        problem.current = { key, refusal: toRefusal(error) };
      } finally {
        controllers.delete(controller);
      }
      redraw(undefined);
    };
    mounted.add(load);
    void load();
    return () => {
      mounted.delete(load);
      for (const controller of controllers) controller.abort();
    };
  }, [key]);

  return {
    answer: key === null ? undefined : (answers.get(key) as T | undefined),
    problem: problem.current?.key === key ? problem.current.refusal : null,
  };
};

/** All voices that are loaded. */
export const useVoices = (): Asked<readonly VoiceView[]> => {
  const { answer, problem } = useCall('voices', {});
  return { answer: answer?.packs.flatMap(({ voices }) => voices), problem };
};

/** The answer to one call. `null` asks nothing. */
export const useCall = <N extends CallName>(name: N, question: Question<N> | null): Asked<Answer<N>> =>
  useAnswer(question === null ? null : JSON.stringify([name, question]), (signal) =>
    call(name, question!, signal),
  );
