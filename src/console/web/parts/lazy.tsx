/** Pages whose code the browser loads when they are first shown. */
import type { FunctionComponent } from 'preact';
import { useEffect, useReducer } from 'preact/hooks';
import { Problem, Waiting } from './page.js';

type Loaded = FunctionComponent | 'lost' | null;

export const lazyPage = (load: () => Promise<FunctionComponent>): FunctionComponent => {
  let loaded: Loaded = null;
  return () => {
    const [, redraw] = useReducer((count: number) => count + 1, 0);
    const get = () => {
      load()
        .then(
          (page) => (loaded = page),
          () => (loaded = 'lost'),
        )
        .finally(() => redraw(undefined));
    };
    useEffect(() => {
      if (loaded === null) get();
    }, []);
    if (loaded === null) return <Waiting />;
    if (loaded === 'lost')
      return (
        <Problem
          refusal={{ message: 'This page did not load. The service may have a new version.' }}
          onRetry={() => location.reload()}
        />
      );
    const Page = loaded;
    return <Page />;
  };
};
