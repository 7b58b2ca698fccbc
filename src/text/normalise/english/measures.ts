/** Amounts with their units: 5km, -5°C, 10 %, 60 mph, 5'10". */
import { cardinal, type Quantity, quantityOf } from './numbers.js';
import { isAfterRoad } from './places.js';
import { type Reading, type Rule, say, type Token, type Tokens, wordSet, wordTable } from '../tokens.js';

interface Unit {
  readonly one: string;
  readonly many: string;
}

/** Symbols, singular, and the plural if it is not the singular with an s. */
const unitTable = wordTable(`
  km: kilometer; m: meter; cm: centimeter; mm: millimeter; µm μm um: micrometer; nm: nanometer; mi: mile;
  yd yds: yard; ft: foot, feet; in: inch, inches; nmi: nautical mile; ha: hectare; sqft: square foot, square feet;
  sqm: square meter; kg kgs: kilogram; g: gram; mg: milligram; µg μg mcg: microgram; lb lbs: pound; oz: ounce;
  l L: liter; ml mL: milliliter; cl cL: centiliter; dl dL: deciliter; gal: gallon; qt: quart; tsp: teaspoon;
  tbsp: tablespoon; s sec secs: second; min mins: minute; h hr hrs: hour; wk wks: week; mo mos: month; yr yrs: year;
  ms msec: millisecond; µs μs us: microsecond; ns: nanosecond; mph: mile per hour, miles per hour;
  kph kmh kmph: kilometer per hour, kilometers per hour; rpm: revolution per minute, revolutions per minute;
  bpm: beat per minute, beats per minute; fps: frame per second, frames per second;
  mpg: mile per gallon, miles per gallon; psi: pound per square inch, pounds per square inch;
  ppm: part per million, parts per million; ppb: part per billion, parts per billion; bps: basis point; bit: bit;
  B: byte; KB kB: kilobyte; MB: megabyte; GB: gigabyte; TB: terabyte; PB: petabyte; KiB: kibibyte; MiB: mebibyte;
  GiB: gibibyte; TiB: tebibyte; kb Kb kbit: kilobit; Mb Mbit: megabit; Gb Gbit: gigabit;
  kbps Kbps: kilobit per second, kilobits per second; Mbps mbps: megabit per second, megabits per second;
  Gbps gbps: gigabit per second, gigabits per second; MP: megapixel; px: pixel; pt pts: point; Hz: hertz, hertz;
  kHz KHz: kilohertz, kilohertz; MHz: megahertz, megahertz; GHz: gigahertz, gigahertz; THz: terahertz, terahertz;
  W: watt; mW: milliwatt; kW: kilowatt; MW: megawatt; GW: gigawatt; Wh: watt hour; kWh: kilowatt hour;
  MWh: megawatt hour; V: volt; mV: millivolt; kV: kilovolt; mA: milliamp; Ah: amp hour; mAh: milliamp hour;
  Ω Ω: ohm; kΩ kΩ: kilohm; N: newton; Nm: newton meter; J: joule; kJ: kilojoule; cal: calorie; kcal: kilocalorie;
  hp: horsepower, horsepower; Pa: pascal; hPa: hectopascal; kPa: kilopascal; MPa: megapascal; bar: bar;
  mbar: millibar; mmHg: millimeter of mercury, millimeters of mercury; kts: knot; dB: decibel; mol: mole; lm: lumen; °C ºC ℃: degree Celsius, degrees Celsius;
  °F ºF ℉: degree Fahrenheit, degrees Fahrenheit; ° º: degree; ′: foot, feet; ″: inch, inches; %: percent, percent;
  ‰: per mille, per mille; ¢: cent; x X ×: time; M: million, million; B bn Bn: billion, billion;
  b: billion, billion; tn: trillion, trillion; k K: K, K
`);

const units = new Map<string, Unit>();
for (const [symbols, names] of unitTable) {
  const [one = '', many = `${one}s`] = names.split(', ');
  for (const symbol of symbols.split(' ')) units.set(symbol, { one, many });
}

