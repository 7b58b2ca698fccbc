import type { ComponentType } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { Problem, Waiting } from './parts/page.js';

/** A part that is loaded when it is first shown. */
export const lazy = <Props extends object>(load: () => Promise<ComponentType<Props>>) => {
  let loaded: ComponentType<Props> | undefined;
  return (props: Props) => {
    const [state, setState] = useState<'waiting' | 'loaded' | 'failed'>(loaded ? 'loaded' : 'waiting');
    useEffect(() => {
      if (loaded !== undefined) return;
      load().then(
        (part) => {
          loaded = part;
          setState('loaded');
        },
        () => setState('failed'),
      );
    }, []);
    if (state === 'failed') {
      const message =
        'A part of the console did not load. Reload the page; the service may have a new version.';
      return <Problem refusal={{ message }} />;
    }
    const Part = loaded;
    return Part === undefined ? <Waiting /> : <Part {...props} />;
  };
};
