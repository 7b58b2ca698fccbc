/** Speech of the real engine over HTTP in every format, of texts of any script and any length. */
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import type { Encoding } from '../../src/api/formats.js';
import { decodersOf } from '../support/decoders.js';
import { missingTool } from '../support/tools.js';
import { pcm16, peak, peakOf, sentence, startRealSpeech } from './real-speech.js';

const { streamed, whole } = await startRealSpeech(t);

for (const sampleRateHz of [8_000, 11_025, 16_000, 22_050, 24_000, 32_000, 44_100, 47_999, 48_000])
  t.test(`${sampleRateHz} Hz: wav, linear16 and pcm, whole and streamed`, async (t) => {
    for (const encoding of ['wav', 'linear16', 'pcm']) {
      const body = { text: 'One, two, three.', response_format: { encoding, sample_rate: sampleRateHz } };
      const file = Buffer.from((await whole(body)).audio, 'base64');
      const header = encoding === 'pcm' ? 0 : 44;
      const seconds = (file.length - header) / 2 / sampleRateHz;
      t.ok(seconds > 0.8 && seconds < 3, `${encoding}: ${seconds} s`);
      const stream = await streamed(body);
      const headers = stream.chunks.filter((chunk) => chunk.toString('latin1', 0, 4) === 'RIFF').length;
      t.equal(headers, { wav: 1, linear16: stream.chunks.length, pcm: 0 }[encoding]);
      const bytes = stream.audio.length - headers * 44;
      t.ok(bytes / 2 / sampleRateHz > 0.8 && bytes / 2 / sampleRateHz < 3);
      t.ok(
        stream.chunks.every((chunk) => chunk.length % 2 === 0),
        'no half samples',
      );
      if (header === 0) continue;
      t.equal(file.toString('latin1', 0, 4), 'RIFF');
      t.equal(file.readUInt32LE(4), file.length - 8);
      t.equal(file.readUInt32LE(24), sampleRateHz);
      t.equal(file.readUInt32LE(40), file.length - 44);
    }
  });

t.test('text of any script is spoken, and its tokens come back', async (t) => {
  const texts = {
    russian: 'Доброе утро, как дела?',
    arabic: 'صباح الخير كيف حالك',
    greek: 'Καλημέρα σας',
    hindi: 'सुप्रभात, आप कैसे हैं?',
    accents: 'Où est le café, señor Müller?',
    markup: '<speak>Hello <break time="1s"/> &amp; goodbye</speak>',
    emoji: 'Well done 🎉 my friend 👍🏽',
    address: 'See https://example.org/a?b=c#d or write to me@example.org.',
    controls: 'one\ttwo\u0007three\u0000four\r\nfive',
    huge: 'a'.repeat(3_000),
  };
  for (const [name, text] of Object.entries(texts)) {
    const { audio, words } = await streamed({ text, timestamps: true, response_format: pcm16 });
    t.ok(peak(audio) > 3_000, `${name} sounds`);
    t.same(words, text.split(/\s+/u), name);
  }
  const text = '早上好，你今天好吗？';
  const chinese = await streamed({ text, timestamps: true, response_format: pcm16 });
  t.ok(peak(chinese.audio) > 3_000, 'chinese sounds');
  t.equal(chinese.words.join(''), text);
});

t.test('a long text is spoken to its end', async (t) => {
  const text = `${sentence} `.repeat(30).trim();
  const { words, audio } = await streamed({ text, timestamps: true, response_format: pcm16 });
  t.equal(words.join(' '), text);
  t.ok(audio.length / 32_000 > 60);
});

t.test('other decoders read the same samples', { skip: missingTool('ffmpeg', 'sox') }, async (t) => {
  for (const encoding of ['wav', 'linear16']) {
    const file = Buffer.from(
      (await whole({ text: sentence, response_format: { encoding, sample_rate: 44_100 } })).audio,
      'base64',
    );
    const seconds = (file.length - 44) / 88_200;
    const decoded = spawnSync('ffmpeg', ['-v', 'error', '-i', '-', '-f', 's16le', '-'], {
      input: file,
      maxBuffer: 2 ** 28,
    });
    t.equal(decoded.stderr.toString(), '');
    t.ok(decoded.stdout.equals(file.subarray(44)), 'ffmpeg reads our samples');
    const statistics = spawnSync('sox', ['-t', 'wav', '-', '-n', 'stat'], { input: file }).stderr.toString();
    t.ok(Math.abs(Number(/Length \(seconds\):\s+([\d.]+)/.exec(statistics)?.[1]) - seconds) < 0.001);
  }
  const { audio } = await streamed({
    text: sentence,
    response_format: { encoding: 'wav', sample_rate: 22_050 },
  });
  const decoded = spawnSync('ffmpeg', ['-v', 'error', '-i', '-', '-f', 's16le', '-'], {
    input: audio,
    maxBuffer: 2 ** 28,
  });
  t.ok(decoded.stdout.equals(audio.subarray(44)), 'a streamed wav is read to its end');
});

const kettle = 'One kettle, two cups, and the paper at the door.';

for (const [responseFormat, encoding, decodedHz] of [
  ['mp3', 'mp3', 32_000],
  [{ encoding: 'MP3', sample_rate: 23_456, bitrate: '320' }, 'mp3', 24_000],
  ['Opus', 'opus', 48_000],
  [{ encoding: 'opus', sample_rate: 8_000, bitrate: '32k' }, 'opus', 48_000],
  ['\u03bc-law', 'mulaw', 8_000],
  ['A-law', 'alaw', 8_000],
] as const satisfies readonly (readonly [unknown, Encoding, number])[])
  t.test(
    `${JSON.stringify(responseFormat)} gives speech that is as long as its words`,
    { skip: missingTool('ffmpeg', 'mpg123', 'opusdec', 'sox') },
    async (t) => {
      const check = (bytes: Buffer, endSeconds: readonly number[], words: readonly string[]) => {
        t.strictSame(words, kettle.split(' '));
        const path = join(t.testdir(), `speech.${encoding}`);
        writeFileSync(path, bytes);
        for (const { program, ...decoder } of decodersOf(encoding, decodedHz)) {
          const samples = decoder.decode(path);
          const seconds = samples.length / decodedHz;
          const last = endSeconds.at(-1) ?? 0;
          t.ok(last > 1.5 && last <= seconds && seconds < last + 0.6, `${program}: ${last} of ${seconds} s`);
          t.ok(peakOf(samples) > 4_000, `${program}: peak ${peakOf(samples)}`);
        }
      };
      const body = { text: kettle, timestamps: true, response_format: responseFormat };
      const { audio, timestamps } = await whole(body);
      check(Buffer.from(audio, 'base64'), timestamps?.end_seconds ?? [], timestamps?.words ?? []);
      const stream = await streamed(body);
      check(
        stream.audio,
        stream.times.map(({ end }) => end),
        stream.words,
      );
    },
  );
