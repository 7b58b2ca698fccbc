import t from 'tap';
import type { CodecFormat } from '../../../src/api/formats.js';
import { loadEncoders } from '../../../workers/audio/encoders.js';
import { OggStream } from '../../../workers/audio/opus.js';
import { speak } from '../../support/spoken.js';
import { envelope, toInt16, tonesAt } from '../../support/tones.js';
import { limits } from '../../../src/limits.js';

await loadEncoders(limits);

const ENGINE_HZ = 24_000;
const sound = (samples: number) =>
  toInt16(samples, (i) => {
    const seconds = i / ENGINE_HZ;
    return (
      envelope(seconds, 0, samples / ENGINE_HZ) * tonesAt({ hz: [300, 1_900], amplitude: 6_000 }, seconds)
    );
  });

interface Page {
  readonly flags: number;
  readonly granule: number;
  readonly serial: number;
  readonly sequence: number;
  readonly packets: Buffer[];
}

/** Bit by bit, as RFC 3533 describes it. */
const oggChecksum = (page: Buffer): number => {
  let register = 0n;
  for (const byte of page) {
    register ^= BigInt(byte) << 24n;
    for (let bit = 0; bit < 8; bit++)
      register = ((register << 1n) ^ (register & 0x8000_0000n ? 0x1_04c1_1db7n : 0n)) & 0xffff_ffffn;
  }
  return Number(register);
};

const pagesOf = (bytes: Buffer): Page[] => {
  const pages: Page[] = [];
  for (let at = 0; at < bytes.length;) {
    if (bytes.toString('latin1', at, at + 4) !== 'OggS' || bytes[at + 4] !== 0)
      throw new Error(`no page at ${at}`);
    const lacing = [...bytes.subarray(at + 27, at + 27 + (bytes[at + 26] ?? 0))];
    const packets: Buffer[] = [];
    let end = at + 27 + lacing.length;
    let start = end;
    for (const segment of lacing) {
      end += segment;
      if (segment === 255) continue;
      packets.push(bytes.subarray(start, end));
      start = end;
    }
    if (start !== end) throw new Error('a packet goes on in the next page');
    const page = Buffer.from(bytes.subarray(at, end));
    const sum = page.readUInt32LE(22);
    page.writeUInt32LE(0, 22);
    if (oggChecksum(page) !== sum) throw new Error(`wrong checksum at ${at}`);
    pages.push({
      flags: page[5] ?? 0,
      granule: Number(page.readBigUInt64LE(6)),
      serial: page.readUInt32LE(14),
      sequence: page.readUInt32LE(18),
      packets,
    });
    at = end;
  }
  return pages;
};

const format = (sampleRateHz: number, bitrateKbps = 64): CodecFormat => ({
  encoding: 'opus',
  sampleRateHz,
  bitrateKbps,
});

for (const hz of [8_000, 12_000, 16_000, 24_000, 48_000])
  t.test(`${hz} Hz: headers, one page per chunk, positions at 48 kHz, an exact end`, async (t) => {
    for (const samples of [1, 479, 480, 11_520, 24_001, 40_007]) {
      const { chunks, file } = await speak(format(hz), 'stream', [{ pcm: sound(samples) }], {
        seed: samples,
      });
      const counts = chunks.map((chunk) => pagesOf(chunk).length);
      counts[0] = (counts[0] ?? 0) - 2;
      t.ok(
        counts.slice(0, -1).every((count) => count === 1),
        'one page per chunk, after two pages of headers',
      );
      t.ok([1, 2].includes(counts.at(-1) ?? 0), 'the end may have a page of its own');
      const pages = pagesOf(file);
      pages.forEach(({ serial, sequence, flags }, i) => {
        t.equal(serial, pages[0]?.serial);
        t.equal(sequence, i);
        t.equal(flags, i === 0 ? 2 : i === pages.length - 1 ? 4 : 0);
      });
      const [head, tags, ...audio] = pages;
      const opusHead = head?.packets[0] ?? Buffer.alloc(19);
      t.equal(opusHead.toString('latin1', 0, 8), 'OpusHead');
      t.strictSame([opusHead[8], opusHead[9], opusHead.length], [1, 1, 19], 'version 1, mono');
      const preSkip = opusHead.readUInt16LE(10);
      t.equal(preSkip, 312, 'libopus looks 6.5 ms ahead');
      t.equal(opusHead.readUInt32LE(12), hz);
      t.equal(opusHead.readUInt16LE(16) + (opusHead[18] ?? 0), 0, 'no gain, no mapping');
      t.match(tags?.packets[0]?.toString('latin1'), /^OpusTags[^]{4}libopus/);
      t.strictSame([head?.granule, tags?.granule], [0, 0]);
      let packets = 0;
      for (const page of audio) {
        packets += page.packets.length;
        if (page !== audio.at(-1)) t.equal(page.granule, packets * 960, '20 ms per packet');
      }
      const resampled = Math.round((samples * hz) / ENGINE_HZ);
      const granule = preSkip + (resampled * 48_000) / hz;
      t.equal(audio.at(-1)?.granule, granule);
      t.equal(packets, Math.ceil(granule / 960), 'no superfluous packet');
    }
  });

t.test('a whole file holds the same packets as the stream', async (t) => {
  const packetsOf = (bytes: Buffer) => pagesOf(bytes).flatMap(({ packets }) => packets);
  const stream = await speak(format(16_000), 'stream', [{ pcm: sound(30_000) }], { seed: 3 });
  const whole = await speak(format(16_000), 'whole', [{ pcm: sound(30_000) }], { seed: 4 });
  t.same(packetsOf(whole.file), packetsOf(stream.file));
});

t.test('the lacing marks the ends of packets of any size', async (t) => {
  const sizes = [0, 1, 254, 255, 256, 509, 510, 511, 1_275];
  const packets = sizes.map((size, i) => ({ bytes: new Uint8Array(size).fill(i), granule: i }));
  const [page] = pagesOf(Buffer.from(new OggStream(0xdead_beef).pages(packets, true)));
  t.equal(page?.serial, 0xdead_beef);
  t.equal(page?.flags, 2 + 4, 'first and last');
  t.equal(page?.granule, sizes.length - 1);
  t.strictSame(
    page?.packets.map((packet) => packet.length),
    sizes,
  );
  t.ok(page?.packets.every((packet, i) => packet.every((byte) => byte === i)));
});

t.test('more packets than a page takes fill several pages, and none is cut', async (t) => {
  const packets = Array.from({ length: 200 }, (_, i) => ({ bytes: new Uint8Array(300 + i), granule: i + 1 }));
  const ogg = new OggStream(1);
  const pages = pagesOf(Buffer.from(ogg.pages(packets, true)));
  t.equal(pages.length, 2);
  t.strictSame(
    pages.flatMap((page) => page.packets.map((packet) => packet.length)),
    packets.map(({ bytes }) => bytes.length),
  );
  t.strictSame(
    pages.map(({ flags, sequence }) => [flags, sequence]),
    [
      [2, 0],
      [4, 1],
    ],
  );
  t.equal(pages[0]?.granule, pages[0]?.packets.length);
  t.equal(ogg.pages([], false).length, 0, 'no packets, no page');
  t.throws(() => ogg.pages([{ bytes: new Uint8Array(255 * 255), granule: 1 }], false), /does not fit/);
});
