/** Numbers and times as the browser's language writes them. */

const whole = new Intl.NumberFormat();
const tenths = new Intl.NumberFormat(undefined, { minimumFractionDigits: 1, maximumFractionDigits: 1 });
const percent = new Intl.NumberFormat(undefined, { style: 'percent' });
const day = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium' });
const dayUtc = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeZone: 'UTC' });
const minute = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' });
const second = new Intl.DateTimeFormat(undefined, { timeStyle: 'medium' });
const units = ['byte', 'kilobyte', 'megabyte', 'gigabyte'].map(
  (unit) => new Intl.NumberFormat(undefined, { style: 'unit', unit, maximumFractionDigits: 1 }),
);

export const formatNumber = (value: number): string => whole.format(value);
export const formatPercent = (ratio: number): string => percent.format(ratio);
export const formatSeconds = (ms: number): string => tenths.format(ms / 1_000);
export const formatDay = (ms: number): string => day.format(ms);
/** Of a time at which a day begins in UTC. */
export const formatUtcDay = (ms: number): string => dayUtc.format(ms);
export const formatTime = (ms: number): string => minute.format(ms);
export const formatSecond = (ms: number): string => second.format(ms);

export const formatBytes = (bytes: number): string => {
  const power = Math.min(units.length - 1, Math.max(0, Math.floor(Math.log10(Math.max(1, bytes)) / 3)));
  return units[power]!.format(bytes / 1_000 ** power);
};

/** A name of the code as words: `keyUnknown` becomes `Key unknown`, `session.signIn` becomes `Session: sign in`. */
export const formatName = (name: string): string => {
  const words = name.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`).replace(/\./, ': ');
  return words.charAt(0).toUpperCase() + words.slice(1);
};

export const plural = (count: number, one: string, many = `${one}s`): string =>
  `${formatNumber(count)} ${count === 1 ? one : many}`;
