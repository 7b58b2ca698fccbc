import fc from 'fast-check';
import t from 'tap';
import { findJsonFault } from '../../src/api/json-fault.js';
import { parseSpeechRequest } from '../../src/api/speech-request.js';
import { limits } from '../../src/limits.js';

type Loc = readonly (string | number)[];
interface Item {
  readonly type: string;
  readonly loc: Loc;
  readonly msg: string;
  readonly input?: unknown;
  readonly ctx?: unknown;
}

const parse = (text: string | Uint8Array, contentType: string | undefined = 'application/json') =>
  parseSpeechRequest(typeof text === 'string' ? Buffer.from(text) : text, contentType);

const B: Loc = ['body'];
const RF: Loc = ['body', 'response_format'];

const item = (type: string, loc: Loc, msg: string, input: unknown, ctx?: unknown): Item => ({
  type,
  loc,
  msg,
  input,
  ...(ctx === undefined ? {} : { ctx }),
});
const missing = (loc: Loc, input: unknown) => item('missing', loc, 'Field required', input);
const noDictionary = (loc: Loc, v: unknown) =>
  item(
    'model_attributes_type',
    loc,
    'Input should be a valid dictionary or object to extract fields from',
    v,
  );
const noString = (loc: Loc, v: unknown) => item('string_type', loc, 'Input should be a valid string', v);
const extra = (loc: Loc, v: unknown) => item('extra_forbidden', loc, 'Extra inputs are not permitted', v);
const boolParsing = (loc: Loc, v: unknown) =>
  item('bool_parsing', loc, 'Input should be a valid boolean, unable to interpret input', v);
const boolType = (loc: Loc, v: unknown) => item('bool_type', loc, 'Input should be a valid boolean', v);
const ge = (loc: Loc, v: unknown) =>
  item('greater_than_equal', loc, 'Input should be greater than or equal to 0.5', v, { ge: 0.5 });
const le = (loc: Loc, v: unknown) =>
  item('less_than_equal', loc, 'Input should be less than or equal to 3', v, { le: 3 });
const floatParsing = (loc: Loc, v: unknown) =>
  item('float_parsing', loc, 'Input should be a valid number, unable to parse string as a number', v);
const floatType = (loc: Loc, v: unknown) => item('float_type', loc, 'Input should be a valid number', v);
const intFromFloat = (loc: Loc, v: unknown) =>
  item('int_from_float', loc, 'Input should be a valid integer, got a number with a fractional part', v);
const intParsing = (loc: Loc, v: unknown) =>
  item('int_parsing', loc, 'Input should be a valid integer, unable to parse string as an integer', v);
const intType = (loc: Loc, v: unknown) => item('int_type', loc, 'Input should be a valid integer', v);
const value = (loc: Loc, message: string, v: unknown) =>
  item('value_error', loc, `Value error, ${message}`, v, { error: {} });
const unsupported = (name: string) => value([...RF, 'encoding'], `Unsupported audio encoding: ${name}`, name);
const jsonInvalid = (position: number, error: string) =>
  item('json_invalid', [...B, position], 'JSON decode error', {}, { error });

/** A valid body with further members, as JSON text. */
const withMembers = (members: string) => `{"text":"a","voice":"b",${members}}`;
const bodyOf = (text: string): unknown => JSON.parse(text);

