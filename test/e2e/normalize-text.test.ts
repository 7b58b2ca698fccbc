import t from 'tap';
import { readStream, startService } from '../support/service.js';

const service = await startService(t, { SYNTHESIS_THREADS: '1' });
const sampleRateHz = 16_000;
const format = { encoding: 'pcm', sample_rate: sampleRateHz };
const text = 'Dr. Lee paid $1,250.75 on Jan. 5, 2024 at 3:05pm, i.e. 10% of 12 500 000 or 1e6.';

interface Whole {
  readonly audio: string;
  readonly timestamps: { words: string[]; start_seconds: number[]; end_seconds: number[] };
}

const body = (more: object) => ({ voice: 'wren', timestamps: true, response_format: format, ...more });

const whole = async (more: object): Promise<Whole> =>
  (await (await service.post('/v1/tts', body(more))).json()) as Whole;

const secondsOf = ({ audio }: Whole) => Buffer.from(audio, 'base64').length / 2 / sampleRateHz;

t.test('normalize_text leaves the words as they were written, on both routes', async (t) => {
  const tokens = text.split(' ');
  const { audio, timestamps } = await whole({ text, normalize_text: true });
  t.strictSame(timestamps.words, tokens);
  const { words, audio: streamed } = await readStream(
    await service.post('/v1/tts/stream', body({ text, normalize_text: true })),
  );
  t.strictSame(
    words.map(({ word }) => word),
    tokens,
  );
  const starts = timestamps.start_seconds;
  const ends = timestamps.end_seconds;
  for (const [i, start] of starts.entries())
    t.ok(start >= (ends[i - 1] ?? 0) && ends[i]! > start, `${tokens[i]!}: ${start} to ${ends[i]!}`);
  t.ok(ends.at(-1)! <= Buffer.from(audio, 'base64').length / 2 / sampleRateHz);
  t.ok(words.at(-1)!.end <= streamed.length / 2 / sampleRateHz);
  const lengthOf = (token: string) => ends[tokens.indexOf(token)]! - starts[tokens.indexOf(token)]!;
  t.ok(lengthOf('$1,250.75') > 5 * lengthOf('paid'), 'a sum of money takes the time of its many words');
});

t.test('normalize_text changes what is heard, and only when it is asked for', async (t) => {
  const power = 'It is 1e6.';
  const plain = secondsOf(await whole({ text: power }));
  const off = secondsOf(await whole({ text: power, normalize_text: false }));
  const on = secondsOf(await whole({ text: power, normalize_text: true }));
  t.ok(on > 1.4 * plain && on > 1.4 * off, `${on} s, without it ${plain} and ${off} s`);
  const words = 'The kettle is on.';
  const same = secondsOf(await whole({ text: words, normalize_text: true }));
  t.ok(Math.abs(same / secondsOf(await whole({ text: words })) - 1) < 0.3);
});
