/** Counts code points of a text that comes in pieces, which may part a surrogate pair. */
import { codePointCount } from '../../text/code-points.js';

const isHigh = (unit: number): boolean => unit >= 0xd800 && unit < 0xdc00;
const isLow = (unit: number): boolean => unit >= 0xdc00 && unit < 0xe000;

export class CharacterCount {
  #endsHigh = false;

  /** @returns code points that the piece adds */
  add(text: string): number {
    if (text === '') return 0;
    const joins = this.#endsHigh && isLow(text.charCodeAt(0));
    this.#endsHigh = isHigh(text.charCodeAt(text.length - 1));
    return codePointCount(text) - (joins ? 1 : 0);
  }

  /** What follows begins a new text. */
  reset(): void {
    this.#endsHigh = false;
  }
}