const refused: readonly (readonly [body: string, ...items: Item[]])[] = [
  // Not JSON.
  ['{', jsonInvalid(1, 'Expecting property name enclosed in double quotes')],
  [' ', jsonInvalid(1, 'Expecting value')],
  ['{"text":}', jsonInvalid(8, 'Expecting value')],
  ['{"text" "a"}', jsonInvalid(8, "Expecting ':' delimiter")],
  ['{"text":"a" "voice":"b"}', jsonInvalid(12, "Expecting ',' delimiter")],
  ['{"text":"a",}', jsonInvalid(12, 'Expecting property name enclosed in double quotes')],
  ['[1,]', jsonInvalid(3, 'Expecting value')],
  ["{'text':1}", jsonInvalid(1, 'Expecting property name enclosed in double quotes')],
  ['{"text":"a', jsonInvalid(8, 'Unterminated string starting at')],
  ['{"text":"a\\', jsonInvalid(8, 'Unterminated string starting at')],
  ['{"text":"a\tb"}', jsonInvalid(10, 'Invalid control character at')],
  ['{"text":"é\nb"}', jsonInvalid(10, 'Invalid control character at')],
  ['{"text":"\\x"}', jsonInvalid(9, 'Invalid \\escape')],
  ['{"text":"\\u12g4"}', jsonInvalid(10, 'Invalid \\uXXXX escape')],
  ['{} {}', jsonInvalid(3, 'Extra data')],
  ['01', jsonInvalid(1, 'Extra data')],
  ['{"temperature":NaN}', jsonInvalid(15, 'Expecting value')],
  ['{"temperature":Infinity}', jsonInvalid(15, 'Expecting value')],
  ['{"temperature":-Infinity}', jsonInvalid(15, 'Expecting value')],
  ['{"temperature":1e999}', jsonInvalid(15, 'Number out of range')],
  [`{"é":-${'9'.repeat(400)}}`, jsonInvalid(5, 'Number out of range')],
  // No object.
  ['', missing(B, null)],
  ['null', missing(B, null)],
  ...['[]', '"s"', '1', 'true', '[{"text":"a","voice":"b"}]'].map(
    (text) => [text, noDictionary(B, bodyOf(text))] as const,
  ),
  // text and voice.
  ['{}', missing([...B, 'text'], {}), missing([...B, 'voice'], {})],
  ['{"voice":"b"}', missing([...B, 'text'], { voice: 'b' })],
  ['{"text":"a"}', missing([...B, 'voice'], { text: 'a' })],
  ...[null, 1, true, [], {}, ['a']].flatMap((v) => [
    [`{"text":${JSON.stringify(v)},"voice":"b"}`, noString([...B, 'text'], v)] as const,
    [`{"text":"a","voice":${JSON.stringify(v)}}`, noString([...B, 'voice'], v)] as const,
  ]),
  // Further keys.
  [withMembers('"x":{"y":[1]}'), extra([...B, 'x'], { y: [1] })],
  [withMembers('"b":1,"a":2'), extra([...B, 'b'], 1), extra([...B, 'a'], 2)],
  [withMembers('"Text":"a"'), extra([...B, 'Text'], 'a')],
  [withMembers('"":null'), extra([...B, ''], null)],
  [withMembers('"__proto__":{"text":1}'), extra([...B, '__proto__'], JSON.parse('{"text":1}'))],
  [withMembers('"constructor":1'), extra([...B, 'constructor'], 1)],
  ['{"__proto__":{"text":"a","voice":"b"}}', ...protoItems()],
  [withMembers('"response_format":{"x":1}'), extra([...RF, 'x'], 1)],
  [withMembers('"response_format":{"__proto__":1}'), extra([...RF, '__proto__'], 1)],
  // Booleans.
  ...['timestamps', 'normalize_text'].flatMap((field) => [
    ...[2, -1, 0, 1, '2', '', ' true', 'true', 'yes', 'off', '0'].map(
      (v) => [withMembers(`"${field}":${JSON.stringify(v)}`), boolParsing([...B, field], v)] as const,
    ),
    ...[null, 1.5, [], {}].map(
      (v) => [withMembers(`"${field}":${JSON.stringify(v)}`), boolType([...B, field], v)] as const,
    ),
  ]),
  // temperature.
  ...[0.49, 0, -1, -1e300].map(
    (v) => [withMembers(`"temperature":${v}`), ge([...B, 'temperature'], v)] as const,
  ),
  ...[3.01, 4, 1e300].map((v) => [withMembers(`"temperature":${v}`), le([...B, 'temperature'], v)] as const),
  ...['x', '', '1.5', ' 1.5 ', '1e0', '.5', '0.1', '4', 'nan', 'inf'].map(
    (v) => [withMembers(`"temperature":"${v}"`), floatParsing([...B, 'temperature'], v)] as const,
  ),
  ...[{}, [], true, false].map(
    (v) => [withMembers(`"temperature":${JSON.stringify(v)}`), floatType([...B, 'temperature'], v)] as const,
  ),
  // response_format.
  ...[null, 1, true, [], ['wav']].map(
    (v) => [withMembers(`"response_format":${JSON.stringify(v)}`), noDictionary(RF, v)] as const,
  ),
  ...['flac', '', 'ogg', 'aac', 'mp', 'law', 'mu_law', 'mlaw', ' wav', 'FLAC'].flatMap((v) => [
    [withMembers(`"response_format":"${v}"`), unsupported(v)] as const,
    [withMembers(`"response_format":{"encoding":"${v}"}`), unsupported(v)] as const,
  ]),
  ...[1, null, [], {}, false].map(
    (v) =>
      [
        withMembers(`"response_format":{"encoding":${JSON.stringify(v)}}`),
        noString([...RF, 'encoding'], v),
      ] as const,
  ),
  [withMembers('"response_format":{"sample_rate":16000.5}'), intFromFloat([...RF, 'sample_rate'], 16000.5)],
  ...['16000', ' 16000 ', 'x', '', '1e4'].map(
    (v) =>
      [
        withMembers(`"response_format":{"sample_rate":"${v}"}`),
        intParsing([...RF, 'sample_rate'], v),
      ] as const,
  ),
  ...[{}, [], true, false].map(
    (v) =>
      [
        withMembers(`"response_format":{"sample_rate":${JSON.stringify(v)}}`),
        intType([...RF, 'sample_rate'], v),
      ] as const,
  ),
  [
    withMembers('"response_format":{"sample_rate":8000}'),
    value([...RF, 'sample_rate'], 'mp3 audio sample_rate must be between 16000 and 48000 Hz', 8000),
  ],
  [
    withMembers('"response_format":{"encoding":"LINEAR-PCM","sample_rate":1}'),
    value([...RF, 'sample_rate'], 'linear16 audio sample_rate must be between 8000 and 48000 Hz', 1),
  ],
  ...[128, 128000, '128', '128k', 'abc', ''].map(
    (v) =>
      [
        withMembers(`"response_format":{"encoding":"raw","bitrate":${JSON.stringify(v)}}`),
        value([...RF, 'bitrate'], 'pcm audio does not support a bitrate option', v),
      ] as const,
  ),
  [
    withMembers('"response_format":{"sample_rate":1,"bitrate":"x"}'),
    value([...RF, 'sample_rate'], 'mp3 audio sample_rate must be between 16000 and 48000 Hz', 1),
    value([...RF, 'bitrate'], 'Invalid mp3 audio bitrate: x', 'x'),
  ],
  [
    withMembers('"response_format":{"bitrate":128.5}'),
    noString([...RF, 'bitrate', 'str'], 128.5),
    intFromFloat([...RF, 'bitrate', 'int'], 128.5),
  ],
  ...[[], {}, true].map(
    (v) =>
      [
        withMembers(`"response_format":{"bitrate":${JSON.stringify(v)}}`),
        noString([...RF, 'bitrate', 'str'], v),
        intType([...RF, 'bitrate', 'int'], v),
      ] as const,
  ),
  // Rules of the table wait until every field of the object has its type; a further key is no field.
  [
    withMembers('"response_format":{"encoding":"wav","sample_rate":1,"bitrate":[]}'),
    noString([...RF, 'bitrate', 'str'], []),
    intType([...RF, 'bitrate', 'int'], []),
  ],
  [
    withMembers('"response_format":{"encoding":"flac","sample_rate":"x"}'),
    unsupported('flac'),
    intParsing([...RF, 'sample_rate'], 'x'),
  ],
  [withMembers('"response_format":{"encoding":1,"sample_rate":1}'), noString([...RF, 'encoding'], 1)],
  [
    withMembers('"response_format":{"x":1,"bitrate":1,"sample_rate":1,"encoding":"wav"}'),
    value([...RF, 'sample_rate'], 'wav audio sample_rate must be between 8000 and 48000 Hz', 1),
    value([...RF, 'bitrate'], 'wav audio does not support a bitrate option', 1),
    extra([...RF, 'x'], 1),
  ],
  // Several at once: declaration order, nested ones in their field's place, further keys last.
  [
    '{"z":1,"normalize_text":null,"temperature":9,"timestamps":"x","response_format":{"y":2,"encoding":"ogg"},"voice":5}',
    missing([...B, 'text'], {
      z: 1,
      normalize_text: null,
      temperature: 9,
      timestamps: 'x',
      response_format: { y: 2, encoding: 'ogg' },
      voice: 5,
    }),
    noString([...B, 'voice'], 5),
    unsupported('ogg'),
    extra([...RF, 'y'], 2),
    boolParsing([...B, 'timestamps'], 'x'),
    le([...B, 'temperature'], 9),
    boolType([...B, 'normalize_text'], null),
    extra([...B, 'z'], 1),
  ],
  // Of duplicate keys the last counts.
  ['{"text":"a","voice":"b","text":1}', noString([...B, 'text'], 1)],
];