/** Apart from their number these usually mean something else: "5 in the morning", "Plan 9 B", "5 x 3". */
const attachedOnly = new Set('in h B M K k N X x × us bit bar pt MP J bn Bn tn ″ ′ hp cal um'.split(' '));

/** Words after the slash of a rate. */
const rates = wordTable(`
  d: day; second: second; minute: minute; hour: hour; day: day; week: week; month: month; year: year;
  person: person; night: night; user: user; call: call; lb: pound
`);

/** The units that have squares and cubes: m², sq ft, ft3. */
const lengthOf = (symbol: string): Unit | undefined =>
  /^(?:[kcmn]?m|mi|yd|ft|in)$/.test(symbol) ? units.get(symbol) : undefined;

const powered = (symbol: string): Unit | undefined => {
  const { length = '', power = '' } = /^(?<length>\p{L}{1,2})(?<power>[²³23])$/u.exec(symbol)?.groups ?? {};
  const unit = lengthOf(length);
  const name = power === '²' || power === '2' ? 'square' : 'cubic';
  return unit && { one: `${name} ${unit.one}`, many: `${name} ${unit.many}` };
};

/** KM, Kg, LBS: capitals do not change these units. */
const lowered = (symbol: string): Unit | undefined =>
  /^(?:km|kg|kgs|cm|mm|lbs?|oz|ft|mph|kph|mi|min|mins|sec|secs|hrs?|rpm|psi|hz|khz|mhz|ghz|db|kcal|ml|tbsp|tsp)$/i.test(
    symbol,
  )
    ? (units.get(symbol.toLowerCase()) ??
      [...units].find(([known]) => known.toLowerCase() === symbol.toLowerCase())?.[1])
    : undefined;

const simple = (symbol: string): Unit | undefined => units.get(symbol) ?? powered(symbol) ?? lowered(symbol);

/** There is no rate "per time" or "per million". */
const neverRates = new Set('x X × M B bn Bn tn k K % ‰ ¢ ° º ′ ″'.split(' '));

/** The unit after the slash of a rate: `h` hour, `month` month, `m²` square meter. */
export const rateOf = (symbol: string): string | null => {
  const squared = symbol === 's²' || symbol === 's2';
  if (squared) return 'second squared';
  if (symbol === 'm') return 'meter';
  if (neverRates.has(symbol)) return null;
  return rates.get(symbol) ?? simple(symbol)?.one ?? null;
};

