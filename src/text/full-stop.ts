/** The meaning of a full stop before white space: the end of a sentence, or part of an abbreviation. */

/** `unless-...`: the full stop ends the sentence unless the next character is of that kind. */
export type FullStop = 'ends' | 'inside' | 'unless-lower-case' | 'unless-digit' | 'unless-either';

/**
 * Whether the sentence goes on after a full stop.
 * @param next the first character after the white space; '' if there is none
 */
export const goesOnAfter = (rule: FullStop, next: string): boolean => {
  switch (rule) {
    case 'ends':
      return false;
    case 'inside':
      return next !== '';
    case 'unless-lower-case':
      return /^[\p{Ll}(]/u.test(next);
    case 'unless-digit':
      return /^\p{Nd}/u.test(next);
    case 'unless-either':
      return /^[\p{Ll}\p{Nd}(]/u.test(next);
  }
};

const words = (list: string): ReadonlySet<string> => new Set(list.split(' '));

/** The sentence always goes on after these. */
const inside = words(
  'mr mrs ms mx messrs dr prof st ste mt ft rev hon gen col capt lt sgt cmdr adm gov sen rep pres supt maj Sec asst attn ' +
    'vs v cf viz approx ca est bros dept bldg rm univ assn ave blvd rd al eg ie resp ' +
    'mme mlle herr fr hr nr bzw bspw z.b u.a d.h sra dra sig dott av',
);
/** May end a sentence: the next letter decides. */
const either = words(
  'etc inc ltd co corp llc plc jr sr esq ph.d m.d b.a m.a m.sc b.sc m.phil d.phil ll.m ll.b ed.d psy.d pharm.d a.m p.m am pm usw ff',
);
/** Numbering: "No. 5", but "No. Not today". */
const numbering = words('no nos p sec ch art op nr ext mar eq c');
/** The same, and no other words: "the Jan. issue". Some only with a capital: "He sat. 5 came." */
const sureNumbering = words(
  'pp vol vols fig figs tel jan feb apr jun jul aug sep sept oct nov dec mon tue tues Wed thu thur thurs fri Sat Sun ' +
    'apt rte rt fl ln ct pl pkwy hwy sq oz qt tbsp mo min max avg esp incl excl misc govt appt acct ref qty exp',
);

/** The same for other languages. They use the English ones too, because languages share many abbreviations. */
const insideOf: Readonly<Record<string, ReadonlySet<string>>> = {
  de: words(
    'bzgl ca dgl dipl ehem einschl etc evtl exkl fa frl ggf geb hrsg hl inkl ing insb kath max min mio mrd mind ' +
      'nördl od rd s sog st std str stellv südl tel tgl u urspr usf v verh vgl vorm zus zzgl zzt o.ä i.d.r u.u z.t s.o s.u v.a ' +
      'v.chr n.chr u.v.m i.a o.g abs allg anm bd bsp jh jhd kap',
  ),
  fr: words(
    'p m mm mlles mmes av boul bd chap env ex hab p.ex c.-à-d fig janv févr juil déc oct nov tél réf vol',
  ),
  es: words(
    'p ee uu sr sres sras dra dres d dña ud uds vd vds pág págs núm núms tel av avda c cía depto ej p.ej aprox art cap ' +
      'ed edo excmo fco gral hnos izq lic prof s sta sto ee.uu a.c d.c jue sáb dom ene febr abr ago dic',
  ),
  it: words('sig sigg sigra sig.ra dott.ssa ing avv prof pag pagg art cap ecc es tel s.p.a p.es n'),
  pt: words('sr sra srs sras dr dra prof profa av r pág págs tel art cap ex núm n'),
  nl: words(
    'dhr mevr mw drs ir mr bijv bv blz ca d.w.z enz evt i.p.v incl jl m.a.w nl o.a pag tel t.a.v t.o.v vgl z.g',
  ),
  pl: words('dr prof mgr inż ul al pl np itd itp m.in tzn tzw godz ok tel nr str św r'),
  ru: words('г гг ул пр д кв стр т.е т.к т.д т.п др см рис тыс млн млрд руб тел'),
  tr: words('dr doç prof av sn vb vs örn bkz yy cad sok mah no tel'),
};

/** Languages that write an ordinal number with a full stop. */
const stopsOrdinals = words('de da nb no fi cs sk pl hu tr hr sl sr et is lv');

/** "$5/mo. for a year" */
const rate = /\d\/(?:mo|yr|wk|hr)$/;
/** Units after a number: "10 in. wide", "6 ft. He". */
const unit = /^\d (?:in|ft|yds?|lbs?|mi|gal|pt|tsp|secs?|mins|hrs?|wks?|mos|yrs?|[cmk]m|[mk]?g)$/;

const edges = /^[^\p{L}\p{N}]+|(?<![^\p{L}\p{N}.…])[^\p{L}\p{N}.…]+$/gu;
/** Most tokens need no search for their edges. */
const hasNone = /^[a-z].*\.$/i;

/**
 * @param token the token before the white space, with all its punctuation; its last terminator is a full stop or an
 *   ellipsis. The last digit of a number before it, with the space between, may come with it
 * @param opensSegment whether it is the segment's first token
 * @param code primary subtag of the language: `de`
 */
export const fullStopAfter = (token: string, opensSegment: boolean, code = 'en'): FullStop => {
  const bare = hasNone.test(token) ? token : token.replace(edges, '');
  if (bare.endsWith('..') || bare.endsWith('…')) return 'unless-lower-case';
  const whole = bare.endsWith('.') ? bare.slice(0, -1) : bare;
  const isAfterNumber = whole.charAt(1) === ' ';
  if (isAfterNumber && unit.test(whole)) return 'unless-either';
  const stem = isAfterNumber ? whole.slice(2) : whole;
  // "I" is a pronoun far more often than an initial.
  if (/^\p{Lu}$/u.test(stem) && stem !== 'I') return 'inside';
  // A list's number: "1. Preheat the oven."
  if (opensSegment && /^\d{1,3}$/.test(stem)) return 'inside';
  // "am 3. Oktober", "Ludwig XIV. war".
  if (stopsOrdinals.has(code) && /^(?:\d{1,2}|[IVX]{2,5})$/.test(stem)) return 'inside';
  const lower = stem.toLowerCase();
  // "z. B.", "Hauptstr. 5"
  if (code === 'de' && /^\p{L}$|\p{L}str$/u.test(lower)) return 'inside';
  if (Object.hasOwn(insideOf, code) && insideOf[code]!.has(lower)) return 'inside';
  if (inside.has(lower) || inside.has(stem)) return 'inside';
  if (either.has(lower) || rate.test(lower)) return 'unless-lower-case';
  if (numbering.has(lower)) return 'unless-digit';
  if (sureNumbering.has(lower) || sureNumbering.has(stem)) return 'unless-either';
  // U.S., J.R.R., e.g.
  if (stem.includes('.') && /^\p{L}(?:\.\p{L})+$/u.test(stem)) return 'inside';
  return 'ends';
};
