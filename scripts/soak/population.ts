/**
 * The users of a soak: lives, each with one WebSocket, and requests over HTTP. A life is drawn from the seed, the number of
 * its client and its own number, so the same seed gives the same schedule whatever the service does.
 */
import type { AudioFormat } from '../../src/api/formats.js';
import { Dice } from '../rig/random.js';
import { encodeFrame, encodeMessage, opcodes } from '../rig/socket.js';
import { sentences } from '../rig/texts.js';

/** `eager` reads at once, `paced` a second ahead of playback, `slow` at half speed, `stalling` stops for seconds. */
export type Reader = 'eager' | 'paced' | 'slow' | 'stalling';

const lifeEndings = ['close-frame', 'fin', 'half-close', 'reset'] as const;

const invalid = 'invalid frame: ';
/** Frames that the service refuses, and the beginnings of its errors. */
const wrongFrames = [
  { frame: encodeMessage(['no frame']), error: invalid },
  {
    frame: encodeMessage({ send_text: 'Nobody hears this.', context_id: 'nobody' }),
    error: 'unknown context_id: nobody',
  },
  {
    frame: encodeMessage({ start_context: { voice_id: 'nobody', model_id: 'default' } }),
    error: "Unknown voice 'nobody'",
  },
  { frame: encodeMessage({ send_text: 'Both.', flush: true }), error: invalid },
  {
    frame: encodeMessage({
      start_context: { voice_id: 'wren', model_id: 'default', response_format: { encoding: 'flac' } },
    }),
    error: invalid,
  },
  { frame: encodeFrame(Buffer.alloc(64, 7), { opcode: opcodes.binary }), error: `${invalid}binary` },
] as const;

const shortTexts = [
  'Sure.',
  'One moment, please.',
  'I have found three flights for you on Thursday. The first one leaves at ten past nine, and the last one at noon.',
  'That is a good question.',
  'Your order left the warehouse this morning, so it should be with you by Friday.',
  'Let me check that for you. It will only take a few seconds.',
  'The restaurant on the corner has a table for four at half past seven.',
  'I am sorry, I did not quite catch that. Could you say the number again, slowly, one digit at a time.',
  'Naïve façades and a café au lait, said Zoë, are what she remembers of the old town.',
  'The meeting was moved to the small room on the second floor because the large one is being painted this week.',
];

/** Each has whole sentences, one space between words, and a full stop at its end. */
const texts: readonly string[] = [...sentences.filter((text) => /\.$/.test(text)), ...shortTexts];

/** Rates as telephones, browsers and studios have them. A format that is listed twice is drawn twice as often. */
const formats: readonly AudioFormat[] = [
  { encoding: 'pcm', sampleRateHz: 24_000 },
  { encoding: 'pcm', sampleRateHz: 24_000 },
  { encoding: 'pcm', sampleRateHz: 16_000 },
  { encoding: 'pcm', sampleRateHz: 32_000 },
  { encoding: 'pcm', sampleRateHz: 44_100 },
  { encoding: 'mulaw', sampleRateHz: 8_000 },
  { encoding: 'mulaw', sampleRateHz: 8_000 },
  { encoding: 'alaw', sampleRateHz: 8_000 },
  { encoding: 'wav', sampleRateHz: 22_050 },
  { encoding: 'wav', sampleRateHz: 48_000 },
  { encoding: 'linear16', sampleRateHz: 16_000 },
  { encoding: 'linear16', sampleRateHz: 24_000 },
  { encoding: 'mp3', sampleRateHz: 32_000, bitrateKbps: 128 },
  { encoding: 'mp3', sampleRateHz: 24_000, bitrateKbps: 64 },
  { encoding: 'mp3', sampleRateHz: 44_100, bitrateKbps: 192 },
  { encoding: 'opus', sampleRateHz: 48_000, bitrateKbps: 64 },
  { encoding: 'opus', sampleRateHz: 24_000, bitrateKbps: 32 },
  { encoding: 'opus', sampleRateHz: 16_000, bitrateKbps: 48 },
];

/** A slow reader needs more audio than the system's buffers hold. */
const slowFormats: readonly AudioFormat[] = [
  { encoding: 'pcm', sampleRateHz: 48_000 },
  { encoding: 'wav', sampleRateHz: 48_000 },
];

