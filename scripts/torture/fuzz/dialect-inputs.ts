/** Requests and messages of clients of other services, for the listeners of the dialects. */
import type { Dice } from '../../rig/random.js';
import { textFrame } from '../../rig/socket.js';
import { oddValue, someText } from './bodies.js';
import type { Made, Vocabulary } from './input.js';
import { mutate } from './mutate.js';
import { socketMade } from './socket-inputs.js';

const someKey = (dice: Dice, { brokeKeys, goodKeys, unknownKeys }: Vocabulary): string =>
  dice.pick(dice.chance(0.7) ? brokeKeys : dice.chance(0.6) ? goodKeys : unknownKeys);

const keyHeader = (dice: Dice, vocabulary: Vocabulary): string => {
  const key = someKey(dice, vocabulary);
  return dice.pick([
    `xi-api-key: ${key}`,
    `Authorization: Bearer ${key}`,
    `authorization: ${key}`,
    'xi-api-key:',
  ]);
};

const formats = ['pcm_24000', 'pcm_8000', 'mp3_44100_128', 'opus_48000_64', 'ulaw_8000', 'wav_16000'];
const oddFormats = ['', 'mp3', 'mp3_1_1', 'aac_44100', 'pcm_999999', '%00', 'pcm_24000_1', 'x'.repeat(300)];

const queryOf = (dice: Dice, options: readonly string[]): string => {
  const chosen = options.filter(() => dice.chance(0.3));
  const format = dice.pick(dice.chance(0.9) ? formats : oddFormats);
  return `?${dice.chance(0.2) ? '&' : ''}${[`output_format=${format}`, ...chosen].join('&')}`;
};

const settings = (dice: Dice): unknown =>
  dice.chance(0.85)
    ? { stability: 0.5, ...(dice.chance(0.5) && { speed: dice.pick([0.7, 1.2, 0.49, 2.01, null, '1']) }) }
    : oddValue(dice);

const elevenLabsBody = (dice: Dice): string =>
  JSON.stringify({
    text: dice.chance(0.95) ? someText(dice) : oddValue(dice),
    model_id: 'eleven_flash_v2_5',
    ...(dice.chance(0.4) && { voice_settings: settings(dice) }),
    ...(dice.chance(0.3) && { apply_text_normalization: dice.pick(['auto', 'on', 'off', 'x', null, 1]) }),
    ...(dice.chance(0.1) && { [dice.pick(['seed', 'previous_text', '__proto__'])]: oddValue(dice) }),
  });

const speakPaths = ['', '/stream', '/with-timestamps', '/stream/with-timestamps'];
const getPaths = ['/v1/voices', '/v2/voices?page_size=x&search=%ff', '/v1/models', '/v1/user/subscription'];

const voiceOf = (dice: Dice, { voices }: Vocabulary): string =>
  dice.pick(dice.chance(0.93) ? voices : ['nobody', '%00', '..', '__proto__', 'x'.repeat(500), '%ff%fe']);

/** @param body `null`: a GET */
const requestBytes = (target: string, key: string, body: string | null): Buffer => {
  const lines = [
    `${body === null ? 'GET' : 'POST'} ${target} HTTP/1.1`,
    'Host: fuzz',
    key,
    ...(body === null
      ? []
      : ['Content-Type: application/json', `Content-Length: ${Buffer.byteLength(body)}`]),
  ];
  return Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), Buffer.from(body ?? '')]);
};

const perhapsMutated = (bytes: Buffer, dice: Dice): Buffer =>
  dice.chance(0.3) ? mutate(bytes, dice, dice.between(1, 4)) : bytes;

const elevenLabsRequest = (dice: Dice, vocabulary: Vocabulary): Buffer => {
  const key = keyHeader(dice, vocabulary);
  if (dice.chance(0.2)) return requestBytes(dice.pick(getPaths), key, null);
  const query = queryOf(dice, ['enable_logging=true']);
  const target = `/v1/text-to-speech/${voiceOf(dice, vocabulary)}${dice.pick(speakPaths)}${query}`;
  return requestBytes(target, key, elevenLabsBody(dice));
};

