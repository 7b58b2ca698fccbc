/**
 * Language of the voice, text, what espeak-ng is given for it: clauses with a comma between them, phonemes between slashes.
 * Last: the same with `normalize_text`, where it differs.
 */
export type SaidRow = readonly [language: string, text: string, said: string, normalised?: string];