function protoItems(): Item[] {
  const whole: unknown = JSON.parse('{"__proto__":{"text":"a","voice":"b"}}');
  return [
    missing([...B, 'text'], whole),
    missing([...B, 'voice'], whole),
    extra([...B, '__proto__'], { text: 'a', voice: 'b' }),
  ];
}

t.test('every invalid body is answered with exactly the items of the contract', (t) => {
  for (const [text, ...items] of refused) {
    const result = parse(text);
    if (result.ok) {
      t.fail(`accepted ${text}`);
      continue;
    }
    t.equal(result.status, 422, text.slice(0, 80));
    // Compared as text too: the order of keys is part of the wire form.
    t.equal(result.body, JSON.stringify({ detail: items }), text.slice(0, 80));
  }
  t.end();
});

const accepted: readonly (readonly [members: string, expected: Record<string, unknown>])[] = [
  ['', {}],
  ['"timestamps":true,"normalize_text":false', { timestamps: true }],
  ['"timestamps":false,"normalize_text":true', { normalizeText: true }],
  ['"temperature":null', {}],
  ['"temperature":0.5', { temperature: 0.5 }],
  ['"temperature":3', { temperature: 3 }],
  ['"temperature":3.0', { temperature: 3 }],
  ['"temperature":1e0', { temperature: 1 }],
  ['"response_format":{}', {}],
  ['"response_format":"WaV"', { format: { encoding: 'wav', sampleRateHz: 32_000 } }],
  ['"response_format":"pcm"', { format: { encoding: 'pcm', sampleRateHz: 32_000 } }],
  ['"response_format":"pcm_s16le"', { format: { encoding: 'pcm', sampleRateHz: 32_000 } }],
  ['"response_format":"RAW"', { format: { encoding: 'pcm', sampleRateHz: 32_000 } }],
  ['"response_format":"Linear16"', { format: { encoding: 'linear16', sampleRateHz: 32_000 } }],
  ['"response_format":"linear_pcm"', { format: { encoding: 'linear16', sampleRateHz: 32_000 } }],
  ['"response_format":"linear-pcm"', { format: { encoding: 'linear16', sampleRateHz: 32_000 } }],
  ['"response_format":{"encoding":"linear-pcm"}', { format: { encoding: 'linear16', sampleRateHz: 32_000 } }],
  ['"response_format":{"sample_rate":null,"bitrate":null}', {}],
  ...['8000', '48000', '16000.0', '1.6e4', '11111'].map((rate) => {
    const format = { encoding: 'wav', sampleRateHz: Number(rate) };
    return [`"response_format":{"encoding":"wav","sample_rate":${rate}}`, { format }] as const;
  }),
  ['"text":""', { text: '' }],
  ['"text":" \\n\\t"', { text: ' \n\t' }],
  ['"text":"\\u0000\\ud83d<b>&amp;"', { text: '\0\ud83d<b>&amp;' }],
  ['"text":"🎈 日本 "', { text: '🎈 日本 ' }],
  ['"voice":""', { voiceId: '' }],
];

