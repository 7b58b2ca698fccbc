/** German: numbers in one word, day before month with ordinals, "Uhr", decimal comma. */
import { toCardinal } from 'n2words/de-DE';
import {
  type LanguageRules,
  type Reading,
  type Rule,
  say,
  type Tokens,
  wordSet,
  wordTable,
} from '../tokens.js';
import { digitsOf } from './amounts.js';
import { currencyTable, type Gender, type Grammar, nouns } from './grammar.js';
import { romanOf } from '../roman.js';
import { rulesOf } from './rules.js';

const cardinal = (digits: string, before?: Gender): string => {
  const spoken = toCardinal(BigInt(digits))
    // "hunderteintausend", "hunderteine Millionen"
    .replace('einstausend', 'eintausend')
    .replace(/eins(?= [MB])/g, 'eine')
    // "hundert" begins a number, and counts millions. Within a number it is "einhundert".
    .replace(/^ein(?=hundert|tausend)|(?<= )ein(?=hundert\S* [MB])/g, '');
  return before === undefined
    ? spoken
    : spoken.replace(/eins$/, before === 'f' && spoken === 'eins' ? 'eine' : 'ein');
};

const yearOf = (digits: string): string => {
  const value = Number(digits);
  if (value < 1100 || value > 1999) return cardinal(digits);
  const rest = value % 100;
  return `${cardinal(String((value - rest) / 100))}hundert${rest === 0 ? '' : cardinal(String(rest))}`;
};

const irregular: Readonly<Record<number, string>> = { 1: 'erst', 3: 'dritt', 7: 'siebt', 8: 'acht' };

/** Without its ending: `dritt`. */
const ordinalStem = (value: number): string => {
  const last = value % 100;
  const head = value > 100 && last > 0 && last < 20 ? cardinal(String(value - last)) : '';
  if (last >= 1 && last < 20) return head + (irregular[last] ?? `${cardinal(String(last))}t`);
  return `${cardinal(String(value))}st`;
};

type NounGender = Gender | 'n';

/** Nouns that ordinals often stand before. The others count as masculine, unless their ending tells. */
const feminineNouns =
  /^(?:Klasse|Liga|Bundesliga|Stunde|Etage|Auflage|Runde|Reihe|Woche|Ausgabe|Staffel|Folge|Hälfte|Minute|Sekunde|Stufe|Phase|Seite|Zeile|Spalte|Frage|Szene|Strophe|Straße|Person|Frau|Tochter|Kammer|Etappe|Halbzeit|Mahnung|Nacht|Stelle|Wahl|\p{Lu}\p{Ll}+(?:ung|heit|keit|schaft|ion|tät|enz|anz|ik|ur))$/u;
const neuterNouns =
  /^(?:Kapitel|Jahrhundert|Jahrtausend|Quartal|Semester|Trimester|Halbjahr|Jahr|Lebensjahr|Schuljahr|Mal|Stockwerk|Obergeschoss|Untergeschoss|Geschoss|Spiel|Tor|Kind|Buch|Lied|Gleis|Gebot|Bild|Drittel|Viertel)$/;

const genderOf = (noun: string): NounGender =>
  feminineNouns.test(noun) ? 'f' : neuterNouns.test(noun) ? 'n' : 'm';

/** The ending follows the article: "am dritten", "der dritte", "dritter". @param gender of the noun after it */
const ordinal = (value: number, wordBefore: string, gender: NounGender = 'm'): string => {
  const stem = ordinalStem(value);
  // "in der dritten Klasse", "in dritter Klasse".
  if (gender === 'f' && wordBefore === 'der') return `${stem}en`;
  if (gender === 'f' && /^(?:in|mit|nach|seit|vor|unter|ab|von|zu|aus|bei)$/.test(wordBefore))
    return `${stem}er`;
  if (
    /^(?:am|vom|zum|im|beim|dem|den|des|zur|einem|einen|ab|seit|bis|jedem|jeden|diesem|diesen|ihrem|seinem|ihren|seinen|meinem|meinen|deren|dessen|vor|nach|mit|in|unter)$/.test(
      wordBefore,
    )
  )
    return `${stem}en`;
  if (/^(?:der|die|das|eine|jede|dieser|diese|dieses|ihre|seine|meine|unsere)$/.test(wordBefore))
    return `${stem}e`;
  return stem + { m: 'er', f: 'e', n: 'es' }[gender];
};

