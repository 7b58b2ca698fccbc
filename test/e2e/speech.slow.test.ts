/** Speech of the real engine over HTTP: voices, word times, and every format, of texts of any script and any length. */
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { pcm16, peak, sentence, startRealSpeech, peakOf } from './real-speech.js';
import type { Encoding } from '../../src/api/formats.js';
import { partOfToday, seedOfRun } from '../fuzz/check.js';
import { decodersOf } from '../support/decoders.js';
import { missingTool } from '../support/tools.js';

const { service, streamed, whole } = await startRealSpeech(t);
t.comment(`seed ${seedOfRun()}`);

t.test(
  'there are nine voices, the default first, at least three conversational, and each speaks',
  async (t) => {
    const response = await service.get('/v1/tts/speakers');
    t.equal(response.headers.get('content-type'), 'application/json');
    const { speaker_ids: ids, ...rest } = (await response.json()) as { speaker_ids: string[] };
    t.same(rest, {});
    t.equal(ids.length, 9);
    t.equal(ids[0], 'wren');
    const conversational = ids.filter((id) => id.endsWith('_conv'));
    t.ok(conversational.length >= 3);
    for (const id of conversational)
      t.ok(ids.includes(id.replace(/_conv$/, '')), `${id} has its plain voice`);
    for (const voice of ids) {
      const { audio } = await streamed({
        voice,
        text: 'The kettle is on.',
        response_format: { encoding: 'pcm' },
      });
      t.ok(audio.length / 64_000 > 0.5 && audio.length / 64_000 < 4, `${voice}: ${audio.length / 64_000} s`);
      t.ok(peak(audio) > 4_000 && peak(audio) < 32_768, `${voice}: peak ${peak(audio)}`);
    }
  },
);

t.test('word times: tokens as written, in order, within the audio, on both routes', async (t) => {
  const tokens = sentence.split(' ');
  const body = { text: `${sentence} ${sentence}`, timestamps: true, response_format: pcm16 };
  const expected = [...tokens, ...tokens];
  const { audio, timestamps } = await whole(body);
  const { words = [], start_seconds: starts = [], end_seconds: ends = [] } = timestamps ?? {};
  t.same(words, expected);
  t.equal(starts.length, expected.length);
  t.equal(ends.length, expected.length);
  const seconds = Buffer.from(audio, 'base64').length / 32_000;
  starts.forEach((start, i) => {
    t.ok(start <= (ends[i] ?? -1), 'a word ends after it starts');
    t.ok(start >= (ends[i - 1] ?? 0), 'words do not overlap');
  });
  t.ok((ends.at(-1) ?? Infinity) <= seconds);

  const stream = await streamed(body);
  t.same(stream.words, expected);
  t.ok(new Set(stream.times.map(({ audioBytesBefore }) => audioBytesBefore)).size > expected.length / 4);
  for (const { end, audioBytesBefore } of stream.times)
    t.ok(end <= audioBytesBefore / 32_000, 'the time of a word follows its sound');
  t.equal((await whole({ ...body, text: 'Yes.', timestamps: false })).timestamps, undefined);
});

t.test('the same request gives different audio of different length each time', async (t) => {
  for (const text of ['Yes.', '']) {
    const body = { text, temperature: 1, response_format: pcm16 };
    const readings = await Promise.all([whole(body), whole(body), whole(body)]);
    // One pair in a thousand has the same length, to the sample: three readings do not.
    t.ok(new Set(readings.map(({ audio }) => audio.length)).size > 1);
    if (text !== '') t.equal(new Set(readings.map(({ audio }) => audio)).size, readings.length);
  }
});

t.test('blank text gives a short silence', async (t) => {
  for (const text of ['', ' ', '\n\t \u00a0', '...', '—', '\u0000', '\ud800']) {
    const response = await whole({
      text,
      timestamps: true,
      response_format: { encoding: 'pcm', sample_rate: 8_000 },
    });
    const pcm = Buffer.from(response.audio, 'base64');
    t.ok(pcm.length > 1_600 && pcm.length < 32_000, `${JSON.stringify(text)}: ${pcm.length / 16_000} s`);
    t.ok(peak(pcm) < 100);
    t.same(response.timestamps?.words, text.trim() === '' ? [] : [text.trim()]);
  }
});

const kettle = 'One kettle, two cups, and the paper at the door.';

