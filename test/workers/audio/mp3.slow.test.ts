import t from 'tap';
import type { CodecFormat } from '../../../src/api/formats.js';
import { limits } from '../../../src/limits.js';
import type { Encoder } from '../../../workers/audio/encoder.js';
import { createEncoder, loadEncoders } from '../../../workers/audio/encoders.js';
import type { Lame } from '../../../workers/audio/lame.js';
import { Mp3Pool } from '../../../workers/audio/mp3-pool.js';
import { nearestMpegFormat } from '../../../workers/audio/mpeg.js';
import { speak } from '../../support/spoken.js';
import { envelope, tonesAt, toInt16 } from '../../support/tones.js';
import { pause } from '../../support/waiting.js';

await loadEncoders(limits);

const ENGINE_HZ = 24_000;
const sound = toInt16(ENGINE_HZ, (i) => {
  const seconds = i / ENGINE_HZ;
  return envelope(seconds, 0, 1) * tonesAt({ hz: [300, 1_900, 5_000], amplitude: 5_000 }, seconds);
});

const format = (sampleRateHz: number, bitrateKbps: number): CodecFormat => ({
  encoding: 'mp3',
  sampleRateHz,
  bitrateKbps,
});

const TAG_BYTES = 30;
const mpeg1Kbps = [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320];
const mpeg2Kbps = [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160];

/** Parses the header at an offset after ISO 11172-3 and 13818-3. */
const frameAt = (bytes: Buffer, offset: number) => {
  const word = bytes.readUInt32BE(offset);
  if (word >>> 21 !== 0x7ff) throw new Error(`no frame at ${offset}`);
  const isMpeg1 = ((word >>> 19) & 3) === 3;
  const kbps = (isMpeg1 ? mpeg1Kbps : mpeg2Kbps)[(word >>> 12) & 15] ?? 0;
  const hz = ([44_100, 48_000, 32_000][(word >>> 10) & 3] ?? 0) / (isMpeg1 ? 1 : 2);
  const size = Math.floor(((isMpeg1 ? 144_000 : 72_000) * kbps) / hz) + ((word >>> 9) & 1);
  return { isMpeg1, kbps, hz, size, layer: 4 - ((word >>> 17) & 3), isMono: ((word >>> 6) & 3) === 3 };
};

const framesOf = (bytes: Buffer) => {
  const frames: ReturnType<typeof frameAt>[] = [];
  let offset = 0;
  while (offset < bytes.length) {
    const frame = frameAt(bytes, offset);
    frames.push(frame);
    offset += frame.size;
  }
  if (offset !== bytes.length) throw new Error(`the last frame is cut by ${offset - bytes.length} bytes`);
  return frames;
};

t.test('a stream has no tag, and every chunk holds whole frames of the format', async (t) => {
  for (const [hz, kbps] of [
    [16_000, 32],
    [24_000, 160],
    [32_000, 128],
    [44_100, 128],
    [48_000, 320],
    [48_000, 32],
  ] as const) {
    const { chunks } = await speak(format(hz, kbps), 'stream', [{ pcm: sound }], { seed: hz + kbps });
    for (const frame of chunks.flatMap(framesOf))
      t.match(frame, { hz, kbps, layer: 3, isMono: true, isMpeg1: hz >= 32_000 });
  }
});

t.test('a decoder makes nothing of a stream before its second frame', async (t) => {
  const encoder = await createEncoder(format(32_000, 128), 24_000);
  t.teardown(() => encoder.dispose());
  let frames = 0;
  for (let start = 0; frames < 2; start += 576) {
    frames += framesOf(Buffer.from(encoder.encode(sound.subarray(start, start + 576)))).length;
    t.equal(encoder.decodableSamples > 0, frames > 1, `${frames} frames`);
  }
});

t.test('a whole file is a tag, an info frame, and the frames of the stream', async (t) => {
  for (const [hz, kbps] of [
    [16_000, 32],
    [24_000, 32],
    [44_100, 128],
    [48_000, 32],
    [48_000, 320],
  ] as const) {
    const stream = await speak(format(hz, kbps), 'stream', [{ pcm: sound }], { seed: 1 });
    const { file } = await speak(format(hz, kbps), 'whole', [{ pcm: sound }], {
      seed: 2,
      chunkSamplesMax: 5,
    });
    t.equal(file.toString('latin1', 0, 3), 'ID3');
    t.strictSame([...file.subarray(3, 10)], [3, 0, 0, 0, 0, 0, TAG_BYTES - 10], 'version 2.3, its size');
    t.equal(file.toString('latin1', 10, 14), 'TSSE');
    t.equal(file.readUInt32BE(14), TAG_BYTES - 20, 'the size of its only frame');
    const info = frameAt(file, TAG_BYTES);
    t.match(info, { hz, kbps, isMono: true });
    const audio = file.subarray(TAG_BYTES + info.size);
    t.ok(audio.equals(stream.file), 'independent of the cuts into chunks');
    const frames = framesOf(audio);
    const xing = TAG_BYTES + 4 + (info.isMpeg1 ? 17 : 9);
    t.equal(file.toString('latin1', xing, xing + 4), 'Info');
    t.equal(file.readUInt32BE(xing + 4), 3, 'flags: frames and bytes');
    t.equal(file.readUInt32BE(xing + 8), frames.length);
    t.equal(file.readUInt32BE(xing + 12), file.length - TAG_BYTES);
    const delayAndPadding = file.readUIntBE(xing + 37, 3);
    const samples = frames.length * (info.isMpeg1 ? 1_152 : 576);
    t.equal(samples - (delayAndPadding >> 12) - (delayAndPadding & 0xfff), hz, 'one second remains');
  }
});