const months = wordSet('Januar Februar März April Mai Juni Juli August September Oktober November Dezember');
const monthNames = [...months];
const monthShorts = wordSet('Jan Jän Feb Mär Apr Jun Jul Aug Sep Sept Okt Nov Dez Jänner Feber');

const joiner = /^(?:und|oder|bis|sowie)$/;
/** How far ordinals in a row are read: "die 1., 2. und die 3. Klasse". */
const rowMax = 8;

const isOrdinal = (tokens: Tokens, at: number): boolean =>
  at >= 0 && /^[1-9]\d{0,2}$/.test(tokens.at(at).core) && /^\.,?$/.test(tokens.at(at).tail);

/** The word before the first ordinal of a row: "der" for both in "der 1. und 2. Platz". */
const cueOf = (tokens: Tokens, at: number): string => {
  let first = at;
  for (let step = 0; step < rowMax; step++)
    if (isOrdinal(tokens, first - 1)) first--;
    else if (first > 1 && joiner.test(tokens.at(first - 1).core) && isOrdinal(tokens, first - 2)) first -= 2;
    else break;
  return tokens.cueBefore(first);
};

/** The gender of the noun after a row of ordinals. */
const genderAfter = (tokens: Tokens, at: number): NounGender => {
  for (let i = at + 1; i < Math.min(at + rowMax, tokens.length); i++) {
    const { core } = tokens.at(i);
    if (!isOrdinal(tokens, i) && !joiner.test(core) && !/^(?:der|die|das)$/.test(core)) return genderOf(core);
  }
  return 'm';
};

/** "1.–3. Mai", "5./6. Klasse" in one token. */
const pair = (tokens: Tokens, at: number): Reading | null => {
  const { core, tail } = tokens.at(at);
  const { first, mark, last } =
    /^(?<first>[1-9]\d?)\.(?<mark>[-–/])(?<last>[1-9]\d?)$/.exec(core)?.groups ?? {};
  if (first === undefined || last === undefined || tail !== '.') return null;
  if (!/^\p{Lu}/u.test(tokens.following(at)?.core ?? '')) return null;
  const [cue, gender] = [cueOf(tokens, at), genderAfter(tokens, at)];
  const spoken = [first, last].map((digits) => ordinal(Number(digits), cue, gender));
  return { parts: [{ core: spoken.join(mark === '/' ? ' und ' : ' bis '), tail: '' }] };
};

/** "am 3. Oktober 2024", "der 2. Platz", "im 19. Jahrhundert", "1., 2. und 3. Klasse". */
const ordinals: Rule = (tokens, at) => {
  const { core, tail } = tokens.at(at);
  if (!/^[1-9]\d{0,2}$/.test(core)) return pair(tokens, at);
  const cue = cueOf(tokens, at);
  const next = tokens.following(at);
  if (next === undefined || next.lead !== '') return null;
  const gender = genderAfter(tokens, at);
  if (tail === '.,' && isOrdinal(tokens, at + 1))
    return { parts: [{ core: ordinal(Number(core), cue, gender), tail: ',' }] };
  if (tail !== '.') return null;
  const isMonth = months.has(next.core) || monthShorts.has(next.core);
  if (isMonth && Number(core) <= 31) {
    const year = tokens.nextAfterStop(at + 1);
    const day = { core: ordinal(Number(core), cue), tail: '' };
    if (year === undefined || !/^(?:1\d|20)\d\d$/.test(year.core)) return { parts: [day] };
    const month = fullMonth(next.core);
    return { parts: [day, { core: month, tail: '' }, { core: yearOf(year.core) }] };
  }
  // "3. und 4. Platz"; a number before a word that begins a sentence has no article before it.
  const isPart =
    /^\p{L}/u.test(next.core) &&
    (/^\p{Ll}/u.test(next.core) || /^\p{L}+$/u.test(tokens.cueBefore(at)) || at === 0);
  const isSure = core.length <= 2 || /^(?:am|im|zum|der|die|das|den|dem|des)$/.test(cue);
  return isPart && isSure ? { parts: [{ core: ordinal(Number(core), cue, gender), tail: '' }] } : null;
};

