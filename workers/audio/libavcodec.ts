/**
 * The AAC encoder of FFmpeg 5.1 as WebAssembly with SIMD: `scripts/aac/build.sh` makes `aac.wasm` from its source. A thread loads
 * it with its first context in AAC. Encoders share a memory, of which each takes 1.2 MiB. A memory never shrinks, so it is
 * dropped when its last encoder is closed.
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
/** Encoders of one memory: few, because the last one keeps the memory of all. */
export const ENCODERS_MAX = 64;
/** The answer to all system calls. FFmpeg has no use for any, and with 0 its start would look for folders without end. */
const EBADF = 8;

/** Resolves the path from `dist`, too. */
const wasmPath = new URL('workers/audio/aac.wasm', import.meta.resolve('syrinx/package.json'));

let compiled: Promise<WebAssembly.Module> | undefined;

const compile = async (): Promise<WebAssembly.Module> => {
  try {
    return await WebAssembly.compile(await readFile(wasmPath));
  } catch (error) {
    // The next context tries again.
    compiled = undefined;
    throw error;
  }
};

/** A memory and its encoders. */
class Memory {
  /** For new encoders. */
  static #current: Memory | undefined;

  readonly wasm: AacExports;
  #encoders = 0;
  #isFaulty = false;

  private constructor(module: WebAssembly.Module) {
    const imports = Object.fromEntries(
      WebAssembly.Module.imports(module).map(({ name }) => [name, () => EBADF]),
    );
    const instance = new WebAssembly.Instance(module, { wasi_snapshot_preview1: imports });
    this.wasm = instance.exports as unknown as AacExports;
    this.wasm._initialize();
  }

  static take(module: WebAssembly.Module): Memory {
    let memory = Memory.#current;
    if (memory === undefined || memory.#encoders === ENCODERS_MAX) memory = new Memory(module);
    Memory.#current = memory;
    memory.#encoders++;
    return memory;
  }

  /** Call it once for each `take`. */
  give(): void {
    if (--this.#encoders === 0) this.#drop();
  }

  /** Runs its code. After a failure its content may be wrong: its encoders fail, and new ones get another memory. */
  guard<Result>(run: () => Result): Result {
    if (this.#isFaulty) throw new Error('another encoder failed in this memory');
    try {
      return run();
    } catch (error) {
      this.#isFaulty = true;
      this.#drop();
      throw error;
    }
  }

  #drop(): void {
    if (Memory.#current === this) Memory.#current = undefined;
  }
}

export class LibavcodecAac {
  readonly #memory: Memory;
  readonly #encoder: number;
  #isClosed = false;

  private constructor(memory: Memory, encoder: number) {
    this.#memory = memory;
    this.#encoder = encoder;
  }

  static async open(sampleRateHz: number, bitrateKbps: number): Promise<LibavcodecAac> {
    const memory = Memory.take(await (compiled ??= compile()));
    try {
      return memory.guard(() => {
        const encoder = memory.wasm.open(sampleRateHz, bitrateKbps);
        if (encoder === 0)
          throw new Error(`FFmpeg could not begin AAC of ${bitrateKbps} kbps at ${sampleRateHz} Hz`);
        return new LibavcodecAac(memory, encoder);
      });
    } catch (error) {
      memory.give();
      throw error;
    }
  }

  /** @param samples a block @returns a packet, which is empty if none is complete */
  encode(samples: Int16Array): Uint8Array {
    if (this.#isClosed) throw new Error('the encoder was closed');
    const { wasm } = this.#memory;
    return this.#memory.guard(() => {
      // The buffer is read each time: it is replaced when the memory grows.
      new Int16Array(wasm.memory.buffer, wasm.samples(), BLOCK_SAMPLES).set(samples);
      const bytes = wasm.encode(this.#encoder);
      if (bytes < 0) throw new Error(`FFmpeg failed with ${bytes}`);
      return new Uint8Array(wasm.memory.buffer, wasm.out(this.#encoder), bytes).slice();
    });
  }

  /** Idempotent. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    try {
      this.#memory.guard(() => this.#memory.wasm.close(this.#encoder));
    } catch {
      // The garbage collector frees a faulty memory.
    }
    this.#memory.give();
  }
}
