/**
 * The tags in a text of this API. `<break time="1.5s"/>` is a pause, `<phoneme alphabet="ipa" ph="...">` and
 * `<sub alias="...">` say how their words are spoken, and all others are dropped. The text may come in pieces that are
 * split anywhere, also within a tag. A `<` that begins no tag is text.
 */
import { ipaOf } from '../../text/ipa.js';
import { fitsWords } from '../../text/lexicon.js';
import type { MarkedText, SpokenForm } from '../../text/replacements.js';
import { isBlank } from '../../text/words.js';

const pauseMsMax = 3_000;
/** UTF-16 units of a tag; a longer one is text. */
const tagUnitsMax = 1_024;
/** UTF-16 units of all tags of a text, or of a piece of it. Later ones are text: 1 MiB of tags would hold the thread for 200 ms. */
const allTagsUnitsMax = 16_384;
/** The same as a number: a short tag costs as much as a long one. */
const allTagsMax = 1_024;
/** UTF-16 units of the words between a tag and its end. */
const contentUnitsMax = 256;

/** A name has one end: a tag that never closes would be tried with each. */
const tag = /^<(?:(\/?)([A-Za-z][\w:.-]*)(?![\w:.-])((?:"[^"<]*"|'[^'<]*'|[^"'<>])*)|[!?][^<>]*)>/;
/** What may be the start of one, at the end of a text. */
const openTag = /^<(?:\/?(?:[A-Za-z](?:"[^"<]*(?:"|$)|'[^'<]*(?:'|$)|[^"'<>])*)?|[!?][^<>]*)$/;
const attribute = /(?<![\w:-])([\w:-]+)\s*=\s*(?:"([^"]*)"|'([^']*)')/g;
/** Words at both sides of them are apart. */
const apart = new Set(['break', 'p', 's', 'speak', 'br', 'div', 'li']);

const entities: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };

/** A part of a string keeps all of it in memory: here, what was dropped as well. @returns a copy */
const own = (part: string): string => Buffer.from(part, 'utf16le').toString('utf16le');

/** Without iterators, which took half of the time of a frame of tags. */
const attributesOf = (text: string): ReadonlyMap<string, string> => {
  const attributes = new Map<string, string>();
  attribute.lastIndex = 0;
  for (let found = attribute.exec(text); found !== null; found = attribute.exec(text)) {
    const value = found[2] ?? found[3] ?? '';
    const plain = value.includes('&')
      ? value.replace(/&(amp|lt|gt|quot|apos);/g, (_, entity: string) => entities[entity]!)
      : value;
    attributes.set(found[1]!.toLowerCase(), plain);
  }
  return attributes;
};

const pauseMsOf = (time = ''): number => {
  const found = /^\s*(\d{1,9}(?:\.\d{1,9})?|\.\d{1,9})\s*(s|ms)\s*$/i.exec(time);
  return found === null ? 0 : Math.round(Number(found[1]) * (found[2]!.toLowerCase() === 's' ? 1_000 : 1));
};

/** The form that a tag gives to its words; `null`: none that this service knows. */
const formOf = (name: string, attributes: ReadonlyMap<string, string>): SpokenForm | null => {
  const alias =
    attributes
      .get('alias')
      ?.normalize('NFC')
      .replace(/\p{Cc}/gu, ' ')
      .trim() ?? '';
  if (name === 'sub' && alias !== '') return { spelling: own(alias) };
  if (name !== 'phoneme' || (attributes.get('alphabet') ?? 'ipa').toLowerCase() !== 'ipa') return null;
  const phonemes = ipaOf(attributes.get('ph') ?? '');
  return 'ipa' in phonemes && phonemes.ipa !== '' ? { ipa: phonemes.ipa } : null;
};

export class TagReader {
  #pieces: MarkedText[] = [];
  /** The start of a tag. */
  #held = '';
  /** The tag whose words are being read. */
  #open: { readonly name: string; readonly form: SpokenForm; words: string } | null = null;
  /** Since the last words. */
  #pauseMs = 0;
  #lastCharacter = '';
  #isApart = false;
  #hasWords = false;

  /** A part of a tag, or of its words, has come. */
  get isWaiting(): boolean {
    return this.#held !== '' || this.#open !== null;
  }

  /** @returns what is known of the text so far, in order */
  push(more: string): readonly MarkedText[] {
    const text = this.#held + more;
    this.#held = '';
    let from = 0;
    let examined = 0;
    let tags = 0;
    for (let next = text.indexOf('<'); next >= 0; next = text.indexOf('<', Math.max(from, next + 1))) {
      if (examined > allTagsUnitsMax || ++tags > allTagsMax) break;
      const start = text.slice(next, next + tagUnitsMax);
      const found = tag.exec(start);
      const whole = found?.[0];
      const isOpen = whole === undefined && text.length - next <= tagUnitsMax && openTag.test(start);
      examined += whole?.length ?? 1;
      if (whole === undefined && !isOpen) continue;
      this.#text(own(text.slice(from, next)));
      from = next + (whole ?? start).length;
      if (found === null) this.#held = own(start);
      else this.#tag((found[2] ?? '').toLowerCase(), found[1] === '/', found[3] ?? '');
    }
    this.#text(from === 0 ? text : own(text.slice(from)));
    return this.#take();
  }

  /** The text ends, or a flush comes: what was waited for is text. */
  end(): readonly MarkedText[] {
    const held = this.#held;
    this.#held = '';
    this.#text(held);
    this.#close();
    // Without words it comes before those after the flush.
    if (this.#hasWords) {
      if (this.#pauseMs > 0) this.#pieces.push({ text: '', pauseMs: this.#pauseMs });
      this.#pauseMs = 0;
    }
    this.#lastCharacter = '';
    this.#isApart = this.#hasWords = false;
    return this.#take();
  }

  #tag(name: string, isEnd: boolean, text: string): void {
    if (apart.has(name)) this.#isApart = true;
    if (name === 'break' && !isEnd && this.#open === null)
      this.#pauseMs = Math.min(pauseMsMax, this.#pauseMs + pauseMsOf(attributesOf(text).get('time')));
    if (name !== 'phoneme' && name !== 'sub') return;
    this.#close(isEnd && this.#open?.name === name);
    const form = isEnd || text.endsWith('/') ? null : formOf(name, attributesOf(text));
    if (form !== null) this.#open = { name, form, words: '' };
  }

  /** Ends the words of a tag. @param isWhole its end has come */
  #close(isWhole = false): void {
    const open = this.#open;
    this.#open = null;
    if (open === null) return;
    if (isWhole && !isBlank(open.words) && fitsWords(open.form, open.words))
      this.#emit(open.words, open.form);
    else this.#text(open.words);
  }

  #text(text: string): void {
    if (this.#open === null) {
      this.#emit(text);
      return;
    }
    this.#open.words += text;
    if (this.#open.words.length > contentUnitsMax) this.#close();
  }

  #emit(given: string, form?: SpokenForm): void {
    if (given === '') return;
    const isJoined = this.#isApart && /\S/.test(this.#lastCharacter) && !/^\s/.test(given);
    const text = isJoined ? ` ${given}` : given;
    this.#isApart = false;
    this.#lastCharacter = text.slice(-1);
    if (form === undefined && this.#pauseMs === 0) {
      this.#add({ text });
      this.#hasWords ||= !isBlank(text);
      return;
    }
    const words = text.trimStart();
    this.#add({ text: text.slice(0, text.length - words.length) });
    const pauseMs = isBlank(words) ? 0 : this.#pauseMs;
    this.#add({ text: words, ...(pauseMs > 0 && { pauseMs }), ...(form !== undefined && { form }) });
    if (isBlank(words)) return;
    this.#pauseMs = 0;
    this.#hasWords = true;
  }

  #add(piece: MarkedText): void {
    const last = this.#pieces.at(-1);
    if (piece.text === '') return;
    const isPlain = piece.form === undefined && piece.pauseMs === undefined;
    if (last === undefined || last.form !== undefined || !isPlain) this.#pieces.push(piece);
    else this.#pieces[this.#pieces.length - 1] = { ...last, text: last.text + piece.text };
  }

  #take(): readonly MarkedText[] {
    const pieces = this.#pieces;
    this.#pieces = [];
    return pieces;
  }
}

/** A whole text. */
export const readTags = (text: string): readonly MarkedText[] => {
  const reader = new TagReader();
  return [...reader.push(text), ...reader.end()];
};
