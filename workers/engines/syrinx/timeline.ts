/**
 * Places phones in time: encodes them window by window, gives each a length in whole frames, and builds the input of
 * the frame net for any range of frames.
 */
import { type FrameFeeds, type Graphs, toBigInt } from './graphs.js';
import { type ClauseStyle, type Prosody, pauseStyle } from './prosody.js';
import { type Pause, type PhoneTrack, placeMax } from './track.js';

/** Phones of each encoder window without its margins; the last size repeats. A short first chunk needs only the first window. */
export const windowPhones = [8, 16, 32] as const;
/** Place of the first window: one that most first chunks need no other beside. A run costs .5 ms, however few its phones. */
const firstWindow = { short: 0, medium: 0, long: 1, longest: 2 } as const;

/** The highest position within a phone, in frames, that the frame net knows. */
const positionMax = 20;

/** Lengths of pauses in frames. After a segment's last sound only this much is decoded; the rest is plain silence. */
const leadFrames = 2;
const innerPauses: Readonly<Record<Exclude<Pause, 'lead'>, readonly [min: number, max: number]>> = {
  clause: [10, 24],
  sentence: [26, 40],
};
const lastFrames: Readonly<Record<Exclude<Pause, 'lead'>, number>> = { sentence: 6, clause: 5 };

/** The output of an encoder window: columns of the phones from `first` on, used up to the phone `to`. */
interface Window {
  readonly hidden: Float32Array;
  readonly first: number;
  readonly count: number;
  readonly to: number;
}

/** A phone and the frames that it lasts. */
export interface PhoneSpan {
  readonly id: number;
  readonly start: number;
  readonly end: number;
}

export class Timeline {
  readonly #track: PhoneTrack;
  readonly #graphs: Graphs;
  readonly #prosody: Prosody;
  /** The style of each clause, by its place in the track. */
  readonly #styles: ClauseStyle[] = [];
  /** The first frame of each phone with a known length, and the frame after the last one. */
  readonly #starts: number[] = [0];
  #windows: Window[] = [];
  /** Place of the next window. */
  #window: number;

  constructor(track: PhoneTrack, graphs: Graphs, prosody: Prosody, begins: keyof typeof firstWindow) {
    this.#window = firstWindow[begins];
    this.#track = track;
    this.#graphs = graphs;
    this.#prosody = prosody;
  }

  /** The number of frames whose phones are known. */
  get frames(): number {
    return this.#starts.at(-1)!;
  }

  /** All frames are known. */
  get complete(): boolean {
    return this.#track.complete && this.#encoded === this.#track.length;
  }