t.test('rates and bitrates that MPEG lacks become the nearest, or the higher of two', async (t) => {
  const cases = [
    [16_000, 32, 16_000, 32],
    [17_001, 33, 16_000, 32],
    [19_025, 36, 22_050, 40],
    [23_025, 100, 24_000, 96],
    [24_001, 104, 24_000, 112],
    [28_000, 144, 32_000, 160],
    [38_050, 176, 44_100, 192],
    [46_050, 289, 48_000, 320],
    [47_999, 320, 48_000, 320],
    // Below 32 kHz the maximum is 160.
    [24_000, 320, 24_000, 160],
    [16_000, 161, 16_000, 160],
  ] as const;
  for (const [hz, kbps, sampleRateHz, bitrateKbps] of cases)
    t.strictSame(nearestMpegFormat(hz, kbps), { sampleRateHz, bitrateKbps });
});

const encodeAll = (encoder: Encoder, samples: Int16Array) =>
  Buffer.concat([encoder.encode(samples).slice(), encoder.finish().slice()]);

const openEncoder = async (hz: number, kbps: number) => createEncoder(format(hz, kbps), ENGINE_HZ);

t.test('a returned encoder, finished or not, leaves no trace in its next audio', async (t) => {
  const noise = toInt16(5_000, (i) => ((i * 7_919) % 20_011) - 10_000);
  const first = await openEncoder(32_000, 128);
  const expected = encodeAll(first, sound);
  first.dispose();
  for (let round = 0; round < 2 * limits.mp3EncodersWarm; round++) {
    const givenUp = await openEncoder(round % 2 === 0 ? 32_000 : 48_000, 128);
    givenUp.encode(noise);
    givenUp.dispose();
    givenUp.dispose();
    t.throws(() => givenUp.encode(noise), 'it belongs to another context');
    // At once, and after a returned encoder is ready again.
    if (round > limits.mp3EncodersWarm) await pause(5);
    const encoder = await openEncoder(32_000, 128);
    t.ok(encodeAll(encoder, sound).equals(expected));
    encoder.dispose();
  }
});

t.test('more contexts than kept encoders: each has its own encoder', async (t) => {
  const encoders = await Promise.all(
    Array.from({ length: limits.mp3EncodersIdleMax + 4 }, () => openEncoder(16_000, 64)),
  );
  const halves = [sound.subarray(0, 7_000), sound.subarray(7_000)];
  const parts = encoders.map(() => [] as Uint8Array[]);
  for (const half of halves) encoders.forEach((encoder, i) => parts[i]?.push(encoder.encode(half)));
  encoders.forEach((encoder, i) => parts[i]?.push(encoder.finish()));
  encoders.forEach((encoder) => encoder.dispose());
  const [first = Buffer.alloc(0), ...others] = parts.map((part) => Buffer.concat(part));
  t.ok(first.length > 7_000);
  t.ok(others.every((other) => other.equals(first)));
  t.notOk(createEncoder(format(16_000, 64), ENGINE_HZ) instanceof Promise, 'now one is idle');
});

t.test('audio without a sound needs no encoder, at any rate, and is as long as it should be', async (t) => {
  const { Instance } = WebAssembly;
  let made = 0;
  WebAssembly.Instance = class extends Instance {
    constructor(...parts: ConstructorParameters<typeof Instance>) {
      super(...parts);
      made++;
    }
  };
  t.teardown(() => (WebAssembly.Instance = Instance));
  const silence = new Int16Array(7_200);
  for (const hz of [16_000, 22_050, 24_000, 32_000, 44_100, 48_000]) {
    const encoders = await Promise.all(Array.from({ length: 40 }, () => openEncoder(hz, 128)));
    for (const encoder of encoders) {
      const payload = encodeAll(encoder, silence);
      const frames = framesOf(payload);
      t.ok(frames.every((frame) => frame.hz === hz && frame.kbps === 128));
      const samples = frames.length * (hz >= 32_000 ? 1_152 : 576);
      t.ok(samples >= 7_200 + encoder.streamDelaySamples && samples < 7_200 + 4 * 1_152);
    }
    encoders.forEach((encoder) => encoder.dispose());
  }
  t.equal(made, 0);
});

t.test('encoders of a peak are released when idle, except the warm ones', async (t) => {
  const speech = nearestMpegFormat(32_000, 128);
  const pool = await Mp3Pool.create(speech, { ...limits, mp3EncodersIdleMs: 30 });
  const takeSome = (count: number) => Array.from({ length: count }, () => pool.take(speech));
  const isSame = (a: readonly Lame[], b: readonly Lame[]) =>
    a.length === b.length && a.every((lame, i) => lame === b[i]);
  const peak = takeSome(limits.mp3EncodersWarm + 6);
  peak.forEach((lame) => pool.give(lame, speech));
  t.ok(isSame(takeSome(peak.length), [...peak].reverse()), 'at first the pool keeps all');
  peak.forEach((lame) => pool.give(lame, speech));
  await pause(100);
  const kept = takeSome(limits.mp3EncodersWarm);
  t.ok(isSame(kept, peak.slice(-limits.mp3EncodersWarm).reverse()), 'the encoders returned last');
  t.notOk(peak.includes(pool.take(speech)), 'the others are gone');
});

t.test('the pool keeps no more idle encoders than its bound', async (t) => {
  const speech = nearestMpegFormat(32_000, 128);
  const pool = await Mp3Pool.create(speech, { ...limits, mp3EncodersWarm: 1, mp3EncodersIdleMax: 2 });
  const peak = Array.from({ length: 4 }, () => pool.take(speech));
  peak.forEach((lame) => pool.give(lame, speech));
  const again = peak.map(() => pool.take(speech));
  t.equal(again.filter((lame) => peak.includes(lame)).length, 2);
});