t.test('the default format is mp3: tagged as a file, bare frames as a stream', async (t) => {
  const { audio } = await whole({ text: kettle });
  t.equal(Buffer.from(audio, 'base64').toString('latin1', 0, 3), 'ID3');
  const { chunks } = await streamed({ text: kettle });
  t.ok(chunks.length > 3);
  // MPEG-1 layer III, 128 kbps, 32000 Hz.
  for (const chunk of chunks) t.match(chunk.subarray(0, 3).toString('hex'), /^fffb9[8a]$/);
});

t.test('a rate or bitrate that a codec lacks is refused by name', async (t) => {
  const format = { encoding: 'opus', sample_rate: 44_100, bitrate: 'loud' };
  const response = await service.post('/v1/tts/stream', {
    text: kettle,
    voice: 'wren',
    response_format: format,
  });
  t.equal(response.status, 422);
  const { detail } = (await response.json()) as { detail: { loc: string[]; msg: string }[] };
  t.strictSame(
    detail.map(({ loc, msg }) => [loc.at(-1), msg]),
    [
      [
        'sample_rate',
        'Value error, opus audio sample_rate must be one of 8000, 12000, 16000, 24000, or 48000 Hz',
      ],
      ['bitrate', 'Value error, Invalid opus audio bitrate: loud'],
    ],
  );
});

t.test('normalize_text keeps the words as written, on both routes', async (t) => {
  const text = 'Dr. Lee paid $1,250.75 on Jan. 5, 2024 at 3:05pm, i.e. 10% of 12 500 000 or 1e6.';
  const tokens = text.split(' ');
  const body = { text, normalize_text: true, timestamps: true, response_format: pcm16 };
  const { audio, timestamps } = await whole(body);
  const { words = [], start_seconds: starts = [], end_seconds: ends = [] } = timestamps ?? {};
  t.strictSame(words, tokens);
  const stream = await streamed(body);
  t.strictSame(stream.words, tokens);
  for (const [i, start] of starts.entries())
    t.ok(start >= (ends[i - 1] ?? 0) && ends[i]! > start, `${tokens[i]!}: ${start} to ${ends[i]!}`);
  t.ok(ends.at(-1)! <= Buffer.from(audio, 'base64').length / 32_000);
  t.ok(stream.times.at(-1)!.end <= stream.audio.length / 32_000);
  const lengthOf = (token: string) => ends[tokens.indexOf(token)]! - starts[tokens.indexOf(token)]!;
  t.ok(lengthOf('$1,250.75') > 5 * lengthOf('paid'), 'a sum of money is many words');
});

t.test('normalize_text changes the audio, and only when it is true', async (t) => {
  const secondsOf = async (text: string, more: object = {}) =>
    Buffer.from((await whole({ text, response_format: pcm16, ...more })).audio, 'base64').length / 32_000;
  const power = 'It is 1e6.';
  const plain = await secondsOf(power);
  const off = await secondsOf(power, { normalize_text: false });
  const on = await secondsOf(power, { normalize_text: true });
  t.ok(on > 1.4 * plain && on > 1.4 * off, `${on} s, without it ${plain} and ${off} s`);
  const words = 'The kettle is on.';
  const same = await secondsOf(words, { normalize_text: true });
  t.ok(Math.abs(same / (await secondsOf(words)) - 1) < 0.3);
});

const ratesHz = [8_000, 11_025, 16_000, 22_050, 24_000, 32_000, 44_100, 47_999, 48_000];
for (const sampleRateHz of partOfToday(ratesHz, 5))
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
    huge: 'a'.repeat(500),
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
  const text = `${sentence} `.repeat(10).trim();
  const { words, audio } = await streamed({ text, timestamps: true, response_format: pcm16 });
  t.equal(words.join(' '), text);
  t.ok(audio.length / 32_000 > 20);
});

t.test('other decoders read the same samples', { skip: missingTool('ffmpeg', 'sox') }, async (t) => {
  for (const encoding of ['wav', 'linear16']) {
    const file = Buffer.from(
      (await whole({ text: 'Yes.', response_format: { encoding, sample_rate: 44_100 } })).audio,
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

const compressed = [
  ['mp3', 'mp3', 32_000],
  [{ encoding: 'MP3', sample_rate: 23_456, bitrate: '320' }, 'mp3', 24_000],
  ['Opus', 'opus', 48_000],
  [{ encoding: 'opus', sample_rate: 8_000, bitrate: '32k' }, 'opus', 48_000],
  ['\u03bc-law', 'mulaw', 8_000],
  ['A-law', 'alaw', 8_000],
] as const satisfies readonly (readonly [unknown, Encoding, number])[];
// Both halves have mp3, Opus and a law of G.711.
for (const [responseFormat, encoding, decodedHz] of partOfToday(compressed, 2))
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
