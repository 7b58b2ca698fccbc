/** WebSockets: mostly valid handshakes, and the frames after them. */
import type { Dice } from '../../rig/random.js';
import { encodeFrame, opcodes, textFrame, type FrameFields } from '../../rig/socket.js';
import { oddValue, someFormat, someText } from './bodies.js';
import type { Made, Vocabulary } from './input.js';
import { mutate } from './mutate.js';

const handshakeFaults = [
  'Sec-WebSocket-Version: 8',
  'Sec-WebSocket-Key: short',
  `Sec-WebSocket-Key: ${'A'.repeat(3_000)}`,
  'Sec-WebSocket-Protocol: chat, superchat',
  'Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits',
  'Sec-WebSocket-Extensions: permessage-deflate; server_max_window_bits=0',
  'Connection: close',
  'Content-Length: 10',
  'Transfer-Encoding: chunked',
  'Upgrade: h2c',
];

const handshake = (dice: Dice, vocabulary: Vocabulary): Buffer => {
  const key = dice.weighted([
    { weight: 60, value: () => dice.pick(vocabulary.brokeKeys) },
    { weight: 25, value: () => dice.pick(vocabulary.goodKeys) },
    { weight: 8, value: () => dice.pick(vocabulary.unknownKeys) },
    { weight: 2, value: () => 'none' },
  ])();
  const lines = [
    `GET /v1/tts/ws${dice.chance(0.02) ? '?x=y' : ''} HTTP/1.1`,
    'Host: fuzz',
    `X-Api-Key: ${key}`,
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    `Sec-WebSocket-Key: ${dice.bytes(16).toString('base64')}`,
  ];
  if (dice.chance(0.06)) lines.splice(dice.between(1, lines.length), 1, dice.pick(handshakeFaults));
  const bytes = Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1');
  return dice.chance(0.05) ? mutate(bytes, dice, dice.between(1, 2)) : bytes;
};

const contextIds = ['a', 'b', 'c', '', null, 'x'.repeat(200), '\u0000', 'a:close', '__proto__'];

/** A message of the protocol, in any order. */
const someMessage = (dice: Dice, vocabulary: Vocabulary): Record<string, unknown> => {
  const id = dice.chance(0.25) ? {} : { context_id: dice.pick(dice.chance(0.8) ? ['a', 'b'] : contextIds) };
  const message = dice.weighted<() => Record<string, unknown>>([
    {
      weight: 30,
      value: () => ({
        start_context: {
          voice_id: dice.chance(0.93) ? dice.pick(vocabulary.voices) : 'nobody',
          model_id: 'default',
          ...(dice.chance(0.3) && { response_format: someFormat(dice) }),
          ...(dice.chance(0.3) && { timestamps: dice.chance(0.5) }),
          ...(dice.chance(0.1) && { temperature: dice.pick([0.5, 3, 4, null, 'x']) }),
        },
      }),
    },
    { weight: 25, value: () => ({ send_text: someText(dice) }) },
    {
      weight: 15,
      value: () => ({ flush: true, ...(dice.chance(0.5) && { flush_id: dice.pick(['f', '', null]) }) }),
    },
    { weight: 10, value: () => ({ close_context: true }) },
    { weight: 10, value: () => ({ cancel_context: true }) },
    {
      weight: 3,
      value: () => ({ [dice.pick(['flush', 'send_text', 'close_context', 'unknown'])]: oddValue(dice) }),
    },
    { weight: 2, value: () => ({ send_text: 'a', flush: true, close_context: true }) },
  ])();
  return { ...message, ...id };
};

const messageBytes = (dice: Dice, vocabulary: Vocabulary): Buffer => {
  const bytes = Buffer.from(JSON.stringify(someMessage(dice, vocabulary)));
  return dice.chance(0.12) ? mutate(bytes, dice, dice.between(1, 3)) : bytes;
};

const rareTexts: readonly (() => Buffer)[] = [
  () => Buffer.from('['.repeat(50_000)),
  () => Buffer.from(`{"send_text":"${'x'.repeat(300_000)}"}`),
  () => Buffer.from(`{"send_text":"${'\\u0000'.repeat(20_000)}"}`),
  () => Buffer.alloc(0),
  () => Buffer.from('null'),
  () => Buffer.from('1e400'),
];

const fragmented = (payload: Buffer, dice: Dice): Buffer => {
  const frames: Buffer[] = [];
  const parts = dice.between(2, 6);
  const size = Math.ceil(payload.length / parts);
  for (let part = 0; part < parts; part++) {
    const opcode = part === 0 ? opcodes.text : opcodes.continuation;
    const isFinal = part === parts - 1;
    frames.push(encodeFrame(payload.subarray(part * size, (part + 1) * size), { opcode, isFinal }));
    // A control frame may come in between.
    if (dice.chance(0.2)) frames.push(encodeFrame(Buffer.from('x'), { opcode: opcodes.ping }));
  }
  // The order of fragments, their number, or their end is wrong.
  if (dice.chance(0.2)) frames.splice(dice.below(frames.length), 1);
  if (dice.chance(0.1)) frames.reverse();
  return Buffer.concat(frames);
};