/** @param written km, °C, km/h, m², m^2 @param attached the number stands directly before it */
export const unitOf = (written: string, attached: boolean): Unit | null => {
  const symbol = written.replace(/\^(?=[23]$)/, '');
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

/** What has a size is described by these, and the length before them is one in inches. */
export const sizes = wordSet(
  'tall wide long high deep thick thin square across apart by of x × diameter diagonal',
);

/** Not a length: "Let the 5 in." */
const notLong = wordSet('the all these those them let both other last next first only my our your');

/** "10 in. wide", "5 ft 3 in", "3 in of rain", "2 in x 4 in"; but "5 in the morning", "1 in 5". */
const isInch = (tokens: Tokens, at: number): boolean => {
  const { core, tail } = tokens.at(at);
  if (core !== 'in') return false;
  const before = tokens.previous(at - 1)?.core ?? '';
  if (/^(?:ft|foot|feet)$/.test(before) || sizes.has(tokens.next(at)?.core ?? '')) return true;
  if (/^(?:x|×|by)$/.test(before) && tokens.previous(at - 2)?.core === 'in') return true;
  return /^\.(?!\.)/.test(tail) && !(tokens.tailOfAbbreviation(at) === tail && notLong.has(before));
};

/** The unit that stands apart after a number. */
export const unitAt = (tokens: Tokens, at: number): Unit | null => {
  const { core } = tokens.at(at);
  // "1/4 c. sugar"; but "a. 3 b. 4 c. none"
  const next = tokens.following(at)?.core ?? '';
  if (core === 'c' && tokens.at(at).tail === '.' && /^(?!none|all|both|per|and|or)\p{Ll}/u.test(next))
    return { one: 'cup', many: 'cups' };
  return unitOf(core, isInch(tokens, at));
};

/** The amount ends where the unit begins: at a letter or at a sign that begins a unit. */
const amountAndUnit = /^(?<amount>×?[^\p{L}°º℃℉%‰¢′″×/]*[\d½¼¾⅐-⅞])(?<unit>[\p{L}°º℃℉%‰¢′″×/].*)$/u;

const prepositions = new Set(
  'of in on at to for from by with and or but than as is was per into onto over under'.split(' '),
);

/** Whether an amount that ends with token `last` describes what follows: "a 5 km run", "a $20 ticket". */
export const isAttributive = (tokens: Tokens, first: number, last: number): boolean => {
  const next = tokens.nextAfterStop(last)?.core;
  return (
    /^an?$/i.test(tokens.previous(first)?.core ?? '') &&
    next !== undefined &&
    /^\p{Ll}+$/u.test(next) &&
    !prepositions.has(next)
  );
};

const named = ({ isOne }: Quantity, unit: { one: string; many: string }, attributive: boolean): string =>
  isOne || attributive ? unit.one : unit.many;

/** `5km` in one token; `null` if the text is not an amount with a unit. */
export const measureOf = (text: string, attributive = false): string | null => {
  const { amount = '', unit: symbol = '' } = amountAndUnit.exec(text)?.groups ?? {};
  const unit = symbol === '' ? null : unitOf(symbol, true);
  const quantity = unit && quantityOf(amount);
  return quantity && `${quantity.spoken} ${named(quantity, unit, attributive)}`;
};

/** "5 ft. tall", "10 sec. later": the full stop belongs to the unit if the sentence goes on. */
export const tailOfUnit = (tokens: Tokens, at: number): string => {
  const { core, tail } = tokens.at(at);
  if (core === 'c') return tail.replace('.', '');
  return /(?:^|[\d-])(?:ft|in|lbs?|oz|yds?|mi|gal|qt|tsp|tbsp|secs?|mins?|hrs?|wks?|mos?|yrs?)$/i.test(core)
    ? tokens.tailOfAbbreviation(at)
    : tail;
};

/** Two units in a row: 5h30m, 1h05, 6ft2in. */
const compound = /^(?<first>\d{1,3})(?<big>h|hr|ft|lbs?|′|')(?<second>\d{1,2})(?<small>m|min|in|oz|″)?$/;
const compoundNames: Readonly<Record<string, readonly [big: string, small: string]>> = {
  h: ['hour', 'minute'],
  hr: ['hour', 'minute'],
  ft: ['foot', 'inch'],
  "'": ['foot', 'inch'],
  '′': ['foot', 'inch'],
  lb: ['pound', 'ounce'],
  lbs: ['pound', 'ounce'],
};

const counted = (digits: string, name: string): string => {
  const plural = name === 'foot' ? 'feet' : name === 'inch' ? 'inches' : `${name}s`;
  return `${cardinal(digits)} ${Number(digits) === 1 ? name : plural}`;
};

const compoundOf = ({ core, tail }: Token): Reading | null => {
  const { first = '', big = '', second = '', small } = compound.exec(core)?.groups ?? {};
  const names = compoundNames[big];
  if (names === undefined) return null;
  const feet = big === "'";
  // 5'10": the inch sign looks like a closing quote. Only feet may omit it: 5'10.
  const spoken = `${counted(first, names[0])} ${counted(second, names[1])}`;
  if (feet && /^["”]/.test(tail)) return { parts: [{ core: spoken, tail: tail.slice(1) }] };
  return small === undefined && !feet && big !== '′' ? null : say(spoken);
};

/** 1.5 km, 10 %, 25 ° C, 5 ft.; 25 °C. */
const separate = (tokens: Tokens, at: number): Reading | null => {
  const { core } = tokens.at(at);
  const quantity = quantityOf(core);
  const next = tokens.next(at);
  if (quantity === null || next === undefined) return null;
  // "Route 9 W", "77 W Wacker Dr"
  if (isAfterRoad(tokens, at + 1)) return null;
  const place = tokens.nextAfterStop(at + 1)?.core ?? '';
  if (/^[NSEW]$/.test(next.core) && /^\p{Lu}|\d[snrt][tdh]$/u.test(place)) return null;
  // "100 million kg"
  if (/^(?:hundred|thousand|million|billion|trillion)$/.test(next.core)) {
    const unit = unitOf(tokens.next(at + 1)?.core ?? '', false);
    return unit === null ? null : say(quantity.spoken, next.core, unit.many);
  }
  const degrees = /^[°º]$/.test(next.core) ? tokens.next(at + 1)?.core : undefined;
  if (degrees !== undefined && /^[CF]$/.test(degrees)) {
    const unit = unitOf(`°${degrees}`, true)!;
    const [degree = '', scale = ''] = named(quantity, unit, false).split(' ');
    return say(quantity.spoken, degree, scale);
  }
  // "sq. ft", "fl oz": two words of one unit.
  const second = tokens.nextAfterStop(at + 1);
  if (second !== undefined && /^(?:sq|fl)$/i.test(next.core)) {
    const unit = unitOf(second.core, false);
    if (unit !== null)
      return {
        parts: [
          { core: quantity.spoken },
          { core: /^f/i.test(next.core) ? 'fluid' : 'square', tail: '' },
          { core: named(quantity, unit, false), tail: tailOfUnit(tokens, at + 2) },
        ],
      };
  }
  const unit = unitAt(tokens, at + 1);
  if (unit === null) return null;
  const attributive = isAttributive(tokens, at, at + 1);
  return {
    parts: [
      { core: quantity.spoken },
      { core: named(quantity, unit, attributive), tail: tailOfUnit(tokens, at + 1) },
    ],
  };
};

/** Before a temperature. */
const heatCues = wordSet('at about around is was above below near');
/** The same, if the letter follows directly: "a high of 72F". */
const weatherCues = wordSet("it's like temp temperature high low highs lows");

/** 350F, 180 C: degrees, if an oven has them or a word says so. */
const heat = (tokens: Tokens, at: number): Reading | null => {
  const [, number = '', own] = /^(\d{2,3})([CF])?$/.exec(tokens.at(at).core) ?? [];
  const scale = own ?? tokens.next(at)?.core ?? '';
  const next = tokens.next(own === undefined ? at + 1 : at)?.core ?? 'for';
  const isOven = /^[1-5]\d[05]$/.test(number) && (own !== undefined || prepositions.has(next));
  const before = tokens.wordBefore(at);
  // "a high of 72F"
  const cue = before === 'of' ? tokens.wordBefore(at - 1) : before;
  const isSure = isOven || heatCues.has(before) || (own !== undefined && weatherCues.has(cue));
  if (number === '' || !/^[CF]$/.test(scale) || !isSure || /^\p{Lu}/u.test(next)) return null;
  const words = [cardinal(number), unitOf(`°${scale}`, true)!.many];
  return own === undefined ? say(...words) : say(words.join(' '));
};

export const measures: Rule = (tokens, at) => {
  const token = tokens.at(at);
  if (!/\d|[½¼¾⅐-⅞]/.test(token.core)) return null;
  const compoundReading = compoundOf(token);
  if (compoundReading !== null) return compoundReading;
  // "~1h 30m", "5m 30s": minutes beside hours or seconds, not meters.
  const isTime =
    /^~?\d{1,3}(?:h|hrs?)$/.test(tokens.previous(at)?.core ?? '') ||
    /^\d{1,2}s$/.test(tokens.next(at)?.core ?? '');
  const [, about, minutes = ''] = /^(~)?(\d{1,2})m$/.exec(token.core) ?? [];
  if (isTime && minutes !== '')
    return say(`${about === undefined ? '' : 'about '}${counted(minutes, 'minute')}`);
  // "221B Baker Street", "Model 3B Plus": part of a name.
  if (/\d[BM]$/.test(token.core) && /^\p{Lu}/u.test(tokens.next(at)?.core ?? '')) return null;
  const attached = measureOf(token.core, isAttributive(tokens, at, at));
  if (attached !== null) {
    return { parts: [{ core: attached, tail: tailOfUnit(tokens, at) }] };
  }
  return heat(tokens, at) ?? separate(tokens, at);
};
