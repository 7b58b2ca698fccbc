/**
 * Pages by path, and what they show by the query of the address. The Navigation API turns plain links into changes of the
 * page. A browser without it loads each page from the server, which answers every path of a page.
 */
import { useLayoutEffect, useState } from 'preact/hooks';

const isKnown = 'navigation' in window;
const listeners = new Set<() => void>();
const notify = (): void => {
  for (const listener of listeners) listener();
};

if (isKnown) {
  window.navigation.addEventListener('navigate', (event) => {
    if (!event.canIntercept || event.hashChange || event.downloadRequest !== null) return;
    const { pathname } = new URL(event.destination.url);
    if (event.navigationType === 'reload' || pathname.startsWith('/api/')) return;
    event.intercept({
      // The new page focuses its heading.
      focusReset: 'manual',
      ...(pathname === location.pathname && { scroll: 'manual' as const }),
      handler: () => {
        notify();
        return Promise.resolve();
      },
    });
  });
} else addEventListener('popstate', notify);

/** Goes to a page of the console. */
export const navigate = (path: string, { replace = false } = {}): void => {
  if (isKnown) window.navigation.navigate(path, { history: replace ? 'replace' : 'auto' });
  else if (replace) location.replace(path);
  else location.assign(path);
};

const useAddress = <T>(read: () => T): T => {
  const [value, setValue] = useState(read);
  useLayoutEffect(() => {
    const listener = () => setValue(read);
    listeners.add(listener);
    // Whatever changed between the first render and now.
    listener();
    return () => void listeners.delete(listener);
  }, []);
  return value;
};

export const usePath = (): string => useAddress(() => location.pathname);

/** Characters of a value of an address. The calls take no longer ones. */
const VALUE_MAX = 100;

/**
 * One filter, tab or choice of a page, in the query of its address: a reload and the way back keep it.
 *
 * @param fallback leaves no trace in the address
 * @param options all values; absent: any text
 */
export const useQuery = <Value extends string>(
  name: string,
  fallback: Value,
  options?: readonly Value[],
): readonly [Value, (value: Value, how?: { readonly isStep: boolean }) => void] => {
  const read = (): Value => {
    const asked = new URLSearchParams(location.search).get(name);
    const value = asked === null ? null : (asked.slice(0, VALUE_MAX) as Value);
    return value === null || options?.includes(value) === false ? fallback : value;
  };
  const value = useAddress(read);
  /** @param how `isStep`: "back" undoes it */
  const set = (next: Value, { isStep } = { isStep: false }): void => {
    const url = new URL(location.href);
    if (next === fallback) url.searchParams.delete(name);
    else url.searchParams.set(name, next);
    if (url.href === location.href) return;
    history[isStep ? 'pushState' : 'replaceState'](null, '', url);
    notify();
  };
  return [value, set];
};
