/** What encoders have in common that make bytes of each sample by itself: nothing is held back, nothing delayed. */
import type { Encoder, Flushed } from './encoder.js';

export const NOTHING = new Uint8Array(0);

const FLUSHED: Flushed = { payload: NOTHING, silenceSamples: 0 };

/** Headerless. */
export abstract class DirectEncoder implements Encoder {
  readonly sampleRateHz: number;
  readonly streamDelaySamples = 0;

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
    // Holds nothing.
  }
}
