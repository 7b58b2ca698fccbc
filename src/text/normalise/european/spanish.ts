/** Spanish: gender of hundreds, "de" in dates, decimal comma in Spain and decimal point in most of America. */
import { toCardinal } from 'n2words/es-ES';
import { type LanguageRules, type Rule, say, wordSet, wordTable } from '../tokens.js';
import { decimalsBy, digitsOf } from './amounts.js';
import { currencyTable, type Gender, type Grammar, nouns } from './grammar.js';
import { romanOf } from '../roman.js';
import { rulesOf } from './rules.js';

/** Before a noun: veintiún, un; in the feminine veintiuna, doscientas. */
const cardinal = (digits: string, before?: Gender): string => {
  const spoken = toCardinal(BigInt(digits))
    .replaceAll('dieciseis', 'dieciséis')
    // Thousands of millions are counted with the other millions.
    .replace('mil millones un millón', 'mil un millones')
    .replace(/mil millones(?=.* millones)/, 'mil')
    .replace(before === 'm' ? /veintiuno(?= [mb]|$)/g : /veintiuno(?= [mb])/g, 'veintiún')
    .replace(before === 'm' ? /uno(?= [mb]|$)/g : /uno(?= [mb])/g, 'un');
  return before === 'f'
    ? spoken.replace(/uno$/, 'una').replace(/(cient|quinient)os(?!.* [mb]ill)/g, '$1as')
    : spoken;
};

const months =
  'enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre'.split(' ');

const firstOrdinals =
  'primero segundo tercero cuarto quinto sexto séptimo octavo noveno décimo undécimo duodécimo'.split(' ');
const tenOrdinals =
  'décimo vigésimo trigésimo cuadragésimo quincuagésimo sexagésimo septuagésimo octogésimo nonagésimo'.split(
    ' ',
  );

/** 1 to 100; `null` beyond: the cardinal is said there. */
const ordinalOf = (value: number): string | null => {
  if (value < 1 || value > 100) return null;
  if (value === 100) return 'centésimo';
  if (value <= 12) return firstOrdinals[value - 1]!;
  const unit = value % 10;
  const ten = tenOrdinals[Math.floor(value / 10) - 1]!;
  if (unit === 0) return ten;
  return value < 20 ? `decimo${firstOrdinals[unit - 1]!}` : `${ten} ${firstOrdinals[unit - 1]!}`;
};

/** 1.º, 2ª, 3er, 21.º, 5to. */
const ordinals: Rule = (tokens, at) => {
  const { digits, ending = '' } =
    /^(?<digits>\d{1,3})\.?(?<ending>[ºo]s?|[ªa]s?|er|ro|ra|do|da|to|ta|mo|ma|vo|va|no|na)$/.exec(
      tokens.at(at).core,
    )?.groups ?? {};
  const spoken = digits === undefined ? null : ordinalOf(Number(digits));
  if (spoken === null || (/^[oa]s?$/.test(ending) && Number(digits) > 100)) return null;
  const many = ending.endsWith('s') ? 's' : '';
  if (ending === 'er') return say(spoken.replace(/o$/, ''));
  return say((/[ªa]/.test(ending) ? spoken.replaceAll(/o(?= |$)/g, 'a') : spoken) + many);
};

/** Felipe VI, siglo XXI, capítulo IV. */
const romans: Rule = (tokens, at) => {
  const { core } = tokens.at(at);
  const value = /^[IVXL]{1,6}$/.test(core) ? romanOf(core) : null;
  const before = tokens.previous(at)?.core ?? '';
  if (value === null) return null;
  if (
    /^(?:siglo|siglos|capítulo|tomo|volumen|acto|escena|libro|título|anexo|fase|tipo|parte|guerra|artículo)$/i.test(
      before,
    )
  )
    return say(cardinal(String(value)));
  if (!/^\p{Lu}\p{Ll}{2,}$/u.test(before) || core.length < 2 || /^(?:XL|XX|XXX|LX)$/.test(core)) return null;
  return say(value <= 10 ? ordinalOf(value)! : cardinal(String(value)));
};