const textOf = (dice: Dice, sentences: number): string =>
  Array.from({ length: sentences }, () => dice.pick(texts)).join(' ');

export const drawReply = (dice: Dice, isSlow: boolean) => ({
  text: textOf(
    dice,
    isSlow ? dice.between(12, 24) : dice.chance(0.1) ? dice.between(6, 10) : dice.between(1, 4),
  ),
  /** The pace of a language model; `null`: the whole text in one message. */
  wordsPerSecond: dice.chance(0.75) ? dice.within(8, 40) : null,
  /** After each sentence, or only after the last. */
  flushes: dice.chance(0.3) ? 'sentence' : 'reply',
  /** From the end of playback to the next reply. */
  pauseMs: dice.chance(0.3) ? dice.within(500, 4_000) : dice.within(50, 500),
});
export type ReplyPlan = ReturnType<typeof drawReply>;

const drawContext = (dice: Dice, isTidy: boolean, reader: Reader) => {
  const isSlow = reader === 'slow' || reader === 'stalling';
  return {
    format: dice.pick(isSlow ? slowFormats : formats),
    /** An index among the voices, modulo their number. */
    voice: dice.between(0, 1_000),
    timestamps: dice.chance(0.8),
    temperature: dice.chance(0.2) ? dice.within(0.5, 2) : null,
    replies: Array.from({ length: isSlow ? 1 : dice.between(1, 6) }, () => drawReply(dice, isSlow)),
    /** Flushed, then closed; closed with text after the last flush; cancelled in the middle of speech. */
    ending: dice.chance(0.2) ? 'close-unflushed' : !isTidy && dice.chance(0.4) ? 'cancel' : 'close',
    /** Milliseconds into the last reply, for a context that is cut by a cancel or by the end of its socket. */
    cutAfterMs: dice.within(100, 4_000),
    /** The next context begins while this one speaks its last reply. */
    overlaps: reader === 'eager' && dice.chance(0.3),
  } as const;
};
export type ContextPlan = ReturnType<typeof drawContext>;

const readerOf = (dice: Dice): Reader => {
  const share = dice.within(0, 1);
  if (share < 0.65) return 'eager';
  if (share < 0.88) return 'paced';
  return share < 0.94 ? 'slow' : 'stalling';
};

/** Every other client is tidy: everything it sends is spoken, so that the use of its key is known to the character. */
export const isTidy = (client: number): boolean => client % 2 === 0;

export const drawLife = (seed: number, client: number, life: number) => {
  const dice = new Dice(seed, 1, client, life);
  const tidy = isTidy(client);
  const reader = readerOf(dice);
  const contexts = Array.from({ length: dice.between(1, 4) }, () => drawContext(dice, tidy, reader));
  return {
    reader,
    contexts,
    ending: dice.pick(lifeEndings),
    /** It ends in the middle of the last reply of its last context. */
    vanishes: !tidy && dice.chance(0.4),
    /** A wrong frame before each context, or none. */
    wrong: contexts.map(() => (dice.chance(0.08) ? dice.pick(wrongFrames) : null)),
    /** From the end of this life to the client's next. */
    pauseMs: dice.within(50, 1_500),
  };
};
export type LifePlan = ReturnType<typeof drawLife>;

const drawRequest = (dice: Dice) => ({
  text: textOf(dice, dice.between(1, 6)),
  /** Milliseconds from the request to its abort. */
  abortAfterMs: dice.chance(0.15) ? dice.within(1, 1_500) : null,
  /** What is wrong with the request; it decides the status. */
  wrong: dice.chance(0.06) ? dice.pick(['voice', 'body', 'key'] as const) : null,
  pauseMs: dice.within(100, 3_000),
});

export const drawHttp = (seed: number, client: number, request: number) => {
  const dice = new Dice(seed, 2, client, request);
  const route = dice.chance(0.6) ? 'stream' : dice.chance(0.7) ? 'whole' : 'webhook';
  return {
    route,
    format:
      route === 'webhook'
        ? ({ encoding: 'pcm', sampleRateHz: dice.pick([8_000, 16_000]) } as const)
        : dice.pick(formats),
    voice: dice.between(0, 1_000),
    timestamps: route !== 'webhook' && dice.chance(0.6),
    ...drawRequest(dice),
  } as const;
};

