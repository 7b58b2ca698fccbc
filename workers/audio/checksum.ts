/** @returns the cyclic redundancy check of a polynomial: the highest bit first, not reflected, from 0 */
export const checksumBy = (bits: 8 | 16 | 32, polynomial: number): ((bytes: Uint8Array) => number) => {
  // A checksum of any width uses the highest bits of 32.
  const unused = 32 - bits;
  const table = Int32Array.from({ length: 256 }, (_, byte) => {
    let crc = byte << 24;
    for (let bit = 0; bit < 8; bit++) crc = crc < 0 ? (crc << 1) ^ (polynomial << unused) : crc << 1;
    return crc;
  });
  return (bytes) => {
    let crc = 0;
    for (const byte of bytes) crc = (crc << 8) ^ table[(crc >>> 24) ^ byte]!;
    return crc >>> unused;
  };
};
