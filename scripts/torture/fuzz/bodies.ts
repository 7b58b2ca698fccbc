/** Bodies and texts: valid speech requests, and JSON that is almost valid. */
import type { Dice } from '../../rig/random.js';
import type { Vocabulary } from './input.js';
import { mutate } from './mutate.js';

/** Mostly short, because the service speaks what is valid. */
const texts = ['', ' ', 'Hi.', 'No.', 'a', '\u{1F600}', '1', '\\', '"', '\u0000', 'é', '你好', '<b>'];
const rareTexts = ['a'.repeat(3_000), '\n'.repeat(500), '\ud800', '9'.repeat(1_000), '\u0301'.repeat(600)];

const encodings = ['mp3', 'wav', 'pcm', 'linear16', 'opus', 'mulaw', 'alaw', 'PCM', 'ulaw', 'flac', ''];

export const someText = (dice: Dice): string => dice.pick(dice.chance(0.02) ? rareTexts : texts);

/** A value of any type, sometimes deep or huge. */
export const oddValue = (dice: Dice): unknown =>
  dice.pick<unknown>([
    null,
    true,
    false,
    0,
    -1,
    1.5,
    1e308,
    -0,
    9007199254740993,
    '',
    'x',
    '\u0000',
    [],
    {},
    [[[[[[]]]]]],
    { a: { a: { a: 1 } } },
    'x'.repeat(dice.chance(0.05) ? 5_000 : 30),
    Array.from({ length: dice.below(40) }, (_, i) => i),
  ]);

export const someFormat = (dice: Dice): unknown => {
  if (dice.chance(0.2)) return dice.pick(encodings);
  return {
    encoding: dice.pick(encodings),
    ...(dice.chance(0.5) && {
      sample_rate: dice.pick([8_000, 16_000, 24_000, 48_000, 7_999, 0, '8000', null]),
    }),
    ...(dice.chance(0.3) && { bitrate: dice.pick([64, '64k', '128', 31, 321, 128_000, '0x40', null]) }),
    ...(dice.chance(0.03) && { extra: oddValue(dice) }),
  };
};

const speechObject = (dice: Dice, { voices }: Vocabulary): Record<string, unknown> => ({
  text: someText(dice),
  voice: dice.chance(0.9) ? dice.pick(voices) : dice.pick(['nobody', '', '__proto__', 'x'.repeat(400)]),
  ...(dice.chance(0.5) && { response_format: someFormat(dice) }),
  ...(dice.chance(0.3) && { timestamps: dice.chance(0.9) ? dice.chance(0.5) : oddValue(dice) }),
  ...(dice.chance(0.2) && { temperature: dice.pick([0.5, 1, 3, 0.49, 3.01, null, 'NaN']) }),
  ...(dice.chance(0.2) && { normalize_text: dice.chance(0.9) ? true : oddValue(dice) }),
});

const webhookObject = (dice: Dice): Record<string, unknown> => ({
  message: {
    type: dice.pick(['voice-request', 'voice-request', 'assistant-request', '']),
    text: someText(dice),
    ...(dice.chance(0.5) && { sampleRate: dice.pick([8_000, 24_000, 7_999, 48_001, null, '8000']) }),
  },
});

/** A key is doubled, dropped, renamed or given an odd value. */
const distort = (object: Record<string, unknown>, dice: Dice): Record<string, unknown> => {
  const keys = Object.keys(object);
  const key = keys.length > 0 ? dice.pick(keys) : 'text';
  const { [key]: value, ...rest } = object;
  return dice.pick<() => Record<string, unknown>>([
    () => rest,
    () => ({ ...rest, [key.toUpperCase()]: value }),
    () => ({ ...object, [key]: oddValue(dice) }),
    () => ({
      ...object,
      [dice.pick(['constructor', '', '\u0000', 'a'.repeat(300), 'toString'])]: oddValue(dice),
    }),
  ])();
};

const rareBodies: readonly (() => Buffer)[] = [
  () => Buffer.from('['.repeat(100_000)),
  () => Buffer.from(`${'{"a":'.repeat(5_000)}1${'}'.repeat(5_000)}`),
  () => Buffer.from(`{"text":"${'x'.repeat(200_000)}"`),
  () => Buffer.from(`{"text":${'9'.repeat(50_000)},"voice":1e99999}`),
  () => Buffer.alloc(70_000, 0xff),
  () => Buffer.from('\ufeff{"text":"a"}'),
  () => Buffer.from('{"text":"a","voice":"x"}', 'utf16le'),
  () => Buffer.alloc(0),
];

/** @param isWebhook a body of the voice platform; else of a speech request */
export const someBody = (dice: Dice, vocabulary: Vocabulary, isWebhook: boolean): Buffer => {
  if (dice.chance(0.006)) return dice.pick(rareBodies)();
  const plain = isWebhook ? webhookObject(dice) : speechObject(dice, vocabulary);
  const object = dice.chance(0.25) ? distort(plain, dice) : plain;
  const bytes = Buffer.from(JSON.stringify(object));
  return dice.chance(0.25) ? mutate(bytes, dice, dice.between(1, 3)) : bytes;
};
