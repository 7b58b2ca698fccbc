/** From samples at the voice's rate to payload: resampler and encoder, with the duration of what they put out. */
import { NOTHING, type Encoder } from './encoder.js';
import { Resampler } from './resampler.js';

export interface Encoded {
  readonly payload: Uint8Array;
  /** Duration of the speech fed since the last payload, without silence. 0 without payload. */
  readonly durationMs: number;
}

const concat = (a: Uint8Array, b: Uint8Array): Uint8Array => {
  if (a.length === 0) return b;
  return b.length === 0 ? a : Buffer.concat([a, b]);
};

/** Counts in samples at the voice's rate, which may be fractional. */
export class AudioPath {
  readonly #engineSampleRateHz: number;
  readonly #encoder: Encoder;
  readonly #resampler: Resampler;
  /** Fed, but not yet counted in an `Encoded`. */
  #pendingSamples = 0;
  /** The payload so far holds everything that was fed. */
  #isDrained = true;

  /** @param encoder is owned and disposed of by the path */
  constructor(engineSampleRateHz: number, encoder: Encoder) {
    this.#engineSampleRateHz = engineSampleRateHz;
    this.#encoder = encoder;
    this.#resampler = new Resampler(engineSampleRateHz, encoder.sampleRateHz);
  }

  /** Delay of the audio in a stream. */
  get streamDelaySamples(): number {
    return this.#fromEncoderRate(this.#encoder.streamDelaySamples);
  }

  /** Milliseconds that a decoder of a stream plays of the payload so far, with the delay. */
  get decodableMs(): number {
    return (this.#encoder.decodableSamples * 1000) / this.#encoder.sampleRateHz;
  }

  /** The resampler keeps at most so many of the samples that it was fed. */
  get resamplerSamples(): number {
    return this.#resampler.flushSamples;
  }

  encode(samples: Int16Array): Encoded {
    this.#isDrained = false;
    this.#pendingSamples += samples.length;
    return this.#account(this.#encode(this.#resampler.process(samples)));
  }

  /** Pushes out everything that was fed, with silence that becomes part of the audio. Adds none if nothing is held back. */
  flush(): Encoded & { readonly silenceSamples: number } {
    if (this.#isDrained) return { payload: NOTHING, durationMs: 0, silenceSamples: 0 };
    this.#isDrained = true;
    const silence = new Int16Array(this.#resampler.flushSamples);
    const resampled = this.#encode(this.#resampler.process(silence));
    const { payload, silenceSamples } = this.#encoder.flush();
    return {
      ...this.#account(concat(resampled, payload)),
      silenceSamples: silence.length + this.#fromEncoderRate(silenceSamples),
    };
  }

  /** The rest. Nothing may be fed after it. */
  finish(): Encoded {
    const resampled = this.#encode(this.#resampler.finish());
    return this.#account(concat(resampled, this.#encoder.finish()));
  }

  /** Idempotent. */
  dispose(): void {
    this.#resampler.dispose();
    this.#encoder.dispose();
  }

  #encode(samples: Int16Array): Uint8Array {
    return samples.length === 0 ? NOTHING : this.#encoder.encode(samples);
  }

  #fromEncoderRate(samples: number): number {
    return (samples * this.#engineSampleRateHz) / this.#encoder.sampleRateHz;
  }

  #account(payload: Uint8Array): Encoded {
    if (payload.length === 0) return { payload, durationMs: 0 };
    const durationMs = (this.#pendingSamples * 1000) / this.#engineSampleRateHz;
    this.#pendingSamples = 0;
    return { payload, durationMs };
  }
}
