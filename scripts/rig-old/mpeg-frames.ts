/** Follows the frames of an mp3 stream, each chunk of which has whole ones. */
import type { AudioCheck } from './audio-check.js';

const headBytes = 4;
const bitratesKbps = [
  [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
  [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
] as const;
const ratesHz = [
  [44_100, 48_000, 32_000],
  [22_050, 24_000, 16_000],
] as const;
/** Layer III: MPEG-1 has two granules a frame, MPEG-2 one. */
const samplesPerFrame = [1152, 576] as const;

export class MpegFrames implements AudioCheck {
  #durationMs = 0;
  #frames = 0;

  get durationMs(): number {
    return this.#durationMs;
  }

  /** How many came. */
  get frames(): number {
    return this.#frames;
  }

  readonly isComplete = true;

  push(bytes: Buffer): string | null {
    if (bytes.length === 0) return 'a chunk is empty';
    let at = 0;
    while (at < bytes.length) {
      if (at + headBytes > bytes.length || bytes[at] !== 0xff || (bytes[at + 1]! & 0xe6) !== 0xe2)
        return 'audio is not where an MPEG frame must begin';
      const version = (bytes[at + 1]! & 0x18) === 0x18 ? 0 : 1;
      const bitrate = bitratesKbps[version][bytes[at + 2]! >> 4];
      const rateHz = ratesHz[version][(bytes[at + 2]! >> 2) & 3];
      if (bitrate === undefined || bitrate === 0 || rateHz === undefined)
        return 'an MPEG frame has a wrong head';
      const padding = (bytes[at + 2]! >> 1) & 1;
      at += Math.floor((samplesPerFrame[version] * bitrate * 125) / rateHz) + padding;
      this.#frames++;
      this.#durationMs += (samplesPerFrame[version] * 1000) / rateHz;
    }
    return at === bytes.length ? null : 'a chunk ends within an MPEG frame';
  }
}
