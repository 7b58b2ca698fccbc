/**
 * Requests to a service with a scripted engine, and their possible charges. Each letter of text becomes the same length
 * of audio, so the received audio shows how much text was sent.
 */
import { limits } from '../../src/limits.js';
import { Segmenter } from '../../src/text/segments.js';
import { header, RawClient, requestBytes } from './raw-client.js';

/** 50 ms at 24 kHz, two bytes a sample. */
const LETTER_BYTES = 2_400;
/** As base64. */
const LETTER_WIRE_BYTES = (LETTER_BYTES / 3) * 4;
/** Letters that the server library may hold back for a full socket: one write of less than 16 KiB. */
const HELD_BACK_LETTERS = 6;

export type SpeechPath = '/v1/tts' | '/v1/tts/stream';

export interface Heard {
  readonly status: number;
  /** The id in the ledger; `null` without a response. */
  readonly requestId: string | null;
  /** Letters of audio in whole records. */
  readonly letters: number;
  /** The response is complete. */
  readonly complete: boolean;
}

export interface Listening {
  readonly path: SpeechPath;
  readonly key: string;
  readonly text: string;
  /** Hangs up after so many letters; with 0 right after the request. */
  readonly hangUpAfterLetters?: number;
  /** Called when bytes arrive. */
  readonly onLetters?: (letters: number) => void;
  /** Called when the first bytes arrive. No more are read until it resolves, so that a long answer goes on. */
  readonly onBegun?: () => Promise<unknown>;
}

const nothing: Heard = { status: 0, requestId: null, letters: 0, complete: false };

const lettersOfStream = (body: string): number => {
  let bytes = 0;
  for (const record of body.split('\n\n').slice(0, -1)) {
    const { audio_chunk: chunk } = JSON.parse(record.slice('data: '.length)) as { audio_chunk: string };
    bytes += Buffer.from(chunk, 'base64').length;
  }
  return bytes / LETTER_BYTES;
};

const lettersOfWhole = (body: string): number =>
  Buffer.from((JSON.parse(body) as { audio: string }).audio, 'base64').length / LETTER_BYTES;

/**
 * Sends one request and reads until it completes, hangs up, or the service ends. To hang up, it closes only its own
 * direction and reads on: so it gets everything that the service sent before it noticed.
 */
export const listen = async (port: number, request: Listening): Promise<Heard> => {
  const { path, key, text, hangUpAfterLetters, onBegun, onLetters } = request;
  const client = await RawClient.open(port).catch(() => null);
  if (client === null) return nothing;
  const body = { text, voice: 'wren', response_format: { encoding: 'pcm', sample_rate: 24_000 } };
  client.send(requestBytes({ method: 'POST', path, key, body: JSON.stringify(body) }));
  if (onLetters) client.socket.on('data', () => onLetters(client.receivedBytes / LETTER_WIRE_BYTES));
  if (onBegun)
    client.socket.once('data', () => {
      client.socket.pause();
      void onBegun().finally(() => client.socket.resume());
    });
  if (hangUpAfterLetters !== undefined) {
    await client.until(() => client.receivedBytes >= hangUpAfterLetters * LETTER_WIRE_BYTES);
    client.socket.end();
  }
  try {
    const response = await client.response();
    const text = response.body.toString('latin1');
    const heard = (letters: number): Heard => ({
      status: response.status,
      requestId: header(response, 'x-request-id') ?? null,
      letters,
      complete: response.complete,
    });
    if (response.status !== 200) return heard(0);
    if (path === '/v1/tts/stream') return heard(lettersOfStream(text));
    return heard(response.complete ? lettersOfWhole(text) : 0);
  } catch {
    // Closed before a response.
    return nothing;
  } finally {
    client.destroy();
  }
};

/** The charge of a text after its first `letters` letters were sent: whole segments. */
export const chargeThrough = (text: string, letters: number): number => {
  const segmenter = new Segmenter(limits);
  let spoken = 0;
  let charge = 0;
  let blank = 0;
  for (const segment of [...segmenter.push(text), ...segmenter.end()]) {
    if (spoken >= letters) break;
    blank += segment.text.length;
    if (!segment.speak) continue;
    spoken += segment.text.length;
    charge += blank;
    blank = 0;
  }
  return charge;
};

/** The largest possible charge of a stream, given the audio that arrived. */
export const chargeMax = (text: string, { letters }: Heard): number =>
  chargeThrough(text, letters + HELD_BACK_LETTERS);

const sentences = [
  'The train was late again, so we walked along the river.',
  'Nobody had told the baker about the change.',
  'It rained.',
  'When the lights came back, the band played on as if nothing had happened, and the whole room sang with them.',
  'Bring the blue one, please.',
];

/** Sentences of ASCII letters, about `characters` long, without white space at the end. */
export const proseOf = (characters: number): string => {
  let text = sentences[characters % sentences.length] ?? '';
  for (let i = 1; text.length < characters; i++) text += ` ${sentences[(characters + i) % sentences.length]}`;
  return text;
};
