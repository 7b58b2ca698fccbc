/** Frames of MPEG audio layer III: their rates and bitrates, and where a frame ends. */

/** MPEG-2 halves the rates of MPEG-1; its frames have half as many samples. */
interface Version {
  /** The header's second byte: sync, version, layer III, no checksum. */
  readonly headerByte: number;
  readonly samplesPerFrame: number;
  /** By the header's index. */
  readonly sampleRatesHz: readonly number[];
  /** By the header's index; 0: none. */
  readonly bitratesKbps: readonly number[];
  readonly sideInfoBytes: number;
}

const mpeg1: Version = {
  headerByte: 0xfb,
  samplesPerFrame: 1_152,
  sampleRatesHz: [44_100, 48_000, 32_000],
  bitratesKbps: [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
  sideInfoBytes: 17,
};

const mpeg2: Version = {
  headerByte: 0xf3,
  samplesPerFrame: 576,
  sampleRatesHz: [22_050, 24_000, 16_000],
  bitratesKbps: [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
  sideInfoBytes: 9,
};

export const HEADER_BYTES = 4;

/** Bitrates that the library takes: those of MPEG-1 and MPEG-2, except 56 and 144. */
const encodableKbps = [32, 40, 48, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320] as const;
export type EncodableKbps = (typeof encodableKbps)[number];

const encodableHz = [16_000, 22_050, 24_000, 32_000, 44_100, 48_000] as const;
export type EncodableHz = (typeof encodableHz)[number];

/** The nearest of the choices; the greater one of two equally near. */
const nearest = <T extends number>(choices: readonly [T, ...T[]], wanted: number): T =>
  choices.reduce((best, next) => (Math.abs(next - wanted) <= Math.abs(best - wanted) ? next : best));

export interface MpegFormat {
  readonly sampleRateHz: EncodableHz;
  readonly bitrateKbps: EncodableKbps;
}

const versionOf = (sampleRateHz: number): Version =>
  mpeg2.sampleRatesHz.includes(sampleRateHz) ? mpeg2 : mpeg1;

/** The nearest format that MPEG has: below 32 kHz at most 160 kbps. */
export const nearestMpegFormat = (sampleRateHz: number, bitrateKbps: number): MpegFormat => {
  const rateHz = nearest(encodableHz, sampleRateHz);
  const maxKbps = versionOf(rateHz).bitratesKbps.at(-1) ?? 0;
  return { sampleRateHz: rateHz, bitrateKbps: nearest(encodableKbps, Math.min(bitrateKbps, maxKbps)) };
};

/** The layout of a format's frames. */
export const frameShape = ({ sampleRateHz, bitrateKbps }: MpegFormat) => {
  const { headerByte, samplesPerFrame, sampleRatesHz, bitratesKbps, sideInfoBytes } = versionOf(sampleRateHz);
  const indices = (bitratesKbps.indexOf(bitrateKbps) << 4) | (sampleRatesHz.indexOf(sampleRateHz) << 2);
  return {
    samplesPerFrame,
    sideInfoBytes,
    /** Without the padding byte that some frames have to keep the bitrate. */
    frameBytes: Math.floor((samplesPerFrame * bitrateKbps * 125) / sampleRateHz),
    /** Mono, original. */
    header: Uint8Array.of(0xff, headerByte, indices, 0xc4),
  };
};

/** @returns the length of the frame at `offset`, or `undefined` if its header is incomplete */
const frameBytesAt = (bytes: Uint8Array, offset: number): number | undefined => {
  const [sync, second, third] = bytes.subarray(offset, offset + 3);
  if (sync === undefined || second === undefined || third === undefined) return undefined;
  const version = [mpeg1, mpeg2].find(({ headerByte }) => headerByte === second);
  const kbps = version?.bitratesKbps[third >> 4];
  const hz = version?.sampleRatesHz[(third >> 2) & 3];
  if (sync !== 0xff || version === undefined || kbps === undefined || hz === undefined)
    throw new Error('the encoder returned bytes that are no MPEG frame');
  return Math.floor((version.samplesPerFrame * kbps * 125) / hz) + ((third >> 1) & 1);
};

/**
 * Cuts an encoder's bytes at the ends of frames: a decoder cannot use part of a frame. The bits of a frame may lie in
 * earlier frames, and LAME puts out its last bytes together with the next frame.
 */
export class FrameCutter {
  #held: Uint8Array = new Uint8Array(0);
  #frames = 0;

  /** Whole frames returned so far. */
  get frames(): number {
    return this.#frames;
  }

  /** @param bytes are copied @returns the frames that are now complete */
  push(bytes: Uint8Array): Uint8Array {
    const joined = new Uint8Array(this.#held.length + bytes.length);
    joined.set(this.#held);
    joined.set(bytes, this.#held.length);
    let end = 0;
    for (;;) {
      const frameBytes = frameBytesAt(joined, end);
      if (frameBytes === undefined || end + frameBytes > joined.length) break;
      end += frameBytes;
      this.#frames++;
    }
    this.#held = joined.slice(end);
    return joined.subarray(0, end);
  }
}
