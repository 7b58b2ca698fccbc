/** Roman numerals. */

const form = /^(?=.)(?:X{0,3}|XL|LX{0,3})(?:IX|IV|V?I{0,3})$/;
const values: Readonly<Record<string, number>> = { I: 1, V: 5, X: 10, L: 50 };

/** 1 to 89; `null` if the text is none. */
export const romanOf = (numeral: string): number | null => {
  if (numeral.length > 8 || !form.test(numeral)) return null;
  let sum = 0;
  for (const [i, letter] of Array.from(numeral).entries()) {
    const value = values[letter]!;
    sum += value < (values[numeral.charAt(i + 1)] ?? 0) ? -value : value;
  }
  return sum;
};
