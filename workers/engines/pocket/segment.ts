/** A segment that Pocket TTS speaks: its pieces one after the other, a frame a step. */
import type { SegmentRequest, WordTime } from '../../../src/threads/messages.js';
import type { EngineChunk, SegmentSynthesis } from '../engine.js';
import { toInt16 } from '../pcm.js';
import { gaussian, randomAt } from '../random.js';
import {
  framesOf,
  type PocketConfig,
  type PocketModel,
  type PromptState,
  type TextReading,
} from './models.js';
import { type Piece, piecesOf } from './text.js';
import type { Tokeniser } from './tokeniser.js';

export interface PocketMeans {
  readonly config: PocketConfig;
  readonly model: PocketModel;
  readonly tokeniser: Tokeniser;
  /** What the model made of the voice. */
  readonly promptState: () => Promise<PromptState>;
}

/** Keeps the noise of pieces apart from other random numbers of the seed. */
const noiseKind = 0x70_6f_63;
/** The most frames of a piece: each has its own place in the noise. */
const framesOfPiece = 4_096;
/** Speech varies more at a higher temperature, and is broken above this one. */
const temperatureMax = 1;
/** Characters of a second of speech, a little more than usual: words are reported early rather than all at the end. */
const charactersPerSecond = 16;
/** Silence for a text without a word. */
const silenceMs = 100;

/** Word times of one piece: each word gets time by its length. The last one ends with the audio. */
class WordGuess {
  readonly #words: Piece['words'];
  readonly #samplesPerWeight: number;
  #next = 0;
  #at: number;

  /** @param from the sample at which the piece begins */
  constructor({ words }: Piece, from: number, sampleRateHz: number) {
    this.#words = words;
    this.#samplesPerWeight = sampleRateHz / charactersPerSecond;
    this.#at = from;
  }

  /** The words that end by a sample, as far as can be guessed. */
  *until(end: number): Iterable<WordTime> {
    for (let word = this.#words[this.#next]; word !== undefined; word = this.#words[this.#next]) {
      // The space after a word counts, too.
      const to = Math.round(this.#at + (word.weight + 1) * this.#samplesPerWeight);
      if (to > end) return;
      yield { word: word.word, startSample: this.#at, endSample: to };
      this.#at = to;
      this.#next++;
    }
  }

  /** The other words, when the piece ends at a sample. */
  *rest(end: number): Iterable<WordTime> {
    const rest = this.#words.slice(this.#next);
    const weights = rest.reduce((sum, { weight }) => sum + weight + 1, 0);
    const from = this.#at;
    let passed = 0;
    for (const { word, weight } of rest) {
      const startSample = Math.round(from + ((end - from) * passed) / weights);
      passed += weight + 1;
      yield { word, startSample, endSample: Math.round(from + ((end - from) * passed) / weights) };
    }
    this.#next = this.#words.length;
  }
}

/** The piece that is being spoken. */
interface Running {
  readonly reading: TextReading;
  readonly guess: WordGuess;
  readonly framesMax: number;
  readonly framesAfterEnd: number;
  frame: number;
  /** The frame at which the model said that speech ends. */
  endsAt: number | null;
}

export class PocketSegment implements SegmentSynthesis {
  readonly sampleRateHz: number;
  readonly #means: PocketMeans;
  readonly #request: SegmentRequest;
  #pieces: readonly Piece[] | undefined;
  #piece = 0;
  #running: Running | null = null;
  #samples = 0;
  #isOver = false;

  constructor(request: SegmentRequest, means: PocketMeans) {
    this.sampleRateHz = means.config.sample_rate;
    this.#means = means;
    this.#request = request;
  }

  async step(): Promise<EngineChunk | null> {
    if (this.#isOver) return null;
    const { config, tokeniser } = this.#means;
    this.#pieces ??= piecesOf(this.#request, config, (text) => tokeniser.encode(text).length);
    if (this.#pieces.length === 0) return this.#silence();
    const running = this.#running;
    if (running === null) {
      this.#running = await this.#begin(this.#pieces[this.#piece]!);
      // The prompt is a step of its own: others may be due before the first frame.
      return { pcm: new Int16Array(0), words: [], last: false };
    }
    return this.#frame(running);
  }

  async #begin(piece: Piece): Promise<Running> {
    const { config, model, tokeniser, promptState } = this.#means;
    const tokens = tokeniser.encode(piece.text);
    const reading = await model.read(await promptState(), tokens);
    const framesMax = Math.min(framesOf(config, tokens), reading.framesMax, framesOfPiece);
    if (framesMax < 1) throw new Error('the voice and the text fill the memory of the model');
    return {
      ...{ reading, framesMax, frame: 0, endsAt: null },
      guess: new WordGuess(piece, this.#samples, this.sampleRateHz),
      framesAfterEnd: Math.max(1, config.frames_after_eos ?? piece.framesAfterEnd),
    };
  }

  async #frame(running: Running): Promise<EngineChunk> {
    const { pcm: made, isEnd } = await running.reading.next(this.#noise(running.frame));
    for (const sample of made)
      if (!Number.isFinite(sample)) throw new Error('it makes values that are not numbers');
    if (isEnd) running.endsAt ??= running.frame;
    running.frame++;
    const { endsAt, framesAfterEnd, frame, framesMax, guess } = running;
    const isDone = frame >= framesMax || (endsAt !== null && frame >= endsAt + framesAfterEnd);
    this.#samples += made.length;
    if (!isDone) return { pcm: toInt16(made), words: [...guess.until(this.#samples)], last: false };
    this.#running = null;
    this.#piece++;
    this.#isOver = this.#piece === this.#pieces!.length;
    return { pcm: toInt16(made), words: [...guess.rest(this.#samples)], last: this.#isOver };
  }

  /** Depends only on seed, piece and frame, so that it does not change with the order of steps. */
  #noise(frame: number): Float32Array {
    const { latent_dim: length, noise_clamp: noiseMax, temperature: own } = this.#means.config;
    const temperature = Math.min(temperatureMax, own * this.#request.settings.temperature);
    const random = randomAt(this.#request.seed, noiseKind, this.#piece * framesOfPiece + frame);
    const deviation = Math.sqrt(temperature);
    const draw = (): number => {
      const value = deviation * gaussian(random);
      return noiseMax !== null && Math.abs(value) > noiseMax ? draw() : value;
    };
    return Float32Array.from({ length }, draw);
  }

  #silence(): EngineChunk {
    this.#isOver = true;
    const pcm = new Int16Array((silenceMs * this.sampleRateHz) / 1000);
    const step = Math.floor(pcm.length / Math.max(1, this.#request.words.length));
    const words = this.#request.words.map((_, word) => ({
      ...{ word, startSample: word * step, endSample: (word + 1) * step },
    }));
    return { pcm, words, last: true };
  }
}