const fullMonth = (word: string): string => {
  if (months.has(word)) return word;
  const short = word.startsWith('Jän') ? 'Jan' : word.slice(0, 3);
  return monthNames.find((name) => name.startsWith(short)) ?? word;
};

/** A year: 1984, unless a noun follows that it counts. "90er Jahre", "1980ern". */
const years: Rule = (tokens, at) => {
  const { core } = tokens.at(at);
  const { digits, ending } =
    /^(?<digits>(?:1[1-9]|20)?\d0)(?:-)?(?<ending>ern?)(?:-Jahren?)?$/.exec(core)?.groups ?? {};
  if (digits !== undefined) {
    const spoken = digits.length === 4 ? yearOf(digits) : cardinal(digits);
    return say(
      `${spoken}${ending!}${core.endsWith('Jahre') ? ' Jahre' : core.endsWith('Jahren') ? ' Jahren' : ''}`,
    );
  }
  if (!/^1[1-9]\d\d$/.test(core)) return null;
  const next = tokens.next(at)?.core ?? '';
  const cue =
    /^(?:jahr|jahre|jahren|jahres|seit|anno|im|von|vor|nach|bis|ab|um|sommer|winter|frühjahr|herbst|und)$/;
  const isMonthBefore = months.has(tokens.previous(at)?.core ?? '');
  return isMonthBefore || cue.test(tokens.cueBefore(at)) || !/^\p{Lu}/u.test(next) ? say(yearOf(core)) : null;
};

/** Names of queens: "Elisabeth II." is "die Zweite". */
const queens = wordSet(
  'Elisabeth Katharina Maria Margarethe Margarete Victoria Viktoria Anna Christina Isabella',
);

/** "Ludwig XIV.", "Elisabeth II.": the ruler's number. */
const rulers: Rule = (tokens, at) => {
  const { core, tail } = tokens.at(at);
  const value = /^[IVX]{1,6}$/.test(core) && tail.startsWith('.') ? romanOf(core) : null;
  const name = tokens.previous(at)?.core ?? '';
  if (
    value === null ||
    !/^\p{Lu}\p{Ll}+$/u.test(name) ||
    (core === 'I' && tokens.following(at) === undefined)
  )
    return null;
  const goesOn = tokens.following(at) !== undefined;
  const stem = ordinalStem(value);
  return {
    parts: [{ core: `${queens.has(name) ? 'die' : 'der'} ${stem}e`, tail: goesOn ? tail.slice(1) : tail }],
  };
};

/** "Hauptstr. 5": a street's name ends with the abbreviation. */
const streets: Rule = (tokens, at) => {
  const { core, tail } = tokens.at(at);
  if (core.length > 40 || !/\p{L}str$/u.test(core) || !tail.startsWith('.')) return null;
  const rest = tokens.following(at) === undefined ? tail : tail.slice(1);
  return { parts: [{ core: `${core.slice(0, -3)}straße`, tail: rest }] };
};

/** "1 Uhr": not "eins Uhr". */
const hourAlone: Rule = (tokens, at) =>
  tokens.at(at).core === '1' && tokens.next(at)?.core === 'Uhr' ? say('ein') : null;

const parts: Readonly<Record<number, string>> = {
  2: 'halb',
  3: 'Drittel',
  7: 'Siebtel',
  8: 'Achtel',
  100: 'Hundertstel',
  1000: 'Tausendstel',
};

const phone = (groups: readonly string[]): string =>
  groups.map((group) => digitsOf(grammar, group)).join(', ');