const defaults = {
  text: 'a',
  voiceId: 'b',
  format: { encoding: 'mp3', sampleRateHz: 32_000, bitrateKbps: 128 },
  timestamps: false,
  temperature: null,
  normalizeText: false,
};

t.test('a valid body becomes a request with its defaults filled in', (t) => {
  for (const [members, expected] of accepted) {
    const text = members === '' ? '{"text":"a","voice":"b"}' : withMembers(members);
    t.strictSame(parse(text), { ok: true, request: { ...defaults, ...expected } }, text);
  }
  t.end();
});

t.test('JSON content types are accepted, others answered with the raw body', (t) => {
  const text = '{"text":"a","voice":"b"}';
  for (const type of [
    'application/json',
    'Application/JSON',
    'application/json; charset=utf-8',
    'application/json;charset=latin1',
    'application/vnd.api+json',
    'application/problem+json ; x=1',
    '',
    undefined,
  ])
    t.ok(parseSpeechRequest(Buffer.from(text), type).ok, String(type));
  for (const type of [
    'text/plain',
    'text/json',
    'application/x-www-form-urlencoded',
    'application/jsonx',
    'application/',
    'json',
  ])
    t.strictSame(
      parse(text, type),
      { ok: false, status: 422, body: JSON.stringify({ detail: [noDictionary(B, text)] }) },
      type,
    );
  t.equal(parse('', 'text/plain').ok, false);
  t.match(parse('', 'text/plain'), { body: JSON.stringify({ detail: [missing(B, null)] }) });
  t.match(parse(Uint8Array.of(0xff), 'text/plain'), { status: 422 });
  t.end();
});

