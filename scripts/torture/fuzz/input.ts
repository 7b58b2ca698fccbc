/** One input of the fuzz: what is written to a new connection, how it is cut, and how the connection ends. */
import { Dice } from '../../rig/random.js';
import { textFrame } from '../../rig/socket.js';
import {
  elevenLabsRequests,
  elevenLabsSockets,
  events,
  fill,
  openAiRequests,
  publicRequests,
  publicSockets,
  valuesOf,
  type Requests,
  type Sockets,
  type Vocabulary,
} from './corpus.js';
import { someFrame } from './frames.js';
import { distort, mutate } from './mutate.js';
import { writeRequest } from './requests.js';

/**
 * `half-close`: the client sends a FIN at once. `reset`: it closes at once. `wait`: it waits a moment for an answer;
 * `patient`: as long as first audio may take. `linger`: it stays until the service closes the connection.
 * `trickle`: it stops in the middle, and goes on with a byte a second.
 */
export type Ending = 'half-close' | 'reset' | 'wait' | 'patient' | 'linger' | 'trickle';

export interface Input {
  /** For statistics. */
  readonly kind: string;
  readonly bytes: Buffer;
  /** The listener that gets it, as the service names it; `null`: the public port. */
  readonly dialect: string | null;
  /** Written after the answer 101. */
  readonly afterUpgrade?: Buffer;
  /** Where `bytes` are cut into writes of their own, ascending. */
  readonly cuts: readonly number[];
  readonly ending: Ending;
}

type Made = Omit<Input, 'cuts' | 'ending'>;

const oddLengths = [-1, 1.5, '5', 4_294_967_296, 1_048_577, null, 1e300];

/** Input of other protocols, sent by mistake or on purpose. */
const openings = [
  // The beginning of a TLS 1.2 ClientHello.
  `\x16\x03\x01\x00\xc4\x01\x00\x00\xc0\x03\x03${'\xa5'.repeat(185)}`,
  'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00',
  'PROXY TCP4 192.0.2.1 192.0.2.2 4711 80\r\nGET /healthz HTTP/1.1\r\nHost: a\r\n\r\n',
  '\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xc0\0\x02\x01\xc0\0\x02\x02\x12\x67\0\x50',
  ...['SSH-2.0-OpenSSH_9.6\r\n', '\x05\x01\x00', '*1\r\n$4\r\nPING\r\n', 'EHLO localhost\r\n', 'GET /\r\n'],
  ...['GET /v1/tts/speakers\n', 'OPTIONS * RTSP/1.0\r\nCSeq: 1\r\n\r\n', '\r\n\r\n\r\n\r\n', '\0'],
  ...['\0'.repeat(5_000), 'A'.repeat(20_000)],
].map((text) => Buffer.from(text, 'latin1'));

/** Makes inputs of each kind. */
class Maker {
  readonly #dice: Dice;
  readonly #values: ReturnType<typeof valuesOf>;

  constructor(dice: Dice, vocabulary: Vocabulary) {
    this.#dice = dice;
    this.#values = valuesOf(vocabulary);
  }

