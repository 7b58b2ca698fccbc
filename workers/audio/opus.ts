/**
 * Ogg Opus (RFC 7845): packets of 20 ms from libopus; one page holds the packets that a chunk completes. Positions count
 * at 48 kHz at any rate. A decoder skips the encoder's lookahead at the start; the position of the last page gives the
 * end of the audio within the last packet.
 */
import { randomInt } from 'node:crypto';
import {
  createEncoder as createLibopusEncoder,
  loadLibopus,
  type OpusEncoderHandle,
  type SampleRate,
} from 'libopus-wasm';
import type { CodecFormat } from '../../src/api/formats.js';
import { checksumBy } from './checksum.js';
import { Blocks, type Encoder, type EncoderFactory, type Flushed, NOTHING } from './encoder.js';

/** Pages of an Ogg stream (RFC 3533): packets in, bytes out, with a checksum per page. */

/** A packet is cut into segments of this size; the last one is shorter. */
const SEGMENT_BYTES_MAX = 255;
const SEGMENTS_PER_PAGE_MAX = 255;
const HEADER_BYTES = 27;
const CHECKSUM_OFFSET = 22;

const FIRST_PAGE = 0x02;
const LAST_PAGE = 0x04;

const checksum = checksumBy(32, 0x04c1_1db7);

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

const GRANULES_HZ = 48_000;
const PACKETS_HZ = 50;
/** 0 is the fastest, 10 the best. With bits enough, 5 sounds the same; with fewer, libopus must know what speech is. */
const complexityOf = (bitrateKbps: number): number => (bitrateKbps < 64 ? 10 : 5);

let vendor = '';

const sampleRatesHz: readonly SampleRate[] = [8_000, 12_000, 16_000, 24_000, 48_000];

/**
 * The rate of libopus for a format: not above what the voice has. A decoder gives 48 kHz at any rate, and a voice at
 * 24 kHz sounds the same without the silence above 12 kHz, which costs a resampler and a part of the encoder.
 */
const codecRateOf = (sampleRateHz: number, engineSampleRateHz: number): SampleRate => {
  const enoughHz = sampleRatesHz.find((hz) => hz >= Math.min(sampleRateHz, engineSampleRateHz));
  if (!sampleRatesHz.some((hz) => hz === sampleRateHz) || enoughHz === undefined)
    throw new Error(`Opus has no rate of ${sampleRateHz} Hz`);
  return enoughHz;
};

/** @param sampleRateHz of the format: a hint for players */
const opusHead = (preSkip: number, sampleRateHz: number): Uint8Array => {
  const head = Buffer.alloc(19);
  head.write('OpusHead', 0, 'latin1');
  head[8] = 1;
  head[9] = 1;
  head.writeUInt16LE(preSkip, 10);
  head.writeUInt32LE(sampleRateHz, 12);
  return head;
};

const opusTags = (): Uint8Array => {
  const name = Buffer.from(vendor);
  const tags = Buffer.alloc(16 + name.length);
  tags.write('OpusTags', 0, 'latin1');
  tags.writeUInt32LE(name.length, 8);
  name.copy(tags, 12);
  return tags;
};

class OpusEncoder implements Encoder {
  readonly sampleRateHz: number;
  /** The header makes decoders skip the delay. */
  readonly streamDelaySamples = 0;
  readonly #libopus: OpusEncoderHandle;
  readonly #ogg = new OggStream(randomInt(2 ** 32));
  readonly #header: Uint8Array;
  readonly #preSkip: number;
  readonly #granulesPerSample: number;
  readonly #blocks: Blocks;
  #fedSamples = 0;
  #packets = 0;

  constructor(libopus: OpusEncoderHandle, formatSampleRateHz: number) {
    this.#libopus = libopus;
    this.sampleRateHz = libopus.sampleRate;
    this.#granulesPerSample = GRANULES_HZ / libopus.sampleRate;
    this.#preSkip = libopus.getLookahead() * this.#granulesPerSample;
    this.#blocks = new Blocks(libopus.frameSize);
    const headers = [opusHead(this.#preSkip, formatSampleRateHz), opusTags()];
    // Each header has a page of its own.
    this.#header = Buffer.concat(headers.map((bytes) => this.#ogg.pages([{ bytes, granule: 0 }], false)));
  }

  get decodableSamples(): number {
    const skipped = this.#preSkip / this.#granulesPerSample;
    return Math.max(0, this.#packets * this.#libopus.frameSize - skipped);
  }

  encode(samples: Int16Array): Uint8Array {
    return this.#ogg.pages(this.#fill(samples), false);
  }

  flush(): Flushed {
    const fed = this.#fedSamples;
    const payload = this.#ogg.pages(this.#drain(), false);
    return { payload, silenceSamples: this.#fedSamples - fed };
  }

  finish(): Uint8Array {
    const granule = this.#preSkip + this.#fedSamples * this.#granulesPerSample;
    return this.#ogg.pages(
      this.#drain().map((packet) => ({ ...packet, granule: Math.min(packet.granule, granule) })),
      true,
    );
  }

  chunkHeader(_payloadBytes: number, first: boolean): Uint8Array {
    return first ? this.#header : NOTHING;
  }

  fileHeader(): Uint8Array {
    return this.#header;
  }

  dispose(): void {
    this.#libopus.free();
  }

  /** Feeds silence until whole packets hold all samples and the lookahead after them: at least one packet, at most two. */
  #drain(): OggPacket[] {
    const endGranule = this.#preSkip + this.#fedSamples * this.#granulesPerSample;
    const packets = Math.ceil(endGranule / (GRANULES_HZ / PACKETS_HZ));
    return this.#fill(new Int16Array(packets * this.#libopus.frameSize - this.#fedSamples));
  }

  #fill(samples: Int16Array): OggPacket[] {
    const packets: OggPacket[] = [];
    this.#fedSamples += samples.length;
    for (const block of this.#blocks.push(samples)) {
      this.#packets++;
      const granule = (this.#packets * GRANULES_HZ) / PACKETS_HZ;
      packets.push({ bytes: this.#libopus.encode(block), granule });
    }
    return packets;
  }
}

export const opus: EncoderFactory<CodecFormat> = {
  async load() {
    vendor = (await loadLibopus()).version;
  },

  async open({ sampleRateHz, bitrateKbps }, engineSampleRateHz) {
    const codecRateHz = codecRateOf(sampleRateHz, engineSampleRateHz);
    const options = {
      channels: 1,
      sampleRate: codecRateHz,
      bitrate: bitrateKbps * 1000,
      frameSize: codecRateHz / PACKETS_HZ,
      complexity: complexityOf(bitrateKbps),
    } as const;
    return new OpusEncoder(await createLibopusEncoder(options), sampleRateHz);
  },
};
