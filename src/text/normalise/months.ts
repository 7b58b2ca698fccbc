/** Names of months and days, and how they are shortened. */

export const monthNames = [
  ...['January', 'February', 'March', 'April', 'May', 'June', 'July', 'August', 'September', 'October'],
  ...['November', 'December'],
] as const;

const dayNames = ['Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday', 'Sunday'] as const;

const months = new Map<string, string>();
for (const name of monthNames) {
  months.set(name, name);
  months.set(name.slice(0, 3), name);
}
months.set('Sept', 'September');

const days = new Map<string, string>();
for (const name of dayNames) days.set(name.slice(0, 3), name);
for (const short of ['Tues', 'Wednes', 'Thur', 'Thurs'])
  days.set(
    short,
    dayNames.find((name) => name.startsWith(short.slice(0, 3)))!,
  );

const capitalised = (word: string): string => word.charAt(0) + word.slice(1).toLowerCase();
/** Capitals as in a heading count too. */
const normal = (word: string): string => (/^[A-Z]{3,9}$/.test(word) ? capitalised(word) : word);

/** The month that a capitalised word names, in full or shortened. */
export const monthOf = (word: string): string | undefined =>
  word.length > 9 ? undefined : months.get(normal(word));
/** The day that a shortened word names. */
export const dayOf = (word: string): string | undefined =>
  word.length > 6 ? undefined : days.get(normal(word));
