/** Signs that espeak-ng would take for markup or leave out, in words. It reads all others itself. */

export interface SpokenSigns {
  /** The words of a sign; the sign itself where espeak-ng reads it; '' for one that has no words. */
  of(sign: string): string;
  /** @param scale k, m, b or bn after the amount */
  money(currency: string, amount: string, scale: string | undefined): string;
}

const signs = ['-', '?', ':', '<', '>', '|', '^', '≤', '≥', '≠', '≈', '→', '[['] as const;

/** Words of the signs, in their order. */
const words: Readonly<Record<string, string>> = {
  en: 'minus,question mark,colon,less than,greater than,bar,caret,at most,at least,is not,about,to,double bracket',
  de: 'minus,Fragezeichen,Doppelpunkt,kleiner als,größer als,Strich,hoch,höchstens,mindestens,ungleich,ungefähr,bis,Klammer',
  fr: 'moins,point d’interrogation,deux points,inférieur à,supérieur à,barre,puissance,au plus,au moins,différent de,environ,vers,crochet',
  es: 'menos,signo de interrogación,dos puntos,menor que,mayor que,barra,elevado a,como máximo,al menos,distinto de,unos,a,corchete',
  it: 'meno,punto interrogativo,due punti,minore di,maggiore di,barra,elevato a,al massimo,almeno,diverso da,circa,a,parentesi',
  pt: 'menos,ponto de interrogação,dois pontos,menor que,maior que,barra,elevado a,no máximo,pelo menos,diferente de,cerca de,para,colchete',
  nl: 'min,vraagteken,dubbele punt,kleiner dan,groter dan,streep,tot de macht,hoogstens,minstens,ongelijk aan,ongeveer,naar,haakje',
  pl: 'minus,znak zapytania,dwukropek,mniejsze niż,większe niż,kreska,do potęgi,najwyżej,co najmniej,różne od,około,do,nawias',
  ru: 'минус,знак вопроса,двоеточие,меньше,больше,черта,в степени,не больше,не меньше,не равно,около,к,скобка',
  tr: 'eksi,soru işareti,iki nokta,küçüktür,büyüktür,çizgi,üzeri,en çok,en az,eşit değil,yaklaşık,ok,köşeli parantez',
};

const currencies: Readonly<Record<string, readonly [one: string, many: string]>> = {
  $: ['dollar', 'dollars'],
  '€': ['euro', 'euros'],
  '£': ['pound', 'pounds'],
  '¥': ['yen', 'yen'],
  '₹': ['rupee', 'rupees'],
  '₽': ['rouble', 'roubles'],
  '₩': ['won', 'won'],
};

const scales: Readonly<Record<string, string>> = { k: 'thousand', m: 'million', b: 'billion', bn: 'billion' };

const englishMoney: SpokenSigns['money'] = (currency, amount, scale) => {
  const [one, many] = currencies[currency] ?? ['', ''];
  if (scale !== undefined) return `${amount} ${scales[scale.toLowerCase()] ?? ''} ${many}`;
  const cents = /^(.*)\.(\p{Nd}\p{Nd})$/u.exec(amount);
  const whole = cents?.[1] ?? amount;
  const name = whole === '1' ? one : many;
  return cents === null ? `${whole} ${name}` : `${whole} ${name} ${cents[2]}`;
};

const tableOf = (code: string): SpokenSigns => {
  const known = new Map((words[code]?.split(',') ?? []).map((word, i) => [signs[i] as string, word]));
  return {
    of: (sign) =>
      known.get(sign === '−' ? '-' : sign) ?? ((signs as readonly string[]).includes(sign) ? '' : sign),
    // In speech, a currency comes after its amount. espeak-ng knows the names of the commonest signs.
    money: code === 'en' ? englishMoney : (currency, amount, scale = '') => `${amount}${scale} ${currency}`,
  };
};

const tables = new Map(Object.keys(words).map((code) => [code, tableOf(code)]));
const none = tableOf('');

/** @param code of a language. Without a list of its words, these signs are left out */
export const signsOf = (code: string): SpokenSigns => tables.get(code) ?? none;