t.test('a byte order mark is no fault', (t) => {
  t.ok(parse('\ufeff{"text":"a","voice":"b"}').ok);
  t.end();
});

const unreadable = { ok: false, status: 400, body: '{"detail":"There was an error parsing the body"}' };

t.test('invalid UTF-8 is answered 400', (t) => {
  for (const bytes of [[0xff], [0x22, 0xc3, 0x22], [0x22, 0xed, 0xa0, 0x80, 0x22]])
    t.strictSame(parse(Uint8Array.from(bytes)), unreadable);
  t.end();
});

t.test('nesting is answered 400 one level beyond the bound, however the body goes on', (t) => {
  const nested = (levels: number, open = '[', close = ']') =>
    `${open.repeat(levels)}1${close.repeat(levels)}`;
  const max = limits.bodyDepthMax;
  // The object itself is one level.
  t.match(parse(withMembers(`"x":${nested(max - 1)}`)), { status: 422 });
  t.strictSame(parse(withMembers(`"x":${nested(max)}`)), unreadable);
  t.strictSame(parse(nested(max + 1)), unreadable);
  t.strictSame(parse(nested(max + 1, '{"a":', '}')), unreadable);
  t.strictSame(parse('['.repeat(limits.bodyBytesMax)), unreadable);
  t.strictSame(parse('{"a":'.repeat(max + 1)), unreadable);
  // Brackets in strings are no levels.
  t.ok(parse(`{"voice":"b","text":"\\"${'[{'.repeat(max)}"}`).ok);
  t.ok(parse(`{"voice":"b","text":"\\\\","text":"${'['.repeat(2 * max)}"}`).ok);
  t.end();
});

t.test('whatever a body of the largest size holds, its 422 stays small', (t) => {
  const size = limits.bodyBytesMax;
  const manyKeys = Array.from({ length: size / 12 }, (_, index) => `"${index.toString(36)}x":1`).join(',');
  const bodies = [
    `{${manyKeys}}`,
    `{"response_format":{${manyKeys}}}`,
    `{"x":[${'1e20,'.repeat(size / 6)}1]}`,
    `{"x":"${'a'.repeat(size - 20)}"}`,
    `{"${'a'.repeat(size - 20)}":1}`,
    `{"x":"${'\\u0001'.repeat(size / 7)}"}`,
    `{"response_format":"${'é'.repeat(size / 3)}"}`,
    `"${'a'.repeat(size - 2)}"`,
    `"${'a'.repeat(size - 1)}`,
    '1'.repeat(size),
  ];
  for (const body of bodies) {
    const result = parse(body);
    if (result.ok) throw new Error('accepted');
    t.ok(result.body.length < 400_000, `${result.body.length}`);
    const { detail } = JSON.parse(result.body) as { detail: Item[] };
    t.ok(detail.length > 0 && detail.length <= limits.validationItemsMax);
  }
  const raw = parse('a'.repeat(size), 'text/plain');
  t.ok(!raw.ok && raw.body.length < 400_000);
  t.end();
});

