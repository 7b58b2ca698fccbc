/** Pages whose code the browser loads when they are first shown. */
import type { FunctionComponent } from 'preact';
import { useLayoutEffect, useReducer } from 'preact/hooks';
import { Problem, Waiting } from './page.js';

const Lost = () => (
  <Problem
    refusal={{ message: 'This page did not load. The service may have a new version.' }}
    onRetry={() => location.reload()}
  />
);

export const lazyPage = (load: () => Promise<FunctionComponent>): FunctionComponent => {
  let Loaded: FunctionComponent | null = null;
  return () => {
    const [, redraw] = useReducer((count: number) => count + 1, 0);
    useLayoutEffect(() => {
      if (Loaded !== null) return;
      void load()
        .catch(() => Lost)
        .then((page) => {
          Loaded = page;
          redraw(undefined);
        });
    }, []);
    return Loaded === null ? <Waiting /> : <Loaded />;
  };
};
