/** The meaning of a full stop before white space: the end of a sentence, or part of an abbreviation. */

/** `unless-...`: the full stop ends the sentence unless the next character is of that kind. */
export type FullStop = 'ends' | 'inside' | 'unless-lower-case' | 'unless-digit';

/**
 * Whether the sentence goes on after a full stop.
 * @param next the first character after the white space; '' if there is none
 */
export const goesOnAfter = (rule: FullStop, next: string): boolean => {
  switch (rule) {
    case 'ends':
      return false;
    case 'inside':
      return next !== '';
    case 'unless-lower-case':
      return /^\p{Ll}/u.test(next);
    case 'unless-digit':
      return /^\p{Nd}/u.test(next);
  }
};

const words = (list: string): ReadonlySet<string> => new Set(list.split(' '));

/** The sentence always goes on after these. */
const inside = words(
  'mr mrs ms mx messrs dr prof st ste mt ft rev hon gen col capt lt sgt cmdr adm gov sen rep pres supt ' +
    'vs v cf viz approx ca est dept univ assn ave blvd rd al eg ie resp ' +
    'mme mlle herr fr hr nr bzw bspw z.b u.a d.h sra dra sig dott av',
);
/** May end a sentence: the next letter decides. */
const either = words('etc inc ltd co corp bros llc plc jr sr esq ph.d m.d b.a m.a a.m p.m am pm usw ff');
/** Numbering: "No. 5", but "No. Not today". */
const numbering = words(
  'no nos p pp vol vols fig figs sec ch art op nr tel ext jan feb mar apr jun jul aug sep sept oct nov dec',
);

const edges = /^[^\p{L}\p{N}]+|[^\p{L}\p{N}.…]+$/gu;

/**
 * @param token the token before the white space, with all its punctuation; its last terminator is a full stop or an
 *   ellipsis
 * @param opensSegment whether it is the segment's first token
 */
export const fullStopAfter = (token: string, opensSegment: boolean): FullStop => {
  const bare = token.replace(edges, '');
  if (/(?:\.\.|…)$/u.test(bare)) return 'unless-lower-case';
  const stem = bare.replace(/\.$/u, '');
  // "I" is a pronoun far more often than an initial.
  if (/^\p{Lu}$/u.test(stem) && stem !== 'I') return 'inside';
  // A list's number: "1. Preheat the oven."
  if (opensSegment && /^\d{1,3}$/.test(stem)) return 'inside';
  const lower = stem.toLowerCase();
  if (inside.has(lower)) return 'inside';
  if (either.has(lower)) return 'unless-lower-case';
  if (numbering.has(lower)) return 'unless-digit';
  // U.S., J.R.R., e.g.
  if (/^\p{L}(?:\.\p{L})+$/u.test(stem)) return 'inside';
  return 'ends';
};
