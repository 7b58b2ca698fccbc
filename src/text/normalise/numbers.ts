/** Numbers as words, American English. Digits come in as strings, so that no length is too much for a number type. */

const small = (
  'zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen ' +
  'seventeen eighteen nineteen'
).split(' ');
const tens = 'zero ten twenty thirty forty fifty sixty seventy eighty ninety'.split(' ');
const scales = ['', 'thousand', 'million', 'billion', 'trillion'];

/** Longest string of digits that is counted; one more, and its digits are said one by one. */
export const countedDigitsMax = 15;

const belowHundred = (value: number): string => {
  if (value < 20) return small[value]!;
  const rest = value % 10;
  return rest === 0 ? tens[value / 10]! : `${tens[(value - rest) / 10]!} ${small[rest]!}`;
};

const belowThousand = (value: number): string => {
  if (value < 100) return belowHundred(value);
  const rest = value % 100;
  const hundreds = `${small[(value - rest) / 100]!} hundred`;
  return rest === 0 ? hundreds : `${hundreds} ${belowHundred(rest)}`;
};

/** `407` -> four zero seven. */
export const digitWords = (digits: string): string => Array.from(digits, (digit) => small[+digit]!).join(' ');

/** Digits in groups, with a pause after each but the last. */
export const digitGroups = (groups: readonly string[]): string => groups.map(digitWords).join(', ');

/** `1234` -> one thousand two hundred thirty four. */
export const cardinal = (digits: string): string => {
  const significant = digits.replace(/^0+/, '');
  if (significant === '') return 'zero';
  if (significant.length > countedDigitsMax) return digitWords(digits);
  const words: string[] = [];
  for (let end = significant.length, scale = 0; end > 0; end -= 3, scale++) {
    const group = Number(significant.slice(Math.max(0, end - 3), end));
    if (group > 0)
      words.unshift(scale === 0 ? belowThousand(group) : `${belowThousand(group)} ${scales[scale]!}`);
  }
  return words.join(' ');
};

const ordinals: Readonly<Record<string, string>> = {
  one: 'first',
  two: 'second',
  three: 'third',
  five: 'fifth',
  eight: 'eighth',
  nine: 'ninth',
  twelve: 'twelfth',
};

/** `22` -> twenty second. */
export const ordinal = (digits: string): string =>
  cardinal(digits).replace(/\w+$/, (last) => ordinals[last] ?? `${last.replace(/y$/, 'ie')}th`);

/** `.14` after the point, or all of a code: what is not counted. `3.14` -> three point one four. */
export const decimal = (integer: string, fraction: string): string => {
  const whole = integer === '' ? '' : `${cardinal(integer)} `;
  return `${whole}point ${digitWords(fraction)}`;
};

/** Two digits and two digits, as room numbers, streets and years are told: `101` one oh one, `815` eight fifteen. */
export const pairs = (digits: string): string => {
  const value = Number(digits);
  const rest = value % 100;
  const head = (value - rest) / 100;
  if (head === 0) return belowHundred(rest);
  if (rest === 0) return head % 10 === 0 ? cardinal(digits) : `${belowHundred(head)} hundred`;
  return `${belowHundred(head)} ${rest < 10 ? `oh ${small[rest]!}` : belowHundred(rest)}`;
};

/** Four digits as a year: `1905` nineteen oh five, `2005` two thousand five, `2024` twenty twenty four. */
export const yearWords = (digits: string): string =>
  /^20(?=0)/.test(digits) ? cardinal(digits) : pairs(digits);

/** A plural: six -> sixes, ninety -> nineties, hundred -> hundreds. Of the last word. */
export const pluralOf = (words: string): string => {
  if (words.endsWith('y')) return `${words.slice(0, -1)}ies`;
  return words.endsWith('x') ? `${words}es` : `${words}s`;
};
