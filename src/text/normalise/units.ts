/** Names of units, by their signs as they are written after a number. */

interface Unit {
  readonly one: string;
  readonly many: string;
}

/** Sign(s), singular, and the plural where it is not the singular with an s. */
const rows: readonly (readonly [symbols: string, one: string, many?: string])[] = [
  ['km', 'kilometer'],
  ['m', 'meter'],
  ['cm', 'centimeter'],
  ['mm', 'millimeter'],
  ['µm μm um', 'micrometer'],
  ['nm', 'nanometer'],
  ['mi', 'mile'],
  ['yd yds', 'yard'],
  ['ft', 'foot', 'feet'],
  ['in', 'inch', 'inches'],
  ['nmi', 'nautical mile'],
  ['ha', 'hectare'],
  ['sqft', 'square foot', 'square feet'],
  ['sqm', 'square meter'],
  ['kg kgs', 'kilogram'],
  ['g', 'gram'],
  ['mg', 'milligram'],
  ['µg μg mcg', 'microgram'],
  ['lb lbs', 'pound'],
  ['oz', 'ounce'],
  ['l L', 'liter'],
  ['ml mL', 'milliliter'],
  ['cl cL', 'centiliter'],
  ['dl dL', 'deciliter'],
  ['gal', 'gallon'],
  ['qt', 'quart'],
  ['tsp', 'teaspoon'],
  ['tbsp', 'tablespoon'],
  ['s sec secs', 'second'],
  ['min mins', 'minute'],
  ['h hr hrs', 'hour'],
  ['wk wks', 'week'],
  ['mo mos', 'month'],
  ['yr yrs', 'year'],
  ['ms msec', 'millisecond'],
  ['µs μs us', 'microsecond'],
  ['ns', 'nanosecond'],
  ['mph', 'mile per hour', 'miles per hour'],
  ['kph kmh kmph', 'kilometer per hour', 'kilometers per hour'],
  ['rpm', 'revolution per minute', 'revolutions per minute'],
  ['bpm', 'beat per minute', 'beats per minute'],
  ['fps', 'frame per second', 'frames per second'],
  ['mpg', 'mile per gallon', 'miles per gallon'],
  ['psi', 'pound per square inch', 'pounds per square inch'],
  ['ppm', 'part per million', 'parts per million'],
  ['ppb', 'part per billion', 'parts per billion'],
  ['bps', 'basis point'],
  ['bit', 'bit'],
  ['B', 'byte'],
  ['KB kB', 'kilobyte'],
  ['MB', 'megabyte'],
  ['GB', 'gigabyte'],
  ['TB', 'terabyte'],
  ['PB', 'petabyte'],
  ['KiB', 'kibibyte'],
  ['MiB', 'mebibyte'],
  ['GiB', 'gibibyte'],
  ['TiB', 'tebibyte'],
  ['kb Kb kbit', 'kilobit'],
  ['Mb Mbit', 'megabit'],
  ['Gb Gbit', 'gigabit'],
  ['kbps Kbps', 'kilobit per second', 'kilobits per second'],
  ['Mbps mbps', 'megabit per second', 'megabits per second'],
  ['Gbps gbps', 'gigabit per second', 'gigabits per second'],
  ['MP', 'megapixel'],
  ['px', 'pixel'],
  ['pt pts', 'point'],
  ['Hz', 'hertz', 'hertz'],
  ['kHz KHz', 'kilohertz', 'kilohertz'],
  ['MHz', 'megahertz', 'megahertz'],
  ['GHz', 'gigahertz', 'gigahertz'],
  ['THz', 'terahertz', 'terahertz'],
  ['W', 'watt'],
  ['mW', 'milliwatt'],
  ['kW', 'kilowatt'],
  ['MW', 'megawatt'],
  ['GW', 'gigawatt'],
  ['Wh', 'watt hour'],
  ['kWh', 'kilowatt hour'],
  ['MWh', 'megawatt hour'],
  ['V', 'volt'],
  ['mV', 'millivolt'],
  ['kV', 'kilovolt'],
  ['mA', 'milliamp'],
  ['Ah', 'amp hour'],
  ['mAh', 'milliamp hour'],
  ['Ω Ω', 'ohm'],
  ['kΩ kΩ', 'kilohm'],
  ['N', 'newton'],
  ['Nm', 'newton meter'],
  ['J', 'joule'],
  ['kJ', 'kilojoule'],
  ['cal', 'calorie'],
  ['kcal', 'kilocalorie'],
  ['hp', 'horsepower', 'horsepower'],
  ['Pa', 'pascal'],
  ['hPa', 'hectopascal'],
  ['kPa', 'kilopascal'],
  ['MPa', 'megapascal'],
  ['bar', 'bar'],
  ['mbar', 'millibar'],
  ['dB', 'decibel'],
  ['mol', 'mole'],
  ['lm', 'lumen'],
  ['°C ºC ℃', 'degree Celsius', 'degrees Celsius'],
  ['°F ºF ℉', 'degree Fahrenheit', 'degrees Fahrenheit'],
  ['° º', 'degree'],
  ['′', 'foot', 'feet'],
  ['″', 'inch', 'inches'],
  ['%', 'percent', 'percent'],
  ['‰', 'per mille', 'per mille'],
  ['¢', 'cent'],
  ['x X ×', 'time'],
  ['M', 'million', 'million'],
  ['B bn Bn', 'billion', 'billion'],
  ['tn', 'trillion', 'trillion'],
  ['k K', 'K', 'K'],
];