  get #encoded(): number {
    return this.#starts.length - 1;
  }

  /** Encodes until the start of the segment is known. @returns its first frame, or `null` if it has no sound */
  async begin(): Promise<number | null> {
    while (!this.complete && !(this.#track.first >= 0 && this.#encoded >= this.#track.first))
      await this.#encodeWindow();
    return this.#track.first < 0 ? null : this.#starts[this.#track.first]!;
  }

  /** The frame after the segment's last; infinite while it is unknown. */
  get end(): number {
    return this.#starts[this.#track.end] ?? Number.POSITIVE_INFINITY;
  }

  /** Encodes until `frames` frames, or all, are known. */
  async extend(frames: number): Promise<void> {
    while (this.frames < frames && !this.complete) await this.#encodeWindow();
  }

  async #encodeWindow(): Promise<void> {
    const track = this.#track;
    const margin = this.#graphs.margins.phones;
    const from = this.#encoded;
    const size = windowPhones[Math.min(this.#window++, windowPhones.length - 1)]!;
    while (!track.complete && track.ready < from + size + margin) track.advance();
    const to = Math.min(track.length, from + size);
    // The rest of the text had no sound.
    if (to === from) return;
    const first = Math.max(0, from - margin);
    const last = Math.min(track.length, to + margin);
    const count = last - first;
    const ids = new BigInt64Array(4 * count);
    const place = new Float32Array(2 * count);
    const style = new Float32Array(4 * count);
    for (let i = 0; i < count; i++) {
      const phone = first + i;
      ids[i] = toBigInt(track.ids[phone]!);
      ids[count + i] = toBigInt(track.stress[phone]!);
      ids[2 * count + i] = toBigInt(track.wordStart[phone]!);
      const { terminal, values } = this.#styleOf(phone);
      ids[3 * count + i] = toBigInt(terminal);
      for (const [row, value] of values.entries()) style[row * count + i] = value;
      place[i] = Math.min(phone - track.clauseStart[phone]!, placeMax) / placeMax;
      place[count + i] = track.phonesToEnd(phone) / placeMax;
    }
    const { hidden, duration, spread } = await this.#graphs.encode({ ids, place, style });
    this.#windows.push({ hidden, first, count, to });
    for (let phone = from; phone < to; phone++)
      this.#starts.push(this.frames + this.#length(phone, duration[phone - first]!, spread[phone - first]!));
  }

  #styleOf(phone: number): ClauseStyle {
    if (this.#track.pause[phone] !== null) return pauseStyle;
    const { number, isCut, terminal } = this.#track.clauseOf(phone);
    return (this.#styles[number] ??= this.#prosody.styleOf(isCut ? null : number, terminal));
  }

  #length(phone: number, usual: number, spread: number): number {
    if (this.#track.aside[phone] === true) return this.#prosody.usualFrames(usual);
    const pause = this.#track.pause[phone] ?? null;
    if (pause === null) return this.#prosody.soundFrames(phone, this.#track.isVowel(phone), usual, spread);
    if (pause === 'lead') return leadFrames;
    if (phone === this.#track.length - 1 && this.#track.complete) return lastFrames[pause];
    return this.#prosody.pauseFrames(phone, usual, spread, innerPauses[pause]);
  }

  /** The phone that a frame belongs to. */
  #phoneAt(frame: number): number {
    let low = 0;
    let high = this.#encoded - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.#starts[middle]! <= frame) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  /** The frame net's feeds for the window of the frames `from` to `to`. */
  feeds(from: number, to: number): FrameFeeds {
    const count = to - from;
    const firstPhone = this.#phoneAt(from);
    const phones = this.#phoneAt(to - 1) - firstPhone + 1;
    const index = new BigInt64Array(count);
    const position = new Float32Array(4 * count);
    const isEnd = this.complete && to === this.frames;
    for (let place = 0; place < phones; place++) {
      const start = this.#starts[firstPhone + place]!;
      const length = this.#starts[firstPhone + place + 1]! - start;
      const logLength = Math.log(length) / 3;
      const column = toBigInt(place);
      for (let frame = Math.max(start, from); frame < Math.min(start + length, to); frame++) {
        const at = frame - from;
        const within = frame - start;
        index[at] = column;
        position[at] = (within + 0.5) / length;
        position[count + at] = Math.min(within, positionMax) / positionMax;
        position[2 * count + at] = Math.min(length - 1 - within, positionMax) / positionMax;
        position[3 * count + at] = logLength;
      }
    }
    const noise = new Float32Array(this.#graphs.sizes.noise * count);
    this.#prosody.fillNoise(noise, from, count);
    return {
      hidden: this.#gather(firstPhone, phones),
      index,
      position,
      noise,
      edges: BigInt64Array.of(from === 0 ? 1n : 0n, isEnd ? 1n : 0n),
    };
  }

  /** Copies the hidden states of some phones out of the windows, and drops the windows before them. */
  #gather(firstPhone: number, phones: number): Float32Array {
    const hidden = new Float32Array(this.#graphs.sizes.hidden * phones);
    this.#windows = this.#windows.filter(({ to }) => to > firstPhone);
    let phone = firstPhone;
    for (const { hidden: source, first, count, to } of this.#windows) {
      const end = Math.min(to, firstPhone + phones);
      for (let channel = 0; channel < this.#graphs.sizes.hidden; channel++)
        for (let column = phone; column < end; column++)
          hidden[channel * phones + column - firstPhone] = source[channel * count + column - first]!;
      phone = Math.max(phone, end);
    }
    return hidden;
  }

  /** The frames of a word; `null` while some are unknown; `undefined`: it has no sound. */
  wordFrames(word: number): { start: number; end: number } | null | undefined {
    if (word >= this.#track.wordsReady) return null;
    const first = this.#track.wordFirst[word]!;
    if (first < 0) return undefined;
    const last = this.#track.wordLast[word]!;
    return last >= this.#encoded ? null : { start: this.#starts[first]!, end: this.#starts[last + 1]! };
  }

  /** All phones that the segment speaks, for measurements. */
  get spoken(): PhoneSpan[] {
    const { first, end, ids } = this.#track;
    const spans: PhoneSpan[] = [];
    for (let phone = Math.max(0, first); phone < Math.min(end, this.#encoded); phone++)
      spans.push({ id: ids[phone]!, start: this.#starts[phone]!, end: this.#starts[phone + 1]! });
    return spans;
  }

  /** How the segment ends; `null`: in the middle of a clause. Valid once `end` is known. */
  get ending(): Exclude<Pause, 'lead'> | null {
    const pause = this.#track.pause[this.#track.end - 1] ?? null;
    return pause === 'lead' ? null : pause;
  }

  /** Frames of the pause at the segment's end. */
  get endingFrames(): number {
    return this.ending === null ? 0 : lastFrames[this.ending];
  }
}
