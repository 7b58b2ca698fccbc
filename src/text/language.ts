/** Languages by their BCP 47 tags. */

/** The primary subtag in lower case: `de` of `de-DE`. */
export const primaryLanguage = (tag: string): string => /^[^-_]*/.exec(tag)![0].toLowerCase();

/** Whether a language includes that of a voice: `en` includes `en-US`, and `en-US` includes `en-us`. */
export const isWithin = (voiceTag: string, tag: string): boolean => {
  const voice = voiceTag.toLowerCase();
  const wanted = tag.toLowerCase();
  return voice === wanted || voice.startsWith(`${wanted}-`);
};