const units = new Map<string, Unit>();
for (const [symbols, one, many = `${one}s`] of rows)
  for (const symbol of symbols.split(' ')) units.set(symbol, { one, many });

/** Signs that mean something else more often when they stand alone: "5 in the morning", "Plan 9 B", "5 x 3". */
const attachedOnly = new Set(
  'in h B M K k N X x × us bit bar pt pts mo MP J bn Bn tn ″ ′ hp cal um'.split(' '),
);

/** What a rate is per. */
const rates: Readonly<Record<string, string>> = {
  d: 'day',
  second: 'second',
  minute: 'minute',
  hour: 'hour',
  day: 'day',
  week: 'week',
  month: 'month',
  year: 'year',
  person: 'person',
  night: 'night',
  user: 'user',
  call: 'call',
  lb: 'pound',
};

/** A square or cube, before or after its length: m², sq ft, ft3 (only lengths have them). */
const lengthOf = (symbol: string): Unit | undefined =>
  /^(?:[kcmn]?m|mi|yd|ft|in)$/.test(symbol) ? units.get(symbol) : undefined;

const powered = (symbol: string): Unit | undefined => {
  const { length = '', power = '' } = /^(?<length>\p{L}{1,2})(?<power>[²³23])$/u.exec(symbol)?.groups ?? {};
  const unit = lengthOf(length);
  const name = power === '²' || power === '2' ? 'square' : 'cubic';
  return unit && { one: `${name} ${unit.one}`, many: `${name} ${unit.many}` };
};

/** KM, Kg, LBS: where capitals say nothing else. */
const lowered = (symbol: string): Unit | undefined =>
  /^(?:km|kg|kgs|cm|mm|lbs?|oz|ft|mph|kph|mi|min|mins|sec|secs|hrs?|rpm|psi|hz|khz|mhz|ghz|db|kcal|ml|tbsp|tsp)$/i.test(
    symbol,
  )
    ? (units.get(symbol.toLowerCase()) ??
      [...units].find(([known]) => known.toLowerCase() === symbol.toLowerCase())?.[1])
    : undefined;

const simple = (symbol: string): Unit | undefined => units.get(symbol) ?? powered(symbol) ?? lowered(symbol);

/** Nothing is told "per time" or "per million". */
const neverRates = new Set('x X × M B bn Bn tn k K % ‰ ¢ ° º ′ ″'.split(' '));

/** What stands after the stroke of a rate: `h` hour, `month` month, `m²` square meter. */
export const rateOf = (symbol: string): string | null => {
  const squared = symbol === 's²' || symbol === 's2';
  if (squared) return 'second squared';
  if (symbol === 'm') return 'meter';
  if (neverRates.has(symbol)) return null;
  return rates[symbol] ?? simple(symbol)?.one ?? null;
};

/** @param symbol as written: km, °C, km/h, m² @param attached the number stands right before it */
export const unitOf = (symbol: string, attached: boolean): Unit | null => {
  if (symbol.length > 12 || (!attached && attachedOnly.has(symbol))) return null;
  const unit = simple(symbol);
  if (unit !== undefined) return unit;
  const stroke = symbol.indexOf('/');
  if (stroke < 0) return null;
  const rate = rateOf(symbol.slice(stroke + 1));
  if (rate === null) return null;
  if (stroke === 0) return { one: `per ${rate}`, many: `per ${rate}` };
  const counted = simple(symbol.slice(0, stroke));
  return counted === undefined
    ? null
    : { one: `${counted.one} per ${rate}`, many: `${counted.many} per ${rate}` };
};