t.test('a value within the bound of echoes comes back whole, one beyond it is left out', (t) => {
  const long = 'a'.repeat(limits.validationEchoBytesMax - 2);
  const echoed = parse(withMembers(`"x":"${long}","y":"b"`));
  const detail = JSON.parse(echoed.ok ? '' : echoed.body) as { detail: Item[] };
  t.strictSame(detail.detail, [
    extra([...B, 'x'], long),
    { type: 'extra_forbidden', loc: [...B, 'y'], msg: 'Extra inputs are not permitted' },
  ]);
  t.end();
});

const spellings: Readonly<Record<string, RegExp>> = {
  mp3: /^mp3$/i,
  wav: /^wav$/i,
  pcm: /^(?:pcm(?:_s16le)?|raw)$/i,
  linear16: /^linear(?:16|[_-]pcm)$/i,
  opus: /^opus$/i,
  mulaw: /^(?:mu-?|u-?|[\u03bc\u039c\u00b5]-)law$/i,
  alaw: /^a-?law$/i,
};
const canonical = (name: string) =>
  Object.keys(spellings).find((encoding) => spellings[encoding]?.test(name));

const rateAllowed = (encoding: string, hz: number) => {
  if (encoding === 'opus') return [8000, 12000, 16000, 24000, 48000].includes(hz);
  if (encoding.endsWith('law')) return hz === 8000;
  return hz >= (encoding === 'mp3' ? 16000 : 8000) && hz <= 48000;
};
const bitrateAllowed = (encoding: string, sent: string) => {
  const kbps = Number(/^(?:([+-]?[0-9]+)|"([+-]?[0-9]+)[kK]?")$/.exec(sent)?.slice(1).join(''));
  return kbps >= 32 && kbps <= ({ mp3: 320, opus: 192 }[encoding] ?? 0);
};

/** A second opinion, written from the contract without typia: the fields at fault. */
const faultyFields = (body: unknown): Set<string> => {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return new Set(['']);
  const found = new Set<string>();
  const check = (path: string, valid: boolean) => {
    if (!valid) found.add(path);
  };
  const object = body as Record<string, unknown>;
  const has = (key: string) => Object.keys(object).includes(key);
  for (const key of ['text', 'voice']) check(key, has(key) && typeof object[key] === 'string');
  for (const key of ['timestamps', 'normalize_text'])
    check(key, !has(key) || typeof object[key] === 'boolean');
  const temperature = object['temperature'];
  if (has('temperature') && temperature !== null)
    check('temperature', typeof temperature === 'number' && !(temperature < 0.5) && !(temperature > 3));
  for (const key of Object.keys(object))
    check(
      key,
      ['text', 'voice', 'response_format', 'timestamps', 'temperature', 'normalize_text'].includes(key),
    );
  if (!has('response_format')) return found;
  const format = object['response_format'];
  if (typeof format === 'string') check('response_format.encoding', canonical(format) !== undefined);
  else if (typeof format !== 'object' || format === null || Array.isArray(format))
    check('response_format', false);
  else {
    const fields = format as Record<string, unknown>;
    const own = (key: string) => (Object.keys(fields).includes(key) ? fields[key] : undefined);
    const [encoding, rate, bitrate] = [own('encoding'), own('sample_rate'), own('bitrate')];
    const whole = (v: unknown) => v === undefined || v === null || Number.isInteger(v);
    const typed =
      (encoding === undefined || typeof encoding === 'string') &&
      whole(rate) &&
      (whole(bitrate) || typeof bitrate === 'string');
    const name =
      encoding === undefined ? 'mp3' : typeof encoding === 'string' ? canonical(encoding) : undefined;
    const ruled = typed && name !== undefined;
    check('response_format.encoding', name !== undefined);
    check(
      'response_format.sample_rate',
      whole(rate) && !(ruled && typeof rate === 'number' && !rateAllowed(name, rate)),
    );
    check(
      'response_format.bitrate',
      (whole(bitrate) || typeof bitrate === 'string') &&
        !(
          ruled &&
          bitrate !== undefined &&
          bitrate !== null &&
          !bitrateAllowed(name, JSON.stringify(bitrate))
        ),
    );
    for (const key of Object.keys(fields))
      check(`response_format.${key}`, ['encoding', 'sample_rate', 'bitrate'].includes(key));
  }
  return found;
};

