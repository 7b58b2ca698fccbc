/**
 * LAME 3.100 as WebAssembly with SIMD: `scripts/lame/build.sh` makes `lame.wasm` from its source. Each encoder has a memory
 * of its own, which the garbage collector frees.
 */
import type { MpegFormat } from './mpeg.js';
import { instanceOf } from './wasm-codec.js';

/** Pointers are byte offsets. Counts of bytes are negative after an error. */
interface LameExports {
  readonly memory: WebAssembly.Memory;
  _initialize(): void;
  allocate(bytes: number): number;
  /** @returns the encoder, or 0 if LAME does not take the format */
  open(sampleRateHz: number, bitrateKbps: number, quality: number, gain: number): number;
  encode(encoder: number, samples: number, count: number, out: number, outBytesMax: number): number;
  finish(encoder: number, out: number, outBytesMax: number): number;
  close(encoder: number): void;
}

/** 0 is the best, 9 the fastest. */
const QUALITY = 7;
/** Samples per call; bounds the memory. */
const BLOCK_SAMPLES = 4_096;
/** LAME's own bound: five quarters of the samples, and its buffers. */
const OUT_BYTES_MAX = 1.25 * BLOCK_SAMPLES + 7_200;

/** LAME lowers the volume a little, more at low bitrates; its input is raised by the same factor. */
const gainOf = (bitrateKbps: number): number => {
  if (bitrateKbps >= 256) return 1;
  if (bitrateKbps >= 224) return 1 / 0.98;
  return bitrateKbps >= 192 ? 1 / 0.97 : 1 / 0.95;
};

export class Lame {
  readonly #wasm: LameExports;
  readonly #samples: number;
  readonly #out: number;
  #encoder = 0;

  /** `configure` comes first. */
  constructor(module: WebAssembly.Module) {
    // LAME's messages would need calls; it has none to give.
    this.#wasm = instanceOf(module, 0) as LameExports;
    this.#samples = this.#wasm.allocate(2 * BLOCK_SAMPLES);
    this.#out = this.#wasm.allocate(OUT_BYTES_MAX);
  }

  /** Begins new audio, without state of earlier audio. */
  configure({ sampleRateHz, bitrateKbps }: MpegFormat): void {
    if (this.#encoder !== 0) this.#wasm.close(this.#encoder);
    this.#encoder = this.#wasm.open(sampleRateHz, bitrateKbps, QUALITY, gainOf(bitrateKbps));
    if (this.#encoder === 0) throw new Error(`LAME has no ${bitrateKbps} kbps at ${sampleRateHz} Hz`);
  }

  encode(samples: Int16Array): Uint8Array {
    const parts: Uint8Array[] = [];
    for (let start = 0; start < samples.length; start += BLOCK_SAMPLES) {
      const block = samples.subarray(start, start + BLOCK_SAMPLES);
      // The buffer is read each time: it is replaced when the memory grows.
      new Int16Array(this.#wasm.memory.buffer, this.#samples, block.length).set(block);
      parts.push(
        this.#taken(this.#wasm.encode(this.#encoder, this.#samples, block.length, this.#out, OUT_BYTES_MAX)),
      );
    }
    return Buffer.concat(parts);
  }

  /** The last bytes. `configure` must follow. */
  finalize(): Uint8Array {
    return this.#taken(this.#wasm.finish(this.#encoder, this.#out, OUT_BYTES_MAX));
  }

  #taken(bytes: number): Uint8Array {
    if (bytes < 0) throw new Error(`LAME failed with ${bytes}`);
    return new Uint8Array(this.#wasm.memory.buffer, this.#out, bytes).slice();
  }
}
