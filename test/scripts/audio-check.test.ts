/** The checks of audio accept what the service sends, and find what is wrong. */
import t from 'tap';
import { createAudioCheck } from '../../scripts/rig/audio-check.js';
import type { AudioFormat } from '../../src/api/formats.js';
import { createEncoder, loadCodec, loadEncoders } from '../../workers/audio/encoders.js';
import { limits } from '../../src/limits.js';

await loadEncoders(limits);

const chunkMs = 200;
const chunks = 10;

const formats: readonly AudioFormat[] = [
  { encoding: 'pcm', sampleRateHz: 24_000 },
  { encoding: 'mulaw', sampleRateHz: 8_000 },
  { encoding: 'alaw', sampleRateHz: 8_000 },
  { encoding: 'wav', sampleRateHz: 22_050 },
  { encoding: 'linear16', sampleRateHz: 16_000 },
  { encoding: 'mp3', sampleRateHz: 44_100, bitrateKbps: 192 },
  { encoding: 'mp3', sampleRateHz: 24_000, bitrateKbps: 64 },
  { encoding: 'opus', sampleRateHz: 48_000, bitrateKbps: 64 },
  { encoding: 'aac', sampleRateHz: 24_000, bitrateKbps: 96 },
];

/** Chunks of a stream, as clients get them. */
const encode = async (format: AudioFormat): Promise<Buffer[]> => {
  await loadCodec(format);
  const encoder = await createEncoder(format, 48_000);
  const samples = (encoder.sampleRateHz * chunkMs) / 1000;
  const payloads: Uint8Array[] = [];
  for (let chunk = 0; chunk < chunks; chunk++)
    payloads.push(
      encoder.encode(
        Int16Array.from({ length: samples }, (_, i) => 8_000 * Math.sin((chunk * samples + i) / 20)),
      ),
    );
  payloads.push(encoder.finish());
  const stream = payloads
    .filter((payload) => payload.length > 0)
    .map((payload, i) => Buffer.concat([encoder.chunkHeader(payload.length, i === 0), payload]));
  encoder.dispose();
  return stream;
};

const check = (format: AudioFormat, stream: readonly Buffer[]) => {
  const audio = createAudioCheck(format);
  const faults = stream.map((chunk) => audio.push(chunk)).filter((fault) => fault !== null);
  return { faults, durationMs: audio.durationMs, isComplete: audio.isComplete };
};

for (const format of formats) {
  const name = `${format.encoding} at ${format.sampleRateHz} Hz`;
  void t.test(`${name} is measured to the millisecond, and what is wrong with it is found`, async (t) => {
    const stream = await encode(format);
    const whole = check(format, stream);
    t.same(whole.faults, []);
    t.ok(whole.isComplete);
    const lateMs = whole.durationMs - chunks * chunkMs;
    t.ok(lateMs >= -1 && lateMs < 150, `${whole.durationMs} ms`);

    const lost = check(format, stream.toSpliced(3, 1));
    t.ok(lost.faults.length > 0 || lost.durationMs < whole.durationMs - chunkMs / 2, 'a chunk is lost');
    const doubled = check(format, stream.toSpliced(3, 0, stream[3]!));
    t.ok(
      doubled.faults.length > 0 || doubled.durationMs > whole.durationMs + chunkMs / 2,
      'a chunk is doubled',
    );
    const cut = check(format, stream.with(3, stream[3]!.subarray(0, -1)));
    const isByteASample = /law/.test(format.encoding);
    t.ok(isByteASample || cut.faults.length > 0 || !cut.isComplete, 'a byte is lost');
    const isPaged = format.encoding === 'opus';
    t.ok(isPaged || check(format, stream.with(3, Buffer.alloc(0))).faults.length > 0, 'a chunk is empty');
  });
}
