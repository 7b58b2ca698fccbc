/**
 * The LAME encoders of one thread. Making an encoder costs several milliseconds and 0.7 MiB, configuring it one
 * millisecond. So the pool keeps returned encoders for a while and configures them again for the same format: the next
 * listener does not wait. Encoders beyond the warm ones are released when a peak is over.
 */
import type { EncoderBounds } from './encoder.js';
import { Lame } from './lame.js';
import type { MpegFormat } from './mpeg.js';
import { compileWasm } from './wasm-codec.js';

interface Idle {
  readonly lame: Lame;
  readonly format: MpegFormat;
  readonly sinceMs: number;
  /** Configured for `format`, without state of earlier audio. */
  isFresh: boolean;
}

const isSame = (a: MpegFormat, b: MpegFormat): boolean =>
  a.sampleRateHz === b.sampleRateHz && a.bitrateKbps === b.bitrateKbps;

export class Mp3Pool {
  readonly #module: WebAssembly.Module;
  readonly #bounds: EncoderBounds;
  /** The encoder returned last is last, and is taken first. */
  readonly #idle: Idle[] = [];
  #release: NodeJS.Timeout | null = null;

  private constructor(module: WebAssembly.Module, bounds: EncoderBounds) {
    this.#module = module;
    this.#bounds = bounds;
  }

  /** @param format of the encoders that are made in advance */
  static async create(format: MpegFormat, bounds: EncoderBounds): Promise<Mp3Pool> {
    const pool = new Mp3Pool(await compileWasm('lame.wasm'), bounds);
    for (let i = 0; i < bounds.mp3EncodersWarm; i++)
      pool.#idle.push({ lame: pool.#make(format), format, sinceMs: 0, isFresh: true });
    return pool;
  }

  take(format: MpegFormat): Lame {
    const index = this.#idle.findLastIndex((idle) => isSame(idle.format, format));
    const [idle] = this.#idle.splice(index, 1);
    if (idle === undefined) return this.#make(format);
    if (!idle.isFresh || !isSame(idle.format, format)) idle.lame.configure(format);
    return idle.lame;
  }

  /** @param format with which `lame` was taken */
  give(lame: Lame, format: MpegFormat): void {
    if (this.#idle.length >= this.#bounds.mp3EncodersIdleMax) return;
    const idle: Idle = { lame, format, sinceMs: performance.now(), isFresh: false };
    this.#idle.push(idle);
    this.#releaseLater();
    // After the waiting frames are sent.
    setImmediate(() => {
      const index = this.#idle.indexOf(idle);
      if (index < 0) return;
      try {
        lame.configure(format);
        idle.isFresh = true;
      } catch {
        // Only this encoder is at fault: the next listener gets another one.
        this.#idle.splice(index, 1);
      }
    });
  }

  #releaseLater(): void {
    if (this.#release !== null || !this.#hasSpare) return;
    const waitMs = Math.max(0, this.#idle[0]!.sinceMs + this.#bounds.mp3EncodersIdleMs - performance.now());
    this.#release = setTimeout(() => {
      this.#release = null;
      const untilMs = performance.now() - this.#bounds.mp3EncodersIdleMs;
      while (this.#hasSpare && this.#idle[0]!.sinceMs <= untilMs) this.#idle.shift();
      this.#releaseLater();
    }, waitMs).unref();
  }

  get #hasSpare(): boolean {
    return this.#idle.length > this.#bounds.mp3EncodersWarm;
  }

  #make(format: MpegFormat): Lame {
    const lame = new Lame(this.#module);
    lame.configure(format);
    return lame;
  }
}
