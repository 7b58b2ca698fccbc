/** When the words of a segment are spoken. */
import type { SegmentRequest, WordTime } from '../../src/threads/messages.js';

/** The first sample of a sound, and the one after its last. */
export interface Stretch {
  readonly start: number;
  readonly end: number;
}

export class WordTimes {
  readonly #request: Pick<SegmentRequest, 'words' | 'spoken'>;
  #next = 0;
  #end = 0;

  constructor(request: Pick<SegmentRequest, 'words' | 'spoken'>) {
    this.#request = request;
  }

  /**
   * The next words, up to one that ends after this sample, or whose time is not known. Words that are spoken as one have equal
   * shares; each begins after the one before it.
   *
   * @param stretchOf the first of the words that are spoken as one; `null`: not known yet; `undefined`: it has no sound
   */
  until(sample: number, stretchOf: (word: number) => Stretch | null | undefined): WordTime[] {
    const { words, spoken = [] } = this.#request;
    const times: WordTime[] = [];
    for (; this.#next < words.length; this.#next++) {
      const word = this.#next;
      const form = spoken.find(({ first, last }) => first <= word && word <= last);
      const { first, last } = form ?? { first: word, last: word };
      const stretch = stretchOf(first);
      if (stretch === null) break;
      const { start, end } = stretch ?? { start: this.#end, end: this.#end };
      const share = (end - start) / (last - first + 1);
      const at = (count: number) => Math.max(this.#end, start + Math.round(count * share));
      const time: WordTime = { word, startSample: at(word - first), endSample: at(word - first + 1) };
      if (time.endSample > sample) break;
      this.#end = time.endSample;
      times.push(time);
    }
    return times;
  }
}
