/** Bodies and messages as JSON: mostly valid, because the service refuses the others early. */
import type { Dice, Weighted } from '../../rig/random.js';
import { mutate } from './mutate.js';

/** What inputs are made of. */
export interface Vocabulary {
  /** Keys with credit, without credit, and unknown ones. */
  readonly goodKeys: readonly string[];
  readonly brokeKeys: readonly string[];
  readonly unknownKeys: readonly string[];
  readonly voices: readonly string[];
}

type Value = (dice: Dice, vocabulary: Vocabulary) => unknown;

/** Members by name: in what share of the objects, and with which values. */
export interface Shape {
  readonly [name: string]: readonly [share: number, value: Value];
}

const of =
  (...values: readonly unknown[]): Value =>
  (dice) =>
    dice.pick(values);

const nested =
  (shape: Shape): Value =>
  (dice, vocabulary) =>
    plainObject(dice, vocabulary, shape);

/** Mostly short, because the service speaks what is valid. */
const texts = ['', ' ', 'Hi.', 'No.', 'a', '\u{1F600}', '1', '\\', '"', '\u0000', 'é', '你好', '<b>'];
const rareTexts = ['a'.repeat(3_000), '\n'.repeat(500), '\ud800', '9'.repeat(1_000), '\u0301'.repeat(600)];
const oddVoices = ['nobody', '', '..', '%00', '%ff%fe', '__proto__', 'x'.repeat(500)];
const oddNames = ['constructor', '', '\u0000', 'a'.repeat(300), 'toString', '__proto__', 'seed'];

const text: Value = (dice) => dice.pick(dice.chance(0.02) ? rareTexts : texts);

export const someVoice = (dice: Dice, { voices }: Vocabulary): string =>
  dice.pick(dice.chance(0.93) ? voices : oddVoices);

/** Of any type, sometimes deep or huge. */
const oddValue: Value = (dice) =>
  dice.pick<unknown>([
    ...[null, true, false, 0, -1, 1.5, 1e308, -0, 9007199254740993, '', 'x', '\u0000'],
    ...[[], {}, [[[[[[]]]]]], { a: { a: { a: 1 } } }],
    'x'.repeat(dice.chance(0.05) ? 5_000 : 30),
    Array.from({ length: dice.below(40) }, (_, i) => i),
  ]);

const encoding = of('mp3', 'wav', 'pcm', 'linear16', 'opus', 'mulaw', 'alaw', 'PCM', 'ulaw', 'flac', '');
const formatObject = nested({
  encoding: [1, encoding],
  sample_rate: [0.5, of(8_000, 16_000, 24_000, 48_000, 7_999, 0, '8000', null)],
  bitrate: [0.3, of(64, '64k', '128', 31, 321, 128_000, '0x40', null)],
  extra: [0.03, oddValue],
});
const format: Value = (dice, vocabulary) => (dice.chance(0.2) ? encoding : formatObject)(dice, vocabulary);
const flag = of(true, false);
const temperature = of(0.5, 1, 3, 0.49, 3.01, null, 'NaN');

export const speechBody: Shape = {
  text: [1, text],
  voice: [1, someVoice],
  response_format: [0.5, format],
  timestamps: [0.3, flag],
  temperature: [0.2, temperature],
  normalize_text: [0.2, flag],
};

export const webhookBody: Shape = {
  message: [
    1,
    nested({
      type: [1, of('voice-request', 'voice-request', 'assistant-request', '')],
      text: [1, text],
      sampleRate: [0.5, of(8_000, 24_000, 7_999, 48_001, null, '8000')],
    }),
  ],
};

const voiceSettings = nested({
  stability: [1, of(0.5)],
  speed: [0.5, of(0.7, 1.2, 0.49, 2.01, null, '1')],
});

export const elevenLabsBody: Shape = {
  text: [1, text],
  model_id: [1, of('eleven_flash_v2_5')],
  voice_settings: [0.4, voiceSettings],
  apply_text_normalization: [0.3, of('auto', 'on', 'off', 'x', null, 1)],
};

export const openAiBody: Shape = {
  model: [1, of('tts-1')],
  input: [1, text],
  voice: [1, (dice, { voices }) => dice.pick<unknown>([...voices, 'alloy', { id: 'nova' }, 'nobody', null])],
  response_format: [0.6, of('mp3', 'opus', 'flac', 'wav', 'pcm', 'aac', 'alac', 'PCM', null, {})],
  speed: [0.3, of(0.25, 1, 4, 0.24, 4.01, null, '1')],
  stream_format: [0.3, of('audio', 'sse', 'x', null, 1)],
};

const oddIds = ['c', '', null, 'x'.repeat(200), 'x'.repeat(1_025), '\u0000', 'a:close', '__proto__', 5];
const id: Shape[string] = [0.75, (dice) => dice.pick<unknown>(dice.chance(0.8) ? ['a', 'b'] : oddIds)];
const yes = of(true);

