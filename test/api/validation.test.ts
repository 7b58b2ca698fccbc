import t from 'tap';
import { specificationErrors } from '../../src/api/error-shape.js';
import { parseSpeechRequest } from '../../src/api/speech-request.js';
import { parseVoicePlatform } from '../../src/api/voice-platform.js';
import { parseClientFrame } from '../../src/api/ws-frames.js';
import { elevenLabsErrors } from '../../src/dialects/elevenlabs/errors.js';
import { openAiErrors } from '../../src/dialects/openai/errors.js';
import { settingsOf } from '../../src/api/speech-settings.js';
import { limits } from '../../src/limits.js';
import { answered, B, extra, missing, noDictionary, type Item } from '../support/items.js';
import { platformRefusals, speechRefusals, withMembers } from '../support/refusals.js';

const parse = (text: string | Uint8Array, contentType: string | undefined = 'application/json') =>
  parseSpeechRequest(typeof text === 'string' ? Buffer.from(text) : text, contentType, limits);

t.test('every invalid body is answered with exactly the items of the contract', (t) => {
  for (const [text, ...items] of speechRefusals) {
    const result = parse(text);
    if (result.ok) {
      t.fail(`accepted ${text}`);
      continue;
    }
    t.equal(result.status, 422, text.slice(0, 80));
    // Compared as text, because the order of keys is part of the wire form.
    t.equal(result.body, JSON.stringify({ detail: answered(items) }), text.slice(0, 80));
  }
  t.end();
});

t.test('every invalid message of a voice-agent platform is answered with exactly its items', (t) => {
  for (const [query, body, ...items] of platformRefusals) {
    const voice = new URLSearchParams(query).get('voice');
    const result = parseVoicePlatform(Buffer.from(body), 'application/json', voice, limits);
    const name = `${query} ${body}`;
    t.strictSame(result, { ok: false, status: 422, body: JSON.stringify({ detail: answered(items) }) }, name);
  }
  t.end();
});

const settings = { voiceId: 'b', temperature: 1, normalizeText: false };

const accepted: readonly (readonly [members: string, expected: Record<string, unknown>])[] = [
  ['', {}],
  ['"timestamps":true,"normalize_text":false', { timestamps: true }],
  ['"timestamps":false,"normalize_text":true', { settings: { ...settings, normalizeText: true } }],
  ['"temperature":null', {}],
  ['"temperature":0.5', { settings: { ...settings, temperature: 0.5 } }],
  ['"temperature":3', { settings: { ...settings, temperature: 3 } }],
  ['"temperature":3.0', { settings: { ...settings, temperature: 3 } }],
  ['"temperature":1e0', { settings: { ...settings, temperature: 1 } }],
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
  ['"voice":""', { settings: { ...settings, voiceId: '' } }],
];

const defaults = {
  text: 'a',
  settings,
  format: { encoding: 'mp3', sampleRateHz: 32_000, bitrateKbps: 128 },
  timestamps: false,
};

t.test('a valid body becomes a request with its defaults filled in', (t) => {
  for (const [members, expected] of accepted) {
    const text = members === '' ? '{"text":"a","voice":"b"}' : withMembers(members);
    const result = parse(text);
    if (!result.ok) throw new Error(`refused ${text}`);
    const { request } = result;
    t.strictSame({ ...request, settings: settingsOf(request.settings) }, { ...defaults, ...expected }, text);
  }
  t.end();
});

