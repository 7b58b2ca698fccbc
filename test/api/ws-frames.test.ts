import t, { type Test } from 'tap';
import { parseClientFrame } from '../../src/api/ws-frames.js';
import { limits } from '../../src/limits.js';

const start = (more: object = {}, beside: object = {}) => ({
  start_context: { voice_id: 'wren', model_id: 'default', ...more },
  ...beside,
});
const format = (fields: unknown) => start({ response_format: fields });

const parse = (text: string) => parseClientFrame(Buffer.from(text), limits);
const reasonOf = (frame: unknown): string | null => {
  const parsed = parse(typeof frame === 'string' ? frame : JSON.stringify(frame));
  return parsed.type === 'refused' ? parsed.text : null;
};

t.test('valid frames are accepted with their defaults', (t) => {
  const settings = { voiceId: 'wren', temperature: undefined };
  const started = { type: 'start', contextId: null, settings, timestamps: false };
  const cases: [unknown, object][] = [
    [start(), { ...started, format: { encoding: 'pcm', sampleRateHz: 32_000 } }],
    [start({}, { context_id: null }), { ...started, format: { encoding: 'pcm', sampleRateHz: 32_000 } }],
    [
      start(
        {
          timestamps: true,
          temperature: 0.5,
          response_format: { encoding: 'MP3', sample_rate: null, bitrate: null },
        },
        { context_id: '' },
      ),
      {
        ...started,
        contextId: '',
        timestamps: true,
        settings: { ...settings, temperature: 0.5 },
        format: { encoding: 'mp3', sampleRateHz: 32_000, bitrateKbps: 128 },
      },
    ],
    [
      format({ encoding: 'opus', bitrate: '96k', sample_rate: 24_000 }),
      { ...started, format: { encoding: 'opus', sampleRateHz: 24_000, bitrateKbps: 96 } },
    ],
    [
      start({ temperature: null }),
      {
        ...started,
        settings: { ...settings, temperature: null },
        format: { encoding: 'pcm', sampleRateHz: 32_000 },
      },
    ],
    [{ send_text: '' }, { type: 'text', contextId: null, text: '' }],
    [
      { send_text: '\ud83d', context_id: 'a' },
      { type: 'text', contextId: 'a', text: '\ud83d' },
    ],
    [{ flush: true }, { type: 'flush', contextId: null, flushId: null }],
    [
      { flush: true, flush_id: null, context_id: 'a' },
      { type: 'flush', contextId: 'a', flushId: null },
    ],
    [
      { flush: true, flush_id: 'f' },
      { type: 'flush', contextId: null, flushId: 'f' },
    ],
    [{ close_context: true }, { type: 'close', contextId: null }],
    [
      { cancel_context: true, context_id: 'a' },
      { type: 'cancel', contextId: 'a' },
    ],
    [
      { send_text: 'x'.repeat(limits.socketTextBytesMax) },
      { type: 'text', contextId: null, text: 'x'.repeat(limits.socketTextBytesMax) },
    ],
  ];
  for (const [sent, frame] of cases)
    t.strictSame(parse(JSON.stringify(sent)), frame, JSON.stringify(sent).slice(0, 80));
  t.end();
});

