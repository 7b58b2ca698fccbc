/** AAC-LC by FFmpeg, at a constant bitrate: ADTS frames (ISO/IEC 13818-7), which need no header before them. */
import type { CodecFormat } from '../../src/api/formats.js';
import { BaseEncoder, Blocks, type EncoderFactory, type Flushed, NOTHING } from './encoder.js';
import { compileWasm, instanceOf } from './wasm-codec.js';

/**
 * The AAC encoder of FFmpeg 5.1 as WebAssembly with SIMD: `scripts/aac/build.sh` makes `aac.wasm` from its source. A thread loads
 * it with its first context in AAC. Encoders share a memory, of which each takes 1.2 MiB. An encoder in new memory takes 7 ms
 * to open, and .2 ms where another one was closed. A memory never shrinks, so it is dropped some seconds after its last one.
 */

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
/** For so long the memory of new encoders is kept without one. */
const IDLE_MS = 10_000;
/** The answer to all system calls. FFmpeg has no use for any, and with 0 its start would look for folders without end. */
const EBADF = 8;

let compiling: Promise<void> | undefined;
let compiled: WebAssembly.Module | undefined;

const compile = async (): Promise<void> => {
  try {
    compiled = await compileWasm('aac.wasm');
  } catch (error) {
    // The next context tries again.
    compiling = undefined;
    throw error;
  }
};

/** @returns `null` if this thread has the codec */
export const loadAac = (): Promise<void> | null =>
  compiled === undefined ? (compiling ??= compile()) : null;

/** A memory and its encoders. */
class Memory {
  /** For new encoders. */
  static #current: Memory | undefined;

  readonly wasm: AacExports;
  #encoders = 0;
  #isFaulty = false;
  #dropping: NodeJS.Timeout | undefined;

  private constructor(module: WebAssembly.Module) {
    this.wasm = instanceOf(module, EBADF) as AacExports;
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
    if (--this.#encoders > 0 || Memory.#current !== this) return;
    clearTimeout(this.#dropping);
    this.#dropping = setTimeout(() => this.#encoders === 0 && this.#drop(), IDLE_MS).unref();
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

  /** After `loadAac`. */
  static open(sampleRateHz: number, bitrateKbps: number): LibavcodecAac {
    if (compiled === undefined) throw new Error('loadAac() must resolve before open()');
    const memory = Memory.take(compiled);
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

/** By the index in a frame's head. */
const sampleRatesHz = [
  ...[96_000, 88_200, 64_000, 48_000, 44_100, 32_000],
  ...[24_000, 22_050, 16_000, 12_000, 11_025, 8_000],
];

/** Silence before the audio: a packet overlaps the one before it. */
const DELAY_SAMPLES = BLOCK_SAMPLES;
/** A packet comes when the block after it has gone in. */
const LOOKAHEAD_SAMPLES = BLOCK_SAMPLES;

const HEAD_BYTES = 7;

const frameOf = (packet: Uint8Array, sampleRateHz: number): Buffer => {
  const frame = Buffer.alloc(HEAD_BYTES + packet.length);
  // The mark of a frame, and that it has no checksum.
  frame.writeUInt16BE(0xfff1, 0);
  // The profile LC, the rate, and one channel, which is split over two bytes.
  frame[2] = 0x40 | (sampleRatesHz.indexOf(sampleRateHz) << 2);
  // The length has 13 bits. The fullness of the bit reservoir is not said: 11 ones.
  frame.writeUInt32BE(((0x40 << 24) | (frame.length << 13) | (0x7ff << 2)) >>> 0, 3);
  frame.set(packet, HEAD_BYTES);
  return frame;
};

class AacEncoder extends BaseEncoder {
  override readonly streamDelaySamples = DELAY_SAMPLES;
  readonly #libavcodec: LibavcodecAac;
  readonly #blocks = new Blocks(BLOCK_SAMPLES);
  #fedSamples = 0;

  constructor(libavcodec: LibavcodecAac, sampleRateHz: number) {
    super(sampleRateHz);
    this.#libavcodec = libavcodec;
  }

  encode(samples: Int16Array): Uint8Array {
    const frames: Uint8Array[] = [];
    this.#fedSamples += samples.length;
    for (const block of this.#blocks.push(samples)) {
      const packet = this.#libavcodec.encode(block);
      if (packet.length === 0) continue;
      frames.push(frameOf(packet, this.sampleRateHz));
      this.decodableSamples += BLOCK_SAMPLES;
    }
    return Buffer.concat(frames);
  }

  override flush(): Flushed {
    const samples = this.#fedSamples + DELAY_SAMPLES + LOOKAHEAD_SAMPLES;
    const silenceSamples = Math.ceil(samples / BLOCK_SAMPLES) * BLOCK_SAMPLES - this.#fedSamples;
    return { payload: this.encode(new Int16Array(silenceSamples)), silenceSamples };
  }

  override finish(): Uint8Array {
    return this.#fedSamples === 0 ? NOTHING : this.flush().payload;
  }

  override dispose(): void {
    this.#libavcodec.close();
  }
}

export const aac: EncoderFactory<CodecFormat> = {
  loadLate: loadAac,
  open({ sampleRateHz, bitrateKbps }) {
    return new AacEncoder(LibavcodecAac.open(sampleRateHz, bitrateKbps), sampleRateHz);
  },
};
