/** Every name, rate and bitrate of `response_format`: the format it resolves to, or the text of its refusal. */
import t from 'tap';
import { limits } from '../../src/limits.js';
import { parseSpeechRequest } from '../../src/api/speech-request.js';

const parse = (responseFormat: unknown) =>
  parseSpeechRequest(
    Buffer.from(JSON.stringify({ text: 'a', voice: 'b', response_format: responseFormat })),
    'application/json',
    limits,
  );

const formatOf = (responseFormat: unknown) => {
  const result = parse(responseFormat);
  return result.ok ? result.request.format : result.body;
};

type Field = 'encoding' | 'sample_rate' | 'bitrate';

/** The one item of a refusal. */
const refusal = (field: Field, message: string, input: unknown) =>
  JSON.stringify({
    detail: [
      {
        type: 'value_error',
        loc: ['body', 'response_format', field],
        msg: `Value error, ${message}`,
        input,
        ctx: { error: {} },
      },
    ],
  });

const between = (encoding: string, from: number) =>
  `${encoding} audio sample_rate must be between ${from} and 48000 Hz`;
const opusRates = 'opus audio sample_rate must be one of 8000, 12000, 16000, 24000, or 48000 Hz';
const mp3Bitrates = 'mp3 audio bitrate must be between 32kbps and 320kbps';
const opusBitrates = 'opus audio bitrate must be between 32kbps and 192kbps';

t.test('every name, in any case, bare or in an object, resolves to its encoding with defaults', async (t) => {
  const names = {
    mp3: ['mp3'],
    wav: ['wav'],
    pcm: ['pcm', 'pcm_s16le', 'raw'],
    linear16: ['linear16', 'linear_pcm', 'linear-pcm'],
    opus: ['opus'],
    // The Greek letter and the micro sign.
    mulaw: ['mulaw', 'mu-law', 'ulaw', 'u-law', '\u03bc-law', '\u00b5-law'],
    alaw: ['alaw', 'a-law'],
  };
  const defaults: Record<string, object> = {
    mp3: { sampleRateHz: 32_000, bitrateKbps: 128 },
    wav: { sampleRateHz: 32_000 },
    pcm: { sampleRateHz: 32_000 },
    linear16: { sampleRateHz: 32_000 },
    opus: { sampleRateHz: 48_000, bitrateKbps: 64 },
    mulaw: { sampleRateHz: 8_000 },
    alaw: { sampleRateHz: 8_000 },
  };
  for (const [encoding, spellings] of Object.entries(names))
    for (const spelling of spellings)
      for (const name of [
        spelling,
        spelling.toUpperCase(),
        spelling.replace(/^./u, (c) => c.toUpperCase()),
      ]) {
        const format = { encoding, ...defaults[encoding] };
        t.strictSame(formatOf(name), format, name);
        t.strictSame(formatOf({ encoding: name, sample_rate: null, bitrate: null }), format, name);
      }
  t.strictSame(formatOf({}), { encoding: 'mp3', ...defaults['mp3'] }, 'mp3 is the default');
});

t.test('other names are refused as written', async (t) => {
  for (const name of [
    'flac',
    'ogg',
    'aac',
    '',
    ' mp3',
    'mp3 ',
    'MPEG',
    'mu_law',
    'mu',
    'law',
    '\u03bclaw',
    'a_law',
  ]) {
    const refused = refusal('encoding', `Unsupported audio encoding: ${name}`, name);
    t.equal(formatOf(name), refused);
    t.equal(formatOf({ encoding: name, sample_rate: 1, bitrate: 1 }), refused);
  }
});

t.test('sample rates have the range of their encoding, both ends included', async (t) => {
  const rates: readonly (readonly [string, readonly number[], readonly number[], string])[] = [
    [
      'mp3',
      [16_000, 16_001, 22_050, 48_000],
      [15_999, 8_000, 48_001, 0, -32_000, 1e30],
      between('mp3', 16_000),
    ],
    ...['wav', 'pcm', 'linear16'].map(
      (encoding) =>
        [encoding, [8_000, 11_111, 48_000], [7_999, 48_001, 0, -8_000], between(encoding, 8_000)] as const,
    ),
    ['opus', [8_000, 12_000, 16_000, 24_000, 48_000], [7_999, 8_001, 32_000, 44_100, 96_000, 0], opusRates],
    ['mulaw', [8_000], [7_999, 8_001, 16_000, 0], 'mulaw audio requires an 8000 Hz sample rate'],
    ['alaw', [8_000], [7_999, 8_001, 48_000], 'alaw audio requires an 8000 Hz sample rate'],
  ];
  for (const [encoding, accepted, refused, message] of rates) {
    for (const rate of accepted)
      t.match(formatOf({ encoding, sample_rate: rate }), { encoding, sampleRateHz: rate });
    for (const rate of refused)
      t.equal(formatOf({ encoding, sample_rate: rate }), refusal('sample_rate', message, rate));
  }
  t.equal(formatOf({ sample_rate: 8_000 }), refusal('sample_rate', between('mp3', 16_000), 8_000));
  const alias = 'mulaw audio requires an 8000 Hz sample rate';
  t.equal(formatOf({ encoding: 'U-Law', sample_rate: 9 }), refusal('sample_rate', alias, 9));
});

t.test('a bitrate may be a number, its text, or its text with a k', async (t) => {
  for (const bitrate of [128, '128', '128k', '128K'])
    t.strictSame(formatOf({ bitrate }), { encoding: 'mp3', sampleRateHz: 32_000, bitrateKbps: 128 });
  for (const [encoding, bitrate, bitrateKbps] of [
    ['mp3', 32, 32],
    ['mp3', '320k', 320],
    ['mp3', '100', 100],
    ['opus', '32', 32],
    ['opus', 192, 192],
    ['opus', '33k', 33],
  ] as const)
    t.match(formatOf({ encoding, bitrate }), { encoding, bitrateKbps });
  // Read as kbps, so far out of range.
  for (const bitrate of [128_000, '128000', 31, '31k', 321, '321K', 0, -128, '-128', '+400'])
    t.equal(formatOf({ encoding: 'mp3', bitrate }), refusal('bitrate', mp3Bitrates, bitrate));
  for (const bitrate of [64_000, 31, 193, '193k', 320])
    t.equal(formatOf({ encoding: 'opus', bitrate }), refusal('bitrate', opusBitrates, bitrate));
  for (const bitrate of ['abc', '', 'k', '128kbps', '128 k', ' 128', '12.8', '0x80', '1e2', '128kk', '١٢٨'])
    for (const encoding of ['mp3', 'opus']) {
      const message = `Invalid ${encoding} audio bitrate: ${bitrate}`;
      t.equal(formatOf({ encoding, bitrate }), refusal('bitrate', message, bitrate));
    }
});

t.test('encodings without a bitrate accept only null', async (t) => {
  for (const encoding of ['wav', 'pcm', 'linear16', 'mulaw', 'alaw'])
    for (const bitrate of [128, '64k', 'abc', '', 0])
      t.equal(
        formatOf({ encoding, bitrate }),
        refusal('bitrate', `${encoding} audio does not support a bitrate option`, bitrate),
      );
});

t.test('a message cuts a long bitrate, and leaves out the echo', async (t) => {
  const body = JSON.parse(formatOf({ bitrate: 'x'.repeat(1_000) }) as string) as {
    detail: [{ msg: string }];
  };
  t.match(body.detail[0].msg, /^Value error, Invalid mp3 audio bitrate: x{90,100}…?$/);
  t.notOk('input' in body.detail[0]);
});