t.test('a refusal names the field', (t) => {
  const missing = 'Field required';
  const extra = 'Extra inputs are not permitted';
  const string = 'Input should be a valid string';
  const whole = 'Input should be a valid integer';
  const object = 'Input should be a valid dictionary or object to extract fields from';
  const rf = 'start_context.response_format';
  const cases: [unknown, string][] = [
    ['', 'JSON decode error: Unexpected end of JSON input'],
    ['{"send_text":a', "JSON decode error: Unexpected token 'a'"],
    [
      '{"flush":true}x',
      'JSON decode error: Unexpected non-whitespace character after JSON at position 14 (line 1 column 15)',
    ],
    ['null', 'a frame is a JSON object'],
    ['[1]', 'a frame is a JSON object'],
    ['"x"', 'a frame is a JSON object'],
    [{}, 'a frame has one of start_context, send_text, flush, close_context, cancel_context'],
    [{ speak: 'x' }, 'a frame has one of start_context, send_text, flush, close_context, cancel_context'],
    [{ send_text: 'x', flush: true }, 'a frame has only one of send_text, flush'],
    [{ send_text: 1 }, `send_text: ${string}`],
    [{ send_text: null }, `send_text: ${string}`],
    [{ send_text: 'x', context_id: 7 }, `context_id: ${string}`],
    [{ send_text: 'x', flush_id: 'f' }, `flush_id: ${extra}`],
    [{ send_text: 'x', voice: 'f' }, `voice: ${extra}`],
    [{ flush: false }, 'flush: Input should be true'],
    [{ flush: 1 }, 'flush: Input should be true'],
    [{ flush: true, flush_id: 3 }, `flush_id: ${string}`],
    [{ close_context: null }, 'close_context: Input should be true'],
    [{ close_context: true, flush_id: 'f' }, `flush_id: ${extra}`],
    [{ cancel_context: 'yes' }, 'cancel_context: Input should be true'],
    [{ start_context: null }, `start_context: ${object}`],
    [{ start_context: [] }, `start_context: ${object}`],
    [{ start_context: {} }, `start_context.voice_id: ${missing}; start_context.model_id: ${missing}`],
    [start({ voice_id: 1 }), `start_context.voice_id: ${string}`],
    [start({ model_id: 'best' }), "start_context.model_id: Input should be 'default'"],
    [start({ model_id: null }), "start_context.model_id: Input should be 'default'"],
    [start({ timestamps: null }), 'start_context.timestamps: Input should be a valid boolean'],
    [
      start({ timestamps: 'yes' }),
      'start_context.timestamps: Input should be a valid boolean, unable to interpret input',
    ],
    [start({ temperature: 0.4 }), 'start_context.temperature: Input should be greater than or equal to 0.5'],
    [start({ temperature: 3.1 }), 'start_context.temperature: Input should be less than or equal to 3'],
    [start({ normalize_text: true }), `start_context.normalize_text: ${extra}`],
    [start({}, { context_id: 1 }), `context_id: ${string}`],
    [format('mp3'), `${rf}: ${object}`],
    [format(null), `${rf}: ${object}`],
    [format({}), `${rf}.encoding: ${missing}`],
    [format({ encoding: 'pcm', channels: 1 }), `${rf}.channels: ${extra}`],
    [format({ encoding: 'flac' }), `${rf}.encoding: Value error, Unsupported audio encoding: flac`],
    [format({ encoding: 'aac' }), `${rf}.encoding: Value error, Unsupported audio encoding: aac`],
    [
      format({ encoding: 'mp3', sample_rate: 8_000 }),
      `${rf}.sample_rate: Value error, mp3 audio sample_rate must be between 16000 and 48000 Hz`,
    ],
    [
      format({ encoding: 'pcm', bitrate: 128 }),
      `${rf}.bitrate: Value error, pcm audio does not support a bitrate option`,
    ],
    [
      format({ encoding: 'pcm', sample_rate: 8_000.5 }),
      `${rf}.sample_rate: ${whole}, got a number with a fractional part`,
    ],
    [format({ encoding: 'mp3', bitrate: [] }), `${rf}.bitrate: ${string}`],
    [
      { send_text: 'x'.repeat(limits.socketTextBytesMax + 1) },
      `send_text: String should have at most ${limits.socketTextBytesMax} bytes`,
    ],
    [
      { send_text: 'x', context_id: 'i'.repeat(limits.socketIdMax + 1) },
      `context_id: String should have at most ${limits.socketIdMax} characters`,
    ],
    ['{"flush":true,"__proto__":{"send_text":"x"}}', `__proto__: ${extra}`],
  ];
  for (const [sent, reason] of cases) t.equal(reasonOf(sent), reason, JSON.stringify(sent).slice(0, 80));
  t.end();
});

t.test('ids and nesting at their bounds are taken', (t) => {
  t.match(parse(JSON.stringify({ flush: true, flush_id: 'i'.repeat(limits.socketIdMax) })), {
    type: 'flush',
  });
  const inner = limits.socketFrameDepthMax - 1;
  t.match(reasonOf(`{"x":${'['.repeat(inner)}${']'.repeat(inner)}}`), /^a frame has one of/);
  t.end();
});

