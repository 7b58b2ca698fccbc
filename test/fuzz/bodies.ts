/** Bodies to try: mostly near what is valid, where the rules are, and anything else now and then. */
import fc from 'fast-check';
import { anyText } from './check.js';

const anything = fc.jsonValue({ maxDepth: 3 });

/** These values mostly, and anything else. */
const often = (...values: readonly unknown[]) =>
  fc.oneof({ weight: 4, arbitrary: fc.constantFrom(...values) }, { weight: 1, arbitrary: anything });

/** Any of the members, and further ones now and then. */
const partly = (members: Record<string, fc.Arbitrary<unknown>>, requiredKeys: readonly string[] = []) =>
  fc
    .tuple(
      fc.record(members, { requiredKeys: [...requiredKeys] }),
      fc.option(fc.dictionary(fc.oneof(fc.string(), fc.constantFrom('__proto__', '0', 'Text')), anything), {
        freq: 5,
      }),
    )
    .map(([known, further]) => ({ ...known, ...further }));

const sampleRate = often(7999, 8000, 12000, 15999, 16000, 16000.5, 24000, 48000, 48001, 1e300, null, '16000');

const encoding = often(
  ...['mp3', 'MP3', 'wav', 'PCM', 'raw', 'pcm_s16le', 'linear16', 'linear-pcm', 'Linear_PCM', 'opus', 'Opus'],
  ...['mulaw', 'u-LAW', '\u03bc-law', '\u00b5-law', 'alaw', 'A-law', 'flac', 'ogg', '', null],
);

const responseFormat = fc.oneof(
  {
    weight: 3,
    arbitrary: partly({
      encoding,
      sample_rate: sampleRate,
      bitrate: often(null, 32, 31, 128, 128000, '128k', '320', '321k', '192K', '193', 128.5, '+64', 'x', ''),
    }),
  },
  { weight: 2, arbitrary: encoding },
);

const text = often('a', '', ' \n', '\u0000', '\ud800', 'Grüße, 世界', '<speak>&amp;</speak>');

const speechMembers = (voices: readonly string[]): Record<string, fc.Arbitrary<unknown>> => ({
  text,
  voice: often(...voices),
  response_format: responseFormat,
  timestamps: often(true, false, 1, 'true', null),
  temperature: often(0.5, 3, 1, 0.499, 3.001, null, '1', true),
  normalize_text: often(true, false, 0, null),
});

const validFormat = fc.oneof(
  fc.constantFrom('mp3', 'WAV', 'raw', 'linear_pcm', 'Opus', '\u03bc-law', 'a-law'),
  fc.record(
    { encoding: fc.constantFrom('mp3', 'opus'), sample_rate: fc.constantFrom(16000, 24000, 48000, null) },
    { requiredKeys: [] },
  ),
  fc.record({
    encoding: fc.constantFrom('wav', 'PCM', 'linear16'),
    sample_rate: fc.integer({ min: 8000, max: 48000 }),
  }),
  fc.record({ bitrate: fc.constantFrom(32, '320', '128k', null) }),
);

const validSpeech = (voices: readonly string[]) =>
  fc.record(
    {
      text: anyText(),
      voice: fc.constantFrom(...voices),
      response_format: validFormat,
      timestamps: fc.boolean(),
      temperature: fc.oneof(fc.constant(null), fc.double({ min: 0.5, max: 3, noNaN: true })),
      normalize_text: fc.boolean(),
    },
    { requiredKeys: ['text', 'voice'] },
  );

/** @param voices that exist; others are tried too */
export const speechBodies = (...voices: readonly string[]): fc.Arbitrary<unknown> => {
  const members = speechMembers(voices);
  const oneReplaced = fc
    .tuple(validSpeech(voices), fc.constantFrom(...Object.keys(members)))
    .chain(([valid, key]) => (members[key] ?? anything).map((member) => ({ ...valid, [key]: member })));
  return fc.oneof(
    { weight: 1, arbitrary: anything },
    { weight: 4, arbitrary: partly(members) },
    { weight: 1, arbitrary: validSpeech(voices) },
    { weight: 4, arbitrary: oneReplaced },
  );
};

const message = fc.boolean().chain((isWhole) =>
  partly(
    {
      type: often('voice-request', 'voice-request', 'status-update', 'Voice-Request', ''),
      text,
      sampleRate,
    },
    isWhole ? ['type', 'text'] : [],
  ),
);

/** What a voice-agent platform might send. */
export const platformBodies: fc.Arbitrary<unknown> = fc.oneof(
  { weight: 1, arbitrary: anything },
  { weight: 9, arbitrary: partly({ message: fc.oneof({ weight: 9, arbitrary: message }, anything) }) },
);

const escaped = (json: string): string =>
  json.replace(/[^\x20-\x7e]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);

/** A value as JSON text, in one of the ways in which clients write it. */
export const asText = (values: fc.Arbitrary<unknown>): fc.Arbitrary<string> =>
  fc.tuple(values, fc.constantFrom('plain', 'indented', 'escaped', 'twice')).map(([body, way]) => {
    const json = JSON.stringify(body);
    if (way === 'indented') return ` \r\n\t${JSON.stringify(body, null, 3)}\n`;
    if (way === 'escaped') return escaped(json);
    // A key that comes again: the last one counts.
    if (way === 'twice' && json.startsWith('{"')) return `{"text":[],"message":0,${json.slice(1)}`;
    return json;
  });

/** Text that was JSON before something was taken out of it or put into it, or never was. */
export const brokenText: fc.Arbitrary<string> = fc.oneof(
  fc
    .tuple(
      fc.json(),
      fc.nat(),
      fc.nat(3),
      fc.constantFrom('', '"', '{', ']', ',', ':', '\\', '0', 'e', '\t', '\u0001', '\ufeff', '1e999'),
    )
    .map(([json, at, drop, put]) => {
      const from = at % (json.length + 1);
      return json.slice(0, from) + put + json.slice(from + drop);
    }),
  anyText(),
);