const keyFields = ['xi_api_key', 'xi-api-key', 'authorization'];
const contextIds = ['a', 'b', 'c', '', null, 'x'.repeat(1_025), '__proto__', 5];

/** A message of either WebSocket, in any order. */
const elevenLabsMessage = (dice: Dice, vocabulary: Vocabulary): Buffer => {
  const id = dice.chance(0.2) ? {} : { context_id: dice.pick(dice.chance(0.85) ? ['a', 'b'] : contextIds) };
  const message = dice.weighted<() => Record<string, unknown>>([
    { weight: 12, value: () => ({ text: ' ', voice_settings: settings(dice) }) },
    { weight: 8, value: () => ({ text: ' ', [dice.pick(keyFields)]: someKey(dice, vocabulary) }) },
    { weight: 30, value: () => ({ text: someText(dice), ...(dice.chance(0.4) && { flush: true }) }) },
    { weight: 10, value: () => ({ flush: true }) },
    { weight: 8, value: () => ({ text: '', ...(dice.chance(0.5) && { flush: true }) }) },
    { weight: 14, value: () => ({ close_context: true }) },
    { weight: 3, value: () => ({ close_socket: true }) },
    {
      weight: 5,
      value: () => ({ [dice.pick(['text', 'flush', 'close_context', 'voice_settings'])]: oddValue(dice) }),
    },
  ])();
  const bytes = Buffer.from(JSON.stringify({ ...message, ...id }));
  return dice.chance(0.12) ? mutate(bytes, dice, dice.between(1, 3)) : bytes;
};

const elevenLabsHandshake = (dice: Dice, vocabulary: Vocabulary): Buffer => {
  const route = dice.pick(['multi-stream-input', 'stream-input']);
  const query = queryOf(dice, [
    'auto_mode=true',
    'sync_alignment=true',
    'inactivity_timeout=180',
    `authorization=${dice.chance(0.5) ? 'Bearer%20' : ''}${someKey(dice, vocabulary)}`,
  ]);
  const lines = [
    `GET /v1/text-to-speech/${voiceOf(dice, vocabulary)}/${route}${query} HTTP/1.1`,
    'Host: fuzz',
    // TEN sends no key before the first message.
    ...(dice.chance(0.2) ? [] : [keyHeader(dice, vocabulary)]),
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    `Sec-WebSocket-Key: ${dice.bytes(16).toString('base64')}`,
  ];
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1');
};

const elevenLabsUtterance = (dice: Dice): Buffer =>
  Buffer.concat(
    [
      { text: ' ', context_id: 'a' },
      { text: 'Hi. ', context_id: 'a', flush: true },
      dice.chance(0.5) ? { context_id: 'a', close_context: true } : { text: '' },
    ].map((message) => textFrame(JSON.stringify(message))),
  );

const elevenLabsInput = (dice: Dice, vocabulary: Vocabulary): Made => {
  if (dice.chance(0.5)) {
    const bytes = perhapsMutated(elevenLabsRequest(dice, vocabulary), dice);
    return { kind: 'ElevenLabs, request', bytes, afterUpgrade: null, dialect: 'elevenlabs' };
  }
  const made = socketMade(dice, {
    handshake: elevenLabsHandshake(dice, vocabulary),
    message: () => elevenLabsMessage(dice, vocabulary),
    utterance: () => elevenLabsUtterance(dice),
  });
  return { ...made, kind: `ElevenLabs, ${made.kind}`, dialect: 'elevenlabs' };
};

