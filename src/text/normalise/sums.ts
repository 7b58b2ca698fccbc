/** Sums with spaces, "3 x 4 = 12": there a sign between numbers is an operator, and not that of a size or a range. */
import { type Tokens, wordSet } from './tokens.js';

const operator = /^[-+−–*∗×x∙⋅·÷∕/:=<>≤≥≠]$/;
const operand = /^[-−–+]?(?:\d[\d.,]*[a-z]?|[a-z])$/;
const comparison = /^[=<>≤≥≠]$/;
/** Words before a result. */
const results = wordSet('is are equals makes gives ist sind gibt macht ergibt font fait égale son es da');
/** How far a sum is read to each side. */
const tokensMax = 16;

/** A sign that stands by itself. Some are also punctuation, so their token has no core. */
export const signOf = (tokens: Tokens, at: number): string => {
  const { core, raw } = tokens.at(at);
  return core === '' ? raw : core;
};

const isNumber = (tokens: Tokens, at: number): boolean =>
  at >= 0 && at < tokens.length && /^[-−–+]?\d/.test(tokens.at(at).core);

/** "7 x 8 is 56.", but not "a 7 x 8 is 56 dollars". */
const isResult = (tokens: Tokens, at: number): boolean =>
  results.has(tokens.at(at).core) && isNumber(tokens, at + 1) && tokens.next(at + 1) === undefined;

/** Whether a sign is an operator: it compares two numbers, or numbers and signs lead to a result. */
export const isInSum = (tokens: Tokens, at: number): boolean => {
  const sign = signOf(tokens, at);
  if (!operator.test(sign) || !isNumber(tokens, at - 1) || !isNumber(tokens, at + 1)) return false;
  if (comparison.test(sign)) return true;
  for (const side of [1, -1])
    for (let i = at + side; i >= 0 && i < tokens.length && Math.abs(i - at) <= tokensMax; i += side) {
      const other = signOf(tokens, i);
      // Another sentence or clause.
      if (/[.,;!?]/.test(tokens.at(side === 1 ? i - 1 : i).tail)) break;
      if (comparison.test(other) || (side === 1 && isResult(tokens, i))) return true;
      if (!operator.test(other) && !operand.test(other)) break;
    }
  return false;
};

/** "2x" in "2x = 4", but not "5m"; `null` if the token is not such a term. */
export const termOf = (tokens: Tokens, at: number): { count: string; variable: string } | null => {
  const { count, variable } =
    /^(?<count>\d[\d.,]{0,8})(?<variable>[xyz])$/.exec(tokens.at(at).core)?.groups ?? {};
  if (count === undefined || variable === undefined) return null;
  const isOperand = [at - 1, at + 1].some((i) => i > 0 && i < tokens.length && isInSum(tokens, i));
  return isOperand ? { count, variable } : null;
};