/** "1 año", "21 niños": one before a masculine noun. "a la 1", "las 21": the hour is feminine. */
const agreement: Rule = (tokens, at) => {
  const { core } = tokens.at(at);
  if (!/^(?:\d*[02-9])?1$/.test(core)) return null;
  const next = tokens.next(at)?.core ?? '';
  if (
    /^(?:año|día|niño|libro|coche|mes|minuto|segundo|punto|piso|número|hombre|amigo|perro|gato|vaso|hijo|paso|lugar|tren|país)(?:e?s)?$/.test(
      next,
    )
  )
    return say(cardinal(core, 'm'));
  const hasUnit = /^(?:hs?|hrs|[^\p{L}].*)$/u.test(next);
  return /^las?$/.test(tokens.wordBefore(at)) && !hasUnit ? say(cardinal(core, 'f')) : null;
};

/** "3 oct.": the date lacks its "de". */
const shortDate: Rule = (tokens, at) => {
  const { core } = tokens.at(at);
  const month = tokens.next(at);
  return /^\d{1,2}$/.test(core) &&
    month !== undefined &&
    /^(?:ene|feb|mar|abr|may|jun|jul|ago|sept?|oct|nov|dic)$/.test(month.core)
    ? say(`${cardinal(core)} de`)
    : null;
};

/** "10:30" and "a": the time with its part of the day, if that is written. @returns `null` if it is no such time */
const ofHalf = (time: string, half: string | undefined): string | null => {
  const { hour, minute } = /^(?<hour>\d{1,2})(?::(?<minute>[0-5]\d))?$/.exec(time)?.groups ?? {};
  if (hour === undefined || Number(hour) > 12) return null;
  const minutes = minute === undefined || minute === '00' ? '' : ` y ${cardinal(String(Number(minute)))}`;
  const spoken = cardinal(hour, 'f') + minutes;
  if (half === undefined) return spoken;
  const isLate = /^p/i.test(half);
  const evening = isLate && Number(hour) >= 8 && Number(hour) < 12;
  const noon = Number(hour) === 12;
  const day = noon ? 'del mediodía' : evening ? 'de la noche' : 'de la tarde';
  return `${spoken} ${isLate ? day : noon ? 'de la noche' : 'de la mañana'}`;
};

const ofHalves =
  /^(?:(?<from>\d[\d:]{0,4})(?: ?(?<early>[ap])\.? ?m\.?)?[-–—])?(?<to>\d[\d:]{0,4})(?: ?(?<late>[ap])\.? ?m)?$/i;

/** "3 p. m.", "10:30 am", "10am-5pm": the part of the day. */
const halves: Rule = (tokens, at) => {
  const { from, early, to = '', late } = ofHalves.exec(tokens.at(at).core)?.groups ?? {};
  const next = tokens.next(at);
  const after = tokens.nextAfterStop(at + 1);
  const isApart =
    next !== undefined && /^[ap]$/i.test(next.core) && next.tail === '.' && /^m$/i.test(after?.core ?? '');
  const half = late ?? (isApart ? next.core : /^([ap])\.?m$/i.exec(next?.core ?? '')?.[1]);
  const sides = [...(from === undefined ? [] : [ofHalf(from, early)]), ofHalf(to, half)];
  if (half === undefined || sides.includes(null)) return null;
  const count = late !== undefined ? 1 : isApart ? 3 : 2;
  const last = at + count - 1;
  const tail = tokens.tailOfAbbreviation(last);
  // In "7 a. m. - 7 p. m." the first full stop ends no sentence.
  const goesOn = /^[-–—]$/.test(tokens.following(last)?.raw ?? '');
  return { parts: [{ core: sides.join(' a '), tail: goesOn ? tail.replace(/^\./, '') : tail }], count };
};

const parts: Readonly<Record<number, string>> = {
  2: 'medio',
  3: 'tercio',
  11: 'onceavo',
  12: 'doceavo',
  100: 'centésimo',
  1000: 'milésimo',
};

