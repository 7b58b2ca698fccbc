/**
 * The first frame of an mp3 file: a silent one whose bytes tell players how long the sound is and how much to leave
 * out at either end, so that they play exactly what was spoken. Source: gabriel.mp3-tech.org, Mp3 Info Tag rev 1.
 */
import { HEADER_BYTES, frameShape, type MpegFormat } from './mpeg.js';

/** Name, what is given (frames, bytes), and these two. The table of contents is left out: every frame is as long. */
const XING_BYTES = 16;
const FRAMES_AND_BYTES_GIVEN = 0x03;
const LAME_BYTES = 36;
const CONSTANT_BITRATE = 1;

/** CRC-16 of polynomial 0x8005, reflected. */
const crcTable = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >> 1) ^ 0xa001 : crc >> 1;
  return crc;
});

/** @param crc of the bytes before these, 0 at first */
export const crc16 = (bytes: Uint8Array, crc: number): number => {
  let value = crc;
  for (const byte of bytes) value = (value >> 8) ^ (crcTable[(value ^ byte) & 0xff] ?? 0);
  return value;
};

export interface Mp3Sound {
  readonly frames: number;
  readonly bytes: number;
  /** `crc16` of the frames. */
  readonly crc: number;
  /** Samples that the encoder put before the sound, without those that every decoder adds. */
  readonly delaySamples: number;
  /** Samples after the sound that fill the last frame. */
  readonly paddingSamples: number;
}

/** As many bytes for every sound of a format. */
export const infoFrame = (format: MpegFormat, encoder: string, sound: Mp3Sound): Uint8Array => {
  const { header, frameBytes, sideInfoBytes } = frameShape(format);
  const frame = Buffer.alloc(frameBytes);
  frame.set(header);
  const xing = HEADER_BYTES + sideInfoBytes;
  frame.write('Info', xing, 'latin1');
  frame.writeUInt32BE(FRAMES_AND_BYTES_GIVEN, xing + 4);
  frame.writeUInt32BE(sound.frames, xing + 8);
  const bytes = Math.min(frameBytes + sound.bytes, 0xffff_ffff);
  frame.writeUInt32BE(bytes, xing + 12);
  const lame = xing + XING_BYTES;
  frame.write(encoder, lame, 9, 'latin1');
  frame[lame + 9] = CONSTANT_BITRATE;
  frame[lame + 20] = Math.min(format.bitrateKbps, 0xff);
  // Twelve bits each.
  frame.writeUIntBE((sound.delaySamples << 12) | Math.min(sound.paddingSamples, 0xfff), lame + 21, 3);
  const rateClass = format.sampleRateHz === 48_000 ? 2 : format.sampleRateHz === 44_100 ? 1 : 0;
  frame[lame + 24] = rateClass << 6;
  frame.writeUInt32BE(bytes, lame + 28);
  frame.writeUInt16BE(sound.crc, lame + 32);
  frame.writeUInt16BE(crc16(frame.subarray(0, lame + LAME_BYTES - 2), 0), lame + LAME_BYTES - 2);
  return frame;
};