  requests({ dialect, keyHeader, lines, name }: Requests): Made {
    const dice = this.#dice;
    const one = (): Buffer => {
      const [line, body] = dice.weighted(lines);
      const content = body === undefined ? null : this.#json(body, 0.25);
      return writeRequest(dice, this.#fill(line), [this.#fill(keyHeader)], content);
    };
    const part = (): Buffer => one().subarray(dice.below(100), -dice.below(100));
    const [how, bytes] = dice.weighted<() => readonly [how: string, bytes: Buffer]>([
      { weight: 47, value: () => ['', one()] },
      { weight: 40, value: () => [', mutated', mutate(one(), dice)] },
      {
        weight: 8,
        value: () => ['s, pipelined', Buffer.concat(Array.from({ length: dice.between(2, 8) }, one))],
      },
      { weight: 5, value: () => ['s, spliced', Buffer.concat([part(), part()])] },
    ])();
    return { kind: name + how, bytes, dialect };
  }

  /** A handshake, then up to eight frames. */
  socket({ dialect, keyHeader, messages, name, paths, utterance }: Sockets): Made {
    const dice = this.#dice;
    const upgrade = [
      ...['Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13'],
      `Sec-WebSocket-Key: ${dice.bytes(16).toString('base64')}`,
    ];
    const line = `GET ${this.#fill(dice.pick(paths))}`;
    const request = writeRequest(dice, line, [this.#fill(keyHeader), ...upgrade], null, 0.3);
    const handshake = dice.chance(0.05) ? mutate(request, dice) : request;
    const message = (): Buffer => this.#json(dice.weighted(messages), 0.12);
    const frames = Array.from({ length: dice.between(1, 8) }, () => someFrame(dice, message));
    if (dice.chance(0.15)) frames.unshift(...utterance.map((said) => textFrame(this.#fill(said))));
    const written = dice.chance(0.12) ? mutate(Buffer.concat(frames), dice) : Buffer.concat(frames);
    // A client may not wait for the answer.
    if (dice.chance(0.05))
      return { kind: `${name}, at once`, bytes: Buffer.concat([handshake, written]), dialect };
    return { kind: name, bytes: handshake, afterUpgrade: written, dialect };
  }

  wyoming(): Made {
    const dice = this.#dice;
    const event = (): Buffer => {
      const [type, template] = dice.weighted(events);
      const data = this.#json(template, 0.1);
      if (dice.chance(0.1)) return Buffer.from(`{"type":"${type}","data":${data.toString()}}\n`);
      const payload = dice.bytes(dice.chance(0.1) ? dice.below(3_000) : 0);
      const data_length = dice.chance(0.96) ? data.length : dice.pick(oddLengths);
      const head = JSON.stringify({ type, version: '1.8.0', data_length, payload_length: payload.length });
      return Buffer.concat([Buffer.from(`${head}\n`), data, payload]);
    };
    const written = Buffer.concat(Array.from({ length: dice.between(1, 8) }, event));
    const bytes = dice.chance(0.3) ? mutate(written, dice) : written;
    return { kind: 'Wyoming events', bytes, dialect: 'wyoming' };
  }

  other(): Made {
    const dice = this.#dice;
    const bytes = dice.chance(0.3) ? dice.bytes(dice.between(1, 600)) : dice.pick(openings);
    return { kind: 'no HTTP', bytes: dice.chance(0.5) ? mutate(bytes, dice) : bytes, dialect: null };
  }

  #fill(template: string): string {
    return fill(template, this.#values, this.#dice);
  }

  /** @param oddShare of distorted ones, and again of mutated ones */
  #json(template: string, oddShare: number): Buffer {
    const plain = this.#fill(template);
    const bytes = Buffer.from(this.#dice.chance(oddShare) ? distort(plain, this.#dice) : plain);
    return this.#dice.chance(oddShare) ? mutate(bytes, this.#dice) : bytes;
  }
}

const everyByteMax = 400;

const cutsOf = (length: number, dice: Dice): number[] => {
  const what = dice.unit();
  if (what < 0.8 || length < 2) return [];
  if (what < 0.985) {
    const cuts = Array.from({ length: dice.between(1, 3) }, () => dice.between(1, length - 1));
    return [...new Set(cuts)].sort((a, b) => a - b);
  }
  return length > everyByteMax ? [] : Array.from({ length: length - 1 }, (_, i) => i + 1);
};

const endings = [
  { weight: 47, value: 'wait' },
  { weight: 3, value: 'patient' },
  { weight: 42, value: 'half-close' },
  { weight: 8, value: 'reset' },
] as const;

/** Only among the first inputs, so that the end of a run does not wait for them. */
const lingerersBefore = 2_000;
const lingererShare = 0.03;
const tricklerShare = 0.02;

/** It follows from seed and index alone. */
export const inputOf = (seed: number, index: number, vocabulary: Vocabulary): Input => {
  const dice = new Dice(seed, index);
  const maker = new Maker(dice, vocabulary);
  const made = dice.weighted<() => Made>([
    { weight: 46, value: () => maker.requests(publicRequests) },
    { weight: 30, value: () => maker.socket(publicSockets) },
    { weight: 5, value: () => maker.requests(elevenLabsRequests) },
    { weight: 5, value: () => maker.socket(elevenLabsSockets) },
    { weight: 5, value: () => maker.requests(openAiRequests) },
    { weight: 5, value: () => maker.wyoming() },
    { weight: 4, value: () => maker.other() },
  ])();
  // A client of Wyoming may rest between two events for longer than the fuzz waits.
  const stays = index < lingerersBefore && made.dialect !== 'wyoming' ? dice.unit() : 1;
  if (stays < tricklerShare)
    return {
      ...made,
      bytes: made.bytes.subarray(0, dice.below(made.bytes.length)),
      cuts: [],
      ending: 'trickle',
    };
  return {
    ...made,
    cuts: cutsOf(made.bytes.length, dice),
    ending: stays < tricklerShare + lingererShare ? 'linger' : dice.weighted<Ending>(endings),
  };
};
