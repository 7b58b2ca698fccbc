/** The check of HTTP responses accepts what the service sends, and finds what is cut, lost or too long. */
import t from 'tap';
import { CheckedAnswer, type CheckedAnswerParts } from '../../scripts/rig/checked-answer.js';
import type { FrameFault } from '../../scripts/rig/context-check.js';
import { plausible } from '../../scripts/soak/plausible.js';
import type { AudioFormat } from '../../src/api/formats.js';
import { createEncoder, loadCodec, loadEncoders } from '../../workers/audio/encoders.js';
import { limits } from '../../src/limits.js';

await loadEncoders(limits);

const text = 'One moment, please.';
const chunkMs = 200;
const chunks = 6;
const timestamps = {
  words: ['One', 'moment,', 'please.'],
  start_seconds: [0.05, 0.3, 0.6],
  end_seconds: [0.3, 0.6, 0.95],
};

const formats: readonly AudioFormat[] = [
  { encoding: 'pcm', sampleRateHz: 24_000 },
  { encoding: 'alaw', sampleRateHz: 8_000 },
  { encoding: 'wav', sampleRateHz: 22_050 },
  { encoding: 'linear16', sampleRateHz: 16_000 },
  { encoding: 'mp3', sampleRateHz: 44_100, bitrateKbps: 192 },
  { encoding: 'mp3', sampleRateHz: 16_000, bitrateKbps: 32 },
  { encoding: 'opus', sampleRateHz: 24_000, bitrateKbps: 32 },
];

/** Payloads of a stream, and the whole file. */
const encode = async (format: AudioFormat, count = chunks): Promise<{ stream: Buffer[]; file: Buffer }> => {
  await loadCodec(format);
  const encoder = await createEncoder(format, 48_000);
  const samples = (encoder.sampleRateHz * chunkMs) / 1000;
  const payloads = Array.from({ length: count }, (_, chunk) =>
    encoder.encode(
      Int16Array.from({ length: samples }, (_, i) => 8_000 * Math.sin((chunk * samples + i) / 20)),
    ),
  ).concat(encoder.finish());
  const sound = Buffer.concat(payloads);
  const file = Buffer.concat([encoder.fileHeader(sound.length), sound]);
  const stream = payloads
    .filter((payload) => payload.length > 0)
    .map((payload, i) => Buffer.concat([encoder.chunkHeader(payload.length, i === 0), payload]));
  encoder.dispose();
  return { stream, file };
};

type Kind = CheckedAnswerParts['kind'];

/** @returns the kinds of the faults that are found */
const faultsOf = (
  kind: Kind,
  format: AudioFormat,
  bytes: readonly Buffer[],
  asksTimes = kind === 'whole',
): FrameFault[] => {
  const faults: FrameFault[] = [];
  const { endTrailMs, wordMarginMs, httpMsPerCharacter } = plausible();
  const answer = new CheckedAnswer({
    id: 'a',
    kind,
    format,
    text,
    timestamps: asksTimes,
    trailMs: endTrailMs,
    wordMarginMs: kind === 'records' ? wordMarginMs(format) : null,
    msPerCharacter: httpMsPerCharacter,
    onFault: (fault) => faults.push(fault),
    onAudio: () => undefined,
  });
  for (const part of bytes) answer.push(part);
  answer.end();
  return faults;
};

const wholeFaults = (format: AudioFormat, file: Buffer, members: object = { timestamps }) => {
  const body = Buffer.from(JSON.stringify({ audio: file.toString('base64'), ...members }));
  return faultsOf('whole', format, [body.subarray(0, 100), body.subarray(100)]);
};

for (const format of formats) {
  const name = `${format.encoding} at ${format.sampleRateHz} Hz`;
  void t.test(`a whole result of ${name} is checked to its end`, async (t) => {
    const { file } = await encode(format);
    t.same(wholeFaults(format, file), []);
    t.ok(wholeFaults(format, file, {}).includes('words'), 'the times that were asked for are missing');
    const twoOfThree = {
      words: timestamps.words.slice(0, 2),
      start_seconds: timestamps.start_seconds.slice(0, 2),
      end_seconds: timestamps.end_seconds.slice(0, 2),
    };
    t.ok(wholeFaults(format, file, { timestamps: twoOfThree }).includes('words'), 'the last word is lost');
    const cut = Math.floor(file.length * 0.7);
    t.ok(wholeFaults(format, file.subarray(0, cut)).includes('audio'), 'the file is cut');
    t.ok(wholeFaults(format, (await encode(format, chunks + 4)).file).includes('audio'), 'it goes on');
  });
}

const record = (fields: object): Buffer => Buffer.from(`data: ${JSON.stringify(fields)}\n\n`);

void t.test('a stream is checked to the end of its body', async (t) => {
  const format: AudioFormat = { encoding: 'opus', sampleRateHz: 24_000, bitrateKbps: 32 };
  const { stream } = await encode(format);
  const recordsOf = (parts: readonly Buffer[]) =>
    parts.map((part) => record({ type: 'audio', audio_chunk: part.toString('base64') }));
  const streamFaults = (parts: readonly Buffer[]) => faultsOf('records', format, parts);
  t.same(streamFaults(recordsOf(stream)), []);
  const bytes = Buffer.concat(recordsOf(stream));
  t.same(streamFaults([bytes.subarray(0, 1_000), bytes.subarray(1_000)]), [], 'cut anywhere');
  t.same(streamFaults(recordsOf(stream.slice(0, -1))), ['audio'], 'its last page is lost');
  t.ok(streamFaults([]).includes('audio'), 'it has no audio');
  t.same(
    streamFaults([...recordsOf(stream), Buffer.from('data: {"type"\n\ndata: ')]),
    ['frames', 'frames'],
    'a record is no JSON, another is cut',
  );
});

void t.test('events of OpenAI have a last one, which counts the characters', async (t) => {
  const format: AudioFormat = { encoding: 'mp3', sampleRateHz: 24_000, bitrateKbps: 128 };
  const { stream } = await encode(format);
  const deltas = stream.map((part) => record({ type: 'speech.audio.delta', audio: part.toString('base64') }));
  const done = (characters: number) =>
    record({ type: 'speech.audio.done', usage: { total_tokens: characters } });
  const eventFaults = (parts: readonly Buffer[]) => faultsOf('events', format, parts);
  t.same(eventFaults([...deltas, done(text.length)]), []);
  t.same(eventFaults(deltas), ['frames'], 'the last event is missing');
  t.same(eventFaults([...deltas, done(text.length - 1)]), ['frames'], 'a character is not counted');
  t.ok(eventFaults([done(text.length), ...deltas]).includes('frames'), 'audio comes after the last event');
  t.ok(eventFaults([done(text.length)]).includes('audio'), 'it has no audio');
});

void t.test('raw samples end with a whole sample', async (t) => {
  const format: AudioFormat = { encoding: 'pcm', sampleRateHz: 16_000 };
  const sound = Buffer.concat((await encode(format)).stream);
  const rawFaults = (bytes: Buffer) =>
    faultsOf('samples', format, [bytes.subarray(0, 1_001), bytes.subarray(1_001)]);
  t.same(rawFaults(sound), []);
  t.same(rawFaults(sound.subarray(0, -1)), ['frames']);
});
