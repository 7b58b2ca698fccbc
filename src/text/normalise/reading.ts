/** What a rule makes of tokens. */
import type { Tokens } from './tokens.js';

/** The spoken form of a token, or of several; its punctuation is the token's own where none is given. */
export interface Part {
  readonly core: string;
  readonly lead?: string;
  readonly tail?: string;
}

/** One part for each token from the first on; or a single one for `count` tokens whose words cannot be told apart. */
export interface Reading {
  readonly parts: readonly Part[];
  readonly count?: number;
}

/** `null` where the rule does not apply. Looks at a bounded number of tokens, so that all rules are linear. */
export type Rule = (tokens: Tokens, at: number) => Reading | null;

/** Each token's words, in order. */
export const say = (...cores: readonly string[]): Reading => ({ parts: cores.map((core) => ({ core })) });

/** As `say`, for one token's words that a rule may not have found. */
export const sayIf = (core: string | null): Reading | null => (core === null ? null : say(core));

export const wordSet = (list: string): ReadonlySet<string> => new Set(list.split(' '));
