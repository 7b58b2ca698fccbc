/** Any string, made harmless to a phonemiser and free of look-alike letters. */

/**
 * Line breaks and tabs aside, what has no glyph: control characters, lone surrogates, private and unassigned code points,
 * and the replacement character, which espeak-ng takes for a sign of another encoding. Joiners stay: they build letters
 * and emoji.
 */
const unspeakable = /(?![\t\n\r\u200c\u200d])[\p{C}\ufffd]/gu;

/**
 * Full-width, circled, mathematical and presentation forms: espeak-ng would read their code points. Symbols such as ½ are
 * left alone, it knows them.
 */
const compatibility =
  /[\p{Nl}\u00aa\u00ba\u2100-\u214f\u2460-\u24ff\uf900-\ufdff\ufe70-\ufeff\uff00-\uffef]|[\u{1d400}-\u{1d7ff}]|[\ufb00-\ufb4f]/gu;

export const cleanText = (text: string): string =>
  text
    .toWellFormed()
    .normalize('NFC')
    .replace(unspeakable, '')
    .replace(compatibility, (character) => character.normalize('NFKC'));
