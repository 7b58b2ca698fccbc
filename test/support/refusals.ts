/**
 * The contract's table of invalid bodies and what each is answered, item by item. The JSON of the items, in this order,
 * is the response's body, byte for byte.
 */
import {
  B,
  boolParsing,
  boolType,
  extra,
  floatParsing,
  floatType,
  ge,
  intFromFloat,
  intParsing,
  intType,
  jsonInvalid,
  le,
  missing,
  noDictionary,
  noString,
  notJson,
  RF,
  unexpectedEnd,
  unexpectedToken,
  unsupported,
  value,
  type Item,
  type Loc,
} from './items.js';

/** A valid body with further members, as JSON text. */
export const withMembers = (members: string) => `{"text":"a","voice":"b",${members}}`;
const bodyOf = (text: string): unknown => JSON.parse(text);

export const speechRefusals: readonly (readonly [body: string, ...items: Item[]])[] = [
  // Not JSON.
  ['{', notJson(1, "Expected property name or '}'")],
  [' ', unexpectedEnd],
  ['{"text":}', unexpectedToken('}')],
  ['{"text" "a"}', notJson(8, "Expected ':' after property name")],
  ['{"text":"a" "voice":"b"}', notJson(12, "Expected ',' or '}' after property value")],
  ['{"text":"a",}', notJson(12, 'Expected double-quoted property name')],
  ['[1,]', unexpectedToken(']')],
  ["{'text':1}", notJson(1, "Expected property name or '}'")],
  ['{"text":"a', notJson(10, 'Unterminated string')],
  ['{"text":"a\\', unexpectedEnd],
  ['{"text":"a\tb"}', notJson(10, 'Bad control character in string literal')],
  ['{"text":"\\x"}', notJson(10, 'Bad escaped character')],
  ['{"text":"\\u12g4"}', notJson(13, 'Bad Unicode escape')],
  ['{} {}', jsonInvalid(3, 'Unexpected non-whitespace character after JSON at position 3 (line 1 column 4)')],
  ['01', notJson(1, 'Unexpected number')],
  ['{"temperature":NaN}', unexpectedToken('N')],
  ['NaN', jsonInvalid(null, 'Unexpected token')],
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
  ...[
    ['"sample_rate":15999', 'sample_rate', 'mp3 audio sample_rate must be between 16000 and 48000 Hz', 15999],
    [
      '"encoding":"mp3","sample_rate":48001',
      'sample_rate',
      'mp3 audio sample_rate must be between 16000 and 48000 Hz',
      48001,
    ],
    [
      '"encoding":"opus","sample_rate":32000',
      'sample_rate',
      'opus audio sample_rate must be one of 8000, 12000, 16000, 24000, or 48000 Hz',
      32000,
    ],
    [
      '"encoding":"ulaw","sample_rate":16000',
      'sample_rate',
      'mulaw audio requires an 8000 Hz sample rate',
      16000,
    ],
    [
      '"encoding":"A-LAW","sample_rate":16000',
      'sample_rate',
      'alaw audio requires an 8000 Hz sample rate',
      16000,
    ],
    ['"bitrate":128000', 'bitrate', 'mp3 audio bitrate must be between 32kbps and 320kbps', 128000],
    ['"bitrate":"31k"', 'bitrate', 'mp3 audio bitrate must be between 32kbps and 320kbps', '31k'],
    [
      '"encoding":"opus","bitrate":"193"',
      'bitrate',
      'opus audio bitrate must be between 32kbps and 192kbps',
      '193',
    ],
    ['"bitrate":"abc"', 'bitrate', 'Invalid mp3 audio bitrate: abc', 'abc'],
    ['"bitrate":""', 'bitrate', 'Invalid mp3 audio bitrate: ', ''],
    ['"encoding":"mulaw","bitrate":64', 'bitrate', 'mulaw audio does not support a bitrate option', 64],
  ].map(
    ([members, field, message, v]) =>
      [
        withMembers(`"response_format":{${members}}`),
        value([...RF, String(field)], String(message), v),
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

const MESSAGE: Loc = ['body', 'message'];
const rate = [...MESSAGE, 'sampleRate'];
const noVoice = missing(['query', 'voice'], null);

/** A request for speech with further members, as JSON text. */
export const withMessage = (members: string) => `{"message":{"type":"voice-request","text":"a",${members}}}`;

/** What the webhook refuses: the query, the body, the items. */
export const platformRefusals: readonly (readonly [query: string, body: string, ...items: Item[]])[] = [
  // The query's item comes first, whatever the body is.
  ['', withMessage('"sampleRate":8000'), noVoice],
  ['?', withMessage('"x":1'), noVoice],
  ['?Voice=b', withMessage('"x":1'), noVoice],
  ['?voices=b&a=voice', '{"message":{"type":"status-update"}}', noVoice],
  ['', '{}', noVoice, missing([...B, 'message'], {})],
  ['', '', noVoice, missing(B, null)],
  ['', 'null', noVoice, missing(B, null)],
  ['', '[]', noVoice, noDictionary(B, [])],
  ['', '{', noVoice, notJson(1, "Expected property name or '}'")],
  ['', '{"a":1e999}', noVoice, jsonInvalid(5, 'Number out of range')],
  ['', withMessage('"sampleRate":7999'), noVoice, ge(rate, 7999, 8000)],
  // The body.
  ['?voice=b', '', missing(B, null)],
  ['?voice=b', 'null', missing(B, null)],
  ['?voice=b', '{"message":', unexpectedEnd],
  ...['[]', '"s"', '1', 'true'].map((text) => ['?voice=b', text, noDictionary(B, bodyOf(text))] as const),
  ['?voice=b', '{"Message":{}}', missing([...B, 'message'], { Message: {} })],
  ['?voice=b', '{"__proto__":{"message":{"type":"a"}}}', missing([...B, 'message'], protoMessage())],
  ...[null, 1, 'voice-request', true, [], ['a']].map(
    (v) => ['?voice=b', JSON.stringify({ message: v }), noDictionary(MESSAGE, v)] as const,
  ),
  // The message.
  ['?voice=b', '{"message":{}}', missing([...MESSAGE, 'type'], {})],
  [
    '?voice=b',
    '{"message":{"text":5,"sampleRate":1}}',
    missing([...MESSAGE, 'type'], { text: 5, sampleRate: 1 }),
  ],
  ...[null, 1, [], {}].map(
    (v) => ['?voice=b', JSON.stringify({ message: { type: v } }), noString([...MESSAGE, 'type'], v)] as const,
  ),
  [
    '?voice=b',
    '{"message":{"type":"voice-request"}}',
    missing([...MESSAGE, 'text'], { type: 'voice-request' }),
  ],
  ...[null, 1, [], {}, false].map(
    (v) =>
      [
        '?voice=b',
        JSON.stringify({ message: { type: 'voice-request', text: v } }),
        noString([...MESSAGE, 'text'], v),
      ] as const,
  ),
  ...[7999, 0, -16000, -1e300].map(
    (v) => ['?voice=b', withMessage(`"sampleRate":${v}`), ge(rate, v, 8000)] as const,
  ),
  ...[48001, 1e300].map((v) => ['?voice=b', withMessage(`"sampleRate":${v}`), le(rate, v, 48000)] as const),
  ['?voice=b', withMessage('"sampleRate":16000.5'), intFromFloat(rate, 16000.5)],
  ...['16000', 'x', ''].map(
    (v) => ['?voice=b', withMessage(`"sampleRate":"${v}"`), intParsing(rate, v)] as const,
  ),
  ...[null, true, [], {}].map(
    (v) => ['?voice=b', withMessage(`"sampleRate":${JSON.stringify(v)}`), intType(rate, v)] as const,
  ),
  [
    '?voice=nobody',
    '{"message":{"sampleRate":"x","type":"voice-request","text":1}}',
    noString([...MESSAGE, 'text'], 1),
    intParsing(rate, 'x'),
  ],
];

function protoMessage(): unknown {
  return JSON.parse('{"__proto__":{"message":{"type":"a"}}}');
}
