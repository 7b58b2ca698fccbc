/** Pages of an Ogg stream (RFC 3533): packets in, bytes out, with a checksum per page. */

/** A packet is cut into segments of this size; the last one is shorter. */
const SEGMENT_BYTES_MAX = 255;
const SEGMENTS_PER_PAGE_MAX = 255;
const HEADER_BYTES = 27;
const CHECKSUM_OFFSET = 22;

const FIRST_PAGE = 0x02;
const LAST_PAGE = 0x04;

/** CRC-32 of polynomial 0x04c11db7, not reflected, from 0. */
const crcTable = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 24;
  for (let bit = 0; bit < 8; bit++) crc = crc < 0 ? (crc << 1) ^ 0x04c1_1db7 : crc << 1;
  return crc;
});

const checksum = (page: Uint8Array): number => {
  let crc = 0;
  for (const byte of page) crc = (crc << 8) ^ (crcTable[(crc >>> 24) ^ byte] ?? 0);
  return crc >>> 0;
};

const segmentsOf = (packet: Uint8Array): number => Math.floor(packet.length / SEGMENT_BYTES_MAX) + 1;

export interface OggPacket {
  readonly bytes: Uint8Array;
  /** Samples of the stream that are decodable with this packet. */
  readonly granule: number;
}

export class OggStream {
  readonly #serial: number;
  #sequence = 0;

  /** @param serial 32 bits that distinguish this stream from others */
  constructor(serial: number) {
    this.#serial = serial;
  }

  /**
   * Puts whole packets into as few pages as possible: one, unless they are many.
   * @param isLast nothing follows
   */
  pages(packets: readonly OggPacket[], isLast: boolean): Uint8Array {
    const pages: Uint8Array[] = [];
    let first = 0;
    while (first < packets.length) {
      let end = first;
      let segments = 0;
      for (let packet = packets[end]; packet !== undefined; packet = packets[++end]) {
        segments += segmentsOf(packet.bytes);
        if (segments > SEGMENTS_PER_PAGE_MAX && end > first) break;
      }
      pages.push(this.#page(packets.slice(first, end), isLast && end === packets.length));
      first = end;
    }
    return Buffer.concat(pages);
  }

  #page(packets: readonly OggPacket[], isLast: boolean): Uint8Array {
    const lacing: number[] = [];
    for (const { bytes } of packets) {
      for (let left = bytes.length; left >= SEGMENT_BYTES_MAX; left -= SEGMENT_BYTES_MAX)
        lacing.push(SEGMENT_BYTES_MAX);
      lacing.push(bytes.length % SEGMENT_BYTES_MAX);
    }
    if (lacing.length > SEGMENTS_PER_PAGE_MAX) throw new Error('a packet does not fit an Ogg page');
    const header = Buffer.alloc(HEADER_BYTES + lacing.length);
    header.write('OggS', 0, 'latin1');
    header[5] = (this.#sequence === 0 ? FIRST_PAGE : 0) | (isLast ? LAST_PAGE : 0);
    header.writeBigUInt64LE(BigInt(packets.at(-1)?.granule ?? 0), 6);
    header.writeUInt32LE(this.#serial, 14);
    header.writeUInt32LE(this.#sequence++, 18);
    header[26] = lacing.length;
    header.set(lacing, HEADER_BYTES);
    const page = Buffer.concat([header, ...packets.map(({ bytes }) => bytes)]);
    page.writeUInt32LE(checksum(page), CHECKSUM_OFFSET);
    return page;
  }
}