/** OpenAI's API has one rate. The check of samples needs whole ones, so other formats are asked for as events. */
const openAiEventFormats: readonly AudioFormat[] = [
  { encoding: 'pcm', sampleRateHz: 24_000 },
  { encoding: 'wav', sampleRateHz: 24_000 },
  { encoding: 'mp3', sampleRateHz: 24_000, bitrateKbps: 128 },
  { encoding: 'opus', sampleRateHz: 24_000, bitrateKbps: 64 },
  { encoding: 'aac', sampleRateHz: 24_000, bitrateKbps: 96 },
];

export const drawOpenAi = (seed: number, client: number, request: number) => {
  const dice = new Dice(seed, 5, client, request);
  const isEvents = dice.chance(0.6);
  return {
    route: isEvents ? 'openai-events' : 'openai',
    format: isEvents ? dice.pick(openAiEventFormats) : openAiEventFormats[0]!,
    voice: dice.between(0, 1_000),
    timestamps: false,
    ...drawRequest(dice),
  } as const;
};
export type HttpPlan = ReturnType<typeof drawHttp> | ReturnType<typeof drawOpenAi>;

/** A connection of a voice assistant. */
export const drawAssistant = (seed: number, client: number, life: number) => {
  const dice = new Dice(seed, 6, client, life);
  return {
    texts: Array.from({ length: dice.between(1, 3) }, () => ({
      text: textOf(dice, dice.between(1, 4)),
      /** The pace of a language model; `null`: the whole text in one event. */
      wordsPerSecond: dice.chance(0.5) ? dice.within(8, 40) : null,
      voice: dice.between(0, 1_000),
    })),
    /** Milliseconds into the last text, until the assistant is gone; `null`: it hears it to its end. */
    vanishesAfterMs: dice.chance(0.3) ? dice.within(10, 2_000) : null,
    pauseMs: dice.within(100, 3_000),
  };
};
export type AssistantPlan = ReturnType<typeof drawAssistant>;

/** Milliseconds until an idle WebSocket opens and closes a context, for the n-th time. */
export const drawIdlePauseMs = (seed: number, socket: number, time: number): number =>
  new Dice(seed, 3, socket, time).between(30_000, 600_000);

/** The keys of all clients. */
export interface KeyRing {
  /** Of WebSocket clients. */
  readonly sockets: readonly string[];
  readonly http: readonly string[];
  readonly idle: string;
  /** The keys of a service that runs already: clients of all kinds share them, and their use is not checked. */
  readonly isShared: boolean;
}

/** Of nine slots: a client that vanished holds its slot until the service notices. */
export const clientsPerKey = 6;
const httpClientsPerKey = 5;

/** Tidy clients have keys with even numbers, others have keys with odd numbers. */
const slotOf = (client: number, perKey: number): number =>
  2 * Math.floor((client >> 1) / perKey) + (client & 1);

export const keysNeeded = (clients: number): number => 2 * Math.ceil(clients / 2 / clientsPerKey);

/** Clients of dialects, beside so many over HTTP. The keys of the first two kinds follow those; Wyoming has no keys. */
export const dialectClientsOf = (httpClients: number) => ({
  elevenlabs: Math.ceil(httpClients / 2),
  openai: Math.ceil(httpClients / 4),
  // A client address has nine slots.
  wyoming: Math.min(6, Math.ceil(httpClients / 4)),
});

/** For clients over HTTP, and those of dialects beside them. */
export const otherKeysNeeded = (httpClients: number): number => {
  const { elevenlabs, openai } = dialectClientsOf(httpClients);
  return 2 * Math.ceil((httpClients + elevenlabs + openai) / 2 / httpClientsPerKey);
};

export const keyOfClient = ({ sockets, isShared }: KeyRing, client: number): string =>
  sockets[(isShared ? client : slotOf(client, clientsPerKey)) % sockets.length]!;
export const keyOfHttpClient = ({ http, isShared }: KeyRing, client: number): string =>
  http[(isShared ? client : slotOf(client, httpClientsPerKey)) % http.length]!;