const grammar: Grammar = {
  code: 'de',
  decimalMark: ',',
  groupMarks: ".'’",
  cardinal,
  singularBelowTwo: false,
  decimals: (digits) => digitsOf(grammar, digits),
  year: yearOf,
  date: ({ day, month, year }, wordBefore) =>
    `${ordinal(day, wordBefore)} ${monthNames[month - 1]!}${year === null ? '' : ` ${yearOf(year)}`}`,
  clock: (hour, minute, second) => {
    const hours = `${cardinal(String(hour), 'm')} Uhr`;
    const seconds =
      second === null ? '' : ` und ${cardinal(String(second), 'f')} ${second === 1 ? 'Sekunde' : 'Sekunden'}`;
    return `${hours}${minute === 0 && second === null ? '' : ` ${cardinal(String(minute))}`}${seconds}`;
  },
  phone,
  part: (above, below) => {
    if (below < 2 || (below > 20 && !(below in parts)) || above > 99) return null;
    if (below === 2) return above === 1 ? 'ein halb' : `${cardinal(String(above))} Halbe`;
    const number = cardinal(String(below));
    const name =
      parts[below] ?? `${number.charAt(0).toUpperCase()}${number.slice(1)}${below < 20 ? 'tel' : 'stel'}`;
    return `${cardinal(String(above), 'm')} ${name}`;
  },
  mixed: (whole, part) =>
    part === 'ein halb' ? `${cardinal(whole, 'm')}einhalb` : `${cardinal(whole)} ${part}`,
  power: ({ one, many, gender }, exponent) => {
    const prefix = exponent === 2 ? 'Quadrat' : 'Kubik';
    return { one: prefix + one.toLowerCase(), many: prefix + many.toLowerCase(), gender };
  },
  price: (units, cents) => `${units} ${cents}`,
  scaled: (scale, currency) => `${scale} ${currency}`,
  months: monthNames,
  weekdays: 'Montag Dienstag Mittwoch Donnerstag Freitag Samstag Sonntag'.split(' '),
  weekdayLetters: 2,
  words: {
    ...{
      decimal: 'Komma',
      minus: 'minus',
      plus: 'plus',
      times: 'mal',
      divided: 'geteilt durch',
      equals: 'gleich',
    },
    ...{ isLess: 'ist kleiner als', isMore: 'ist größer als', isUnequal: 'ist ungleich' },
    ...{ over: 'zu', range: 'bis', ratio: 'zu', size: 'mal', per: 'pro', and: 'und', about: 'etwa' },
    ...{
      less: 'kleiner als',
      more: 'größer als',
      atMost: 'höchstens',
      atLeast: 'mindestens',
      plusMinus: 'plus minus',
    },
    ...{
      number: 'Nummer',
      section: 'Paragraph',
      hashtag: 'Hashtag',
      at: 'at',
      dot: 'Punkt',
      hyphen: 'Bindestrich',
    },
    ...{
      underscore: 'Unterstrich',
      slash: 'Schrägstrich',
      colon: 'Doppelpunkt',
      version: 'Version',
    },
  },
  units: nouns(`
    km: Kilometer; m: Meter; dm: Dezimeter; cm: Zentimeter; mm: Millimeter; µm μm: Mikrometer; nm: Nanometer;
    kg: Kilogramm; g: Gramm; mg: Milligramm; t: Tonne, Tonnen, f; l L: Liter; ml mL: Milliliter; cl: Zentiliter;
    hl: Hektoliter; h Std: Stunde, Stunden, f; min Min: Minute, Minuten, f; s sek Sek: Sekunde, Sekunden, f;
    ms: Millisekunde, Millisekunden, f; Wh: Wattstunde, Wattstunden, f; kWh: Kilowattstunde, Kilowattstunden, f;
    MWh: Megawattstunde, Megawattstunden, f; W: Watt; kW: Kilowatt; MW: Megawatt; GW: Gigawatt; V: Volt; mA: Milliampere;
    A: Ampere; mAh: Milliamperestunde, Milliamperestunden, f; Hz: Hertz; kHz: Kilohertz; MHz: Megahertz; GHz: Gigahertz;
    dB: Dezibel; PS: P.S; kJ: Kilojoule; kcal: Kilokalorie, Kilokalorien, f; Pa: Pascal; hPa: Hektopascal; bar: Bar;
    B: Byte; KB kB: Kilobyte; MB: Megabyte; GB: Gigabyte; TB: Terabyte; Mbit: Megabit; Gbit: Gigabit;
    px: Pixel; ha: Hektar; °C ºC ℃: Grad Celsius; °F: Grad Fahrenheit; ° º: Grad; %: Prozent; ‰: Promille; Zoll ″: Zoll;
    x: Mal; Pkt: Punkt, Punkte; Stk: Stück; Mbit/s: Megabit pro Sekunde
  `),
  attachedOnly: new Set('A B L x'.split(' ')),
  currencies: currencyTable(`
    € EUR: Euro, Euro, Cent, Cent; $ USD US$: Dollar, Dollar, Cent, Cent; £ GBP: Pfund, Pfund, Penny, Pence;
    CHF: Schweizer Franken, Schweizer Franken, Rappen, Rappen; ¥: Yen, Yen; ₹: Rupie*, Rupien; ₽: Rubel, Rubel;
    ₿: Bitcoin, Bitcoin; zł: Złoty, Złoty; kr: Krone*, Kronen
  `),
  scales: nouns(`
    Tsd: Tausend, Tausend; Mio M: Million, Millionen, f; Mrd Md: Milliarde, Milliarden, f; Bio: Billion, Billionen, f
  `),
  abbreviations: wordTable(`
    z.b: zum Beispiel; d.h: das heißt; u.a: unter anderem; i.d.r: in der Regel; u.u: unter Umständen; z.t: zum Teil;
    s.o: siehe oben; s.u: siehe unten; o.ä: oder Ähnliches; v.a: vor allem; i.a: im Allgemeinen; o.g: oben genannte;
    v.chr: vor Christus; n.chr: nach Christus; m.e: meines Erachtens; bzw: beziehungsweise; usw: und so weiter;
    etc: et cetera; ca: circa; evtl: eventuell; ggf: gegebenenfalls; inkl: inklusive; exkl: exklusive;
    zzgl: zuzüglich; bzgl: bezüglich; vgl: vergleiche; sog: sogenannte; max: maximal; min: minimal; mind: mindestens;
    bspw: beispielsweise; insb: insbesondere; einschl: einschließlich; allg: allgemein; abs: Absatz; art: Artikel;
    dr: Doktor; prof: Professor; dipl.-ing: Diplomingenieur; hr: Herr; hrn: Herrn; fr: Frau; st: Sankt; str: Straße;
    nr: Nummer; tel: Telefon; s: Seite; bd: Band; kap: Kapitel; jh: Jahrhundert; jhd: Jahrhundert; geb: geboren;
    gest: gestorben; verh: verheiratet; abb: Abbildung; tab: Tabelle; aufl: Auflage; hrsg: Herausgeber; std: Stunden;
    min: Minuten; sek: Sekunden; mio: Millionen; mrd: Milliarden; tsd: Tausend; mo: Montag; di: Dienstag;
    mi: Mittwoch; do: Donnerstag; sa: Samstag; so: Sonntag; jan: Januar; jän: Januar; feb: Februar; mär: März;
    apr: April; jun: Juni; jul: Juli; aug: August; sep: September; sept: September; okt: Oktober; nov: November;
    dez: Dezember; gmbh: G.M.B.H; ff: folgende
  `),
  bare: new Set(['bzw', 'usw', 'ca', 'inkl', 'zzgl', 'mio', 'mrd', 'bspw', 'ggf', 'evtl', 'max', 'etc']),
  ambiguous: wordSet('so do di mi mo sa art min max s tab std jan jun jul apr mär aug sep nov dez feb abs'),
  feminine: wordSet(
    'Person Woche Seite Frau Katze Tasse Flasche Nacht Frage Sache Zeile Mahlzeit Stelle Runde',
  ),
  callCues: wordSet(
    'tel telefon telefonnummer ruf rufnummer handy mobil fax hotline nummer durchwahl anrufen',
  ),
  ownRules: [ordinals, years, rulers, hourAlone, streets],
};

export const german = (): LanguageRules => rulesOf(grammar);
