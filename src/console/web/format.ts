/** Numbers and times as the browser's language writes them. */

/** Makes a formatter when it is first used: each costs the first page about a millisecond. */
const made = <T>(make: () => T): (() => T) => {
  let value: T | undefined;
  return () => (value ??= make());
};
const numbers = (options?: Intl.NumberFormatOptions) => made(() => new Intl.NumberFormat(undefined, options));
const dates = (options: Intl.DateTimeFormatOptions) =>
  made(() => new Intl.DateTimeFormat(undefined, options));

const whole = numbers();
const tenths = numbers({ minimumFractionDigits: 1, maximumFractionDigits: 1 });
const ratio = numbers({ maximumFractionDigits: 2 });
const percent = numbers({ style: 'percent' });
const compact = numbers({ notation: 'compact', maximumFractionDigits: 2 });
const day = dates({ dateStyle: 'medium' });
const dayUtc = dates({ dateStyle: 'medium', timeZone: 'UTC' });
const minute = dates({ dateStyle: 'medium', timeStyle: 'short' });
const minuteUtc = dates({ dateStyle: 'medium', timeStyle: 'short', timeZone: 'UTC' });
const timeOfDay = dates({ timeStyle: 'short' });
const timeOfDayUtc = dates({ timeStyle: 'short', timeZone: 'UTC' });
const dayOfMonth = dates({ month: 'short', day: 'numeric' });
const dayOfMonthUtc = dates({ month: 'short', day: 'numeric', timeZone: 'UTC' });
const second = dates({ dateStyle: 'medium', timeStyle: 'medium' });
const clock = dates({ timeStyle: 'medium' });
const units = ['byte', 'kilobyte', 'megabyte', 'gigabyte'].map((unit) =>
  numbers({ style: 'unit', unit, maximumFractionDigits: 1 }),
);

export const formatNumber = (value: number): string => whole().format(value);
export const formatRatio = (value: number): string => ratio().format(value);
export const formatPercent = (ratio: number): string => percent().format(ratio);
export const formatCompact = (value: number): string => compact().format(value);
export const formatTenths = (value: number): string => tenths().format(value);
export const formatMs = (ms: number): string => `${formatNumber(Math.round(ms))} ms`;
export const formatSeconds = (ms: number): string => formatTenths(ms / 1_000);
export const formatDay = (ms: number): string => day().format(ms);
/** Usage is counted by hours and days of UTC. */
export const formatUtcDay = (ms: number): string => dayUtc().format(ms);
export const formatUtcTime = (ms: number): string => minuteUtc().format(ms);
export const formatTime = (ms: number): string => minute().format(ms);
/** On an axis of times so many milliseconds apart. */
export const formatTick = (ms: number, apartMs: number, isUtc: boolean): string => {
  if (apartMs < 86_400_000) return (isUtc ? timeOfDayUtc() : timeOfDay()).format(ms);
  return (isUtc ? dayOfMonthUtc() : dayOfMonth()).format(ms);
};
export const formatClock = (ms: number): string => clock().format(ms);
export const formatSecond = (ms: number): string => second().format(ms);

export const formatBytes = (bytes: number): string => {
  const power = Math.min(units.length - 1, Math.max(0, Math.floor(Math.log10(Math.max(1, bytes)) / 3)));
  return units[power]!().format(bytes / 1_000 ** power);
};

/** A name in the code as words: `keyUnknown` becomes `Key unknown`. */
export const formatName = (name: string): string => {
  const words = name.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
  return words.charAt(0).toUpperCase() + words.slice(1);
};

export const plural = (count: number, one: string, many = `${one}s`): string =>
  `${formatNumber(count)} ${count === 1 ? one : many}`;
