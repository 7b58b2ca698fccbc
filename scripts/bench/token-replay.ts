/** Replays text as a language model streams it, over a WebSocket, and listens. */
import { setTimeout as sleep } from 'node:timers/promises';
import { limits } from '../../src/limits.js';
import { Segmenter } from '../../src/text/segments.js';
import { type Arrival, decoderOf, heardFirst } from '../rig/first-audio.js';
import { Playback } from '../rig/playback.js';
import { encodeMessage, encodeStart } from '../rig/socket.js';
import { FrameSocket } from './sockets.js';
import { type Target, keyOf } from './streams.js';

/** How a client sends what its model writes: at once, or by the sentences and long clauses of a request over HTTP. */
export type Sending = 'tokens' | 'sentences';

export interface ReplayOrder {
  /** With the encoding pcm. */
  readonly target: Target;
  readonly texts: readonly string[];
  readonly tokensPerSecond: number;
  readonly atOnce: number;
}

export interface Replay {
  /** From the first token to the first sample over -50 dBFS. */
  readonly firstSoundMs: Readonly<Record<Sending, number>>;
  /** The longest wait of a listener who plays from the first sample on; of `tokens`. */
  readonly dryMs: number;
}

/** A language model's piece of text is about this long in English. */
const pieceCharacters = 4;

/** The pieces of a text as a language model streams them: a word with the space before it, or a part of a long one. */
const tokensOf = (text: string): string[] => {
  const tokens: string[] = [];
  for (const [word] of text.matchAll(/\s?[\p{L}’']+|\s?\p{N}{1,3}|\s?[^\s\p{L}\p{N}]+|\s/gu)) {
    // Common words are one piece, longer ones are divided.
    const parts = word.length <= 2 * pieceCharacters ? 1 : Math.ceil(word.length / (pieceCharacters + 2));
    const size = Math.ceil(word.length / parts);
    for (let at = 0; at < word.length; at += size) tokens.push(word.slice(at, at + size));
  }
  return tokens;
};

/** The pieces of a text with the number of the token that completes each. */
const piecesOf = (tokens: readonly string[], sending: Sending): { text: string; token: number }[] => {
  if (sending === 'tokens') return tokens.map((text, token) => ({ text, token }));
  const segmenter = new Segmenter(limits);
  const cut = tokens.flatMap((text, token) => segmenter.push(text).map((segment) => ({ ...segment, token })));
  const rest = segmenter.flush().map((segment) => ({ ...segment, token: tokens.length - 1 }));
  return [...cut, ...rest];
};

/** Sends the pieces of one text when the model has written them. @returns what its listener hears, from the first token on */
const replay = async (
  target: Target,
  key: string,
  tokens: readonly string[],
  tokensPerSecond: number,
  sending: Sending,
) => {
  const playback = new Playback();
  const arrivals: Arrival[] = [];
  let [startedMs, dryMs, samples] = [0, 0, 0];
  const onAudio = (base64: string) => {
    const nowMs = performance.now();
    const bytes = Buffer.from(base64, 'base64');
    arrivals.push({ atMs: nowMs - startedMs, bytes });
    samples += bytes.length / 2;
    const arrival = playback.audio((samples * 1000) / target.format.sampleRateHz, nowMs);
    if (arrival?.kind === 'dry') dryMs = Math.max(dryMs, arrival.waitedMs);
  };
  const socket = new FrameSocket(target, key);
  try {
    await socket.opened();
    socket.write(encodeStart(target));
    await socket.until('context_started');
    startedMs = performance.now();
    playback.begin(startedMs);
    const ended = socket.until('flush_completed', 1, ({ audio_chunk }) => {
      if (audio_chunk !== undefined) onAudio(audio_chunk);
    });
    ended.catch(() => undefined);
    for (const { text, token } of piecesOf(tokens, sending)) {
      const waitMs = startedMs + (token * 1000) / tokensPerSecond - performance.now();
      if (waitMs > 0) await Promise.race([sleep(waitMs), ended]);
      socket.write(encodeMessage({ send_text: text }));
      // Of text by sentences only the first sound is measured: the service itself cuts what it gets.
      if (sending === 'sentences') break;
    }
    socket.write(encodeMessage({ flush: true }));
    await ended;
  } finally {
    socket.close();
  }
  const heard = heardFirst(arrivals, decoderOf(target.format)!);
  if (heard === null) throw new Error('the speech had no sound');
  return { firstSoundMs: heard.audibleMs, dryMs };
};

/** Replays each text in both ways, one after the other; several texts at a time. */
export const replayTokens = async (order: ReplayOrder): Promise<Replay[]> => {
  const { atOnce, target, texts, tokensPerSecond } = order;
  const replays: Replay[] = [];
  let next = 0;
  const replayNext = async (lane: number): Promise<void> => {
    // Lanes that start together would meet at every beat.
    await sleep((lane * 1000) / tokensPerSecond / atOnce);
    while (next < texts.length) {
      const index = next++;
      const tokens = tokensOf(texts[index]!);
      const say = (sending: Sending) => replay(target, keyOf(target, lane), tokens, tokensPerSecond, sending);
      const bySentence = await say('sentences');
      const byToken = await say('tokens');
      replays[index] = {
        firstSoundMs: { tokens: byToken.firstSoundMs, sentences: bySentence.firstSoundMs },
        dryMs: byToken.dryMs,
      };
    }
  };
  await Promise.all(Array.from({ length: atOnce }, (_, lane) => replayNext(lane)));
  return replays;
};
