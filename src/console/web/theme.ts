/**
 * Light, dark, or as the system. The meta element of the page decides; `light-dark()` in the styles follows it. A cookie
 * keeps the choice, so that the server writes it into the page and no wrong colour is ever shown.
 */
import { useEffect, useState } from 'preact/hooks';

const schemes = { light: 'light', dark: 'dark', system: 'light dark' } as const;
export type Theme = keyof typeof schemes;

const keptSeconds = 400 * 86_400;
const meta = document.querySelector<HTMLMetaElement>('meta[name=color-scheme]')!;
const listeners = new Set<() => void>();
const notify = (): void => {
  for (const listener of listeners) listener();
};
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', notify);

/** For what is drawn with colours that were read: a canvas. @returns ends it */
export const onTheme = (listener: () => void): (() => void) => {
  listeners.add(listener);
  return () => void listeners.delete(listener);
};

const current = (): Theme =>
  (Object.keys(schemes) as Theme[]).find((theme) => schemes[theme] === meta.content) ?? 'system';

const choose = (theme: Theme): void => {
  meta.content = schemes[theme];
  const seconds = theme === 'system' ? 0 : keptSeconds;
  document.cookie = `syrinx-theme=${theme}; Path=/; Max-Age=${seconds}; SameSite=Strict`;
  notify();
};

export const useTheme = (): readonly [Theme, (theme: Theme) => void] => {
  const [theme, setTheme] = useState(current);
  useEffect(() => onTheme(() => setTheme(current())), []);
  return [theme, choose];
};