const grammarOf = (decimalMark: ',' | '.'): Grammar => {
  const grammar: Grammar = {
    code: 'es',
    decimalMark: decimalMark === '.' ? '\\.' : ',',
    groupMarks: decimalMark === '.' ? ',' : ".'",
    cardinal,
    singularBelowTwo: false,
    decimals: decimalsBy(cardinal, 2),
    year: cardinal,
    date: ({ day, month, year }) =>
      `${cardinal(String(day))} de ${months[month - 1]!}${year === null ? '' : ` de ${cardinal(year)}`}`,
    clock: (hour, minute, second) => {
      const hours = cardinal(String(hour), 'f');
      if (second !== null)
        return `${hours} ${hour === 1 ? 'hora' : 'horas'}, ${cardinal(String(minute))} minutos y ${cardinal(String(second))} segundos`;
      if (minute === 0) return hour >= 1 && hour <= 12 ? hours : `${hours} horas`;
      return `${hours} y ${cardinal(String(minute))}`;
    },
    phone: (groups) => groups.map((group) => digitsOf(grammar, group)).join(', '),
    part: (above, below) => {
      if (below < 2 || (below > 12 && below !== 100 && below !== 1000) || above > 99) return null;
      const name = parts[below] ?? ordinalOf(below)!;
      return `${cardinal(String(above), 'm')} ${name}${above === 1 ? '' : 's'}`;
    },
    mixed: (whole, part) => `${cardinal(whole)} y ${part === 'un medio' ? 'medio' : part}`,
    power: ({ one, many, gender }, exponent) => {
      const word = exponent === 2 ? 'cuadrado' : 'cúbico';
      return { one: `${one} ${word}`, many: `${many} ${word}s`, gender };
    },
    price: (units, cents) => `${units} con ${cents}`,
    scaled: (scale, currency) => (scale === 'mil' ? `${scale} ${currency}` : `${scale} de ${currency}`),
    months,
    weekdays: 'lunes martes miércoles jueves viernes sábado domingo'.split(' '),
    weekdayLetters: 3,
    words: {
      decimal: decimalMark === '.' ? 'punto' : 'coma',
      ...{
        minus: 'menos',
        plus: 'más',
        times: 'por',
        divided: 'entre',
        equals: 'igual a',
        over: 'sobre',
        range: 'a',
      },
      ...{ isLess: 'es menor que', isMore: 'es mayor que', isUnequal: 'es distinto de' },
      ...{ ratio: 'a', size: 'por', per: 'por', and: 'y', about: 'unos', less: 'menos de', more: 'más de' },
      ...{
        atMost: 'como máximo',
        atLeast: 'al menos',
        plusMinus: 'más menos',
        number: 'número',
        section: 'sección',
      },
      ...{ hashtag: 'almohadilla', at: 'arroba', dot: 'punto', hyphen: 'guion', underscore: 'guion bajo' },
      ...{ slash: 'barra', colon: 'dos puntos', version: 'versión' },
    },
    units: nouns(`
      km: kilómetro, kilómetros; m: metro, metros; dm: decímetro, decímetros; cm: centímetro, centímetros;
      mm: milímetro, milímetros; µm μm: micrómetro, micrómetros; nm: nanómetro, nanómetros; kg: kilogramo, kilogramos;
      g: gramo, gramos; mg: miligramo, miligramos; t: tonelada, toneladas, f; l L: litro, litros; ml mL: mililitro, mililitros;
      cl: centilitro, centilitros; h hs hrs: hora, horas, f; min: minuto, minutos; s seg: segundo, segundos;
      ms: milisegundo, milisegundos; W: vatio, vatios; kW: kilovatio, kilovatios; MW: megavatio, megavatios;
      GW: gigavatio, gigavatios; Wh: vatio hora, vatios hora; kWh: kilovatio hora, kilovatios hora;
      MWh: megavatio hora, megavatios hora; V: voltio, voltios; A: amperio, amperios; mA: miliamperio, miliamperios; Hz: hercio, hercios;
      kHz: kilohercio, kilohercios; MHz: megahercio, megahercios; GHz: gigahercio, gigahercios; dB: decibelio, decibelios;
      CV: caballo, caballos; kJ: kilojulio, kilojulios; kcal: kilocaloría, kilocalorías, f; cal: caloría, calorías, f;
      Pa: pascal, pascales; hPa: hectopascal, hectopascales; bar: bar, bares; B: byte, bytes; KB kB: kilobyte, kilobytes;
      MB: megabyte, megabytes; GB: gigabyte, gigabytes; TB: terabyte, terabytes; Mbps: megabit por segundo, megabits por segundo;
      px: píxel, píxeles; ha: hectárea, hectáreas, f; °C ºC ℃: grado Celsius, grados Celsius;
      °F ºF: grado Fahrenheit, grados Fahrenheit; ° º: grado, grados; %: por ciento; ‰: por mil; x: veces; lb: libra, libras, f;
      oz: onza, onzas, f; mi: milla, millas, f
    `),
    attachedOnly: new Set('A B L x'.split(' ')),
    currencies: currencyTable(`
      € EUR: euro, euros, céntimo, céntimos; $ USD US$: dólar, dólares, centavo, centavos;
      £ GBP: libra*, libras, penique, peniques; CHF: franco suizo, francos suizos, céntimo, céntimos;
      MXN MX$: peso, pesos, centavo, centavos; ¥: yen, yenes; ₹: rupia*, rupias; ₽: rublo, rublos; ₿: bitcoin, bitcoins
    `),
    scales: nouns(`k: mil; M mn mill: millón, millones`),
    abbreviations: wordTable(`
      sr: señor; sra: señora; srta: señorita; sres: señores; sras: señoras; d: don; dª: doña; dña: doña; dr: doctor; dra: doctora;
      prof: profesor; lic: licenciado; ing: ingeniero; ud: usted; uds: ustedes; vd: usted; vds: ustedes; sto: santo; sta: santa;
      gral: general; cap: capítulo; capt: capitán; av: avenida; avda: avenida; c/: calle; pza: plaza; núm: número; nº: número; n.º: número; n°: número;
      no: número; pág: página; págs: páginas; p: página; pp: páginas; vol: volumen; art: artículo; fig: figura; ed: edición; tel: teléfono;
      teléf: teléfono; p.ej: por ejemplo; ej: ejemplo; etc: etcétera; aprox: aproximadamente; máx: máximo; mín: mínimo;
      a.c: antes de Cristo; d.c: después de Cristo; ee.uu: Estados Unidos; cía: compañía; dpto: departamento; depto: departamento;
      izq: izquierda; dcha: derecha; hnos: hermanos; ene: enero; feb: febrero; abr: abril; jun: junio; jul: julio; ago: agosto;
      sept: septiembre; sep: septiembre; oct: octubre; nov: noviembre; dic: diciembre; lun: lunes; mié: miércoles; jue: jueves;
      vie: viernes; sáb: sábado; dom: domingo; s.a: sociedad anónima; vs: versus; q.e.p.d: que en paz descanse; hab: habitantes;
      min: minutos; seg: segundos
    `),
    bare: new Set(['n.º', 'n°', 'etc', 'vs', 'sr', 'sra', 'dr', 'dra', 'aprox', 'nº', 'ee.uu', 'c/']),
    ambiguous: wordSet('no dom sto min ing vol p pp art fig cap ed seg jun jul sep mar'),
    feminine: wordSet(
      'persona personas página páginas vez veces semana semanas mujer mujeres niña niñas casa casas cosa cosas mesa mesas calle calles plaza plazas empresa empresas palabra palabras pregunta preguntas respuesta respuestas línea líneas llamada llamadas noche noches',
    ),
    callCues: wordSet('tel teléfono móvil celular llame llamar llama llámame número fax marque'),
    ownRules: [halves, shortDate, ordinals, romans, agreement],
  };
  return grammar;
};

/** Countries and regions that write a decimal point. */
const points = /-(?:MX|US|419|PR|GT|HN|NI|SV|DO|PA|PE|CU)$/;

const markOf = (language: string): ',' | '.' => (points.test(language.toUpperCase()) ? '.' : ',');

/** @param language BCP 47: `es-MX` has a decimal point */
export const spanish = (language: string): LanguageRules => rulesOf(grammarOf(markOf(language)));
