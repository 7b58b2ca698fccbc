/**
 * Who uses the service in a soak: lives, each of one WebSocket, and requests over HTTP. A life is drawn from the seed,
 * the number of its client and its own: so the same seed gives the same schedule, whatever the service does with it.
 */
import type { AudioFormat } from '../../src/api/formats.js';
import { seededRandom } from '../rig-old/random.js';
import { turnTexts } from './texts.js';

export interface TurnPlan {
  readonly text: string;
  /** As a language model writes; `null`: the whole text in one message. */
  readonly wordsPerSecond: number | null;
  /** After each sentence, or after the last alone. */
  readonly flushes: 'sentence' | 'turn';
  /** From what was heard to the next turn: somebody answers. */
  readonly pauseMs: number;
}

/** How a context ends: flushed, then closed; closed with text that no flush followed; cut in the midst of its speech. */
export type ContextEnding = 'close' | 'close-unflushed' | 'cancel';

export interface ContextPlan {
  readonly format: AudioFormat;
  /** An index among the voices that there are, modulo their number. */
  readonly voice: number;
  readonly timestamps: boolean;
  readonly temperature: number | null;
  readonly turns: readonly TurnPlan[];
  readonly ending: ContextEnding;
  /** Milliseconds into the last turn, for one that does not end well, be it by a cancel or by the socket's end. */
  readonly cutAfterMs: number;
  /** The next one begins while this one speaks its last turn. */
  readonly overlaps: boolean;
}

/** `eager` reads at once, `paced` a second ahead of its player, `slow` at half speed, `stalling` stops for seconds. */
export type Reader = 'eager' | 'paced' | 'slow' | 'stalling';

export const lifeEndings = ['close-frame', 'fin', 'half-close', 'reset'] as const;
export type LifeEnding = (typeof lifeEndings)[number];

/** What a confused client sends, and each time is answered by an error. */
export const wrongFrames = [
  'no-object',
  'unknown-context',
  'unknown-voice',
  'two-kinds',
  'wrong-format',
  'binary',
] as const;
export type WrongFrame = (typeof wrongFrames)[number];

export interface LifePlan {
  readonly reader: Reader;
  readonly contexts: readonly ContextPlan[];
  readonly ending: LifeEnding;
  /** It ends in the midst of its last context's last turn. */
  readonly vanishes: boolean;
  /** Sent before each context, where there is one. */
  readonly wrong: readonly (WrongFrame | null)[];
  /** From its end to the client's next life. */
  readonly pauseMs: number;
}

export interface HttpPlan {
  readonly route: 'stream' | 'whole' | 'webhook';
  readonly format: AudioFormat;
  readonly voice: number;
  readonly timestamps: boolean;
  readonly text: string;
  /** Milliseconds from the request to its abort. */
  readonly abortAfterMs: number | null;
  /** What is wrong with it, if anything; and so the status that it must get. */
  readonly wrong: 'voice' | 'body' | 'key' | null;
  readonly pauseMs: number;
}

class Draw {
  readonly #random: () => number;

  constructor(...numbers: readonly number[]) {
    // Neighbouring numbers must not give neighbouring draws.
    let seed = 0x9e3779b9;
    for (const number of numbers) seed = Math.imul(seed ^ number, 0x85ebca6b) ^ (seed >>> 13);
    this.#random = seededRandom(seed);
  }

  /** @returns whether it is the case, for a share (0 to 1) of draws */
  is(share: number): boolean {
    return this.#random() < share;
  }

  between(min: number, max: number): number {
    return min + this.#random() * (max - min);
  }

  /** A whole number from `min` to `max`. */
  whole(min: number, max: number): number {
    return Math.floor(this.between(min, max + 1));
  }

  of<T>(items: readonly T[]): T {
    return items[this.whole(0, items.length - 1)]!;
  }
}

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

/** Of those who tell no slower reader apart: what a slow one is read by has to be more than buffers hold. */
const slowFormats: readonly AudioFormat[] = [
  { encoding: 'pcm', sampleRateHz: 48_000 },
  { encoding: 'wav', sampleRateHz: 48_000 },
];

const textOf = (draw: Draw, sentences: number): string =>
  Array.from({ length: sentences }, () => draw.of(turnTexts)).join(' ');

const drawTurn = (draw: Draw, isSlow: boolean): TurnPlan => ({
  text: textOf(draw, isSlow ? draw.whole(12, 24) : draw.is(0.1) ? draw.whole(6, 10) : draw.whole(1, 4)),
  wordsPerSecond: draw.is(0.75) ? draw.between(8, 40) : null,
  flushes: draw.is(0.3) ? 'sentence' : 'turn',
  pauseMs: draw.is(0.3) ? draw.between(500, 4_000) : draw.between(50, 500),
});

const drawContext = (draw: Draw, isTidy: boolean, reader: Reader): ContextPlan => {
  const isSlow = reader === 'slow' || reader === 'stalling';
  return {
    format: draw.of(isSlow ? slowFormats : formats),
    voice: draw.whole(0, 1_000),
    timestamps: draw.is(0.8),
    temperature: draw.is(0.2) ? draw.between(0.5, 2) : null,
    turns: Array.from({ length: isSlow ? 1 : draw.whole(1, 6) }, () => drawTurn(draw, isSlow)),
    ending: draw.is(0.2) ? 'close-unflushed' : !isTidy && draw.is(0.4) ? 'cancel' : 'close',
    cutAfterMs: draw.between(100, 4_000),
    overlaps: reader === 'eager' && draw.is(0.3),
  };
};

const readerOf = (draw: Draw): Reader => {
  const share = draw.between(0, 1);
  if (share < 0.65) return 'eager';
  if (share < 0.88) return 'paced';
  return share < 0.94 ? 'slow' : 'stalling';
};

/** Every other client is tidy: what it sent is spoken to the end, so that its key's use is known to the character. */
export const isTidy = (client: number): boolean => client % 2 === 0;

export const drawLife = (seed: number, client: number, life: number): LifePlan => {
  const draw = new Draw(seed, 1, client, life);
  const tidy = isTidy(client);
  const reader = readerOf(draw);
  const contexts = Array.from({ length: draw.whole(1, 4) }, () => drawContext(draw, tidy, reader));
  return {
    reader,
    contexts,
    ending: draw.of(lifeEndings),
    vanishes: !tidy && draw.is(0.4),
    wrong: contexts.map(() => (draw.is(0.08) ? draw.of(wrongFrames) : null)),
    pauseMs: draw.between(50, 1_500),
  };
};

export const drawHttp = (seed: number, client: number, request: number): HttpPlan => {
  const draw = new Draw(seed, 2, client, request);
  const route = draw.is(0.6) ? 'stream' : draw.is(0.7) ? 'whole' : 'webhook';
  return {
    route,
    format:
      route === 'webhook' ? { encoding: 'pcm', sampleRateHz: draw.of([8_000, 16_000]) } : draw.of(formats),
    voice: draw.whole(0, 1_000),
    timestamps: route !== 'webhook' && draw.is(0.6),
    text: textOf(draw, draw.whole(1, 6)),
    abortAfterMs: draw.is(0.15) ? draw.between(1, 1_500) : null,
    wrong: draw.is(0.06) ? draw.of(['voice', 'body', 'key'] as const) : null,
    pauseMs: draw.between(100, 3_000),
  };
};

/** Milliseconds until an idle WebSocket opens a context and closes it again, for the n-th time. */
export const drawIdlePauseMs = (seed: number, socket: number, time: number): number =>
  new Draw(seed, 3, socket, time).between(30_000, 600_000);
