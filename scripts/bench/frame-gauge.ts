/** Counts the messages of some sockets over a while, and the time that their sender's main thread took for them. */
import { readFrontCpuMs } from '../rig-old/process-facts.js';

export interface FrameSource {
  /** So far. */
  readonly messages: number;
}

interface Reading {
  readonly atMs: number;
  readonly frames: number;
  readonly frontCpuMs: number | null;
}

export class FrameGauge {
  readonly #pid: number | null;
  readonly #sources: readonly FrameSource[];
  #begun: Reading | null = null;

  constructor(pid: number | null, sources: readonly FrameSource[]) {
    this.#pid = pid;
    this.#sources = sources;
  }

  /** Only the first call counts. */
  begin(): void {
    this.#begun ??= this.#read();
  }

  /** @throws if it has not begun */
  end(): { readonly frames: number; readonly durationMs: number; readonly frontCpuMs: number | null } {
    const [begun, ended] = [this.#begun, this.#read()];
    if (begun === null) throw new Error('the gauge has not begun');
    const known = begun.frontCpuMs !== null && ended.frontCpuMs !== null;
    return {
      frames: ended.frames - begun.frames,
      durationMs: ended.atMs - begun.atMs,
      frontCpuMs: known ? ended.frontCpuMs - begun.frontCpuMs : null,
    };
  }

  #read(): Reading {
    return {
      atMs: performance.now(),
      frames: this.#sources.reduce((sum, { messages }) => sum + messages, 0),
      frontCpuMs: this.#pid === null ? null : readFrontCpuMs(this.#pid),
    };
  }
}
