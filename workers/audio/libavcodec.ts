/**
 * The AAC encoder of FFmpeg 5.1 as WebAssembly with SIMD: `scripts/aac/build.sh` makes `aac.wasm` from its source. A thread loads
 * it with its first context in AAC. All encoders of a thread share one memory, of which each takes 1.2 MiB until it is closed.
 */
import { readFile } from 'node:fs/promises';

/** Pointers are byte offsets. */
interface AacExports {
  readonly memory: WebAssembly.Memory;
  _initialize(): void;
  /** @returns the encoder, or 0 if FFmpeg does not take the format */
  open(sampleRateHz: number, bitrateKbps: number): number;
  /** Where the samples of a block go in. */
  samples(): number;
  /** @returns the bytes of a packet, 0 if none is complete; negative after an error */
  encode(encoder: number): number;
  /** Where these bytes are. */
  out(encoder: number): number;
  close(encoder: number): void;
}

/** Samples of a block that goes in, and of a packet that comes out. */
export const BLOCK_SAMPLES = 1_024;
/** The answer to all system calls. FFmpeg needs none. With the answer 0, its start would look for folders for ever. */
const EBADF = 8;

/** Resolves the path from `dist`, too. */
const wasmPath = new URL('workers/audio/aac.wasm', import.meta.resolve('syrinx/package.json'));

let compiled: Promise<WebAssembly.Module> | undefined;
let shared: AacExports | undefined;

const compile = async (): Promise<WebAssembly.Module> => {
  try {
    return await WebAssembly.compile(await readFile(wasmPath));
  } catch (error) {
    // The next context tries again.
    compiled = undefined;
    throw error;
  }
};

const instantiate = (module: WebAssembly.Module): AacExports => {
  const imports = Object.fromEntries(
    WebAssembly.Module.imports(module).map(({ name }) => [name, () => EBADF]),
  );
  const instance = new WebAssembly.Instance(module, { wasi_snapshot_preview1: imports });
  const wasm = instance.exports as unknown as AacExports;
  wasm._initialize();
  return wasm;
};

export class LibavcodecAac {
  readonly #wasm: AacExports;
  #encoder: number;

  private constructor(wasm: AacExports, encoder: number) {
    this.#wasm = wasm;
    this.#encoder = encoder;
  }

  static async open(sampleRateHz: number, bitrateKbps: number): Promise<LibavcodecAac> {
    const module = await (compiled ??= compile());
    const wasm = (shared ??= instantiate(module));
    const encoder = wasm.open(sampleRateHz, bitrateKbps);
    if (encoder === 0) throw new Error(`FFmpeg has no AAC of ${bitrateKbps} kbps at ${sampleRateHz} Hz`);
    return new LibavcodecAac(wasm, encoder);
  }

  /** @param samples a block @returns a packet, which is empty if none is complete */
  encode(samples: Int16Array): Uint8Array {
    if (this.#encoder === 0) throw new Error('the encoder was closed');
    // The buffer is read each time: it is replaced when the memory grows.
    new Int16Array(this.#wasm.memory.buffer, this.#wasm.samples(), BLOCK_SAMPLES).set(samples);
    const bytes = this.#encode();
    return new Uint8Array(this.#wasm.memory.buffer, this.#wasm.out(this.#encoder), bytes).slice();
  }

  /** Idempotent. */
  close(): void {
    if (this.#encoder !== 0) this.#wasm.close(this.#encoder);
    this.#encoder = 0;
  }

  #encode(): number {
    try {
      const bytes = this.#wasm.encode(this.#encoder);
      if (bytes < 0) throw new Error(`FFmpeg failed with ${bytes}`);
      return bytes;
    } catch (error) {
      // What is in this memory may be wrong: new contexts get another one.
      this.#encoder = 0;
      if (shared === this.#wasm) shared = undefined;
      throw error;
    }
  }
}
