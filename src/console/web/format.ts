/** Numbers and times as the browser's language writes them. */

/** Makes the formatter when it is first used: each costs the first page about a millisecond. */
const lazily = (make: () => { format(value: number): string }): ((value: number) => string) => {
  let made: ReturnType<typeof make> | undefined;
  return (value) => (made ??= make()).format(value);
};
const number = (options?: Intl.NumberFormatOptions) =>
  lazily(() => new Intl.NumberFormat(undefined, options));
const date = (options: Intl.DateTimeFormatOptions) =>
  lazily(() => new Intl.DateTimeFormat(undefined, options));

export const formatNumber = number();
export const formatRatio = number({ maximumFractionDigits: 2 });
export const formatPercent = number({ style: 'percent' });
export const formatCompact = number({ notation: 'compact', maximumFractionDigits: 2 });
export const formatTenths = number({ minimumFractionDigits: 1, maximumFractionDigits: 1 });
export const formatMs = (ms: number): string => `${formatNumber(Math.round(ms))} ms`;
export const formatSeconds = (ms: number): string => formatTenths(ms / 1_000);
export const formatDay = date({ dateStyle: 'medium' });
export const formatTime = date({ dateStyle: 'medium', timeStyle: 'short' });
/** Usage is counted by hours and days of UTC. */
export const formatUtcDay = date({ dateStyle: 'medium', timeZone: 'UTC' });
export const formatUtcTime = date({ dateStyle: 'medium', timeStyle: 'short', timeZone: 'UTC' });
export const formatClock = date({ timeStyle: 'medium' });
export const formatSecond = date({ dateStyle: 'medium', timeStyle: 'medium' });

/** On an axis: a time of day, or a day. */
const ticksIn = (timeZone?: 'UTC') => ({
  time: date({ timeStyle: 'short', timeZone }),
  day: date({ month: 'short', day: 'numeric', timeZone }),
});
export const ticks = { here: ticksIn(), utc: ticksIn('UTC') };

const units = ['byte', 'kilobyte', 'megabyte', 'gigabyte'].map((unit) =>
  number({ style: 'unit', unit, maximumFractionDigits: 1 }),
);

export const formatBytes = (bytes: number): string => {
  const power = Math.min(units.length - 1, Math.max(0, Math.floor(Math.log10(Math.max(1, bytes)) / 3)));
  return units[power]!(bytes / 1_000 ** power);
};

/** A name in the code as words: `keyUnknown` becomes `Key unknown`. */
export const formatName = (name: string): string => {
  const words = name.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
  return words.charAt(0).toUpperCase() + words.slice(1);
};

export const plural = (count: number, one: string, many = `${one}s`): string =>
  `${formatNumber(count)} ${count === 1 ? one : many}`;
