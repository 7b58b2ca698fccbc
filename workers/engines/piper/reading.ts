/** Speaks one sentence, piece by piece: encoder, then flow and generator in turns. */
import { gaussian, randomAt } from '../random.js';
import type { Encoded, Encoding, PiperGraphs, ReadingStyle, Streaming } from './graphs.js';
import type { Sentence } from './ids.js';
import { type StreamSizes, nextPiece } from './pieces.js';

/** A healthy voice makes about 1,000 frames of a segment. */
const framesMax = 100_000;

/** Kinds of noise. Each has its own random numbers. */
const durationNoise = 1;
const frameNoise = 2;

/** Frames that are made, but not used yet. */
class FrameQueue {
  readonly #channels: number;
  #pieces: Float32Array[] = [];
  #from = 0;
  frames = 0;

  constructor(channels: number) {
    this.#channels = channels;
  }

  add(piece: Float32Array): void {
    this.#pieces.push(piece);
    this.frames += piece.length / this.#channels;
  }

  /** [channels, count] */
  take(count: number): Float32Array {
    const taken = new Float32Array(this.#channels * count);
    for (let at = 0; at < count;) {
      const piece = this.#pieces[0]!;
      const length = piece.length / this.#channels;
      const used = Math.min(count - at, length - this.#from);
      for (let channel = 0; channel < this.#channels; channel++) {
        const from = channel * length + this.#from;
        taken.set(piece.subarray(from, from + used), channel * count + at);
      }
      at += used;
      this.#from += used;
      if (this.#from === length) {
        this.#pieces.shift();
        this.#from = 0;
      }
    }
    this.frames -= count;
    return taken;
  }
}

export class SentenceReading {
  readonly sentence: Sentence;
  readonly #graphs: PiperGraphs;
  readonly #style: ReadingStyle;
  readonly #seed: number;
  readonly #place: number;
  readonly #sizes: StreamSizes;
  readonly #random: () => number;
  readonly #queue: FrameQueue;
  readonly #flow: Streaming;
  readonly #generator: Streaming;
  #encoding: Encoding | undefined;
  #encoded: Encoded | undefined;
  /** The first frame of each id, and the number of frames. */
  #starts: number[] = [];
  #id = 0;
  /** Frames that went into the flow, and into the generator. */
  #flowed = 0;
  #generated = 0;
  /** Pieces that went there. */
  #flowPieces = 0;
  #generatorPieces = 0;

  /**
   * @param seed equal seeds give equal samples
   * @param place of the sentence in its segment
   * @param sizes of pieces
   */
  constructor(
    graphs: PiperGraphs,
    sentence: Sentence,
    style: ReadingStyle,
    { seed, place, sizes }: { readonly seed: number; readonly place: number; readonly sizes: StreamSizes },
  ) {
    this.sentence = sentence;
    this.#graphs = graphs;
    this.#style = style;
    this.#seed = seed;
    this.#place = place;
    this.#sizes = sizes;
    this.#random = randomAt(seed, frameNoise, place);
    this.#queue = new FrameQueue(graphs.plan.channels);
    this.#flow = graphs.open('flow', style.speaker);
    this.#generator = graphs.open('generator', style.speaker);
  }

  /** The durations are known. */
  get isEncoded(): boolean {
    return this.#encoded !== undefined;
  }

  get isOver(): boolean {
    return this.isEncoded && this.#generated === this.#frames;
  }

  /** Equal for readings whose next piece of sound has equally many frames, unless it is the last. */
  get window(): number {
    return Math.min(this.#generatorPieces, this.#sizes.generator.length - 1);
  }

  get #frames(): number {
    return this.#starts.at(-1)!;
  }

  /** Where an id begins, in samples of the sentence. The one after the last is the sentence's end. */
  sampleOf(id: number): number {
    return this.#starts[id]! * this.#graphs.plan.generator.rate;
  }

  /** Runs one graph once. @returns the multiplications that it took, and the samples, if it was the generator */
  async advance(): Promise<{ readonly work: number; readonly pcm: Float32Array | null }> {
    const { flow, generator } = this.#graphs.plan;
    if (this.#encoded === undefined) return { work: await this.#encode(), pcm: null };
    const wanted = nextPiece(this.#sizes.generator, this.#generatorPieces, this.#frames - this.#generated);
    if (this.#queue.frames < wanted && this.#flowed < this.#frames) {
      const count = nextPiece(this.#sizes.flow, this.#flowPieces++, this.#frames - this.#flowed);
      const piece = this.#prior(this.#flowed, count);
      this.#flowed += count;
      this.#queue.add(await this.#flow(piece, count, this.#flowed === this.#frames));
      return { work: flow.work * count, pcm: null };
    }
    this.#generatorPieces++;
    this.#generated += wanted;
    const pcm = await this.#generator(this.#queue.take(wanted), wanted, this.#generated === this.#frames);
    for (let at = 0; at < pcm.length; at++)
      if (Number.isNaN(pcm[at])) throw new Error('it makes values that are not numbers');
    return { work: generator.work * wanted, pcm };
  }

  /** Runs a part of the encoder. @returns the multiplications that it took */
  async #encode(): Promise<number> {
    const { ids } = this.sentence;
    const { work, encoded } = await (this.#encoding ??= this.#openEncoder())();
    if (encoded !== null) {
      this.#setDurations(encoded);
      this.#encoding = undefined;
    }
    return work * ids.length;
  }

  #openEncoder(): Encoding {
    const { ids } = this.sentence;
    const random = randomAt(this.#seed, durationNoise, this.#place);
    const noise = Float32Array.from({ length: 2 * ids.length }, () => gaussian(random));
    return this.#graphs.encode(ids, this.#style, noise);
  }

  #setDurations(encoded: Encoded): void {
    let frame = 0;
    for (const count of encoded.durations) {
      this.#starts.push(frame);
      frame += count;
    }
    // As in the graph: a sentence has at least one frame.
    this.#starts.push(Math.max(1, frame));
    if (!(this.#frames <= framesMax)) throw new Error('the model made impossible durations');
    this.#encoded = encoded;
  }

  /** Means and noise of some frames, [channels, count]. */
  #prior(from: number, count: number): Float32Array {
    const { channels } = this.#graphs.plan;
    const { means, logDeviations } = this.#encoded!;
    const { noiseScale } = this.#style;
    const piece = new Float32Array(channels * count);
    for (let place = 0; place < count; place++) {
      while (this.#id < this.sentence.ids.length && this.#starts[this.#id + 1]! <= from + place) this.#id++;
      const row = this.#id * channels;
      // Without a duration there is one frame that belongs to no id.
      if (this.#id === this.sentence.ids.length) continue;
      for (let channel = 0; channel < channels; channel++) {
        const noise = Math.fround(gaussian(this.#random) * Math.exp(logDeviations[row + channel]!));
        piece[channel * count + place] = means[row + channel]! + noise * noiseScale;
      }
    }
    return piece;
  }
}
