/** French: cardinal days and years, "heures", decimal comma; soixante-dix or septante by the country. */
import { toCardinal as ofBelgium } from 'n2words/fr-BE';
import { toCardinal as ofFrance } from 'n2words/fr-FR';
import { type LanguageRules, type Rule, say, wordSet, wordTable } from '../tokens.js';
import { decimalsBy, digitsOf } from './amounts.js';
import { currencyTable, type Gender, type Grammar, nouns } from './grammar.js';
import { romanOf } from '../roman.js';
import { rulesOf } from './rules.js';

/** Where 80 has a word of its own. */
const ofSwitzerland = (value: bigint): string =>
  ofBelgium(value)
    .replace(/quatre-vingt-un\b/g, 'huitante et un')
    .replace(/quatre-vingts?/g, 'huitante');

type Count = (value: bigint) => string;
const countries: Readonly<Record<string, Count>> = { CH: ofSwitzerland, BE: ofBelgium };

const months = 'janvier février mars avril mai juin juillet août septembre octobre novembre décembre'.split(
  ' ',
);

const ordinalOf = (cardinal: Grammar['cardinal'], value: number): string => {
  const words = cardinal(String(value));
  if (words.endsWith('cinq')) return `${words}uième`;
  if (words.endsWith('neuf')) return `${words.slice(0, -1)}vième`;
  return `${words.replace(/(?:e|(?<=vingt|cent)s)$/, '')}ième`;
};

const parts: Readonly<Record<number, string>> = { 2: 'demi', 3: 'tiers', 4: 'quart' };

