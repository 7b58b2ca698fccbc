/** The codecs through the real service: what a client gets who asks for them, or for nothing. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import type { Encoding } from '../../src/api/formats.js';
import { decodersOf } from '../support/decoders.js';
import { readStream, startService } from '../support/service.js';
import { missingTool } from '../support/tools.js';

const service = await startService(t, { SYNTHESIS_THREADS: '1' });
const text = 'One kettle, two cups, and the paper at the door.';

interface Whole {
  readonly audio: string;
  readonly timestamps: { readonly words: string[]; readonly end_seconds: number[] };
}

const ask = (path: string, responseFormat: unknown) =>
  service.post(path, { text, voice: 'wren', timestamps: true, response_format: responseFormat });

t.test('who names no format gets mp3: tagged when whole, bare frames when streamed', async (t) => {
  const whole = (await (await ask('/v1/tts', undefined)).json()) as Whole;
  t.equal(Buffer.from(whole.audio, 'base64').toString('latin1', 0, 3), 'ID3');
  const { chunks } = await readStream(await ask('/v1/tts/stream', undefined));
  t.ok(chunks.length > 3);
  // MPEG-1 layer III, 128 kbps, 32000 Hz.
  for (const chunk of chunks) t.match(chunk.subarray(0, 3).toString('hex'), /^fffb9[8a]$/);
});

for (const [responseFormat, encoding, decodedHz] of [
  ['mp3', 'mp3', 32_000],
  [{ encoding: 'MP3', sample_rate: 23_456, bitrate: '320' }, 'mp3', 24_000],
  ['Opus', 'opus', 48_000],
  [{ encoding: 'opus', sample_rate: 8_000, bitrate: '32k' }, 'opus', 48_000],
  ['\u03bc-law', 'mulaw', 8_000],
  ['A-law', 'alaw', 8_000],
] as const satisfies readonly (readonly [unknown, Encoding, number])[])
  t.test(
    `${JSON.stringify(responseFormat)}: speech of the length that its words have`,
    { skip: missingTool('ffmpeg', 'mpg123', 'opusdec', 'sox') },
    async (t) => {
      const check = (bytes: Buffer, endSeconds: readonly number[], words: readonly string[]) => {
        t.strictSame(words, text.split(' '));
        const path = join(t.testdir(), `speech.${encoding}`);
        writeFileSync(path, bytes);
        for (const { program, ...decoder } of decodersOf(encoding, decodedHz)) {
          const samples = decoder.decode(path);
          const seconds = samples.length / decodedHz;
          const last = endSeconds.at(-1) ?? 0;
          t.ok(last > 1.5 && last <= seconds && seconds < last + 0.6, `${program}: ${last} of ${seconds} s`);
          const peak = samples.reduce((max, sample) => Math.max(max, Math.abs(sample)), 0);
          t.ok(peak > 4_000, `${program}: peak ${peak}`);
        }
      };
      const whole = (await (await ask('/v1/tts', responseFormat)).json()) as Whole;
      check(Buffer.from(whole.audio, 'base64'), whole.timestamps.end_seconds, whole.timestamps.words);
      const stream = await readStream(await ask('/v1/tts/stream', responseFormat));
      check(
        stream.audio,
        stream.words.map(({ end }) => end),
        stream.words.map(({ word }) => word),
      );
    },
  );

t.test('what a codec does not have is refused in its words', async (t) => {
  const response = await ask('/v1/tts/stream', { encoding: 'opus', sample_rate: 44_100, bitrate: 'loud' });
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