const anything = fc.jsonValue({ maxDepth: 3 });
const often = (...values: unknown[]) => fc.oneof(fc.constantFrom(...values), anything);
const partly = (model: Record<string, fc.Arbitrary<unknown>>) =>
  fc
    .tuple(
      fc.record(model, { requiredKeys: [] }),
      fc.option(fc.dictionary(fc.string(), anything), { freq: 3 }),
    )
    .map(([known, further]) => ({ ...known, ...further }));
const rate = often(8000, 7999, 16000, 48000, 48001, 16000.5, null, '16000');
const format = partly({
  encoding: often('wav', 'PCM', 'raw', 'linear-pcm', 'mp3', 'Opus', 'u-LAW', 'a-law', 'ogg', null),
  sample_rate: rate,
  bitrate: often(null, 128, '128k', 128.5, 31, '320', '193k', 'x'),
});
const randomBody = fc.oneof(
  { weight: 1, arbitrary: anything },
  {
    weight: 9,
    arbitrary: partly({
      text: often('a', ''),
      voice: often('b'),
      response_format: fc.oneof(format, often('wav', 'flac', {})),
      timestamps: often(true, false, 1),
      temperature: often(0.5, 3, 0.4, 3.1, null),
      normalize_text: often(true, false, null),
    }),
  },
);

t.test('random bodies never throw, and exactly the fields at fault are named', (t) => {
  const property = () =>
    fc.assert(
      fc.property(randomBody, (body) => {
        const text = JSON.stringify(body);
        // `null` as a whole body is a case of the table.
        if (text === 'null') return;
        const expected = faultyFields(JSON.parse(text));
        const result = parse(text);
        if (result.ok !== (expected.size === 0)) throw new Error(`decided ${result.ok} on ${text}`);
        if (result.ok) return;
        const { detail } = JSON.parse(result.body) as { detail: Item[] };
        const named = new Set(
          detail.map(({ loc }) => {
            const path = loc.slice(1);
            const union = path.length === 3 && path[1] === 'bitrate';
            return (union ? path.slice(0, 2) : path).join('.');
          }),
        );
        const same = named.size === expected.size && [...named].every((path) => expected.has(path));
        if (!same) throw new Error(`named ${[...named].join()} for ${[...expected].join()}`);
      }),
      { numRuns: 3_000, seed: 422 },
    );
  t.doesNotThrow(property);
  t.end();
});

t.test('random text, JSON or not, never throws, and its fault lies within it', (t) => {
  const broken = fc
    .tuple(
      fc.json(),
      fc.nat(),
      fc.nat(3),
      fc.constantFrom('', '"', '{', ']', ',', ':', '\\', '0', 'e', '\t', '\u0001'),
    )
    .map(([json, at, drop, put]) => {
      const from = at % (json.length + 1);
      return json.slice(0, from) + put + json.slice(from + drop);
    });
  const property = () =>
    fc.assert(
      fc.property(fc.oneof(broken, fc.string({ unit: 'binary' })), (text) => {
        let valid = true;
        let finite = true;
        try {
          JSON.parse(text.toWellFormed(), (_, value: unknown) => {
            finite &&= typeof value !== 'number' || Number.isFinite(value);
          });
        } catch {
          valid = false;
        }
        if (valid !== (findJsonFault(text.toWellFormed()) === null)) throw new Error(`fault in ${text}`);
        const result = parse(text);
        if (result.ok || text === '') return;
        const { detail } = JSON.parse(result.body) as { detail: Item[] };
        const position = detail[0]?.type === 'json_invalid' ? detail[0].loc[1] : undefined;
        if ((valid && finite) !== (position === undefined))
          throw new Error(`JSON: ${valid}, answered ${result.body}`);
        if (typeof position === 'number' && (position < 0 || position > text.length))
          throw new Error('outside');
      }),
      { numRuns: 5_000, seed: 422 },
    );
  t.doesNotThrow(property);
  t.end();
});