const closeCodes = [1000, 1001, 1002, 1005, 1006, 1015, 0, 999, 2999, 3000, 4999, 5000, 65_535];

const closeFrame = (dice: Dice): Buffer => {
  const code = Buffer.alloc(2);
  code.writeUInt16BE(dice.pick(closeCodes));
  const reason = dice.pick([
    Buffer.alloc(0),
    Buffer.from('bye'),
    Buffer.from([0xff, 0xfe]),
    Buffer.alloc(130, 'x'),
  ]);
  const payload = dice.chance(0.15) ? code.subarray(0, dice.below(2)) : Buffer.concat([code, reason]);
  return encodeFrame(payload, { opcode: opcodes.close });
};

const wrongFields = (dice: Dice): FrameFields =>
  dice.pick<() => FrameFields>([
    () => ({ opcode: dice.below(16) }),
    () => ({ opcode: opcodes.text, reserved: dice.between(1, 7) }),
    () => ({ opcode: opcodes.text, isMasked: false }),
    () => ({ opcode: opcodes.text, lengthBytes: dice.pick([0, 2, 8] as const) }),
    () => ({
      opcode: opcodes.text,
      lengthBytes: 8,
      claimedLength: dice.pick([2n ** 63n, 2n ** 64n - 1n, 2n ** 32n, 4_194_305n]),
    }),
    () => ({ opcode: opcodes.text, claimedLength: BigInt(dice.below(140)) }),
    () => ({ opcode: dice.pick([8, 9, 10]), isFinal: false }),
    () => ({ opcode: opcodes.continuation, isFinal: dice.chance(0.5) }),
    () => ({ opcode: opcodes.text, isFinal: false }),
    () => ({ opcode: opcodes.binary }),
  ])();

const invalidUtf8 = [[0xff], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0xf4, 0x90, 0x80, 0x80], [0xe2, 0x82]];

const someFrame = (dice: Dice, message: () => Buffer): Buffer =>
  dice.weighted([
    { weight: 150, value: () => encodeFrame(message(), { opcode: opcodes.text }) },
    { weight: 10, value: () => fragmented(message(), dice) },
    { weight: 8, value: () => encodeFrame(message(), wrongFields(dice)) },
    { weight: 6, value: () => encodeFrame(dice.bytes(dice.below(140)), { opcode: dice.pick([9, 10]) }) },
    { weight: 5, value: () => closeFrame(dice) },
    { weight: 4, value: () => encodeFrame(Buffer.from(dice.pick(invalidUtf8)), { opcode: opcodes.text }) },
    { weight: 4, value: () => encodeFrame(dice.bytes(dice.below(300)), { opcode: opcodes.binary }) },
    { weight: 3, value: () => dice.bytes(dice.between(1, 40)) },
    { weight: 0.4, value: () => encodeFrame(dice.pick(rareTexts)(), { opcode: opcodes.text }) },
  ])();

/** A valid utterance. */
const utterance = (dice: Dice, { voices }: Vocabulary): Buffer =>
  Buffer.concat(
    [
      { start_context: { voice_id: dice.pick(voices), model_id: 'default' }, context_id: 'a' },
      { send_text: 'Hi.', context_id: 'a' },
      { flush: true, context_id: 'a' },
      { close_context: true, context_id: 'a' },
    ].map((message) => textFrame(JSON.stringify(message))),
  );

/** What a WebSocket is made of. */
export interface SocketParts {
  readonly handshake: Buffer;
  /** A message of the protocol, in any order. */
  readonly message: () => Buffer;
  /** Frames that are spoken. */
  readonly utterance: () => Buffer;
}

export const socketMade = (dice: Dice, { handshake: head, message, utterance: valid }: SocketParts): Made => {
  const frames = Array.from({ length: dice.between(1, 8) }, () => someFrame(dice, message));
  if (dice.chance(0.15)) frames.unshift(valid());
  const bytes = Buffer.concat(frames);
  const afterUpgrade = dice.chance(0.12) ? mutate(bytes, dice, dice.between(1, 3)) : bytes;
  // A client may not wait for the answer.
  if (dice.chance(0.05))
    return { kind: 'WebSocket, at once', bytes: Buffer.concat([head, afterUpgrade]), afterUpgrade: null };
  return { kind: 'WebSocket', bytes: head, afterUpgrade };
};

export const socketInput = (dice: Dice, vocabulary: Vocabulary): Made =>
  socketMade(dice, {
    handshake: handshake(dice, vocabulary),
    message: () => messageBytes(dice, vocabulary),
    utterance: () => utterance(dice, vocabulary),
  });
