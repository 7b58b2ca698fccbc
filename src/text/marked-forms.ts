/** Forms that markup gives to parts of a text, found again in the segments that the text is cut into. */
import { formOf } from './lexicon.js';
import type { Replacement, SpokenForm } from './replacements.js';
import type { Segment } from './segments.js';

interface MarkedPart {
  /** Offsets in the whole text. */
  readonly start: number;
  readonly end: number;
  readonly form: SpokenForm;
}

const ownerOf = (tail: string): string => /^['’]s\b/i.exec(tail)?.[0] ?? '';

export class MarkedForms {
  readonly #parts: MarkedPart[] = [];
  #pushed = 0;
  #cut = 0;

  /** The text goes on. @param form of this part of it */
  push(text: string, form?: SpokenForm): void {
    const start = this.#pushed;
    this.#pushed += text.length;
    if (form !== undefined) this.#parts.push({ start, end: this.#pushed, form });
  }

  /** The next segment of the text. Words are spoken as written if their part is cut, or if they have a form already. */
  take({ text, words }: Pick<Segment, 'text' | 'words'>): Replacement[] {
    const from = this.#cut;
    this.#cut += text.length;
    const found: Replacement[] = [];
    while (this.#parts.length > 0 && this.#parts[0]!.start < this.#cut) {
      const part = this.#parts.shift()!;
      const [start, end] = [part.start - from, part.end - from];
      const first = words.findIndex((word) => word.end > start);
      const last = words.findLastIndex((word) => word.start < end);
      if (start < 0 || end > text.length || first < 0 || last < first) continue;
      if (first <= (found.at(-1)?.last ?? -1)) continue;
      const lead = text.slice(words[first]!.start, Math.max(start, words[first]!.start));
      const rest = text.slice(Math.min(end, words[last]!.end), words[last]!.end);
      const owner = ownerOf(rest);
      found.push({ first, last, ...formOf(part.form, lead, owner, rest.slice(owner.length)) });
    }
    return found;
  }
}
