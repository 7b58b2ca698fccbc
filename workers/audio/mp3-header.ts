/** Headers of a whole mp3 file: an ID3 tag and an info frame. */
import { HEADER_BYTES, frameShape, type MpegFormat } from './mpeg.js';

const TAG_HEADER_BYTES = 10;
const FRAME_HEADER_BYTES = 10;

/**
 * The shortest ID3v2.3 tag: one text frame, since a tag needs at least one. Source: id3.org, ID3 2.3.0.
 *
 * @param software name of the encoder, in Latin-1, under 100 characters
 */
export const id3Tag = (software: string): Uint8Array => {
  const frameBytes = 1 + software.length;
  const tag = Buffer.alloc(TAG_HEADER_BYTES + FRAME_HEADER_BYTES + frameBytes);
  tag.write('ID3', 0, 'latin1');
  tag[3] = 3;
  // Sizes of a tag have 7 bits per byte; this size fits the last byte.
  tag[9] = FRAME_HEADER_BYTES + frameBytes;
  tag.write('TSSE', TAG_HEADER_BYTES, 'latin1');
  tag.writeUInt32BE(frameBytes, TAG_HEADER_BYTES + 4);
  tag.write(software, TAG_HEADER_BYTES + FRAME_HEADER_BYTES + 1, 'latin1');
  return tag;
};

/** Name, flags, frames, bytes. There is no table of contents: all frames have the same length. */
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

/** @param crc of the bytes before, 0 at the start */
export const crc16 = (bytes: Uint8Array, crc: number): number => {
  let value = crc;
  for (const byte of bytes) value = (value >> 8) ^ (crcTable[(value ^ byte) & 0xff] ?? 0);
  return value;
};

interface Mp3Audio {
  readonly frames: number;
  readonly bytes: number;
  /** `crc16` of the frames. */
  readonly crc: number;
  /** Samples that the encoder put before the audio, without those that every decoder adds. */
  readonly delaySamples: number;
  /** Samples after the audio that fill the last frame. */
  readonly paddingSamples: number;
}

/**
 * The first frame of an mp3 file: a silent one whose bytes give the length of the audio and the samples to skip at either
 * end, so that players play exactly what was spoken. Its length depends on the format alone. Source:
 * gabriel.mp3-tech.org, Mp3 Info Tag rev 1.
 */
export const infoFrame = (format: MpegFormat, encoder: string, audio: Mp3Audio): Uint8Array => {
  const { header, frameBytes, sideInfoBytes } = frameShape(format);
  const frame = Buffer.alloc(frameBytes);
  frame.set(header);
  const xing = HEADER_BYTES + sideInfoBytes;
  frame.write('Info', xing, 'latin1');
  frame.writeUInt32BE(FRAMES_AND_BYTES_GIVEN, xing + 4);
  frame.writeUInt32BE(audio.frames, xing + 8);
  const bytes = Math.min(frameBytes + audio.bytes, 0xffff_ffff);
  frame.writeUInt32BE(bytes, xing + 12);
  const lame = xing + XING_BYTES;
  frame.write(encoder, lame, 9, 'latin1');
  frame[lame + 9] = CONSTANT_BITRATE;
  frame[lame + 20] = Math.min(format.bitrateKbps, 0xff);
  // Twelve bits each.
  frame.writeUIntBE((audio.delaySamples << 12) | Math.min(audio.paddingSamples, 0xfff), lame + 21, 3);
  const rateClass = format.sampleRateHz === 48_000 ? 2 : format.sampleRateHz === 44_100 ? 1 : 0;
  frame[lame + 24] = rateClass << 6;
  frame.writeUInt32BE(bytes, lame + 28);
  frame.writeUInt16BE(audio.crc, lame + 32);
  frame.writeUInt16BE(crc16(frame.subarray(0, lame + LAME_BYTES - 2), 0), lame + LAME_BYTES - 2);
  return frame;
};
