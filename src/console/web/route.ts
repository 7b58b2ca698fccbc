/**
 * Pages by path. The Navigation API turns plain links into changes of the page. A browser without it loads each page from the
 * server, which answers every path of a page.
 */
import { useLayoutEffect, useState } from 'preact/hooks';

const isKnown = 'navigation' in window;
const listeners = new Set<() => void>();

if (isKnown) {
  window.navigation.addEventListener('navigate', (event) => {
    if (!event.canIntercept || event.hashChange || event.downloadRequest !== null) return;
    const { pathname } = new URL(event.destination.url);
    if (event.navigationType === 'reload' || pathname.startsWith('/api/')) return;
    event.intercept({
      // The new page focuses its heading.
      focusReset: 'manual',
      handler: () => {
        for (const listener of listeners) listener();
        return Promise.resolve();
      },
    });
  });
}

/** Goes to a page of the console. */
export const navigate = (path: string, { replace = false } = {}): void => {
  if (isKnown) window.navigation.navigate(path, { history: replace ? 'replace' : 'auto' });
  else if (replace) location.replace(path);
  else location.assign(path);
};

export const usePath = (): string => {
  const [path, setPath] = useState(location.pathname);
  useLayoutEffect(() => {
    const listener = () => setPath(location.pathname);
    listeners.add(listener);
    // Whatever changed between the first render and now.
    listener();
    return () => void listeners.delete(listener);
  }, []);
  return path;
};