const grammarOf = (count: Count): Grammar => {
  const cardinal = (digits: string, before?: Gender): string =>
    before === 'f' ? count(BigInt(digits)).replace(/\bun$/, 'une') : count(BigInt(digits));
  /** 1er, 2e, XXe, 3ème, 2nde. */
  const ordinals: Rule = (tokens, at) => {
    const {
      digits,
      roman,
      ending = '',
    } = /^(?:(?<digits>\d{1,4})|(?<roman>[IVXL]{1,7}))(?<ending>ers?|[eè]?res?|[eè]mes?|i[eè]mes?|es?|nde?s?|è)$/.exec(
      tokens.at(at).core,
    )?.groups ?? {};
    const value = roman === undefined ? Number(digits) : romanOf(roman);
    if (ending === '' || value === null || value === 0) return null;
    // "Le", "Les", "Ver" and "Vers" are words.
    if ((roman === 'L' && /^es?$/.test(ending)) || (value !== 1 && /r/.test(ending))) return null;
    const many = ending.endsWith('s') ? 's' : '';
    if (value === 1)
      return say(`${/^e?r/.test(ending) && !/re/.test(ending) ? 'premier' : 'première'}${many}`);
    if (/^nd/.test(ending))
      return value === 2 ? say(`${ending.startsWith('nde') ? 'seconde' : 'second'}${many}`) : null;
    return say(ordinalOf(cardinal, value) + many);
  };
  /** Louis XIV, chapitre IV, tome II. */
  const romans: Rule = (tokens, at) => {
    const { core } = tokens.at(at);
    const before = tokens.previous(at)?.core ?? '';
    const value = /^[IVXL]{1,6}$/.test(core) ? romanOf(core) : null;
    const isPart =
      /^(?:chapitre|tome|partie|acte|scène|livre|volume|article|titre|annexe|phase|type|guerre)$/i.test(
        before,
      );
    const isName = /^\p{Lu}\p{Ll}{2,}$/u.test(before) && core.length > 1;
    return value !== null && (isPart || isName) && !/^(?:XL|XX|XXX|LX|L)$/.test(core)
      ? say(cardinal(String(value)))
      : null;
  };
  /** "1 janvier" is the first. */
  const firstDay: Rule = (tokens, at) => {
    const next = tokens.next(at)?.core.toLowerCase() ?? '';
    return tokens.at(at).core === '1' && months.includes(next) ? say('premier') : null;
  };
  /** "24h/24", "7j/7". */
  const always: Rule = (tokens, at) => {
    const { count, unit, of } =
      /^(?<count>\d{1,2})(?<unit>[hj])\/(?<of>\d{1,2})$/.exec(tokens.at(at).core)?.groups ?? {};
    if (count === undefined || of === undefined) return null;
    const { many, gender } = grammar.units.get(unit!)!;
    return say(`${cardinal(count, gender)} ${many} sur ${cardinal(of)}`);
  };
  const grammar: Grammar = {
    code: 'fr',
    decimalMark: ',',
    groupMarks: ".'’",
    cardinal,
    singularBelowTwo: true,
    decimals: decimalsBy(cardinal, 3),
    year: cardinal,
    date: ({ day, month, year }) =>
      `${day === 1 ? 'premier' : cardinal(String(day))} ${months[month - 1]!}${year === null ? '' : ` ${cardinal(year)}`}`,
    clock: (hour, minute, second) => {
      const hours = `${cardinal(String(hour), 'f')} ${hour < 2 ? 'heure' : 'heures'}`;
      const minutes =
        minute === 0 && second === null ? '' : ` ${minute === 0 ? 'zéro' : cardinal(String(minute), 'f')}`;
      if (second === null) return hours + minutes;
      return `${hours}${minutes} et ${cardinal(String(second), 'f')} ${second < 2 ? 'seconde' : 'secondes'}`;
    },
    phone: (groups) =>
      groups
        .flatMap((group) => (group.length % 2 === 0 ? group.match(/\d\d/g)! : [group]))
        .map((group) => (/^0/.test(group) || group.length > 3 ? digitsOf(grammar, group) : cardinal(group)))
        .join(', '),
    part: (above, below) => {
      if (below < 2 || (below > 20 && below !== 100 && below !== 1000) || above > 99) return null;
      const name = parts[below] ?? ordinalOf(cardinal, below);
      return `${cardinal(String(above))} ${name}${above > 1 && !name.endsWith('s') ? 's' : ''}`;
    },
    mixed: (whole, part) => `${cardinal(whole)} ${part === 'un demi' ? 'et demi' : part}`,
    power: ({ one, many, gender }, exponent) => {
      const word = exponent === 2 ? 'carré' : 'cube';
      return { one: `${one} ${word}`, many: `${many} ${word}s`, gender };
    },
    price: (units, cents) => `${units} ${cents}`,
    scaled: (scale, currency) => `${scale} ${/^[aeéiou]/i.test(currency) ? "d'" : 'de '}${currency}`,
    months,
    weekdays: 'lundi mardi mercredi jeudi vendredi samedi dimanche'.split(' '),
    weekdayLetters: 3,
    words: {
      ...{
        decimal: 'virgule',
        minus: 'moins',
        plus: 'plus',
        times: 'fois',
        divided: 'divisé par',
        equals: 'égale',
      },
      ...{ isLess: 'est inférieur à', isMore: 'est supérieur à', isUnequal: 'est différent de' },
      ...{ over: 'sur', range: 'à', ratio: 'à', size: 'sur', per: 'par', and: 'et', about: 'environ' },
      ...{
        less: 'moins de',
        more: 'plus de',
        atMost: 'au plus',
        atLeast: 'au moins',
        plusMinus: 'plus ou moins',
      },
      ...{
        number: 'numéro',
        section: 'paragraphe',
        hashtag: 'hashtag',
        at: 'arobase',
        dot: 'point',
        hyphen: 'tiret',
      },
      ...{
        underscore: 'tiret bas',
        slash: 'barre oblique',
        colon: 'deux points',
        version: 'version',
      },
    },
    units: nouns(`
      km: kilomètre, kilomètres; m: mètre, mètres; dm: décimètre, décimètres; cm: centimètre, centimètres;
      mm: millimètre, millimètres; µm μm: micromètre, micromètres; nm: nanomètre, nanomètres; kg: kilogramme, kilogrammes;
      g: gramme, grammes; mg: milligramme, milligrammes; t: tonne, tonnes, f; l L: litre, litres; ml mL: millilitre, millilitres;
      cl cL: centilitre, centilitres; hl: hectolitre, hectolitres; h: heure, heures, f; min mn: minute, minutes, f;
      s sec: seconde, secondes, f; ms: milliseconde, millisecondes, f; j: jour, jours; W: watt, watts; kW: kilowatt, kilowatts;
      MW: mégawatt, mégawatts; GW: gigawatt, gigawatts; Wh: wattheure, wattheures; kWh: kilowattheure, kilowattheures;
      MWh: mégawattheure, mégawattheures; V: volt, volts; A: ampère, ampères; mA: milliampère, milliampères; Hz: hertz;
      kHz: kilohertz; MHz: mégahertz; GHz: gigahertz; dB: décibel, décibels; ch: cheval, chevaux; kJ: kilojoule, kilojoules;
      kcal: kilocalorie, kilocalories, f; cal: calorie, calories, f; Pa: pascal, pascals; hPa: hectopascal, hectopascals;
      bar: bar, bars; o: octet, octets; ko Ko: kilooctet, kilooctets; Mo: mégaoctet, mégaoctets; Go: gigaoctet, gigaoctets;
      To: téraoctet, téraoctets; GB: gigaoctet, gigaoctets; MB: mégaoctet, mégaoctets; px: pixel, pixels; ha: hectare, hectares;
      °C ºC ℃: degré Celsius, degrés Celsius; °F: degré Fahrenheit, degrés Fahrenheit; ° º: degré, degrés; %: pour cent;
      ‰: pour mille; x: fois; pers: personne, personnes, f; ans: ans
    `),
    attachedOnly: new Set('A B L j o x'.split(' ')),
    currencies: currencyTable(`
      € EUR: euro, euros, centime, centimes; $ USD US$: dollar, dollars, cent, cents; £ GBP: livre*, livres, penny, pence;
      CHF: franc suisse, francs suisses, centime, centimes; CA$: dollar canadien, dollars canadiens, cent, cents; ¥: yen, yens;
      ₹: roupie*, roupies; ₽: rouble, roubles; ₿: bitcoin, bitcoins
    `),
    scales: nouns(
      `k: mille; M Mio: million, millions; Md Mds Mrd: milliard, milliards; mn: million, millions`,
    ),
    abbreviations: wordTable(`
      m: Monsieur; mm: Messieurs; mme: Madame; mmes: Mesdames; mlle: Mademoiselle; mlles: Mesdemoiselles; dr: Docteur;
      pr: Professeur; st: Saint; ste: Sainte; etc: et cetera; p.ex: par exemple; c.-à-d: c'est-à-dire;
      càd: c'est-à-dire; cf: confer; env: environ; ex: exemple; chap: chapitre; vol: volume; fig: figure; p: page; pp: pages;
      art: article; al: alinéa; éd: édition; av: avenue; bd: boulevard; boul: boulevard; pl: place; rte: route; tél: téléphone;
      tel: téléphone; n°: numéro; no: numéro; nos: numéros; janv: janvier; févr: février; fév: février; avr: avril; juil: juillet;
      sept: septembre; oct: octobre; nov: novembre; déc: décembre; lun: lundi; mar: mardi; mer: mercredi; jeu: jeudi;
      ven: vendredi; sam: samedi; dim: dimanche; av.j.-c: avant Jésus-Christ; apr.j.-c: après Jésus-Christ; hab: habitants;
      max: maximum; min: minimum; resp: respectivement; dép: département; st-: Saint; svp: s'il vous plaît; rdv: rendez-vous;
      cie: compagnie; bcp: beaucoup; qqch: quelque chose; qqn: quelqu'un
    `),
    bare: wordSet('n° mme mmes mlle mlles dr pr etc cf càd svp rdv cie bcp qqch qqn bd ste'),
    ambiguous: wordSet('sept mar mer jeu lun sam dim no nos ex art fig pl min max vol env al chap p pp'),
    feminine: wordSet(
      'personne personnes fois année années semaine semaines page pages femme femmes nuit nuits chose choses table tables maison maisons question questions ligne lignes place places voiture voitures',
    ),
    callCues: wordSet('tél tel téléphone téléphoner appelez appeler numéro fax portable mobile'),
    ownRules: [ordinals, romans, firstDay, always],
  };
  return grammar;
};

/** @param language BCP 47: `fr-CH` counts in its own way */
export const french = (language: string): LanguageRules => {
  const country = /-([A-Z]{2})$/.exec(language.toUpperCase())?.[1] ?? '';
  return rulesOf(grammarOf(Object.hasOwn(countries, country) ? countries[country]! : ofFrance));
};