const openAiBody = (dice: Dice, { voices }: Vocabulary): string =>
  JSON.stringify({
    model: 'tts-1',
    input: dice.chance(0.95) ? someText(dice) : oddValue(dice),
    voice: dice.pick<unknown>(
      dice.chance(0.9) ? [...voices, 'alloy', { id: 'nova' }] : ['nobody', '', {}, 5, null],
    ),
    ...(dice.chance(0.6) && {
      response_format: dice.pick(['mp3', 'opus', 'flac', 'wav', 'pcm', 'aac', 'alac', 'PCM', null, {}]),
    }),
    ...(dice.chance(0.3) && { speed: dice.pick([0.25, 1, 4, 0.24, 4.01, null, '1']) }),
    ...(dice.chance(0.3) && { stream_format: dice.pick(['audio', 'sse', 'x', null, 1]) }),
    ...(dice.chance(0.1) && { [dice.pick(['instructions', '__proto__', ''])]: oddValue(dice) }),
  });

const openAiPaths = [
  '/v1/models',
  '/v1/models/tts-1',
  '/v1/models/%ff',
  '/v1/audio/voices',
  '/v1/audio/models',
  '/v1/audio/speech',
  '/v1',
];

const openAiInput = (dice: Dice, vocabulary: Vocabulary): Made => {
  const key = keyHeader(dice, vocabulary);
  const request = dice.chance(0.15)
    ? requestBytes(dice.pick(openAiPaths), key, null)
    : requestBytes('/v1/audio/speech', key, openAiBody(dice, vocabulary));
  return {
    ...{ kind: 'OpenAI, request', bytes: perhapsMutated(request, dice) },
    ...{ afterUpgrade: null, dialect: 'openai' },
  };
};

const oddLengths = [-1, 1.5, '5', 4_294_967_296, 1_048_577, null, 1e300];

const wyomingEvent = (dice: Dice, { voices }: Vocabulary): Buffer => {
  const voice = dice.chance(0.8)
    ? { name: dice.pick([...voices, 'nobody']) }
    : dice.pick<unknown>([{ language: 'en_GB' }, { name: 5 }, 'wren', null]);
  const text = dice.chance(0.95) ? someText(dice) : oddValue(dice);
  const [type, data] = dice.weighted<readonly [string, unknown]>([
    { weight: 10, value: ['describe', {}] },
    { weight: 10, value: ['ping', { text }] },
    { weight: 20, value: ['synthesize', { text, voice }] },
    { weight: 20, value: ['synthesize-start', { voice }] },
    { weight: 30, value: ['synthesize-chunk', { text }] },
    { weight: 20, value: ['synthesize-stop', {}] },
    { weight: 5, value: [dice.pick(['', 'audio-chunk', '__proto__', 'x'.repeat(400)]), oddValue(dice)] },
  ]);
  const json = Buffer.from(JSON.stringify(data));
  const payload = dice.bytes(dice.chance(0.1) ? dice.below(3_000) : 0);
  const length = dice.chance(0.96) ? json.length : dice.pick(oddLengths);
  const line = dice.chance(0.1)
    ? { type, data }
    : { type, version: '1.8.0', data_length: length, payload_length: payload.length };
  const isInline = !('version' in line);
  const head = Buffer.from(`${JSON.stringify(line)}\n`);
  return isInline ? head : Buffer.concat([head, json, payload]);
};

const wyomingInput = (dice: Dice, vocabulary: Vocabulary): Made => {
  const events = Array.from({ length: dice.between(1, 8) }, () => wyomingEvent(dice, vocabulary));
  const bytes = perhapsMutated(Buffer.concat(events), dice);
  return { kind: 'Wyoming, events', bytes, afterUpgrade: null, dialect: 'wyoming' };
};

/** Of each dialect; the first has the most kinds. */
const inputs = [elevenLabsInput, elevenLabsInput, openAiInput, wyomingInput] as const;

export const dialectInput = (dice: Dice, vocabulary: Vocabulary): Made => dice.pick(inputs)(dice, vocabulary);
