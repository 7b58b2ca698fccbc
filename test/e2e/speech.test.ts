import { spawnSync } from 'node:child_process';
import t from 'tap';
import { readStream, startService } from '../support/service.js';
import { missingTool } from '../support/tools.js';

const service = await startService(t, { SYNTHESIS_THREADS: '2' });
const sentence = 'Good morning, the "kettle" is on — and the paper (as ever) is at the door!';

interface Whole {
  audio: string;
  timestamps?: { words: string[]; start_seconds: number[]; end_seconds: number[] };
}

const whole = async (body: object): Promise<Whole> => {
  const response = await service.post('/v1/tts', { voice: 'wren', ...body });
  if (response.status !== 200) throw new Error(`${response.status}: ${await response.text()}`);
  return (await response.json()) as Whole;
};

const streamed = async (body: object) =>
  readStream(await service.post('/v1/tts/stream', { voice: 'wren', ...body }));

const samplesOf = (pcm: Buffer) =>
  new Int16Array(pcm.buffer.slice(pcm.byteOffset, pcm.byteOffset + (pcm.length & ~1)));

const peak = (pcm: Buffer) => samplesOf(pcm).reduce((max, sample) => Math.max(max, Math.abs(sample)), 0);

t.test(
  'nine voices, the default first, at least three conversational, and each of them speaks',
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
      const { audio } = await streamed({ voice, text: sentence, response_format: { encoding: 'pcm' } });
      t.ok(audio.length / 64_000 > 2 && audio.length / 64_000 < 12, `${voice}: ${audio.length / 64_000} s`);
      t.ok(peak(audio) > 4_000 && peak(audio) < 32_768, `${voice}: peak ${peak(audio)}`);
    }
  },
);

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

t.test('word times: original tokens, absolute, in order, within the audio, on both routes', async (t) => {
  const tokens = sentence.split(' ');
  const format = { encoding: 'pcm', sample_rate: 16_000 };
  const body = { text: `${sentence} ${sentence}`, timestamps: true, response_format: format };
  const expected = [...tokens, ...tokens];
  const { audio, timestamps } = await whole(body);
  t.same(timestamps?.words, expected);
  const starts = timestamps?.start_seconds ?? [];
  const ends = timestamps?.end_seconds ?? [];
  t.equal(starts.length, expected.length);
  t.equal(ends.length, expected.length);
  const seconds = Buffer.from(audio, 'base64').length / 32_000;
  starts.forEach((start, i) => {
    t.ok(start <= (ends[i] ?? -1), 'a word ends after it starts');
    t.ok(start >= (ends[i - 1] ?? 0), 'words do not overlap');
  });
  t.ok((ends.at(-1) ?? Infinity) <= seconds);

  const stream = await streamed(body);
  t.same(
    stream.words.map(({ word }) => word),
    expected,
  );
  t.ok(new Set(stream.words.map(({ audioBytesBefore }) => audioBytesBefore)).size > expected.length / 4);
  for (const { end, audioBytesBefore } of stream.words)
    t.ok(end <= audioBytesBefore / 32_000, 'a word is told when its sound has been sent');
  t.equal((await whole({ ...body, timestamps: false })).timestamps, undefined);
});

t.test('the same request gives different audio of different length each time', async (t) => {
  for (const text of ['Yes.', '', sentence]) {
    const body = { text, temperature: 1, response_format: 'pcm' };
    const readings = await Promise.all([whole(body), whole(body), whole(body)]);
    // Of two, one pair in a thousand has one length, to the sample.
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
    const { audio, words } = await streamed({ text, timestamps: true, response_format: 'pcm' });
    t.ok(peak(audio) > 3_000, `${name} sounds`);
    t.same(
      words.map(({ word }) => word),
      text.split(/\s+/u),
      name,
    );
  }
  const chinese = await streamed({ text: '早上好，你今天好吗？', timestamps: true, response_format: 'pcm' });
  t.ok(peak(chinese.audio) > 3_000, 'chinese sounds');
  t.equal(chinese.words.map(({ word }) => word).join(''), '早上好，你今天好吗？');
});

t.test('a long text is whole, and made as fast as it is sent', async (t) => {
  const text = `${sentence} `.repeat(60).trim();
  const { words, audio } = await streamed({ text, timestamps: true, response_format: 'pcm' });
  t.equal(words.map(({ word }) => word).join(' '), text);
  t.ok(audio.length / 64_000 > 120);
});

t.test('other decoders agree about the files', { skip: missingTool('ffmpeg', 'sox') }, async (t) => {
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
    t.ok(decoded.stdout.equals(file.subarray(44)), 'ffmpeg reads our very samples');
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