t.test('JSON content types are accepted, and others are answered with the raw body', (t) => {
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
    t.ok(parseSpeechRequest(Buffer.from(text), type, limits).ok, String(type));
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

t.test('a byte order mark is accepted', (t) => {
  t.ok(parse('\ufeff{"text":"a","voice":"b"}').ok);
  t.end();
});

const unreadable = { ok: false, status: 400, body: '{"detail":"There was an error parsing the body"}' };

t.test('long text of any script arrives as it was sent', (t) => {
  for (const character of ['a', 'é', '你', '😀', '"', '\\', '\n', '\u0000'])
    for (const mark of ['', '\ufeff']) {
      const text = `${character.repeat(30_000)}.`;
      const read = parse(mark + JSON.stringify({ text, voice: 'b' }));
      t.ok(read.ok && read.request.text === text, JSON.stringify(character));
    }
  const broken = Buffer.from(JSON.stringify({ text: '你'.repeat(30_000), voice: 'b' }));
  broken[40_000] = 0xff;
  t.strictSame(parse(broken), unreadable);
  t.end();
});

t.test('invalid UTF-8 is answered 400', (t) => {
  for (const bytes of [[0xff], [0x22, 0xc3, 0x22], [0x22, 0xed, 0xa0, 0x80, 0x22]])
    t.strictSame(parse(Uint8Array.from(bytes)), unreadable);
  t.end();
});

t.test('nesting one level beyond the bound is answered 400, whatever follows', (t) => {
  const nested = (levels: number, open = '[', close = ']') =>
    `${open.repeat(levels)}1${close.repeat(levels)}`;
  const max = limits.bodyDepthMax;
  // The object itself counts as one level.
  t.match(parse(withMembers(`"x":${nested(max - 1)}`)), { status: 422 });
  t.strictSame(parse(withMembers(`"x":${nested(max)}`)), unreadable);
  t.strictSame(parse(nested(max + 1)), unreadable);
  t.strictSame(parse(nested(max + 1, '{"a":', '}')), unreadable);
  t.strictSame(parse('['.repeat(limits.bodyBytesMax)), unreadable);
  t.strictSame(parse('{"a":'.repeat(max + 1)), unreadable);
  // Brackets in strings do not count.
  t.ok(parse(`{"voice":"b","text":"\\"${'[{'.repeat(max)}"}`).ok);
  t.ok(parse(`{"voice":"b","text":"\\\\","text":"${'['.repeat(2 * max)}"}`).ok);
  t.end();
});

t.test('a body with too many names and values is answered 400 unparsed', (t) => {
  const max = limits.bodyTokensMax;
  const values = (count: number) => `[${'1,'.repeat(count - 1)}1]`;
  // The array counts as one, its commas as the others.
  t.match(parse(values(max)), { status: 422 });
  t.strictSame(parse(values(max + 1)), unreadable);
  const keys = Array.from({ length: limits.bodyBytesMax / 12 }, (_, index) => `"${index.toString(36)}x":1`);
  const parser = t.capture(JSON, 'parse', JSON.parse);
  for (const body of [`{${keys.join(',')}}`, `{"x":[${'{},'.repeat(limits.bodyBytesMax / 3 - 8)}1]}`])
    t.strictSame(parse(body), unreadable);
  t.equal(parser().length, 0);
  t.end();
});

t.test('the 422 of a body of the largest size stays small', (t) => {
  const size = limits.bodyBytesMax;
  const manyKeys = Array.from(
    { length: limits.bodyTokensMax / 2 - 8 },
    (_, index) => `"${index.toString(36)}${'x'.repeat(100)}":1`,
  ).join(',');
  const bodies = [
    `{${manyKeys}}`,
    `{"response_format":{${manyKeys}}}`,
    `{"x":[${'1e20,'.repeat(limits.bodyTokensMax - 8)}1]}`,
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

t.test('a value within the bound comes back whole, and one beyond it is left out', (t) => {
  const long = 'a'.repeat(limits.quotedBytesMax - 4);
  const echoed = parse(withMembers(`"x":"${long}","y":"b"`));
  const detail = JSON.parse(echoed.ok ? '' : echoed.body) as { detail: Item[] };
  t.strictSame(detail.detail, [
    extra([...B, 'x'], long),
    { type: 'extra_forbidden', loc: [...B, 'y'], msg: 'Extra inputs are not permitted' },
  ]);
  t.end();
});

t.test('an error quotes at most 200 bytes of what was sent, and nothing that looks like a key', (t) => {
  const secrets = ['svc_sk_', 'svc_op_', 'sk-', 'sk_'].map((start) => `${start}Secret-of_another`);
  const long = 'Q'.repeat(1_000);
  const bodiesWith = (value: string): string[] => [
    `{"text":"${value}"}`,
    `{"voice":"${value}","text":1}`,
    withMembers(`"x":"${value}"`),
    withMembers(`"${value}":1`),
    withMembers(`"a":{"${value}":["${value}"]},"b":"${value}"`),
    withMembers(`"response_format":"${value}"`),
    withMembers(`"response_format":{"bitrate":"${value}"}`),
    withMembers(`"response_format":{"${value}":"${value}","sample_rate":"${value}"}`),
    `["${value}"]`,
    `"${value}"`,
    `{"text":"${value}`,
  ];
  const answers = (value: string): string[] => {
    const frame = JSON.stringify({ send_text: 1, [value]: value, context_id: 1, flush_id: value });
    const parsed = parseClientFrame(Buffer.from(frame), limits);
    return [
      ...[...bodiesWith(value).map((body) => parse(body)), parse(value, 'text/plain')].map((result) =>
        result.ok ? '' : result.body,
      ),
      specificationErrors(limits).unknownVoice(value, ['ada']).body,
      openAiErrors(limits).unknownVoice(value, ['ada']).body,
      elevenLabsErrors(limits).unknownVoice(value, ['ada']).body,
      parsed.type === 'refused' ? parsed.text : '',
    ];
  };
  for (const [at, answer] of [
    ...answers(long),
    ...answers('Q'.repeat(150)),
    ...answers('Q'.repeat(95)),
  ].entries())
    t.ok((answer.match(/Q/g) ?? []).length <= 200 && answer !== '', `${at}: ${answer}`);
  for (const value of secrets.flatMap((secret) => [secret, `a ${secret} b`, `${'Q'.repeat(80)}${secret}`]))
    for (const answer of answers(value)) t.notMatch(answer, /Secret|another/);
  t.match(specificationErrors(limits).unknownVoice('nobody', ['ada']).body, /"voice":"nobody"/);
  t.end();
});
