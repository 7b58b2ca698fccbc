/**
 * Requests to a service whose engine is scripted, and what they may be charged. There a letter of text is a letter of
 * audio, so what a listener has received tells what had been handed to its socket.
 */
import { limits } from '../../src/limits.js';
import { Segmenter } from '../../src/text/segments.js';
import { header, RawClient, requestBytes } from './raw-client.js';

/** 50 ms at 24 kHz, two bytes a sample. */
const LETTER_BYTES = 2_400;
/** As it is sent: base64. */
const LETTER_WIRE_BYTES = (LETTER_BYTES / 3) * 4;
/** What the server library may hold back for a full socket, in letters: one write of less than 16 KiB. */
const HELD_BACK_LETTERS = 6;

export type SpeechPath = '/v1/tts' | '/v1/tts/stream';

export interface Heard {
  readonly status: number;
  /** Under which the ledger has it; `null` when no response began. */
  readonly requestId: string | null;
  /** Letters of audio in whole records. */
  readonly letters: number;
  /** The response came to its end. */
  readonly complete: boolean;
}

export interface Listening {
  readonly path: SpeechPath;
  readonly key: string;
  readonly text: string;
  /** Hangs up when so many letters have come; 0 right after asking. */
  readonly hangUpAfterLetters?: number;
  /** Called whenever something has come. */
  readonly onLetters?: (letters: number) => void;
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
 * One request, to its end, to its hanging up, or to the end of the service. Hanging up, it closes its own direction
 * only and reads on: so it gets all that was handed to the socket before the service noticed.
 */
export const listen = async (port: number, request: Listening): Promise<Heard> => {
  const { path, key, text, hangUpAfterLetters, onLetters } = request;
  const client = await RawClient.open(port).catch(() => null);
  if (client === null) return nothing;
  const body = { text, voice: 'wren', response_format: { encoding: 'pcm', sample_rate: 24_000 } };
  client.send(requestBytes({ method: 'POST', path, key, body: JSON.stringify(body) }));
  if (onLetters) client.socket.on('data', () => onLetters(client.receivedBytes / LETTER_WIRE_BYTES));
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

/** The charge of a text once its first `letters` letters have been handed over: whole segments. */
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

/** What a stream may have been charged at most, by what was heard of it. */
export const chargeMax = (text: string, { letters }: Heard): number =>
  chargeThrough(text, letters + HELD_BACK_LETTERS);

const sentences = [
  'The train was late again, so we walked along the river.',
  'Nobody had told the baker about the change.',
  'It rained.',
  'When the lights came back, the band played on as if nothing had happened, and the whole room sang with them.',
  'Bring the blue one, please.',
];

/** Text of ASCII letters in sentences, of about so many characters, without white space at its end. */
export const proseOf = (characters: number): string => {
  let text = sentences[characters % sentences.length] ?? '';
  for (let i = 1; text.length < characters; i++) text += ` ${sentences[(characters + i) % sentences.length]}`;
  return text;
};