t.test('a refusal carries the ids that the frame had, and stays small', (t) => {
  const refused = (frame: unknown) => parse(JSON.stringify(frame));
  t.match(refused({ context_id: 'a', flush_id: 'f', flush: 1 }), { contextId: 'a', flushId: 'f' });
  t.match(refused({ context_id: 1, flush: 1 }), { contextId: null, flushId: null });
  t.match(refused({ context_id: 'x'.repeat(2_000), flush: true }), { contextId: null });
  const many = Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`${'k'.repeat(500)}${i}`, i]));
  const reason = reasonOf({ flush: true, ...many }) ?? '';
  t.ok(reason.length < 2_000, `${reason.length} units`);
  t.end();
});

/** @returns the reason of a refusal, and how many units of JSON were parsed for it */
const parsedFor = (t: Test, text: string) => {
  const parser = t.capture(JSON, 'parse', JSON.parse);
  const parsed = parse(text);
  const units = parser().reduce((sum, { args: [json] }) => sum + json.length, 0);
  parser.restore();
  const { text: reason, contextId } = parsed.type === 'refused' ? parsed : { text: null, contextId: null };
  return { reason, contextId, units };
};

t.test('a frame that would be expensive to parse is refused unparsed', (t) => {
  const { socketFrameBytesMax, socketFrameDepthMax, socketFrameTokensMax, socketMessageBytesMax } = limits;
  const deep = `nested deeper than ${socketFrameDepthMax} levels`;
  const full = `more than ${socketFrameTokensMax} names and values`;
  const large = `more than ${socketFrameBytesMax} bytes besides the text of send_text`;
  const fill = (head: string, piece: string) =>
    head + piece.repeat(Math.floor((socketMessageBytesMax - head.length) / piece.length));
  const keys = Array.from({ length: 90_000 }, (_, i) => `"${i.toString(36)}":0`);
  const cases: [string, string][] = [
    [fill('{"x":[', '['), deep],
    [fill('{"x":', '{"x":'), deep],
    [fill('{"x":[', '{},'), full],
    [`{${keys.join(',')}}`, full],
    [fill('{"send_text":"a","x":[', '1,'), full],
    [fill('{"x":"', 'a'), large],
    [fill('{"x":"', '\\"'), large],
    [fill('{"x":{"send_text":"', 'a'), large],
    [fill('{"x":[":","send_text":"', 'a'), large],
    [fill('{"send_text" "', 'a'), large],
    [fill('', ' '), large],
    [fill('', '1'), large],
    [`{"send_text":"a","context_id":"${'a'.repeat(socketFrameBytesMax)}"}`, large],
  ];
  for (const [sent, reason] of cases)
    t.strictSame(parsedFor(t, sent), { reason, contextId: null, units: 0 }, sent.slice(0, 40));
  t.end();
});

t.test('a text beyond its bound is not parsed, and its refusal has the ids', (t) => {
  const reason = `send_text: String should have at most ${limits.socketTextBytesMax} bytes`;
  const most = limits.socketMessageBytesMax - 1_000;
  for (const text of ['a'.repeat(most), `${'a'.repeat(most)}\\n`, '\\"'.repeat(most / 2)])
    for (const sent of [
      `{"send_text":"${text}","context_id":"a"}`,
      `{"context_id":"a","send_text" : "${text}"}`,
    ]) {
      const { units, ...refusal } = parsedFor(t, sent);
      t.strictSame(refusal, { reason, contextId: 'a' });
      t.ok(units < 100, `${units} units parsed`);
    }
  t.match(parsedFor(t, `{"send_text":"${'a'.repeat(most)}`), { reason });
  t.end();
});

t.test('a text of the greatest length is accepted however it is escaped', (t) => {
  const { socketTextBytesMax } = limits;
  for (const [piece, bytes] of [
    ['\\"', 1],
    ['\\\\', 1],
    ['\\u0022', 1],
    ['\\u8a9e', 3],
    ['語', 3],
    ['😀', 4],
    ['\\ud83d\\ude00', 4],
  ] as const) {
    const times = Math.min(socketTextBytesMax / bytes, (limits.socketMessageBytesMax - 100) / piece.length);
    const text = piece.repeat(Math.floor(times));
    const frame = { type: 'text', contextId: '"', text: JSON.parse(`"${text}"`) as string };
    for (const sent of [
      `{"send_text":"${text}","context_id":"\\""}`,
      `{"context_id":"\\"","send_text":"${text}"}`,
    ])
      t.strictSame(parse(sent), frame, piece);
  }
  t.end();
});
