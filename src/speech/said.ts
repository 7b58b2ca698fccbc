/** What will be said of a text, and why: for people who look at it before it is spoken. */
import { setImmediate } from 'node:timers/promises';
import type { SpeechSettings } from '../api/speech-settings.js';
import type { Bounds } from '../limits.js';
import { primaryLanguage } from '../text/language.js';
import type { Lexicon } from '../text/lexicon.js';
import { partsOf } from '../text/long-segments.js';
import { ipaPlace, spellingsOf, spokenUnits, type Origins, type Replacement } from '../text/replacements.js';
import { Segmenter } from '../text/segments.js';
import type { WrittenSegment } from '../threads/messages.js';
import { requestOf } from './utterances.js';

/** A word, or words that are spoken as one. */
export interface SaidWord {
  readonly word: string;
  /** Empty if it has no sound, or if the voice reads letters. */
  readonly ipa: string;
  /** The entry of a lexicon, or the rule, that replaced it. */
  readonly by?: string;
}

export interface Said {
  readonly text: string;
  readonly spoken: string;
  readonly words: readonly SaidWord[];
}

/** A text, cut and written as the service does it, before it is pronounced. */
export interface Draft {
  readonly segments: readonly (WrittenSegment & { readonly continues: boolean })[];
  readonly origins: Origins;
}

export interface DraftParts {
  readonly settings: SpeechSettings;
  /** Of the voice, BCP 47. */
  readonly language: string;
  /** The strongest first. */
  readonly lexicons: readonly Lexicon[];
  readonly bounds: Bounds;
  /** The voice knows phonemes. */
  readonly hasPhonemes: boolean;
}

/** Takes time in proportion to the text; between two segments the thread does everything else. */
export const draftOf = async (text: string, parts: DraftParts): Promise<Draft> => {
  const { settings, language, lexicons, bounds, hasPhonemes } = parts;
  const segmenter = new Segmenter(bounds, false, language);
  const origins: Origins = new Map();
  const segments: Draft['segments'][number][] = [];
  for (const segment of [...segmenter.push(text), ...segmenter.flush()]) {
    await setImmediate();
    const { spoken: all = [] } = requestOf(segment, settings, bounds, language, lexicons, origins);
    const parts = partsOf({ segment, spoken: all }, bounds.spokenLettersMax, primaryLanguage(language));
    const by = all.map((form) => origins.get(form)).values();
    for (const { segment: part, spoken } of parts) {
      // The forms of a divided segment are copies.
      for (const form of spoken) {
        const origin = by.next().value;
        if (origin !== undefined) origins.set(form, origin);
      }
      const forms = hasPhonemes ? spoken : spellingsOf(spoken);
      segments.push({ text: part.text, words: part.words, spoken: forms, continues: part.tokenContinues });
    }
  }
  return { segments, origins };
};

const spokenForm = ({ spoken, ipa = '' }: Replacement): string => spoken.replace(ipaPlace, `/${ipa}/`);

/** @param ipas for each segment, the phonemes of each of its words */
export const saidOf = (draft: Draft, ipas: readonly (readonly string[])[]): Said => {
  const found: SaidWord[] = [];
  let text = '';
  let said = '';
  let continues = false;
  for (const [place, segment] of draft.segments.entries()) {
    const { text: written, words, spoken = [] } = segment;
    let end = 0;
    for (const { first, start, end: wordEnd, form } of spokenUnits(words, spoken)) {
      const word = written.slice(start, wordEnd);
      said += written.slice(end, start) + (form === undefined ? word : spokenForm(form));
      const ipa = ipas[place]?.[first] ?? '';
      const before = continues && first === 0 ? found.pop() : undefined;
      const by = (form && draft.origins.get(form)) ?? before?.by;
      found.push({
        word: (before?.word ?? '') + word,
        ipa: [before?.ipa ?? '', ipa].filter((part) => part !== '').join(' '),
        ...(by !== undefined && { by }),
      });
      end = wordEnd;
    }
    said += written.slice(end);
    text += written;
    continues = segment.continues;
  }
  return { text, spoken: said, words: found };
};
