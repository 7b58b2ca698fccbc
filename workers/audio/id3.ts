/** ID3v2.3, as short as it may be: one text frame, since a tag without any is none. Source: id3.org, ID3 2.3.0. */

const TAG_HEADER_BYTES = 10;
const FRAME_HEADER_BYTES = 10;

/** @param software what the sound was encoded with, in Latin-1, under 100 characters */
export const id3Tag = (software: string): Uint8Array => {
  const frameBytes = 1 + software.length;
  const tag = Buffer.alloc(TAG_HEADER_BYTES + FRAME_HEADER_BYTES + frameBytes);
  tag.write('ID3', 0, 'latin1');
  tag[3] = 3;
  // Sizes of a tag have 7 bits a byte; this one needs the last byte only.
  tag[9] = FRAME_HEADER_BYTES + frameBytes;
  tag.write('TSSE', TAG_HEADER_BYTES, 'latin1');
  tag.writeUInt32BE(frameBytes, TAG_HEADER_BYTES + 4);
  tag.write(software, TAG_HEADER_BYTES + FRAME_HEADER_BYTES + 1, 'latin1');
  return tag;
};
