/**
 * Turns texts into the phones that the service would speak, for the training of the voice: `phonemes.js [LANGUAGE]`.
 *
 * The first line on standard output is `{"phones", "vowels"}`: the names of all phones in id order, and which of them are
 * vowels. Then each line of standard input, a text as a JSON string, is answered by one line with the parallel arrays
 * `{"ids", "stress", "wordStart", "terminal"}`: a pause, then clauses with a pause after each.
 *
 * Without a language, the phones are those of the English voice. With one, they are espeak-ng's own symbols in the order in
 * which the texts need them, so that no sound of the language is lost.
 */
import { createInterface } from 'node:readline';
import { limits } from '../../src/limits.js';
import { wordSpans } from '../../src/text/words.js';
import { clausesOf } from '../../workers/engines/g2p/clauses.js';
import { Espeak } from '../../workers/engines/g2p/espeak.js';
import { english, spokenLanguage } from '../../workers/engines/g2p/languages.js';
import { Pronouncer, type PhoneString } from '../../workers/engines/g2p/pronunciation.js';
import { consonantNames, pauseName, vowelNames } from '../../workers/engines/syrinx/ipa.js';
import { PhoneSet, stressOfSyllables } from '../../workers/engines/syrinx/phones.js';
import { PhoneTrack } from '../../workers/engines/syrinx/track.js';

const vowelSign = /[aeiouyæøœɐɑɒɔɘəɚɛɜɝɞɤɨɪɯɵɶʉʊʌʏᵻ]|[lmnrŋ]̩/u;
/** A vowel or a diphthong, or consonants; each with its marks. espeak-ng writes some in one ("ja"). */
const sound =
  /[aeiouyæøœɐɑɒɔɘəɚɛɜɝɞɤɨɪɯɵɶʉʊʌʏᵻ][aeiouyæøœɐɑɒɔɘəɚɛɜɝɞɤɨɪɯɵɶʉʊʌʏᵻː\p{M}-]*|[^aeiouyæøœɐɑɒɔɘəɚɛɜɝɞɤɨɪɯɵɶʉʊʌʏᵻ]+/gu;

/** espeak-ng's symbols, numbered as they come. */
class SymbolSet {
  readonly pause = 0;
  readonly names = [pauseName];
  readonly #ids = new Map<string, number>();
  readonly #vowels = new Set<number>();

  isVowel(id: number): boolean {
    return this.#vowels.has(id);
  }

  get vowels(): string[] {
    return [...this.#vowels].map((id) => this.names[id]!);
  }

  read(group: string): PhoneString {
    const ids: number[] = [];
    const stress: number[] = [];
    for (const symbol of group.replaceAll(/\([a-z-]*\)/g, '').split('_')) {
      let stressed = /[ˈˌ]/.test(symbol) ? 1 : 0;
      for (const [bare] of symbol
        .normalize('NFD')
        .replaceAll(/[ˈˌ\d‍͡"^]/gu, '')
        .matchAll(sound)) {
        if (!/\p{L}/u.test(bare)) continue;
        const id = this.#id(bare);
        const vowel = this.#vowels.has(id);
        ids.push(id);
        stress.push(vowel ? stressed : 0);
        if (vowel) stressed = 0;
      }
    }
    return { ids, stress };
  }

  spreadStress(word: PhoneString): number[] {
    return stressOfSyllables(word, this.#vowels, this.#id('ə'));
  }

  #id(symbol: string): number {
    let id = this.#ids.get(symbol);
    if (id === undefined) {
      id = this.names.push(symbol) - 1;
      this.#ids.set(symbol, id);
      if (vowelSign.test(symbol)) this.#vowels.add(id);
    }
    return id;
  }
}

const asked = process.argv[2];
const language = asked === undefined ? english : spokenLanguage(asked);
const englishNames = [pauseName, ...vowelNames, ...consonantNames];
const phones = asked === undefined ? new PhoneSet(englishNames) : new SymbolSet();
const pronouncer = new Pronouncer(await Espeak.load(limits), phones, limits);

const lines: string[] = [];
for await (const line of createInterface({ input: process.stdin })) {
  const text = JSON.parse(line) as string;
  const words = wordSpans(text);
  const means = { pronouncer, phones, bounds: limits };
  const clauses = clausesOf(text, words, [], { before: '', after: '' }, language);
  const track = new PhoneTrack(clauses, words.length, means);
  while (!track.complete) track.advance();
  const { ids, stress, wordStart, terminal } = track;
  lines.push(JSON.stringify({ ids, stress, wordStart, terminal }));
}
const [names, vowels] =
  phones instanceof SymbolSet ? [phones.names, phones.vowels] : [englishNames, vowelNames];
process.stdout.write(`${[JSON.stringify({ phones: names, vowels }), ...lines].join('\n')}\n`);
