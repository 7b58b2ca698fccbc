/** What every encoding implements. */
import type { Bounds } from '../../src/limits.js';

export interface Flushed {
  readonly payload: Uint8Array;
  /** Samples of silence, at the encoder's rate, that became part of the audio. */
  readonly silenceSamples: number;
}

/** The encoder of one context. */
export interface Encoder {
  /** Rate of the samples that it takes: the format's, unless the codec has a better one for the voice. */
  readonly sampleRateHz: number;
  /** Samples that a decoder of a stream puts before the audio. Headers of whole files make decoders skip them. */
  readonly streamDelaySamples: number;
  /** Samples that a decoder of a stream makes of the payload so far, with the delay. */
  readonly decodableSamples: number;
  /** @param samples mono; @returns payload bytes, perhaps for fewer samples or none */
  encode(samples: Int16Array): Uint8Array;
  /** Feeds silence until the payload so far decodes to all samples fed before it. More may follow. */
  flush(): Flushed;
  /** The last payload bytes, after all samples. */
  finish(): Uint8Array;
  /** Bytes before a chunk of a stream. */
  chunkHeader(payloadBytes: number, first: boolean): Uint8Array;
  /** Bytes before the payload of a whole file. Called after `finish`. The number of bytes is constant. */
  fileHeader(payloadBytes: number): Uint8Array;
  /** Idempotent. */
  dispose(): void;
}

export type EncoderBounds = Pick<Bounds, 'mp3EncodersWarm' | 'mp3EncodersIdleMax' | 'mp3EncodersIdleMs'>;

/** Makes the encoders of one encoding. */
export interface EncoderFactory<Format> {
  /** Loads the codec into this thread. Must resolve before the first `open`. Idempotent. */
  load?(bounds: EncoderBounds): Promise<void>;
  /**
   * Instead of `load`, when the first context needs the codec. Then `open` is work of milliseconds, so others go first.
   *
   * @returns `null` if this thread has the codec
   */
  loadLate?(): Promise<void> | null;
  /**
   * @param engineSampleRateHz rate of the voice: above half of it there is nothing to encode
   * @returns a promise if the codec's library makes its encoders asynchronously
   */
  open(format: Format, engineSampleRateHz: number): Encoder | Promise<Encoder>;
}

export const NOTHING = new Uint8Array(0);

const FLUSHED: Flushed = { payload: NOTHING, silenceSamples: 0 };

/** What most encodings have in common: no delay, no headers, nothing that is held back, and no resources. */
export abstract class BaseEncoder implements Encoder {
  readonly sampleRateHz: number;
  readonly streamDelaySamples: number = 0;
  decodableSamples = 0;

  constructor(sampleRateHz: number) {
    this.sampleRateHz = sampleRateHz;
  }

  abstract encode(samples: Int16Array): Uint8Array;

  flush(): Flushed {
    return FLUSHED;
  }

  finish(): Uint8Array {
    return NOTHING;
  }

  chunkHeader(_payloadBytes: number, _first: boolean): Uint8Array {
    return NOTHING;
  }

  fileHeader(_payloadBytes: number): Uint8Array {
    return NOTHING;
  }

  dispose(): void {
    // Holds no resources.
  }
}

/** Cuts samples into blocks of one size, which codecs take. */
export class Blocks {
  readonly #block: Int16Array;
  #filled = 0;

  constructor(samples: number) {
    this.#block = new Int16Array(samples);
  }

  /** The samples of the incomplete block; valid until the next `push`. */
  get rest(): Int16Array {
    return this.#block.subarray(0, this.#filled);
  }

  /** @returns the blocks that are now complete, one at a time: each is valid until the next */
  *push(samples: Int16Array): Generator<Int16Array, void> {
    for (let start = 0; start < samples.length;) {
      const part = samples.subarray(start, start + this.#block.length - this.#filled);
      this.#block.set(part, this.#filled);
      this.#filled += part.length;
      start += part.length;
      if (this.#filled < this.#block.length) return;
      this.#filled = 0;
      yield this.#block;
    }
  }
}
