/** One input of the fuzz: what is written to a new connection, how it is cut, and how the connection ends. */
import { Dice } from '../../rig/random.js';
import { textFrame } from '../../rig/socket.js';
import { someFrame } from './frames.js';
import { mutate } from './mutate.js';
import { elevenLabsMessages, events, messages, someJson, type Vocabulary } from './objects.js';
import {
  elevenLabsHandshake,
  elevenLabsRequest,
  openAiRequest,
  publicHandshake,
  publicRequest,
  writeRequest,
} from './requests.js';

/**
 * `half-close`: the client sends a FIN at once. `reset`: it closes at once. `wait`: it waits a moment for an answer;
 * `patient`: as long as first audio may take. `linger`: it stays until the service closes the connection.
 */
export type Ending = 'half-close' | 'reset' | 'wait' | 'patient' | 'linger';

export interface Input {
  /** For statistics. */
  readonly kind: string;
  readonly bytes: Buffer;
  /** The listener that gets it, as the service names it; without one, the public port. */
  readonly dialect?: string;
  /** Written after the answer 101. */
  readonly afterUpgrade?: Buffer;
  /** Where `bytes` are cut into writes of their own, ascending. */
  readonly cuts: readonly number[];
  readonly ending: Ending;
}

type Made = Omit<Input, 'cuts' | 'ending'>;

const perhapsMutated = (bytes: Buffer, dice: Dice, share: number): Buffer =>
  dice.chance(share) ? mutate(bytes, dice, dice.between(1, 4)) : bytes;

const httpInput = (dice: Dice, vocabulary: Vocabulary): Made => {
  const request = (): Buffer => writeRequest(dice, vocabulary, publicRequest(dice, vocabulary));
  const what = dice.unit();
  if (what < 0.08) {
    const requests = Array.from({ length: dice.between(2, 8) }, request);
    return { kind: 'pipelined', bytes: Buffer.concat(requests) };
  }
  const bytes = request();
  if (what < 0.55) return { kind: 'request', bytes };
  if (what < 0.95) return { kind: 'request, mutated', bytes: perhapsMutated(bytes, dice, 1) };
  const other = request();
  const spliced = [bytes.subarray(0, dice.below(bytes.length)), other.subarray(dice.below(other.length))];
  return { kind: 'requests, spliced', bytes: Buffer.concat(spliced) };
};

/** A handshake, then up to eight frames. @param utterance messages that are spoken */
const socketMade = (
  dice: Dice,
  handshake: Buffer,
  message: () => Buffer,
  utterance: readonly object[],
): Made => {
  const frames = Array.from({ length: dice.between(1, 8) }, () => someFrame(dice, message));
  if (dice.chance(0.15)) frames.unshift(...utterance.map((spoken) => textFrame(JSON.stringify(spoken))));
  const afterUpgrade = perhapsMutated(Buffer.concat(frames), dice, 0.12);
  // A client may not wait for the answer.
  if (dice.chance(0.05))
    return { kind: 'WebSocket, at once', bytes: Buffer.concat([handshake, afterUpgrade]) };
  return { kind: 'WebSocket', bytes: handshake, afterUpgrade };
};

const socketInput = (dice: Dice, vocabulary: Vocabulary): Made => {
  const handshake = writeRequest(dice, vocabulary, publicHandshake(dice));
  const message = (): Buffer => someJson(dice, vocabulary, dice.weighted(messages), 0.12);
  return socketMade(dice, perhapsMutated(handshake, dice, 0.05), message, [
    { start_context: { voice_id: dice.pick(vocabulary.voices), model_id: 'default' }, context_id: 'a' },
    { send_text: 'Hi.', context_id: 'a' },
    { flush: true, context_id: 'a' },
    { close_context: true, context_id: 'a' },
  ]);
};

const elevenLabsInput = (dice: Dice, vocabulary: Vocabulary): Made => {
  if (dice.chance(0.5)) {
    const request = writeRequest(dice, vocabulary, elevenLabsRequest(dice, vocabulary));
    const bytes = perhapsMutated(request, dice, 0.3);
    return { kind: 'ElevenLabs, request', bytes, dialect: 'elevenlabs' };
  }
  const handshake = writeRequest(dice, vocabulary, elevenLabsHandshake(dice, vocabulary));
  const message = (): Buffer => someJson(dice, vocabulary, dice.weighted(elevenLabsMessages), 0.12);
  const made = socketMade(dice, handshake, message, [
    { text: ' ', context_id: 'a' },
    { text: 'Hi. ', context_id: 'a', flush: true },
    dice.chance(0.5) ? { context_id: 'a', close_context: true } : { text: '' },
  ]);
  return { ...made, kind: `ElevenLabs, ${made.kind}`, dialect: 'elevenlabs' };
};

