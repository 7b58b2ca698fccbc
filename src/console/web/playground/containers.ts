/** Takes the packets of a codec out of its container, as their bytes come. */

/** Bytes that do not make a packet yet. */
type Rest = Uint8Array;

const joined = (first: Uint8Array, second: Uint8Array): Uint8Array => {
  if (first.length === 0) return second;
  const bytes = new Uint8Array(first.length + second.length);
  bytes.set(first);
  bytes.set(second, first.length);
  return bytes;
};

export interface Unpacker {
  /** Samples up to the end of the stream, those that a decoder skips at its start included; `null` until it is known. */
  readonly endSample: number | null;
  /** @returns the packets that are complete with these bytes */
  push(bytes: Uint8Array): readonly Uint8Array[];
}

/** kbps of MPEG 1 and of MPEG 2 and 2.5, layer III, by the index in a frame's header. */
const mpeg1Kbps = [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320];
const mpeg2Kbps = [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160];
const mpeg1Hz = [44_100, 48_000, 32_000];
const mpegHeaderBytes = 4;

/** @returns 0 where no frame of MPEG layer III begins */
const mpegFrameBytes = (bytes: Uint8Array, at: number): number => {
  const [first = 0, second = 0, third = 0] = bytes.subarray(at, at + 3);
  const version = (second >> 3) & 3;
  if (first !== 0xff || second >> 5 !== 7 || version === 1 || ((second >> 1) & 3) !== 1) return 0;
  const kbps = (version === 3 ? mpeg1Kbps : mpeg2Kbps)[third >> 4] ?? 0;
  const hz = (mpeg1Hz[(third >> 2) & 3] ?? 0) / (version === 3 ? 1 : version === 2 ? 2 : 4);
  if (kbps === 0 || hz === 0) return 0;
  return Math.floor(((version === 3 ? 144 : 72) * kbps * 1_000) / hz) + ((third >> 1) & 1);
};

/** Frames of MPEG layer III, each with its header. */
export class MpegUnpacker implements Unpacker {
  readonly endSample = null;
  #rest: Rest = new Uint8Array();

  push(bytes: Uint8Array): readonly Uint8Array[] {
    const all = joined(this.#rest, bytes);
    const frames: Uint8Array[] = [];
    let at = 0;
    while (at + mpegHeaderBytes <= all.length) {
      const length = mpegFrameBytes(all, at);
      if (length === 0) {
        at += 1;
        continue;
      }
      if (at + length > all.length) break;
      frames.push(all.subarray(at, at + length));
      at += length;
    }
    this.#rest = all.slice(at);
    return frames;
  }
}

const pageHeaderBytes = 27;
/** The bit of the last page in the flags of a page. */
const lastPage = 4;
/** A packet goes on behind a segment of this length. */
const fullSegmentBytes = 255;

/** Packets of an Ogg stream. */
export class OggUnpacker implements Unpacker {
  #endSample: number | null = null;
  #rest: Rest = new Uint8Array();
  #packet: Rest = new Uint8Array();

  get endSample(): number | null {
    return this.#endSample;
  }

  push(bytes: Uint8Array): readonly Uint8Array[] {
    const all = joined(this.#rest, bytes);
    const view = new DataView(all.buffer, all.byteOffset, all.byteLength);
    const packets: Uint8Array[] = [];
    let page = 0;
    while (page + pageHeaderBytes <= all.length) {
      const lacing = all.subarray(page + pageHeaderBytes, page + pageHeaderBytes + all[page + 26]!);
      let at = page + pageHeaderBytes + lacing.length;
      const end = lacing.reduce((sum, length) => sum + length, at);
      if (lacing.length < all[page + 26]! || end > all.length) break;
      if ((all[page + 5]! & lastPage) !== 0) this.#endSample = Number(view.getBigUint64(page + 6, true));
      for (const length of lacing) {
        this.#packet = joined(this.#packet, all.subarray(at, at + length));
        at += length;
        if (length === fullSegmentBytes) continue;
        packets.push(this.#packet);
        this.#packet = new Uint8Array();
      }
      page = end;
    }
    this.#rest = all.slice(page);
    return packets;
  }
}
