/** Speaks one segment: its sentences one after the other. */
import type { SegmentRequest } from '../../../src/threads/messages.js';
import type { EngineChunk, SegmentSynthesis } from '../engine.js';
import { joinFloats, toInt16 } from '../pcm.js';
import { type Stretch, WordTimes } from '../word-times.js';
import type { Sentence } from './ids.js';
import type { SentenceReading } from './reading.js';

/** Milliseconds of silence for a text without a sound. */
const blankMs = 300;

/** What a segment needs. */
export interface PiperSegmentParts {
  readonly sampleRateHz: number;
  readonly request: Pick<SegmentRequest, 'words' | 'spoken'>;
  /** Brings the voice to the usual level. */
  readonly gain: number;
  /** Multiplications of a step. */
  readonly stepWork: number;
  /** Called once, in the first step. */
  readonly sentences: () => readonly Sentence[];
  readonly read: (sentence: Sentence, place: number) => SentenceReading;
}

/** The ids of a word: the first, and the one after the last. They can be in different sentences. */
interface WordPlace {
  readonly first: { readonly sentence: number; readonly id: number };
  end: { readonly sentence: number; readonly id: number };
}

export class PiperSegment implements SegmentSynthesis {
  readonly sampleRateHz: number;
  readonly #parts: PiperSegmentParts;
  readonly #wordTimes: WordTimes;
  #sentences: readonly Sentence[] | undefined;
  readonly #readings: SentenceReading[] = [];
  /** The first sample of each sentence that was begun. */
  readonly #starts: number[] = [];
  readonly #places = new Map<number, WordPlace>();
  #samples = 0;
  #isOver = false;

  constructor(parts: PiperSegmentParts) {
    this.#parts = parts;
    this.sampleRateHz = parts.sampleRateHz;
    this.#wordTimes = new WordTimes(parts.request);
  }

  /** That of the sentence that it speaks: the first pieces are shorter. */
  get window(): number {
    const last = this.#readings.at(-1);
    return last === undefined || last.isOver ? 0 : last.window;
  }

  async step(): Promise<EngineChunk | null> {
    if (this.#isOver) return null;
    if (this.#sentences === undefined) {
      this.#sentences = this.#parts.sentences();
      for (const [sentence, { words }] of this.#sentences.entries())
        for (const [id, word] of words.entries()) this.#place(word, sentence, id);
    }
    const pieces: Float32Array[] = [];
    let work = 0;
    // A short run leaves time for the next: a small voice has its first sound in its first step. A run that took half of a
    // step does not: the next one takes as long again.
    do {
      const reading = this.#current();
      if (reading === null) break;
      const made = await reading.advance();
      work += made.work;
      if (made.pcm !== null) pieces.push(made.pcm);
    } while (pieces.length === 0 && work < this.#parts.stepWork / 2);
    this.#isOver = this.#current() === null;
    if (this.#isOver && this.#samples === 0 && pieces.length === 0)
      pieces.push(new Float32Array((blankMs * this.sampleRateHz) / 1_000));
    return this.#chunk(joinFloats(pieces));
  }

  #chunk(pcm: Float32Array): EngineChunk {
    const { gain } = this.#parts;
    for (let i = 0; i < pcm.length; i++) pcm[i]! *= gain;
    this.#samples += pcm.length;
    const until = this.#isOver ? Infinity : this.#samples;
    return {
      pcm: toInt16(pcm),
      words: pcm.length === 0 ? [] : this.#wordTimes.until(until, this.#stretchOf),
      last: this.#isOver,
    };
  }

  /** The sentence that is being spoken, or `null` at the end. */
  #current(): SentenceReading | null {
    const last = this.#readings.at(-1);
    if (last !== undefined && !last.isOver) return last;
    const place = this.#readings.length;
    const sentence = this.#sentences![place];
    if (sentence === undefined) return null;
    const start = last === undefined ? 0 : this.#starts.at(-1)! + last.sampleOf(last.sentence.ids.length);
    this.#starts.push(start);
    const reading = this.#parts.read(sentence, place);
    this.#readings.push(reading);
    return reading;
  }

  #place(word: number, sentence: number, id: number): void {
    if (word < 0) return;
    const end = { sentence, id: id + 1 };
    const known = this.#places.get(word);
    if (known === undefined) this.#places.set(word, { first: { sentence, id }, end });
    else known.end = end;
  }

  #sampleAt({ sentence, id }: WordPlace['end']): number | null {
    const reading = this.#readings[sentence];
    return reading?.isEncoded === true ? this.#starts[sentence]! + reading.sampleOf(id) : null;
  }

  /** The samples of a word; `null` while they are not known. */
  readonly #stretchOf = (word: number): Stretch | null | undefined => {
    const place = this.#places.get(word);
    if (place === undefined) return undefined;
    const start = this.#sampleAt(place.first);
    const end = this.#sampleAt(place.end);
    return start === null || end === null ? null : { start, end };
  };
}
