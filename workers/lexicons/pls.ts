/** The W3C Pronunciation Lexicon Specification: `<lexeme>` with graphemes, and a phoneme in IPA or an alias. */
import { parseXml, XmlElement, XmlError, type XmlDocument } from '@rgrove/parse-xml';
import type { LexiconEntry } from '../../src/text/lexicon.js';
import {
  entryOf,
  Findings,
  isLanguageTag,
  LexiconFileError,
  type EntryBounds,
  type ParsedFile,
} from './entries.js';

/** Without a prefix of a namespace. */
const nameOf = ({ name }: XmlElement): string => name.replace(/^.*:/, '');

const childrenOf = (element: XmlElement, name?: string): XmlElement[] =>
  element.children.filter(
    (child): child is XmlElement =>
      child instanceof XmlElement && (name === undefined || nameOf(child) === name),
  );

const documentOf = (text: string): XmlDocument => {
  // Entities of a document type could fill the memory or name other files.
  const declared = /<!(?:DOCTYPE|ENTITY)/i.exec(text);
  if (declared !== null)
    throw new LexiconFileError(lineAt(text, declared.index), 'a document type or entity is not allowed');
  try {
    return parseXml(text, { includeOffsets: true });
  } catch (error) {
    if (error instanceof XmlError) throw new LexiconFileError(error.line, error.message.split('\n')[0]!);
    // Elements within elements, too deep for the stack.
    if (error instanceof RangeError) throw new LexiconFileError(1, 'the elements are nested too deep');
    throw error;
  }
};

const lineAt = (text: string, offset: number): number => text.slice(0, offset).split('\n').length;

/** Counts lines from left to right. */
const lineCounter = (text: string) => {
  let line = 1;
  let at = 0;
  return (offset: number): number => {
    for (; at < offset; at++) if (text.charCodeAt(at) === 10) line++;
    return line;
  };
};

export const parsePls = (file: string, bounds: EntryBounds): ParsedFile => {
  // The parser takes quadratic time for ends of lines with a carriage return.
  const text = file.replace(/\r\n?/g, '\n');
  const { root } = documentOf(text);
  if (root === null || nameOf(root) !== 'lexicon')
    throw new LexiconFileError(1, 'the root element must be <lexicon>');
  const language = root.attributes['xml:lang'];
  if (language === undefined || !isLanguageTag(language))
    throw new LexiconFileError(1, '<lexicon> needs a language, such as xml:lang="en-US"');
  const alphabet = root.attributes['alphabet'] ?? 'ipa';
  const entries: LexiconEntry[] = [];
  const findings = new Findings(bounds.lexiconFindingsMax);
  const lineOf = lineCounter(text);
  for (const lexeme of childrenOf(root, 'lexeme')) {
    const line = lineOf(lexeme.start);
    const fault = addLexeme(lexeme, { language, alphabet, bounds }, entries);
    if (fault !== null) findings.add({ line, fault });
  }
  return { entries, findings };
};

interface File {
  readonly language: string;
  readonly alphabet: string;
  readonly bounds: EntryBounds;
}

/** Adds the entries of a lexeme. @returns what is wrong with it, or `null` */
const addLexeme = (
  lexeme: XmlElement,
  { language, alphabet, bounds }: File,
  entries: LexiconEntry[],
): string | null => {
  const graphemes = childrenOf(lexeme, 'grapheme');
  const forms = childrenOf(lexeme).filter((child) => /^(?:phoneme|alias)$/.test(nameOf(child)));
  const form = forms.find((child) => child.attributes['prefer'] === 'true') ?? forms[0];
  if (graphemes.length === 0 || form === undefined)
    return 'the <lexeme> lacks a <grapheme>, or a <phoneme> or <alias>';
  const isIpa = nameOf(form) === 'phoneme';
  const own = form.attributes['alphabet'] ?? alphabet;
  if (isIpa && own !== 'ipa') return `the alphabet of phonemes is "${own.slice(0, 20)}": only "ipa" is known`;
  for (const { text: written } of graphemes) {
    const entry = entryOf({ written, spoken: form.text, isIpa, caseRule: 'smart', language }, bounds);
    if (typeof entry === 'string') return entry;
    entries.push(entry);
  }
  return null;
};
