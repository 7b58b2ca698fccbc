/** Who is signed in, for every part of the page. */
import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import type { SessionState, User } from '../contract.js';

export interface Console {
  readonly session: SessionState;
  /** Takes the answer of signing in or out, and goes to `path`. */
  readonly become: (session: SessionState, path: string) => void;
}

export const ConsoleContext = createContext<Console | null>(null);

export const useConsole = (): Console => {
  const found = useContext(ConsoleContext);
  if (found === null) throw new Error('used outside of the console');
  return found;
};

/** For pages of signed-in users. */
export const useUser = (): User => {
  const { user } = useConsole().session;
  if (user === null) throw new Error('no user is signed in');
  return user;
};
