/** Frames of WebSockets: mostly valid messages, some with a fault. */
import type { Dice } from '../../rig/random.js';
import { encodeFrame, opcodes, type FrameFields } from '../../rig/socket.js';

const rareMessages: readonly (() => Buffer)[] = [
  () => Buffer.from('['.repeat(50_000)),
  () => Buffer.from(`{"send_text":"${'x'.repeat(300_000)}"}`),
  () => Buffer.from(`{"send_text":"${'\\u0000'.repeat(20_000)}"}`),
  () => Buffer.from(''),
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
  const reason = Buffer.from(dice.pick(['', 'bye', '\xff\xfe', 'x'.repeat(130)]), 'latin1');
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

export const someFrame = (dice: Dice, message: () => Buffer): Buffer =>
  dice.weighted([
    { weight: 150, value: () => encodeFrame(message(), { opcode: opcodes.text }) },
    { weight: 10, value: () => fragmented(message(), dice) },
    { weight: 8, value: () => encodeFrame(message(), wrongFields(dice)) },
    { weight: 6, value: () => encodeFrame(dice.bytes(dice.below(140)), { opcode: dice.pick([9, 10]) }) },
    { weight: 5, value: () => closeFrame(dice) },
    { weight: 4, value: () => encodeFrame(Buffer.from(dice.pick(invalidUtf8)), { opcode: opcodes.text }) },
    { weight: 4, value: () => encodeFrame(dice.bytes(dice.below(300)), { opcode: opcodes.binary }) },
    { weight: 3, value: () => dice.bytes(dice.between(1, 40)) },
    { weight: 0.4, value: () => encodeFrame(dice.pick(rareMessages)(), { opcode: opcodes.text }) },
  ])();
