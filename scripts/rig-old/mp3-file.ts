/** An mp3 file: a tag, a frame that tells how many follow, and these. */
import type { AudioCheck } from './audio-check.js';
import { MpegFrames } from './mpeg-frames.js';

const tagHeaderBytes = 10;
/** Sizes of a tag have seven bits a byte. */
const tagSize = (bytes: Buffer): number =>
  [6, 7, 8, 9].reduce((size, at) => size * 128 + (bytes[at]! & 0x7f), 0);
/** Within which the frame of figures has its name: head, what belongs to it, and room. */
const infoBytesMax = 64;

export class Mp3File implements AudioCheck {
  readonly #frames = new MpegFrames();
  #isComplete = false;

  /** Without the frame of figures, which is silent and not played. */
  get durationMs(): number {
    const { durationMs, frames } = this.#frames;
    return frames === 0 ? 0 : (durationMs * (frames - 1)) / frames;
  }

  get isComplete(): boolean {
    return this.#isComplete;
  }

  /** @param bytes of the whole file */
  push(bytes: Buffer): string | null {
    if (this.#isComplete) return 'audio comes after the file';
    if (bytes.length < tagHeaderBytes || bytes.toString('latin1', 0, 3) !== 'ID3')
      return 'an ID3 tag is missing';
    const sound = bytes.subarray(tagHeaderBytes + tagSize(bytes));
    const fault = this.#frames.push(sound);
    if (fault !== null) return fault;
    const info = sound.subarray(0, infoBytesMax).indexOf('Info', 0, 'latin1');
    if (info < 0) return 'the frame of figures is missing';
    const told = sound.readUInt32BE(info + 8);
    this.#isComplete = told === this.#frames.frames - 1;
    return this.#isComplete
      ? null
      : `${String(this.#frames.frames - 1)} MPEG frames where ${String(told)} are told`;
  }
}