const openAiInput = (dice: Dice, vocabulary: Vocabulary): Made => {
  const bytes = perhapsMutated(writeRequest(dice, vocabulary, openAiRequest(dice)), dice, 0.3);
  return { kind: 'OpenAI, request', bytes, dialect: 'openai' };
};

const oddLengths = [-1, 1.5, '5', 4_294_967_296, 1_048_577, null, 1e300];

const wyomingEvent = (dice: Dice, vocabulary: Vocabulary): Buffer => {
  const [type, shape] = dice.weighted(events);
  const data = someJson(dice, vocabulary, shape, 0.1);
  if (dice.chance(0.1)) return Buffer.from(`{"type":"${type}","data":${data.toString()}}\n`);
  const payload = dice.bytes(dice.chance(0.1) ? dice.below(3_000) : 0);
  const data_length = dice.chance(0.96) ? data.length : dice.pick(oddLengths);
  const head = JSON.stringify({ type, version: '1.8.0', data_length, payload_length: payload.length });
  return Buffer.concat([Buffer.from(`${head}\n`), data, payload]);
};

const wyomingInput = (dice: Dice, vocabulary: Vocabulary): Made => {
  const written = Array.from({ length: dice.between(1, 8) }, () => wyomingEvent(dice, vocabulary));
  const bytes = perhapsMutated(Buffer.concat(written), dice, 0.3);
  return { kind: 'Wyoming, events', bytes, dialect: 'wyoming' };
};

const latin1 = (text: string): Buffer => Buffer.from(text, 'latin1');

/** The beginning of a TLS 1.2 ClientHello. */
const tlsHello = Buffer.concat([
  latin1('\x16\x03\x01\x00\xc4\x01\x00\x00\xc0\x03\x03'),
  Buffer.alloc(32, 0xa5),
  latin1('\x20'),
  Buffer.alloc(32, 0x5a),
  latin1('\x00\x06\x13\x01\x13\x02\x13\x03\x01\x00\x00\x71'),
  Buffer.alloc(113, 0x00),
]);

const openings: readonly Buffer[] = [
  tlsHello,
  latin1('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00'),
  latin1('SSH-2.0-OpenSSH_9.6\r\n'),
  latin1('PROXY TCP4 192.0.2.1 192.0.2.2 4711 80\r\nGET /healthz HTTP/1.1\r\nHost: a\r\n\r\n'),
  latin1('\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xc0\0\x02\x01\xc0\0\x02\x02\x12\x67\0\x50'),
  latin1('\x05\x01\x00'),
  latin1('\x04\x01\x00\x50\xc0\x00\x02\x01\x00'),
  latin1('\x00\x00\x00\x2f\xffSMB'),
  latin1('\x03\x00\x00\x13\x0e\xe0\x00\x00\x00\x00\x00\x01\x00\x08\x00\x03\x00\x00\x00'),
  latin1('*1\r\n$4\r\nPING\r\n'),
  latin1('EHLO localhost\r\n'),
  latin1('GET /\r\n'),
  latin1('GET /v1/tts/speakers\n'),
  latin1('OPTIONS sip:a SIP/2.0\r\nVia: SIP/2.0/TCP a\r\n\r\n'),
  latin1('OPTIONS * RTSP/1.0\r\nCSeq: 1\r\n\r\n'),
  latin1('\r\n\r\n\r\n\r\n'),
  Buffer.alloc(1),
  Buffer.alloc(5_000, 0),
  Buffer.alloc(20_000, 'A'),
];

/** Input of other protocols, sent by mistake or on purpose. */
const otherInput = (dice: Dice): Made => {
  const bytes = dice.chance(0.3) ? dice.bytes(dice.between(1, 600)) : dice.pick(openings);
  return { kind: 'no HTTP', bytes: perhapsMutated(bytes, dice, 0.5) };
};

const makers = [
  { weight: 46, value: httpInput },
  { weight: 30, value: socketInput },
  // Of the dialects, this one has the most kinds.
  { weight: 10, value: elevenLabsInput },
  { weight: 5, value: openAiInput },
  { weight: 5, value: wyomingInput },
  { weight: 4, value: otherInput },
] as const;

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

/** It follows from seed and index alone. */
export const inputOf = (seed: number, index: number, vocabulary: Vocabulary): Input => {
  const dice = new Dice(seed, index);
  const made = dice.weighted<(dice: Dice, vocabulary: Vocabulary) => Made>(makers)(dice, vocabulary);
  const lingers = index < lingerersBefore && dice.chance(lingererShare);
  return {
    ...made,
    cuts: cutsOf(made.bytes.length, dice),
    ending: lingers ? 'linger' : dice.weighted<Ending>(endings),
  };
};
