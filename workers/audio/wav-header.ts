/** The RIFF header of signed 16-bit mono. Source: Multimedia Programming Interface and Data Specifications 1.0. */

export const WAV_HEADER_BYTES = 44;

/** A stream's header is sent before its length is known; readers take these sizes as "until the end". */
export const UNKNOWN_BYTES = 0xffff_ffff;

/** @param dataBytes size of the samples, or `UNKNOWN_BYTES`; sizes that do not fit 32 bits are written as unknown */
export const wavHeader = (sampleRateHz: number, dataBytes: number): Uint8Array => {
  const header = Buffer.alloc(WAV_HEADER_BYTES);
  const known = dataBytes + WAV_HEADER_BYTES - 8 < UNKNOWN_BYTES;
  header.write('RIFF', 0, 'latin1');
  header.writeUInt32LE(known ? dataBytes + WAV_HEADER_BYTES - 8 : UNKNOWN_BYTES, 4);
  header.write('WAVEfmt ', 8, 'latin1');
  header.writeUInt32LE(16, 16);
  header.writeUInt16LE(1, 20);
  header.writeUInt16LE(1, 22);
  header.writeUInt32LE(sampleRateHz, 24);
  header.writeUInt32LE(sampleRateHz * 2, 28);
  header.writeUInt16LE(2, 32);
  header.writeUInt16LE(16, 34);
  header.write('data', 36, 'latin1');
  header.writeUInt32LE(known ? dataBytes : UNKNOWN_BYTES, 40);
  return header;
};