const start = nested({
  voice_id: [1, someVoice],
  model_id: [1, of('default')],
  response_format: [0.3, format],
  timestamps: [0.3, flag],
  temperature: [0.1, temperature],
});

/** Of the public WebSocket, in any order. */
export const messages: readonly Weighted<Shape>[] = [
  { weight: 30, value: { context_id: id, start_context: [1, start] } },
  { weight: 25, value: { context_id: id, send_text: [1, text] } },
  { weight: 15, value: { context_id: id, flush: [1, yes], flush_id: [0.5, of('f', '', null)] } },
  { weight: 10, value: { context_id: id, close_context: [1, yes] } },
  { weight: 10, value: { context_id: id, cancel_context: [1, yes] } },
  { weight: 3, value: { context_id: id, flush: [0.5, oddValue], unknown: [0.5, oddValue] } },
  { weight: 2, value: { context_id: id, send_text: [1, text], flush: [1, yes], close_context: [1, yes] } },
];

export const someKey = (dice: Dice, { brokeKeys, goodKeys, unknownKeys }: Vocabulary): string =>
  dice.pick(dice.chance(0.7) ? brokeKeys : dice.chance(0.6) ? goodKeys : unknownKeys);

/** Of either WebSocket of ElevenLabs, in any order. */
export const elevenLabsMessages: readonly Weighted<Shape>[] = [
  { weight: 12, value: { context_id: id, text: [1, of(' ')], voice_settings: [1, voiceSettings] } },
  { weight: 4, value: { context_id: id, text: [1, of(' ')], xi_api_key: [1, someKey] } },
  { weight: 2, value: { context_id: id, text: [1, of(' ')], 'xi-api-key': [1, someKey] } },
  { weight: 2, value: { context_id: id, text: [1, of(' ')], authorization: [1, someKey] } },
  { weight: 30, value: { context_id: id, text: [1, text], flush: [0.4, yes] } },
  { weight: 10, value: { context_id: id, flush: [1, yes] } },
  { weight: 8, value: { context_id: id, text: [1, of('')], flush: [0.5, yes] } },
  { weight: 14, value: { context_id: id, close_context: [1, yes] } },
  { weight: 3, value: { context_id: id, close_socket: [1, yes] } },
];

const wyomingVoice: Value = (dice, { voices }) =>
  dice.pick<unknown>([...voices.map((name) => ({ name })), { name: 5 }, { language: 'en_GB' }, 'wren', null]);

/** Events of Wyoming, by type. */
export const events: readonly Weighted<readonly [type: string, Shape]>[] = [
  { weight: 10, value: ['describe', {}] },
  { weight: 10, value: ['ping', { text: [1, text] }] },
  { weight: 20, value: ['synthesize', { text: [1, text], voice: [1, wyomingVoice] }] },
  { weight: 20, value: ['synthesize-start', { voice: [1, wyomingVoice] }] },
  { weight: 30, value: ['synthesize-chunk', { text: [1, text] }] },
  { weight: 20, value: ['synthesize-stop', {}] },
  { weight: 2, value: ['', { text: [1, oddValue] }] },
  { weight: 2, value: ['audio-chunk', { text: [1, oddValue] }] },
  { weight: 1, value: ['x'.repeat(400), { text: [1, oddValue] }] },
];

const plainObject = (dice: Dice, vocabulary: Vocabulary, shape: Shape): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(shape)
      .filter(([, [share]]) => dice.chance(share))
      .map(([name, [, value]]) => [name, value(dice, vocabulary)]),
  );

/** A member is dropped, renamed or added, or gets an odd value. */
const distort = (object: Record<string, unknown>, dice: Dice, vocabulary: Vocabulary): object => {
  const name = dice.pick([...Object.keys(object), 'text']);
  const { [name]: value, ...rest } = object;
  return dice.pick<() => object>([
    () => rest,
    () => ({ ...rest, [name.toUpperCase()]: value }),
    () => ({ ...object, [name]: oddValue(dice, vocabulary) }),
    () => ({ ...object, [dice.pick(oddNames)]: oddValue(dice, vocabulary) }),
  ])();
};

/** An object of this shape, or almost. @param oddShare of distorted ones, and again of mutated ones */
export const someJson = (dice: Dice, vocabulary: Vocabulary, shape: Shape, oddShare: number): Buffer => {
  const plain = plainObject(dice, vocabulary, shape);
  const object = dice.chance(oddShare) ? distort(plain, dice, vocabulary) : plain;
  const bytes = Buffer.from(JSON.stringify(object));
  return dice.chance(oddShare) ? mutate(bytes, dice, dice.between(1, 3)) : bytes;
};
