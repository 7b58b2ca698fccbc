/** What every encoding implements. An encoder belongs to one context. */

export interface Flushed {
  readonly payload: Uint8Array;
  /** Samples of silence, at the encoder's rate, that are now part of the sound. */
  readonly silenceSamples: number;
}

export interface Encoder {
  /** Rate of the samples that it takes: the format's, or the nearest one that the codec has. */
  readonly sampleRateHz: number;
  /** By how many samples the sound comes later in what decoders make of a stream. Whole files tell them of it. */
  readonly streamDelaySamples: number;
  /** @param samples mono; @returns payload bytes, perhaps fewer than were fed or none */
  encode(samples: Int16Array): Uint8Array;
  /** Feeds silence until all that was fed before it can be decoded from the payload so far. More may follow. */
  flush(): Flushed;
  /** The last payload bytes, after all samples. */
  finish(): Uint8Array;
  /** Bytes before a chunk of a stream. */
  chunkHeader(payloadBytes: number, first: boolean): Uint8Array;
  /** Bytes before the payload of a whole file, asked for after `finish`; their number never changes. */
  fileHeader(payloadBytes: number): Uint8Array;
  /** Idempotent. */
  dispose(): void;
}
